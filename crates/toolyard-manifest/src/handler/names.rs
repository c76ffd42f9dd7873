//! Changes that a manifest makes to the tools of a handler: their names and definitions.

use serde_json::Value;
use toolyard_core::{access::CallPrice, overrides::ChunkingPolicy};

/// `prefix`: when tools and prompts get the name of their handler as a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixMode {
    /// `on-clash`: if the name is already in use, or invalid.
    #[default]
    OnClash,
    /// `always`: on each of them.
    Always,
    /// `never`: on none. A tool whose name is already in use is not published.
    Never,
}

/// `pin`: the treatment of tools whose definitions change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefinitionPin {
    /// `warn`: serve the new definitions and report the change.
    #[default]
    Warn,
    /// `hold`: serve the old definitions until the change is accepted, and no new tools.
    Hold,
}

/// A change of one tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolOverride {
    /// `hide: true`: callers can neither see nor call it.
    Hide,
    /// Callers see it changed.
    Change(ToolModification),
}

/// The changes of a tool's definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolModification {
    /// `name`: the complete name.
    pub name: Option<String>,
    /// `title`: the display name.
    pub title: Option<String>,
    /// `description`: the description.
    pub description: Option<String>,
    /// `arguments`, by their names, in the order of the document.
    pub arguments: Vec<(String, ArgumentOverride)>,
    /// `price`: the price of a call.
    pub price: Option<CallPrice>,
    /// `chunk` and `chunkThreshold`: the treatment of its large results.
    pub chunking: ChunkingPolicy,
}

/// A change of one argument.
#[derive(Clone, PartialEq)]
pub enum ArgumentOverride {
    /// `pin`: the fixed value of the argument. Callers neither see the argument nor may send it.
    Pin(Value),
    /// Callers see it changed.
    Show {
        /// `default`: the value if a caller sends none.
        default: Option<Value>,
        /// `description`: the description of the argument.
        description: Option<String>,
    },
}

/// Shows only the variant, because values may be secret.
impl std::fmt::Debug for ArgumentOverride {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pin(_) => "Pin",
            Self::Show { .. } => "Show",
        })
    }
}
