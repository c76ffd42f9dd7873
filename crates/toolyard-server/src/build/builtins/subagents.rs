//! Builds the subagents.

use toolyard_agent::management;
use toolyard_agent::memory::WorkingMemory;
use toolyard_manifest::{BuiltinSettings, HandlerKind, SubagentLimits};
use toolyard_subagent::whiteboard::WhiteboardLimits;
use toolyard_subagent::{ModelSource, SubagentDeps, SubagentSettings, Subagents};

use super::{HandlerBuilder, agent_model};

/// Tools that a subagent cannot reach: it would outgrow its own limits or those of its caller.
const EXCLUDED: &[&str] = &[
    toolyard_subagent::tools::SPAWN,
    toolyard_subagent::tools::CANCEL,
    toolyard_subagent::tools::LIST,
    toolyard_subagent::tools::WHITEBOARD_WRITE,
    toolyard_subagent::tools::WHITEBOARD_READ,
    toolyard_subagent::tools::WHITEBOARD_LIST,
    toolyard_subagent::tools::WHITEBOARD_DELETE,
    toolyard_schedule::SCHEDULE,
    toolyard_schedule::LIST,
    toolyard_schedule::CANCEL,
    toolyard_a2a::tools::INVOKE,
    toolyard_a2a::tools::LIST,
    toolyard_a2a::tools::DETAILS,
    management::REGISTER,
    management::UNREGISTER,
];

/// Tools with which a subagent finds and calls others.
const FINDERS: &[&str] = &[
    toolyard_agent::search::tools::SEARCH,
    toolyard_agent::search::tools::CALL,
    "get_from_working_memory",
    "save_to_working_memory",
];

/// Returns the tools that need the model of their caller's client.
pub(in crate::build) fn model_tools(kind: &HandlerKind) -> &'static [&'static str] {
    match kind {
        HandlerKind::Builtins(builtins) if builtins.subagents.is_some() && builtins.llm.is_none() => {
            &toolyard_subagent::NAMES
        }
        _ => &[],
    }
}

impl HandlerBuilder {
    /// Returns the subagents, if they are configured and their model can be used.
    pub(super) fn subagents(
        &self,
        builtins: &BuiltinSettings,
        memory: Option<&WorkingMemory>,
    ) -> Option<Subagents> {
        let deps = self.builtin_deps.as_ref()?;
        let Some(limits) = &builtins.subagents else {
            deps.subagents.abort_all();
            return None;
        };
        let model = match &builtins.llm {
            None => {
                ModelSource::OfClients { reply_tokens: limits.reply_tokens.try_into().unwrap_or(u64::MAX) }
            }
            Some(llm) => match agent_model::chat_model(llm, limits.model.as_deref()) {
                Ok(model) => ModelSource::Configured(model),
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "cannot serve subagents");
                    return None;
                }
            },
        };
        let subagent_deps = SubagentDeps {
            store: deps.store.clone(),
            nested: deps.nested.clone(),
            memory: memory.cloned(),
            model,
            excluded: EXCLUDED,
            finders: FINDERS,
        };
        Some(Subagents::new(subagent_deps, settings(limits), &deps.subagents))
    }
}

fn settings(limits: &SubagentLimits) -> SubagentSettings {
    SubagentSettings {
        concurrent: limits.concurrent,
        total_concurrent: limits.total_concurrent,
        timeout: limits.timeout,
        max_timeout: limits.max_timeout,
        task_bytes: limits.task_bytes,
        listed_tools: limits.listed_tools,
        run: agent_model::run_limits(limits),
        boards: WhiteboardLimits { owner_bytes: limits.board_bytes, total_bytes: limits.total_board_bytes },
    }
}
