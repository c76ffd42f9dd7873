//! What a manifest changes about the tools of a handler: what they are called, and what callers see of them.

use serde_json::Value;
use toolyard_core::{access::Price, overrides::Chunking};

/// `prefix`: when the name of a handler stands before those of its tools and prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefix {
    /// `on-clash`: where a tool's own name is taken, or illegal.
    #[default]
    OnClash,
    /// `always`: before each of them.
    Always,
    /// `never`: before none. What has the same name as something else is not published.
    Never,
}

/// What is changed about one tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Override {
    /// `hide: true`: no caller sees it, or can call it.
    Hide,
    /// Callers see it changed.
    Change(Change),
}

/// How a tool differs from what its server says of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// `name`: what it is called, in full.
    pub name: Option<String>,
    /// `title`: what people read as its name.
    pub title: Option<String>,
    /// `description`: what it does.
    pub description: Option<String>,
    /// `arguments`, by their names, in the order of the document.
    pub arguments: Vec<(String, Argument)>,
    /// `price`: what a call costs.
    pub price: Option<Price>,
    /// `chunk` and `chunkThreshold`: what becomes of its large results.
    pub chunking: Chunking,
}

/// What is changed about one argument.
#[derive(Clone, PartialEq)]
pub enum Argument {
    /// `pin`: every call has this value. Callers neither see the argument nor may send it.
    Pin(Value),
    /// Callers see it changed.
    Show {
        /// `default`: what it is where a caller does not send it.
        default: Option<Value>,
        /// `description`: what it is for.
        description: Option<String>,
    },
}

/// Values may be secret, so only what happens is shown.
impl std::fmt::Debug for Argument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pin(_) => "Pin",
            Self::Show { .. } => "Show",
        })
    }
}
