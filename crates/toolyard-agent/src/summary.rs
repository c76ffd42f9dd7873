//! What a server is for, in a sentence for those who look for one.

use std::fmt::Write;

use toolyard_core::registry::Handler;

/// Who says what servers are for.
pub trait Summaries: Send + Sync {
    /// What a handler is for that has tools of these names. It is asked on the way of calls, and has to know at once.
    fn of(&self, handler: &Handler, tools: &[&str]) -> String;
}

/// What the manifest says of a handler, and where it says nothing, the names of its tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct Described;

impl Summaries for Described {
    fn of(&self, handler: &Handler, tools: &[&str]) -> String {
        handler.description.as_deref().map_or_else(|| of_tools(tools), str::to_owned)
    }
}

/// How many tools are named.
const NAMED: usize = 10;

/// What is said of a server of which nothing is known but its tools.
#[must_use]
pub fn of_tools(tools: &[&str]) -> String {
    let named = tools.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let mut text = format!("Provides {} tool(s)", tools.len());
    // What is written to a text is written.
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
    fn the_names_of_tools() {
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
