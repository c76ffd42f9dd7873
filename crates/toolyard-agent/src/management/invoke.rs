//! `mcp_invoke_tool` calls another tool. The call of that tool passes all layers instead, so that its own policy,
//! quotas, argument check and limits apply, and the audit trail names it.

use std::sync::Arc;

use toolyard_core::registry::RegistryEntry;
use toolyard_core::{Backend, BackendWrapper, Call, Json, Object, Registry};

use super::args::{arguments_object, excerpt, missing_parameter, scalar_text, server_name};
use super::manager::ServerManager;
use super::services::ServerDirectory;
use super::tools::INVOKE;

/// Hint for a model whose arguments are a text that is not JSON, if the tool requires arguments.
const HINT: &str = "`arguments` was a text, not an object, and was not used: write the tool's parameters as members of an \
object, such as {\"city\": \"Oslo\"}";

/// Members of a call. An unknown member is refused, because the tool would run without it.
const MEMBERS: [&str; 3] = ["server_name", "tool_name", "arguments"];

/// A backend that forwards calls of [`INVOKE`].
pub struct InvokeToolBackend {
    inner: Arc<dyn Backend>,
    servers: Arc<dyn ServerManager>,
}

impl InvokeToolBackend {
    /// Wraps `inner`, which has the tool [`INVOKE`], and forwards its calls to the tools of `servers`.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, servers: Arc<dyn ServerManager>) -> Self {
        Self { inner, servers }
    }
}

impl BackendWrapper for InvokeToolBackend {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn forward(&self, own: &str, call: &Call, registry: &Registry) -> Option<Call> {
        if own != INVOKE {
            return self.inner.forward(own, call, registry);
        }
        let (tool, arguments) = resolve_invocation(call.arguments(), registry, &*self.servers).ok()?;
        Some(call.of(tool, arguments))
    }
}

/// The server, the tool and the arguments of a call of [`INVOKE`].
pub(super) struct InvocationTarget {
    pub(super) server: String,
    pub(super) tool: String,
    pub(super) arguments: Option<Json>,
}

/// Returns the published name and the arguments of the tool that a call of [`INVOKE`] names.
///
/// # Errors
/// Returns the message for the model if there is no such tool.
pub(super) fn resolve_invocation(
    arguments: Option<&Json>,
    registry: &Registry,
    servers: &dyn ServerManager,
) -> Result<(Arc<str>, Json), String> {
    let members = arguments.and_then(arguments_object).unwrap_or_default();
    let services = ServerDirectory::of(registry, servers);
    let (entry, arguments) = resolve_target(&InvocationTarget::of(&members)?, &services)?;
    Ok((entry.name.clone(), arguments.to_json()))
}

/// Finds the tool and its arguments. If a model wraps the call twice, the inner call counts.
fn resolve_target<'a>(
    target: &InvocationTarget,
    services: &ServerDirectory<'a>,
) -> Result<(&'a Arc<RegistryEntry>, Object), String> {
    let tool_of = |target: &InvocationTarget| services.find(&target.server)?.tool(&target.tool);
    let outer = match (tool_of(target), target.inner()) {
        (Err(_), Some(inner)) if is_invoke(&target.tool) => {
            let inner = inner?;
            if is_invoke(&inner.tool) {
                return Err(format!("{INVOKE} cannot be called through itself: name the tool that is meant"));
            }
            let entry = tool_of(&inner)?;
            return Ok((entry, inner.arguments_for(entry)?));
        }
        (outer, _) => outer?,
    };
    if let Some(Ok(inner)) = target.inner()
        && target.is_wrapped_for(outer)
        && let Ok(entry) = tool_of(&inner)
    {
        return Ok((entry, inner.arguments_for(entry)?));
    }
    Ok((outer, target.arguments_for(outer)?))
}

fn is_invoke(tool: &str) -> bool {
    tool.trim().eq_ignore_ascii_case(INVOKE)
}

