//! What a model reads to learn how tools are used well, and the tools by which it does.

mod book;
#[cfg(test)]
mod tests;
mod tools;

use std::borrow::Cow;

pub use book::{BadGuide, GuideBook};
pub use tools::{GET, LIST, NAMES, add};

/// Somebody who knows how some tools are used well.
pub trait GuideProvider: Send + Sync {
    /// What the guide is asked for by, such as `web-tools`. It stays the same.
    fn name(&self) -> &str;

    /// What it is about, in one line.
    fn summary(&self) -> &str;

    /// The whole, as Markdown, as it is now.
    fn document(&self) -> Cow<'_, str>;
}

/// A guide that is written down: one of ours, or one of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guide {
    /// What it is asked for by.
    pub name: Cow<'static, str>,
    /// What it is about, in one line.
    pub summary: Cow<'static, str>,
    /// The whole, as Markdown.
    pub document: Cow<'static, str>,
}

impl Guide {
    /// A guide of ours.
    #[must_use]
    pub const fn new(name: &'static str, summary: &'static str, document: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), summary: Cow::Borrowed(summary), document: Cow::Borrowed(document) }
    }
}

impl GuideProvider for Guide {
    fn name(&self) -> &str {
        &self.name
    }

    fn summary(&self) -> &str {
        &self.summary
    }

    fn document(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.document)
    }
}

/// How to use the servers behind the gateway, and to add some, for a model.
pub const MCP_GUIDE: Guide = Guide::new(
    "mcp-tool-guide",
    "Find the MCP servers that are connected, read what their tools take, call them, add and remove servers",
    include_str!("mcp.md"),
);

/// How to find the right service and the right tool, for a model.
pub const SEARCH_GUIDE: Guide = Guide::new(
    "service-search",
    "Find the service or the tool for a task by a few keywords, and call a tool that is not on your list",
    include_str!("search.md"),
);
