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
    scripts::{PodSettings, ScriptRunner, Scripts},
    search::{Disclosure, SearchSettings},
    skills::SkillSettings,
};

use crate::registry::Guide;
use crate::{cursor::Cursor, handler::Handler, process::Llm, registry};

/// `builtins` of a `Toolyard` document: the tools of the gateway itself. Where the section is there, so are all of them but
/// for those that are switched off by `enabled: false`, which are none here; without it there are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builtins {
    /// `scripts`: `execute_python_script`.
    pub scripts: Option<Scripts>,
    /// `memory`: working memory.
    pub memory: Option<MemorySettings>,
    /// `results`: large results are put into working memory, where there is one, or else cut.
    pub results: Option<ResultSettings>,
    /// `guides`: whether models can read how tools are used well.
    pub guides: bool,
    /// `skills`: what agents have learned.
    pub skills: Option<SkillSettings>,
    /// `search`: finding services and tools.
    pub search: Option<SearchSettings>,
    /// `mcp`: the servers behind the gateway, and more of them while it runs.
    pub mcp: Option<ManagementSettings>,
    /// `guides` of all registries, in the order in which they are written.
    pub registry_guides: Vec<Guide>,
    /// `llm` of the process.
    pub llm: Option<Llm>,
}

impl Default for Builtins {
    fn default() -> Self {
        Self {
            scripts: Some(Scripts::default()),
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

pub(super) fn builtins(cursor: Cursor<'_>) -> Option<Builtins> {
    cursor.declare(registry::HANDLER_NAME, Handler::BUILTINS);
    let mut fields = cursor.fields()?;
    let default = Builtins::default();
    let builtins = Builtins {
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

fn guides(cursor: Cursor<'_>) -> Option<bool> {
    let mut fields = cursor.fields()?;
    let enabled = fields.with_default("enabled", Cursor::flag, true);
    fields.finish();
    Some(enabled)
}
