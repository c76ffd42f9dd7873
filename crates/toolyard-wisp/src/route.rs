//! The tool that a step calls, among those that the caller sees.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolyard_agent::management::INVOKE;
use toolyard_agent::memory::tools as memory_tools;
use toolyard_core::nearest::{did_you_mean, nearest_tools};
use toolyard_core::registry::{EntryKind, RegistryEntry};
use toolyard_core::{Json, Registry};

use crate::definition::{DirectAction, StepAction, WispDefinition, WispStep};
use crate::failure::StepFailure;

/// The tool that sends messages to agents.
const INVOKE_AGENT: &str = "invoke_agent";

/// The tools that a caller sees.
pub(crate) struct CallerTools(Arc<Registry>);

/// A call of a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepCall {
    /// Published name of the called tool.
    pub(crate) tool: Arc<str>,
    /// Arguments of the call.
    pub(crate) arguments: Map<String, Value>,
    /// True if the registry does not have the tool that is meant, so that a failure is one of the definition.
    pub(crate) is_unknown: bool,
}

impl CallerTools {
    /// Returns the tools of a view.
    pub(crate) const fn new(view: Arc<Registry>) -> Self {
        Self(view)
    }

    /// Returns the call of a direct step, whose references are filled.
    ///
    /// # Errors
    /// If the caller has no such tool, or its schema does not accept the arguments.
    pub(crate) fn call_of(&self, step: &WispStep, action: DirectAction) -> Result<StepCall, StepFailure> {
        match action {
            DirectAction::Mcp { server, tool, params } => self.server_call(&server, &tool, params),
            DirectAction::A2a { agent, skill, message } => {
                let mut arguments = json!({"agent_name": agent, "skill": skill, "message": message});
                if let Some(limit) = step.timeout {
                    arguments["timeout_minutes"] = json!(limit.as_secs_f64() / 60.0);
                }
                let Value::Object(arguments) = arguments else { return Err(no_tool(INVOKE_AGENT)) };
                self.built_in_call(INVOKE_AGENT, arguments)
            }
            DirectAction::Script { language, params } => self.built_in_call(&script_tool(&language), params),
            DirectAction::Web { tool, params } => self.built_in_call(tool.name(), params),
        }
    }

    /// Returns the call of a tool of a server: by `mcp_invoke_tool`, or of the tool itself where that is switched off.
    fn server_call(
        &self,
        server: &str,
        tool: &str,
        params: Map<String, Value>,
    ) -> Result<StepCall, StepFailure> {
        let target = self.of_server(server, tool);
        target.map_or(Ok(()), |target| check_arguments(target, &params))?;
        match (target, self.built_in(INVOKE)) {
            (Some(target), _) if target.handler.is_builtin => {
                Ok(StepCall { tool: target.name.clone(), arguments: params, is_unknown: false })
            }
            (target, Some(invoke)) => {
                let arguments = [
                    ("server_name".to_owned(), json!(server)),
                    ("tool_name".to_owned(), json!(tool)),
                    ("arguments".to_owned(), Value::Object(params)),
                ];
                let arguments = arguments.into_iter().collect();
                Ok(StepCall { tool: invoke.name.clone(), arguments, is_unknown: target.is_none() })
            }
            (Some(target), None) => {
                Ok(StepCall { tool: target.name.clone(), arguments: params, is_unknown: false })
            }
            (None, None) => {
                let near = did_you_mean(&nearest_tools(&self.0, &format!("{server} {tool}")));
                Err(StepFailure::structural(format!(
                    "no tool `{tool}` of a server `{server}` is available.{near}"
                )))
            }
        }
    }

    fn built_in_call(&self, own: &str, arguments: Map<String, Value>) -> Result<StepCall, StepFailure> {
        let entry = self.built_in(own).ok_or_else(|| no_tool(own))?;
        check_arguments(entry, &arguments)?;
        Ok(StepCall { tool: entry.name.clone(), arguments, is_unknown: false })
    }

    /// Returns the published names of the tools that the model of a step can call: those of the direct steps and of `tools`,
    /// and working memory.
    ///
    /// # Errors
    /// If the caller has no tool of a name in `tools`.
    pub(crate) fn for_model(&self, definition: &WispDefinition) -> Result<Vec<String>, StepFailure> {
        let mut names = Vec::new();
        let mut add = |entry: &Arc<RegistryEntry>| {
            let name = entry.name.to_string();
            if !names.contains(&name) {
                names.push(name);
            }
        };
        // The step itself fails if its tool is unknown.
        definition.steps.iter().filter_map(|step| self.of_step(step)).for_each(&mut add);
        for tool in &definition.tools {
            let near = || did_you_mean(&nearest_tools(&self.0, tool));
            let unknown =
                || StepFailure::structural(format!("tools: no tool `{tool}` is available.{}", near()));
            add(self.named(tool).ok_or_else(unknown)?);
        }
        memory_tools::NAMES.iter().filter_map(|own| self.built_in(own)).for_each(&mut add);
        Ok(names)
    }

    /// Returns the tool of a direct step.
    fn of_step(&self, step: &WispStep) -> Option<&Arc<RegistryEntry>> {
        let StepAction::Direct(action) = &step.action else { return None };
        match action {
            DirectAction::Mcp { server, tool, .. } => self.of_server(server, tool),
            DirectAction::A2a { .. } => self.built_in(INVOKE_AGENT),
            DirectAction::Script { language, .. } => self.built_in(&script_tool(language)),
            DirectAction::Web { tool, .. } => self.built_in(tool.name()),
        }
    }

    /// Returns a tool by its published name, or as `SERVER/TOOL`, or one of the gateway's own by its own name.
    fn named(&self, name: &str) -> Option<&Arc<RegistryEntry>> {
        let of_server = || name.split_once('/').and_then(|(server, tool)| self.of_server(server, tool));
        self.0.tool(name).ok().or_else(|| self.built_in(name)).or_else(of_server)
    }

    fn built_in(&self, own: &str) -> Option<&Arc<RegistryEntry>> {
        self.find(|entry| entry.handler.is_builtin && *entry.own == *own)
    }

    fn of_server(&self, server: &str, tool: &str) -> Option<&Arc<RegistryEntry>> {
        let (server, tool) = (server.trim(), tool.trim());
        let is_its = |entry: &RegistryEntry| entry.handler.name.eq_ignore_ascii_case(server);
        self.find(|entry| is_its(entry) && *entry.name == *tool)
            .or_else(|| self.find(|entry| is_its(entry) && *entry.own == *tool))
    }

    fn find(&self, is_it: impl Fn(&RegistryEntry) -> bool) -> Option<&Arc<RegistryEntry>> {
        self.0.callable_entries(EntryKind::Tools).find(|entry| is_it(entry))
    }
}

/// Returns the tool that runs scripts of a language.
fn script_tool(language: &str) -> String {
    format!("execute_{language}_script")
}

/// Checks arguments by the schema of a tool before the call, so that the reason is one of the definition.
fn check_arguments(entry: &RegistryEntry, arguments: &Map<String, Value>) -> Result<(), StepFailure> {
    let Some(tool) = &entry.tool else { return Ok(()) };
    let arguments = Json::from_value(&Value::Object(arguments.clone()));
    tool.check_arguments(Some(&arguments)).map_err(StepFailure::from)
}

fn no_tool(name: &str) -> StepFailure {
    StepFailure::structural(format!(
        "the tool {name} is not available to you: the gateway does not have it, or your key does not allow it"
    ))
}
