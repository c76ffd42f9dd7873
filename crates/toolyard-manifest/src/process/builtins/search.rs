//! The reader of `builtins.search`.

use toolyard_core::access::Pattern;

use crate::{
    cursor::{Choice, Cursor},
    forms,
};

/// How tools are found, and which of them clients are shown without a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchSettings {
    /// `disclosure`: which tools are on the lists of MCP clients. As many as `budget` allows.
    pub disclosure: Disclosure,
    /// `budget`: how many tokens the list of all tools may take before it is cut down, with `auto`. 20,000.
    pub budget: usize,
    /// `pinned`: the tools that are always on the list. None but those of the gateway itself.
    pub pinned: Vec<Pattern>,
}

/// Which tools are on the lists of MCP clients. What is not can be found and called all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disclosure {
    /// `all`: all of them.
    All,
    /// `search`: those of the gateway itself, and those that are pinned.
    Search,
    /// `auto`: all, unless their list takes more tokens than the budget.
    Auto,
}

const DISCLOSURE: Choice<Disclosure> = Choice {
    noun: "kind of disclosure",
    words: &[("auto", Disclosure::Auto), ("all", Disclosure::All), ("search", Disclosure::Search)],
    not_yet: &[],
};

impl Default for SearchSettings {
    fn default() -> Self {
        Self { disclosure: Disclosure::Auto, budget: 20_000, pinned: Vec::new() }
    }
}

/// Reads the object `search`; one that is switched off is none.
pub(super) fn search(cursor: Cursor<'_>) -> Option<Option<SearchSettings>> {
    let mut fields = cursor.fields()?;
    let default = SearchSettings::default();
    let pinned = |cursor: Cursor<'_>| cursor.list(|item| item.parse(forms::pattern));
    let enabled = fields.with_default("enabled", Cursor::flag, true);
    let search = SearchSettings {
        disclosure: fields.with_default(
            "disclosure",
            |cursor| cursor.choice(&DISCLOSURE),
            default.disclosure,
        ),
        budget: fields.with_default("budget", Cursor::count, default.budget),
        pinned: fields.with_default("pinned", pinned, default.pinned),
    };
    fields.finish();
    Some(enabled.then_some(search))
}
