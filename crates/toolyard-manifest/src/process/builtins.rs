//! The reader of `builtins`.

mod management;
mod memory;
mod results;
mod scripts;
mod search;
mod skills;

pub use self::{
    management::{AllowedServers, ManagementSettings},
    memory::{MemorySettings, QuerySettings},
    results::ResultSettings,
    scripts::{PodSettings, ScriptRunner, ScriptSettings},
    search::{SearchSettings, ToolDisclosure},
    skills::SkillSettings,
};

use crate::registry::ToolGuide;
use crate::{cursor::ValueCursor, handler::HandlerConfig, process::LlmSettings, registry};

/// `builtins` of a `Toolyard` document: the built-in tools. If the section is present, all groups are enabled except
/// those with `enabled: false`, which are `None` here; without the section there are no built-in tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinSettings {
    /// `scripts`: `execute_python_script`.
    pub scripts: Option<ScriptSettings>,
    /// `memory`: working memory.
    pub memory: Option<MemorySettings>,
    /// `results`: splitting large results into working memory, or truncation without it.
    pub results: Option<ResultSettings>,
    /// `guides`: guides for models on the use of tools.
    pub guides: bool,
    /// `skills`: skills that agents have learned.
    pub skills: Option<SkillSettings>,
    /// `search`: search for servers and tools.
    pub search: Option<SearchSettings>,
    /// `mcp`: management of MCP servers at run time.
    pub mcp: Option<ManagementSettings>,
    /// `guides` of all registries, in document order.
    pub registry_guides: Vec<ToolGuide>,
    /// `llm` of the process.
    pub llm: Option<LlmSettings>,
}

impl Default for BuiltinSettings {
    fn default() -> Self {
        Self {
            scripts: Some(ScriptSettings::default()),
            memory: Some(MemorySettings::default()),
            results: Some(ResultSettings::default()),
            guides: true,
            skills: Some(SkillSettings::default()),
            search: Some(SearchSettings::default()),
            mcp: Some(ManagementSettings::default()),
            registry_guides: Vec::new(),
            llm: None,
        }
    }
}

pub(super) fn builtins(cursor: ValueCursor<'_>) -> Option<BuiltinSettings> {
    cursor.declare(registry::DUPLICATE_HANDLER, HandlerConfig::BUILTINS);
    let mut fields = cursor.fields()?;
    let default = BuiltinSettings::default();
    let builtins = BuiltinSettings {
        scripts: fields.with_default("scripts", scripts::scripts, default.scripts),
        memory: fields.with_default("memory", memory::memory, default.memory),
        results: fields.with_default("results", results::results, default.results),
        guides: fields.with_default("guides", guides, default.guides),
        skills: fields.with_default("skills", skills::skills, default.skills),
        search: fields.with_default("search", search::search, default.search),
        mcp: fields.with_default("mcp", management::management, default.mcp),
        registry_guides: Vec::new(),
        llm: None,
    };
    fields.finish();
    Some(builtins)
}

fn guides(cursor: ValueCursor<'_>) -> Option<bool> {
    let mut fields = cursor.fields()?;
    let enabled = fields.with_default("enabled", ValueCursor::flag, true);
    fields.finish();
    Some(enabled)
}
