//! The section `builtins.search`.

use toolyard_core::access::ScopePattern;

use super::{BuiltinSettings, EmbeddingSettings};
use crate::{
    cursor::{KeywordChoice, ValueCursor},
    field_type::{CountField, KeywordField, ListField, TextField},
    formats,
    section::{nested, section},
    tree::NodeContent,
};

section! {
    /// Settings of tool search, and of the tools that clients see without one.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SearchSettings: Default = "search" {
        /// Tools in the lists of MCP clients: `all`; with `search` the built-in and the pinned ones; with `auto` all,
        /// unless they exceed the budget; with `code`, which needs `builtins.code`, `search_tools`, `describe_tools`,
        /// `run_tool_script` and the pinned ones. Tools that are not listed can still be found and called.
        pub disclosure: ToolDisclosure = "disclosure", KeywordField(&DISCLOSURE), default ToolDisclosure::Auto;
        /// With `auto`, maximum size of the complete tool list, in tokens. `toolyard doctor --tokens` shows the actual
        /// size.
        pub budget: usize = "budget", CountField, default 20_000;
        /// Patterns of tools that are always listed: `NAME` or `HANDLER/NAME`, with `*` for any characters.
        pub pinned: Vec<ScopePattern> = "pinned",
            ListField(
                TextField::new(formats::pattern).pattern(r"\S").examples(&["search_*", "github/create_*"])
            ),
            described Vec::new();
        /// Ranker of `search_known_services`: `bm25`, with the scores of RockBot, or `toolyard`, the ranking of
        /// `search_tools`.
        pub ranker: ServiceRanker = "ranker", KeywordField(&RANKER), default ServiceRanker::Bm25;
        /// Embeddings of tools and queries, which another program computes. Default: none.
        pub embedding: Option<EmbeddingSettings> = "embedding", nested::<EmbeddingSettings>(), optional;
    }
}

/// Reports a disclosure by tools that are not enabled. The cursor is that of `builtins`.
pub(super) fn check_disclosure(builtins: &BuiltinSettings, cursor: &ValueCursor<'_>) {
    let is_code = builtins.search.as_ref().is_some_and(|search| search.disclosure == ToolDisclosure::Code);
    if !is_code || builtins.code.is_some() {
        return;
    }
    let search = member(cursor, "search");
    let disclosure = search.and_then(|search| member(&search, "disclosure"));
    if let Some(disclosure) = disclosure {
        let problem = disclosure.problem("`disclosure: code` needs the scripts of `builtins.code`");
        disclosure.report(problem.hint("add `code: {}` to `builtins`, or choose `search`"));
    }
}

/// Returns the member of an object with this name.
fn member<'a>(cursor: &ValueCursor<'a>, name: &str) -> Option<ValueCursor<'a>> {
    let NodeContent::Object(members) = cursor.content() else { return None };
    members.iter().find(|member| member.name == name).map(|member| cursor.member(member))
}

/// The ranker of services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceRanker {
    /// `bm25`: BM25 with the scores of RockBot.
    #[default]
    Bm25,
    /// `toolyard`: the ranking of `search_tools`.
    Toolyard,
}

const RANKER: KeywordChoice<ServiceRanker> = KeywordChoice {
    noun: "ranker",
    words: &[("bm25", ServiceRanker::Bm25), ("toolyard", ServiceRanker::Toolyard)],
    unsupported: &[],
};

/// The tools in the lists of MCP clients. All others can still be found and called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolDisclosure {
    /// `all`: all tools.
    All,
    /// `search`: the built-in tools and the pinned ones.
    Search,
    /// `auto`: all tools, unless their list exceeds the budget.
    Auto,
    /// `code`: the tools that find, describe and run others in scripts, and the pinned ones.
    Code,
}

const DISCLOSURE: KeywordChoice<ToolDisclosure> = KeywordChoice {
    noun: "kind of disclosure",
    words: &[
        ("auto", ToolDisclosure::Auto),
        ("all", ToolDisclosure::All),
        ("search", ToolDisclosure::Search),
        ("code", ToolDisclosure::Code),
    ],
    unsupported: &[],
};
