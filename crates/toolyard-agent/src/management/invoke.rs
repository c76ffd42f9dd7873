//! `mcp_invoke_tool`: a call that stands for one of another tool. That one goes through all layers in its place, so that
//! its own policy, quotas, argument check and limits hold, and the trail names it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::watch;
use toolyard_core::access::Price;
use toolyard_core::registry::Entry;
use toolyard_core::{Backend, Call, Caller, Catalog, Json, Object, Outcome, Registry, ToolError};

use super::args::{missing, object, server_name, shown, written};
use super::port::Servers;
use super::services::Services;
use super::tools::INVOKE;

/// What a model is told whose arguments are a text that is no JSON, where the tool wants some.
const HINT: &str = "`arguments` was a text, not an object, and was not used: write the tool's parameters as members of an \
object, such as {\"city\": \"Oslo\"}";

/// The members of a call. Any others would be dropped, and the tool run without what it was to be given.
const MEMBERS: [&str; 3] = ["server_name", "tool_name", "arguments"];

/// A backend with [`INVOKE`] among its tools, which forwards the calls of it.
pub struct Invoking {
    inner: Arc<dyn Backend>,
    servers: Arc<dyn Servers>,
}

impl Invoking {
    /// The tools of `inner`, where calls of [`INVOKE`] stand for those of tools of `servers`.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, servers: Arc<dyn Servers>) -> Self {
        Self { inner, servers }
    }
}

impl Backend for Invoking {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.inner.catalog()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        self.inner.call(call)
    }

    fn forward(&self, own: &str, call: &Call, registry: &Registry) -> Option<Call> {
        match own == INVOKE {
            true => meant(call.arguments(), registry, &*self.servers)
                .ok()
                .map(|(tool, arguments)| call.of(tool, arguments)),
            false => self.inner.forward(own, call, registry),
        }
    }

    fn price(&self, call: &Call) -> Option<Price> {
        self.inner.price(call)
    }

    fn follow(&self, uri: &str) -> BoxStream<'static, Object> {
        self.inner.follow(uri)
    }

    fn roots_changed(&self, caller: &Caller) {
        self.inner.roots_changed(caller);
    }

    fn refresh(&self) {
        self.inner.refresh();
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        self.inner.stop()
    }
}

/// Which tool of which server is meant, and with what.
struct Meant {
    server: String,
    tool: String,
    arguments: Option<Json>,
}

/// The tool that arguments of [`INVOKE`] mean, by the name that callers have for it, and its own arguments.
///
/// # Errors
/// What a model reads where they mean none.
pub(super) fn meant(
    arguments: Option<&Json>,
    registry: &Registry,
    servers: &dyn Servers,
) -> Result<(Arc<str>, Json), String> {
    let given = arguments.and_then(object).unwrap_or_default();
    let services = Services::of(registry, servers);
    let (entry, arguments) = found(&Meant::of(&given)?, &services)?;
    Ok((entry.name.clone(), arguments.to_json()))
}

/// The tool that is meant, and its arguments. A model that has wrapped the call twice means the inner one.
fn found<'a>(meant: &Meant, services: &Services<'a>) -> Result<(&'a Arc<Entry>, Object), String> {
    let tool_of = |meant: &Meant| services.find(&meant.server)?.tool(&meant.tool);
    let outer = match (tool_of(meant), meant.inner()) {
        (Err(_), Some(inner)) if is_invoke(&meant.tool) => {
            let inner = inner?;
            if is_invoke(&inner.tool) {
                return Err(format!("{INVOKE} cannot be called through itself: name the tool that is meant"));
            }
            let entry = tool_of(&inner)?;
            return Ok((entry, inner.arguments_for(entry)?));
        }
        (outer, _) => outer?,
    };
    if let Some(Ok(inner)) = meant.inner()
        && meant.is_wrapped_for(outer)
        && let Ok(entry) = tool_of(&inner)
    {
        return Ok((entry, inner.arguments_for(entry)?));
    }
    Ok((outer, meant.arguments_for(outer)?))
}

fn is_invoke(tool: &str) -> bool {
    tool.trim().eq_ignore_ascii_case(INVOKE)
}

/// What a tool does with a parameter that is called as a member of a wrapped call.
enum Takes {
    /// It is one of its own, or may be.
    Its,
    /// It takes whatever comes.
    Anything,
    /// It knows nothing of it.
    Others,
}

impl Takes {
    fn of(entry: &Entry) -> Self {
        let schema = entry.tool.as_ref().and_then(|tool| tool.input_schema()?.to_object().ok());
        let Some(schema) = schema else { return Self::Anything };
        // What these say is not worked out here.
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

impl Meant {
    fn of(given: &Object) -> Result<Self, String> {
        if let Some((other, _)) = given.iter().find(|(name, _)| !MEMBERS.contains(&&**name)) {
            let [server, tool, arguments] = MEMBERS;
            return Err(format!(
                "Unknown parameter: {}. Beside {server} and {tool} there is only `{arguments}`, an object: what is for the tool \
                goes into it",
                shown(&other)
            ));
        }
        let text = |name: &str| {
            let text = given.get(name).and_then(|value| written(&value.to_value()));
            text.ok_or_else(|| missing(name))
        };
        let arguments = given.get("arguments").filter(|arguments| !arguments.is_null()).cloned();
        Ok(Self { server: text("server_name")?, tool: text("tool_name")?, arguments })
    }

    /// The call that its arguments are themselves, if they are one. It is of the same server unless it says otherwise.
    fn inner(&self) -> Option<Result<Self, String>> {
        let given = self.arguments.as_ref().and_then(object)?;
        let has_server = given.get("server_name").is_some();
        let server = || Json::string(&self.server);
        Some(Self::of(&if has_server { given } else { given.with("server_name", server()) }))
    }

    /// Whether its arguments look like a call that was wrapped again, and cannot be what the tool itself takes.
    fn is_wrapped_for(&self, tool: &Entry) -> bool {
        let Some(given) = self.arguments.as_ref().and_then(object) else { return false };
        let [server, has_tool, has_arguments] = MEMBERS.map(|name| given.get(name));
        let is_same = server.is_some_and(|server| {
            written(&server.to_value())
                .is_some_and(|server| server_name(&server) == server_name(&self.server))
        });
        has_tool.is_some()
            && match Takes::of(tool) {
                Takes::Its => false,
                Takes::Anything => is_same,
                Takes::Others => server.is_some() || has_arguments.is_some(),
            }
    }

    /// The arguments for a tool. What cannot be read counts as none, which is said where the tool wants some.
    fn arguments_for(&self, entry: &Entry) -> Result<Object, String> {
        let Some(given) = &self.arguments else { return Ok(Object::new()) };
        if let Some(arguments) = object(given) {
            return Ok(arguments);
        }
        let none = Object::new();
        let checked = entry.tool.as_ref().map(|tool| tool.check_arguments(Some(&none.to_json())));
        match checked {
            Some(Err(error)) if given.to_str().is_some() => Err(format!("{}. {HINT}", error.message())),
            Some(Err(error)) => {
                Err(format!("{}. `arguments` was {}", error.message(), shown(given.as_text())))
            }
            _ => Ok(none),
        }
    }
}
