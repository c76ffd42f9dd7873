//! A document as a tree of values with positions, without any meaning.

use crate::problem::SourcePosition;

/// A value and its position.
#[derive(Clone, Debug)]
pub(crate) struct TreeNode {
    pub(crate) content: NodeContent,
    pub(crate) position: SourcePosition,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeContent {
    Null,
    Bool(bool),
    Integer(i64),
    /// A fraction, or an integer beyond 64 bits; NaN if a 64-bit float cannot represent it.
    Float(f64),
    Text(String),
    List(Vec<TreeNode>),
    Object(Vec<ObjectMember>),
}

/// A key of an object and its value. The names in an object are unique.
#[derive(Clone, Debug)]
pub(crate) struct ObjectMember {
    pub(crate) name: String,
    /// Position of the name; the value has its own.
    pub(crate) position: SourcePosition,
    pub(crate) value: TreeNode,
}

// === impl Node ===

impl TreeNode {
    /// Approximate size of this value and its contents in memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let inner = match &self.content {
            NodeContent::Text(text) => text.len(),
            NodeContent::List(items) => items.iter().map(TreeNode::memory_bytes).sum(),
            NodeContent::Object(members) => members.iter().map(ObjectMember::memory_bytes).sum(),
            NodeContent::Null | NodeContent::Bool(_) | NodeContent::Integer(_) | NodeContent::Float(_) => 0,
        };
        size_of::<Self>() + inner
    }

    /// Nesting depth of lists and objects in this value.
    pub(crate) fn depth(&self) -> usize {
        match &self.content {
            NodeContent::List(items) => 1 + items.iter().map(TreeNode::depth).max().unwrap_or(0),
            NodeContent::Object(members) => 1 + members.iter().map(|m| m.value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }
}

// === impl Content ===

impl NodeContent {
    /// The noun for this type of value in messages.
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

impl ObjectMember {
    fn memory_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<TreeNode>() + self.name.len() + self.value.memory_bytes()
    }
}
