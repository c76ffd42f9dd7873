//! Summarizes a server in a sentence.

use std::fmt::Write;

use toolyard_core::registry::HandlerEntry;

/// A source of the summaries of servers.
pub trait SummarySource: Send + Sync {
    /// Returns the summary of a handler with these tools. It must not block, because tool calls wait for it.
    fn of(&self, handler: &HandlerEntry, tools: &[&str]) -> String;
}

/// Summarizes a handler by its description in the manifest, or else by the names of its tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct ManifestSummaries;

impl SummarySource for ManifestSummaries {
    fn of(&self, handler: &HandlerEntry, tools: &[&str]) -> String {
        handler.description.as_deref().map_or_else(|| of_tools(tools), str::to_owned)
    }
}

/// Maximum number of tools that a summary names.
const NAMED: usize = 10;

/// Summarizes a server by its tools.
#[must_use]
pub fn of_tools(tools: &[&str]) -> String {
    let named = tools.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let mut text = format!("Provides {} tool(s)", tools.len());
    // Writing to a string cannot fail.
    let _ = match tools.len().checked_sub(NAMED) {
        _ if tools.is_empty() => write!(text, "."),
        None | Some(0) => write!(text, ": {named}."),
        Some(more) => write!(text, ": {named}, … and {more} more."),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_names_the_first_tools() {
        let check = |count: usize, expected: &str| {
            let names: Vec<_> = (1..=count).map(|number| format!("t{number}")).collect();
            assert_eq!(of_tools(&names.iter().map(String::as_str).collect::<Vec<_>>()), expected);
        };
        check(0, "Provides 0 tool(s).");
        check(1, "Provides 1 tool(s): t1.");
        check(10, "Provides 10 tool(s): t1, t2, t3, t4, t5, t6, t7, t8, t9, t10.");
        check(12, "Provides 12 tool(s): t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, … and 2 more.");
    }
}
