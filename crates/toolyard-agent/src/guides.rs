//! Guides that explain to a model how to use tools well, and the tools that list and return them.

mod book;
#[cfg(test)]
mod tests;
mod tools;

use std::borrow::Cow;

pub use book::{GuideBook, GuideError};
pub use tools::{GET, LIST, NAMES, add};

/// A source of one guide.
pub trait GuideProvider: Send + Sync {
    /// Returns the name of the guide, such as `web-tools`. It does not change.
    fn name(&self) -> &str;

    /// Returns a summary in one line.
    fn summary(&self) -> &str;

    /// Returns the current document as Markdown.
    fn document(&self) -> Cow<'_, str>;
}

/// A guide with a fixed text: a built-in one, or one of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuideDocument {
    /// Name of the guide.
    pub name: Cow<'static, str>,
    /// Summary in one line.
    pub summary: Cow<'static, str>,
    /// The document as Markdown.
    pub document: Cow<'static, str>,
}

impl GuideDocument {
    /// Returns a built-in guide.
    #[must_use]
    pub const fn new(name: &'static str, summary: &'static str, document: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), summary: Cow::Borrowed(summary), document: Cow::Borrowed(document) }
    }
}

impl GuideProvider for GuideDocument {
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

/// Guide to using, adding and removing the servers behind the gateway.
pub const MCP_GUIDE: GuideDocument = GuideDocument::new(
    "mcp-tool-guide",
    "Find the MCP servers that are connected, read what their tools take, call them, add and remove servers",
    include_str!("guides/mcp.md"),
);

/// Guide to finding a service and a tool.
pub const SEARCH_GUIDE: GuideDocument = GuideDocument::new(
    "service-search",
    "Find the service or the tool for a task by a few keywords, and call a tool that is not on your list",
    include_str!("guides/search.md"),
);
