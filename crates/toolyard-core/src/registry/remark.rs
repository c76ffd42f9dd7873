//! What an operator may want to know of what handlers offer.

use std::fmt;
use std::sync::Arc;

use super::Kind;

/// Why something is not published as its owner offers it, or as the manifest wants it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Remark {
    /// Whose it is.
    pub handler: Arc<str>,
    /// What it is.
    pub kind: Kind,
    /// What its owner calls it by.
    pub own: Arc<str>,
    /// What there is to say.
    pub what: What,
}

/// What there is to say of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum What {
    /// It is hidden, as the manifest says.
    Hidden,
    /// Its handler offers another one of this name before it: it is not published.
    Twice,
    /// It was to have a name that something else has.
    Taken {
        /// The name, or the URI.
        name: Arc<str>,
        /// The handler of the other one.
        by: Arc<str>,
        /// What it is called instead; nothing where it is not published.
        instead: Option<Arc<str>>,
    },
    /// The manifest overrides it, and its handler does not offer it.
    NotOffered,
    /// The manifest overrides an argument that the `properties` of its schema do not have.
    NoArgument(String),
}

impl Remark {
    /// Tells the log. What the manifest asks for is no reason to warn.
    pub(crate) fn log(&self) {
        let Self { handler, kind, own, what } = self;
        match what {
            What::Hidden => tracing::debug!(%handler, ?kind, name = %own, "{what}"),
            _ => tracing::warn!(%handler, ?kind, name = %own, "{what}"),
        }
    }
}

impl fmt::Display for What {
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
            Self::NotOffered => f.write_str("overridden, but the handler does not offer it"),
            Self::NoArgument(name) => {
                write!(f, "its argument `{name}` is overridden, but not among the properties of its schema")
            }
        }
    }
}
