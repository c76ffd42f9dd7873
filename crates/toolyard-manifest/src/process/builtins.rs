//! The section `builtins`.

mod embedding;
mod management;
mod memory;
mod results;
mod scripts;
mod search;
mod skills;

use crate::{
    cursor::ValueCursor,
    field_type::FieldType,
    handler::HandlerConfig,
    process::LlmSettings,
    registry::{self, ToolGuide},
    section::{SwitchField, nested, section, switchable},
};

pub use self::{
    embedding::EmbeddingSettings,
    management::{AllowedServers, ManagementSettings},
    memory::{MemorySettings, QuerySettings, ReadSettings, SharedMemory},
    results::ResultSettings,
    scripts::{PodSettings, ScriptRunner, ScriptSettings},
    search::{SearchSettings, ServiceRanker, ToolDisclosure},
    skills::SkillSettings,
};

section! {
    /// `builtins` of a `Toolyard` document: the built-in tools. If the section is present, all groups are enabled
    /// except those with `enabled: false`, which are `None` here; without the section there are no built-in tools.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BuiltinSettings: Default = "builtins" {
        /// `execute_python_script`: Python scripts that run once.
        pub scripts: Option<ScriptSettings> = "scripts", switchable::<ScriptSettings>(),
            described Some(ScriptSettings::default());
        /// Working memory: temporary storage for agents.
        pub memory: Option<MemorySettings> = "memory", switchable::<MemorySettings>(),
            described Some(MemorySettings::default());
        /// Splits results that are too large for a model into working memory, or truncates them without it.
        pub results: Option<ResultSettings> = "results", switchable::<ResultSettings>(),
            described Some(ResultSettings::default());
        /// `list_tool_guides` and `get_tool_guide`.
        pub guides: bool = "guides", SwitchField("toolGuides"), described true;
        /// Skills that agents have learned. The limits apply to each key, or to all callers together if there are no
        /// keys.
        pub skills: Option<SkillSettings> = "skills", switchable::<SkillSettings>(),
            described Some(SkillSettings::default());
        /// Search for servers and tools, and the tools that clients see without one.
        pub search: Option<SearchSettings> = "search", switchable::<SearchSettings>(),
            described Some(SearchSettings::default());
        /// Management of MCP servers at run time.
        pub mcp: Option<ManagementSettings> = "mcp", switchable::<ManagementSettings>(),
            described Some(ManagementSettings::default());
    } + {
        /// `guides` of all registries, in document order.
        pub registry_guides: Vec<ToolGuide>,
        /// `llm` of the process.
        pub llm: Option<LlmSettings>,
    }
}

/// Reads the object `builtins`, which is also a handler.
pub(super) fn builtins(cursor: ValueCursor<'_>) -> Option<BuiltinSettings> {
    cursor.declare(registry::DUPLICATE_HANDLER, HandlerConfig::BUILTINS);
    nested().read(cursor)
}
