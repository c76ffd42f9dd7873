//! The tools `web_search` and `web_browse`.
//!
//! - [`web_url`]: the URLs that may be visited;
//! - [`host_patterns`]: patterns of hosts;
//! - [`fetch`]: gets pages, within limits;
//! - [`page`]: the text of a page: the main content of HTML as Markdown, and other texts as they are;
//! - [`render`]: pages that are empty without their scripts, by Chromium;
//! - [`github`]: issues and pull requests by GitHub's REST API;
//! - [`search`]: search services;
//! - [`shared_client`]: the client of all requests;
//! - [`call_limits`]: limits of calls;
//! - [`browse`]: a page as the text that a model reads;
//! - [`tools`]: the tools.

pub mod browse;
pub mod call_limits;
pub mod fetch;
pub mod github;
pub mod host_patterns;
pub mod page;
pub mod render;
pub mod search;
pub mod shared_client;
pub mod tools;
pub mod web_url;

#[cfg(test)]
mod testing;

use toolyard_agent::guides::GuideDocument;

/// Guide to searching the web and reading pages.
pub const GUIDE: GuideDocument = GuideDocument::new(
    "web-tools",
    "Search the web, read pages as Markdown, and work with long pages in chunks",
    include_str!("guide.md"),
);
