//! Builds `spawn_wisps`.

use std::sync::Arc;

use toolyard_agent::memory::WorkingMemory;
use toolyard_manifest::BuiltinSettings;
use toolyard_wisp::Wisps;

use super::{BuiltinDeps, agent_model};

/// Returns the dependencies of the tool; `None` if it is disabled. The manifest enables it with working memory only.
pub(super) fn tools(
    deps: &BuiltinDeps,
    builtins: &BuiltinSettings,
    memory: Option<WorkingMemory>,
) -> Option<Wisps> {
    let (settings, memory) = builtins.wisps.clone().zip(memory)?;
    Some(Wisps {
        gateway: deps.nested.clone(),
        memory,
        settings: Arc::new(settings),
        model: agent_model::step_model(builtins),
    })
}
