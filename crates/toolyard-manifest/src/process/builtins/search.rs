//! The reader of `builtins.search`.

use toolyard_core::access::ScopePattern;

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    formats,
};

/// Settings of tool search, and of the tools that clients see without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchSettings {
    /// `disclosure`: the tools in the lists of MCP clients. Default: `auto`.
    pub disclosure: ToolDisclosure,
    /// `budget`: with `auto`, maximum size of the complete tool list, in tokens. Default: 20,000.
    pub budget: usize,
    /// `pinned`: patterns of tools that are always listed, in addition to the built-in ones. Default: none.
    pub pinned: Vec<ScopePattern>,
}

/// The tools in the lists of MCP clients. All others can still be found and called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolDisclosure {
    /// `all`: all tools.
    All,
    /// `search`: the built-in tools and the pinned ones.
    Search,
    /// `auto`: all tools, unless their list exceeds the budget.
    Auto,
}

const DISCLOSURE: KeywordChoice<ToolDisclosure> = KeywordChoice {
    noun: "kind of disclosure",
    words: &[
        ("auto", ToolDisclosure::Auto),
        ("all", ToolDisclosure::All),
        ("search", ToolDisclosure::Search),
    ],
    unsupported: &[],
};

impl Default for SearchSettings {
    fn default() -> Self {
        Self { disclosure: ToolDisclosure::Auto, budget: 20_000, pinned: Vec::new() }
    }
}

/// Reads the object `search`; `enabled: false` becomes `None`.
pub(super) fn search(cursor: ValueCursor<'_>) -> Option<Option<SearchSettings>> {
    let mut fields = cursor.fields()?;
    let default = SearchSettings::default();
    let pinned = |cursor: ValueCursor<'_>| cursor.list(|item| item.parse(formats::pattern));
    let enabled = fields.with_default("enabled", ValueCursor::flag, true);
    let search = SearchSettings {
        disclosure: fields.with_default(
            "disclosure",
            |cursor| cursor.choice(&DISCLOSURE),
            default.disclosure,
        ),
        budget: fields.with_default("budget", ValueCursor::count, default.budget),
        pinned: fields.with_default("pinned", pinned, default.pinned),
    };
    fields.finish();
    Some(enabled.then_some(search))
}
