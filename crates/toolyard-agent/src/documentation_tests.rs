//! Compares `docs/agent-tools.md`, and the pages that it refers to, with the tools.

use std::sync::{Arc, Weak};

use futures_util::future::{BoxFuture, pending};
use toolyard_core::{Backend, PythonScript, ScriptExecutor, ScriptOutcome, ToolError};
use toolyard_manifest::{MemorySettings, ServiceRanker, SkillSettings};
use toolyard_sdk::Server;

use crate::guides::{self, GuideBook};
use crate::memory;
use crate::memory::reader::MemoryReader;
use crate::memory::testing::ManualStore;
use crate::search::{self, ServiceIndex, ToolFinder, ToolSearch};
use crate::skills::{self, SkillStore};
use crate::summary::ManifestSummaries;
use crate::{large, management, openrouter, scripts};

/// Never completes a script.
struct EndlessExecutor;

impl ScriptExecutor for EndlessExecutor {
    fn run(&self, _script: PythonScript) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        Box::pin(pending())
    }
}

/// Returns all tools of this crate, with all guides.
fn all_tools() -> Arc<dyn Backend> {
    let (kept, memory) = ManualStore::memory(MemorySettings::default());
    let guides =
        [scripts::GUIDE, memory::GUIDE, large::GUIDE, skills::GUIDE, guides::MCP_GUIDE, openrouter::GUIDE];
    let book = guides.into_iter().try_fold(GuideBook::new(), GuideBook::with).expect("guides of other names");
    let server = Server::new("builtins", "1.0.0");
    let added = scripts::add(server, Arc::new(EndlessExecutor), Some(MemoryReader::new(memory.clone())))
        .and_then(|server| memory::tools::add(server, memory))
        .and_then(|server| guides::add(server, Arc::new(book)))
        .and_then(|server| skills::add(server, SkillStore::new(kept, SkillSettings::default())))
        .and_then(|server| management::add(server, management::tests::management()))
        .and_then(|server| search::add(server, searching()))
        .and_then(|server| openrouter::add(server, &openrouter::tests::api()));
    added.expect("tools of other names").into_backend()
}

/// Returns a search without tools and services.
fn searching() -> ToolSearch {
    let finder = Arc::new(ToolFinder::new(Weak::new(), "builtins"));
    let services = ServiceIndex::new(Arc::new(ManifestSummaries), finder.clone());
    ToolSearch { finder, embeddings: None, services, ranker: ServiceRanker::default() }
}

#[test]
fn page_documents_every_tool_and_parameter() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
    let read = |page: &str| std::fs::read_to_string(format!("{folder}{page}")).expect("the page");
    let (page, of_scripts) = (read("agent-tools.md") + &read("mcp-management.md"), read("scripts.md"));
    let catalog = all_tools().catalog().borrow().clone();
    assert_eq!(catalog.tools.len(), 27);
    for tool in &catalog.tools {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", tool.name)));
        let row = row.unwrap_or_else(|| panic!("{} has no row", tool.name));
        let of_tool = if &*tool.name == scripts::TOOL { &of_scripts } else { row };
        let definition = tool.definition.to_json().to_value();
        let required = &definition["inputSchema"]["required"];
        for parameter in definition["inputSchema"]["properties"].as_object().into_iter().flatten() {
            let name = parameter.0;
            let is_required = required.as_array().is_some_and(|names| names.iter().any(|it| it == name));
            let parameter_text = match is_required || &*tool.name == scripts::TOOL {
                true => format!("`{name}`"),
                false => format!("`{name}?`"),
            };
            assert!(of_tool.contains(&parameter_text), "{parameter_text} of {}", tool.name);
        }
    }
}