/// Acceptance of a parameter that has the name of a member of a wrapped call.
enum MemberAcceptance {
    /// The parameter is declared, or may be.
    Its,
    /// The tool accepts any parameter.
    Anything,
    /// The tool does not accept the parameter.
    Others,
}

impl MemberAcceptance {
    fn of(entry: &RegistryEntry) -> Self {
        let schema = entry.tool.as_ref().and_then(|tool| tool.input_schema()?.to_object().ok());
        let Some(schema) = schema else { return Self::Anything };
        // The effect of these keywords is not evaluated here.
        let elsewhere =
            ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"];
        if elsewhere.iter().any(|keyword| schema.get(keyword).is_some()) {
            return Self::Its;
        }
        let properties = schema.get("properties").and_then(|properties| properties.to_object().ok());
        let has_some = properties.as_ref().is_some_and(|properties| properties.iter().next().is_some());
        match schema.get("additionalProperties").map(Json::as_text) {
            _ if properties.is_some_and(|properties| properties.get("tool_name").is_some()) => Self::Its,
            Some("false") => Self::Others,
            None if has_some => Self::Others,
            _ => Self::Anything,
        }
    }
}

impl InvocationTarget {
    /// Reads the members of a call.
    ///
    /// # Errors
    /// Returns the message for the model if the call has a member too few or too many.
    pub(super) fn of(members: &Object) -> Result<Self, String> {
        if let Some((other, _)) = members.iter().find(|(name, _)| !MEMBERS.contains(&&**name)) {
            let [server, tool, arguments] = MEMBERS;
            return Err(format!(
                "Unknown parameter: {}. A call has {server}, {tool} and `{arguments}`: put the parameters of the tool \
                into that object",
                excerpt(&other)
            ));
        }
        let text = |name: &str| {
            let text = members.get(name).and_then(|value| scalar_text(&value.to_value()));
            text.ok_or_else(|| missing_parameter(name))
        };
        let arguments = members.get("arguments").filter(|arguments| !arguments.is_null()).cloned();
        Ok(Self { server: text("server_name")?, tool: text("tool_name")?, arguments })
    }

    /// Returns the call in its arguments, if they are one. Its server defaults to the outer one.
    fn inner(&self) -> Option<Result<Self, String>> {
        let members = self.arguments.as_ref().and_then(arguments_object)?;
        let has_server = members.get("server_name").is_some();
        let server = || Json::string(&self.server);
        Some(Self::of(&if has_server { members } else { members.with("server_name", server()) }))
    }

    /// Returns `true` if the arguments look like a wrapped call and cannot be arguments of the tool itself.
    fn is_wrapped_for(&self, tool: &RegistryEntry) -> bool {
        let Some(members) = self.arguments.as_ref().and_then(arguments_object) else { return false };
        let [server, has_tool, has_arguments] = MEMBERS.map(|name| members.get(name));
        let is_same = server.is_some_and(|server| {
            scalar_text(&server.to_value())
                .is_some_and(|server| server_name(&server) == server_name(&self.server))
        });
        has_tool.is_some()
            && match MemberAcceptance::of(tool) {
                MemberAcceptance::Its => false,
                MemberAcceptance::Anything => is_same,
                MemberAcceptance::Others => server.is_some() || has_arguments.is_some(),
            }
    }

    /// Returns the arguments for a tool. Unreadable ones count as none, and are an error if the tool requires some.
    fn arguments_for(&self, entry: &RegistryEntry) -> Result<Object, String> {
        let Some(members) = &self.arguments else { return Ok(Object::new()) };
        if let Some(arguments) = arguments_object(members) {
            return Ok(arguments);
        }
        let none = Object::new();
        let checked = entry.tool.as_ref().map(|tool| tool.check_arguments(Some(&none.to_json())));
        match checked {
            Some(Err(error)) if members.to_str().is_some() => Err(format!("{}. {HINT}", error.message())),
            Some(Err(error)) => {
                Err(format!("{}. `arguments` was {}", error.message(), excerpt(members.as_text())))
            }
            _ => Ok(none),
        }
    }
}
