//! The section `builtins`.

mod agents;
mod code;
mod embedding;
mod management;
mod memory;
mod openrouter;
mod results;
mod schedules;
mod scripts;
mod search;
mod skills;
mod subagents;
mod web;
mod wisps;

use self::openrouter::OpenRouterField;
use crate::{
    cursor::ValueCursor,
    field_type::FieldType,
    handler::HandlerConfig,
    process::LlmSettings,
    registry::{self, ToolGuide},
    section::{SwitchField, nested, section, switchable},
    tree::NodeContent,
};

pub use self::{
    agents::{AgentCardSource, AgentSettings, CardKeys},
    code::CodeSettings,
    embedding::EmbeddingSettings,
    management::{AllowedServers, ManagementSettings},
    memory::{MemorySettings, QuerySettings, ReadSettings, SharedMemory},
    openrouter::OpenRouterSettings,
    results::ResultSettings,
    schedules::{
        MissedRuns, ScheduleAction, ScheduleSettings, ScheduleWebhook, ScheduledCall, ScheduledMessage,
    },
    scripts::{PodSettings, ScriptRunner, ScriptSettings},
    search::{SearchSettings, ServiceRanker, ToolDisclosure},
    skills::SkillSettings,
    subagents::SubagentLimits,
    web::{ChromiumSettings, PageRendering, SearchService, SecretVariable, WebSettings},
    wisps::WispSettings,
};

section! {
    /// `builtins` of a `Toolyard` document: the built-in tools. If the section is present, all groups but `openRouter`,
    /// `web`, `schedules`, `agents`, `subagents`, `wisps` and `code` are enabled, except those with `enabled: false`, which
    /// are `None` here; without the section there are no built-in tools.
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
        /// Account information of OpenRouter. Default: none, as it needs a key.
        pub open_router: Option<OpenRouterSettings> = "openRouter", OpenRouterField, optional;
        /// Search of the web, and pages of it. Default: disabled, as the tools reach other hosts.
        pub web: Option<WebSettings> = "web", switchable::<WebSettings>(), described None;
        /// Scheduled tasks. They are enabled by this section only, even if it is empty, because they act without a
        /// caller.
        pub schedules: Option<ScheduleSettings> = "schedules", switchable::<ScheduleSettings>(), described None;
        /// Other agents, which are called by the A2A protocol. Default: disabled, as the tools reach other hosts.
        pub agents: Option<AgentSettings> = "agents", switchable::<AgentSettings>(), described None;
        /// Agents in the background. They are enabled by this section only, because they spend money: that of `llm`,
        /// or of the clients that start them.
        pub subagents: Option<SubagentLimits> = "subagents", switchable::<SubagentLimits>(), described None;
        /// `spawn_wisps`: small pipelines of tool calls that an agent defines. They are enabled by this section only, even
        /// if it is empty, because one call of them makes many.
        pub wisps: Option<WispSettings> = "wisps", switchable::<WispSettings>(), described None;
        /// Scripts that call tools. They are enabled by this section only, even if it is empty.
        pub code: Option<CodeSettings> = "code", switchable::<CodeSettings>(), described None;
    } + {
        /// `guides` of all registries, in document order.
        pub registry_guides: Vec<ToolGuide>,
        /// True if the document has the section `web`, even if that disables the group.
        pub has_web_section: bool,
        /// `llm` of the process.
        pub llm: Option<LlmSettings>,
    }
}

/// Reads the object `builtins`, which is also a handler.
pub(super) fn builtins(cursor: ValueCursor<'_>) -> Option<BuiltinSettings> {
    cursor.declare(registry::DUPLICATE_HANDLER, HandlerConfig::BUILTINS);
    let settings: BuiltinSettings = nested().read(cursor.clone())?;
    search::check_disclosure(&settings, &cursor);
    if let Some(web) = &settings.web {
        web.check(&cursor);
    }
    let model_of_subagents = || member(&member(&cursor, "subagents")?, "model");
    if settings.subagents.as_ref().is_some_and(|subagents| subagents.model.is_some()) {
        model_of_subagents().inspect(ValueCursor::require_llm);
    }
    if settings.wisps.is_some() && settings.memory.is_none() {
        let problem =
            cursor.problem("`wisps` is enabled without `memory`, where its steps put their outputs");
        cursor.report(problem.hint("remove `enabled: false` of `memory`, or the section `wisps`"));
    }
    let has_web_section = member(&cursor, "web").is_some();
    Some(BuiltinSettings { has_web_section, ..settings })
}

fn member<'a>(cursor: &ValueCursor<'a>, name: &str) -> Option<ValueCursor<'a>> {
    let NodeContent::Object(members) = cursor.content() else { return None };
    members.iter().find(|member| member.name == name).map(|member| cursor.member(member))
}

/// Reads the object `web` of another file.
pub(crate) fn web_settings(cursor: ValueCursor<'_>) -> Option<WebSettings> {
    let web = nested::<WebSettings>().read(cursor.clone())?;
    web.check(&cursor);
    Some(web)
}
