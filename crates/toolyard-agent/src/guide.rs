//! What a model reads to learn how tools are used well.

/// A guide, as it is listed and as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guide {
    /// What it is asked for by.
    pub name: &'static str,
    /// What it is about, in one line.
    pub summary: &'static str,
    /// The whole, as Markdown.
    pub document: &'static str,
}
