//! Notices for operators about the publication of items.

use std::fmt;
use std::sync::Arc;

use super::EntryKind;

/// A notice about an item that is not published as offered, or not as the manifest asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PublishNotice {
    /// Handler of the item.
    pub handler: Arc<str>,
    /// Kind of the item.
    pub kind: EntryKind,
    /// The server's own name of the item.
    pub own: Arc<str>,
    /// Reason of the notice.
    pub what: NoticeReason,
}

/// The reason of a notice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NoticeReason {
    /// The manifest hides the item.
    Hidden,
    /// The handler offers the name more than once: later items are not published.
    Twice,
    /// The intended name belongs to another item.
    Taken {
        /// The name or URI.
        name: Arc<str>,
        /// Handler of the other item.
        by: Arc<str>,
        /// Name that is used instead; `None` if the item is not published.
        instead: Option<Arc<str>>,
    },
    /// The name looks like one of another handler.
    Imitates {
        /// The imitated handler.
        other: Arc<str>,
        /// Name that is used instead.
        instead: Arc<str>,
    },
    /// The manifest overrides an item that the handler does not offer.
    NotOffered,
    /// The item exceeds a limit, or its definition is not one.
    LeftOut(Arc<str>),
    /// The definition is not one that MCP permits, and is published with repairs.
    Repaired(Arc<str>),
    /// The manifest overrides an argument that is not in the `properties` of the schema.
    NoArgument(String),
}

impl PublishNotice {
    /// Logs the notice. Notices that the manifest asks for are not warnings.
    pub(crate) fn log(&self) {
        let Self { handler, kind, own, what } = self;
        match what {
            NoticeReason::Hidden => tracing::debug!(%handler, ?kind, name = %own, "{what}"),
            _ => tracing::warn!(%handler, ?kind, name = %own, "{what}"),
        }
    }
}

impl fmt::Display for NoticeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden => f.write_str("hidden by its override"),
            Self::Twice => f.write_str("offered twice: the first one counts"),
            Self::Taken { name, by, instead: None } => {
                write!(f, "not published: `{name}` is taken by the handler `{by}`")
            }
            Self::Taken { name, by, instead: Some(instead) } => {
                write!(f, "published as `{instead}`: `{name}` is taken by the handler `{by}`")
            }
            Self::Imitates { other, instead } => {
                write!(f, "published as `{instead}`: its name looks like one of the handler `{other}`")
            }
            Self::NotOffered => f.write_str("overridden, but the handler does not offer it"),
            Self::LeftOut(reason) => write!(f, "left out: {reason}"),
            Self::Repaired(repairs) => write!(f, "invalid definition repaired: {repairs}"),
            Self::NoArgument(name) => {
                write!(f, "its argument `{name}` is overridden, but not among the properties of its schema")
            }
        }
    }
}
