//! A document as a tree of values that know their positions. It says nothing about what the values mean.

use crate::problem::Position;

/// A value and where it begins.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) content: Content,
    pub(crate) position: Position,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Null,
    Bool(bool),
    Integer(i64),
    /// A fraction, or an integer beyond 64 bits; not a number where 64-bit floats have none for it.
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Object(Vec<Member>),
}

/// A key of an object and its value. The names within an object are unique.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Where the name begins; the value has a position of its own.
    pub(crate) position: Position,
    pub(crate) value: Node,
}

// === impl Node ===

impl Node {
    /// About how many bytes this value takes with all that is in it.
    pub(crate) fn weight(&self) -> usize {
        let inner = match &self.content {
            Content::Text(text) => text.len(),
            Content::List(items) => items.iter().map(Node::weight).sum(),
            Content::Object(members) => members.iter().map(Member::weight).sum(),
            Content::Null | Content::Bool(_) | Content::Integer(_) | Content::Float(_) => 0,
        };
        size_of::<Self>() + inner
    }

    /// How many lists and objects stand in one another here.
    pub(crate) fn depth(&self) -> usize {
        match &self.content {
            Content::List(items) => 1 + items.iter().map(Node::depth).max().unwrap_or(0),
            Content::Object(members) => 1 + members.iter().map(|m| m.value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }
}

// === impl Content ===

impl Content {
    /// What to call this in a message.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Null => "nothing (null)",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

// === impl Member ===

impl Member {
    fn weight(&self) -> usize {
        size_of::<Self>() - size_of::<Node>() + self.name.len() + self.value.weight()
    }
}
