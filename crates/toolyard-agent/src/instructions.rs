//! Instructions for a model that sees tools of the gateway, in the results of `initialize` and `server/discover`.

use crate::{guides, management, memory, search};

/// Name of the tool that runs scripts over tools, which another crate has.
pub const RUN_SCRIPT: &str = "run_tool_script";
/// Name of the tool that describes tools for scripts.
pub const DESCRIBE: &str = "describe_tools";

/// A sentence, and the tools that it speaks of.
type Sentence = (&'static [&'static str], &'static str);

/// The ways to tools that are not listed. Only the first one that a caller can go is named.
const WAYS: [Sentence; 3] = [
    (
        &[search::SEARCH, search::CALL],
        "Call the tools on your list directly. There may be many more: search_tools finds them by a few keywords, with \
         their parameters, and call_tool calls them. Search before you say that something cannot be done.",
    ),
    (
        &[search::SEARCH, DESCRIBE, RUN_SCRIPT],
        "Call tools in scripts: search_tools finds them by a few keywords, describe_tools shows their types, and \
         run_tool_script runs a script that calls them and returns only what you need. Search before you say that \
         something cannot be done.",
    ),
    (
        &[management::LIST, management::DETAILS, management::INVOKE],
        "Call the tools on your list directly. Others: mcp_list_services lists the servers with their tools, \
         mcp_get_service_details the parameters, and mcp_invoke_tool calls them.",
    ),
];

/// Sentences about other tools, each on its own.
const OTHERS: [Sentence; 3] = [
    (
        &[memory::tools::GET, memory::tools::QUERY],
        "A result that is too large is put into working memory: read it there in parts.",
    ),
    // Needless beside the sentence that explains the way.
    (&[search::CALL, RUN_SCRIPT], "run_tool_script makes many calls in one script."),
    (&[guides::LIST, guides::GET], "get_tool_guide explains each kind of tool."),
];

/// Returns the instructions for a caller that has these built-in tools; `None` if there is nothing to say.
pub fn of_tools(has: impl Fn(&str) -> bool) -> Option<String> {
    let can_say = |(tools, _): &&Sentence| tools.iter().all(|tool| has(tool));
    let way = WAYS.iter().find(can_say);
    let sentences = way.into_iter().chain(OTHERS.iter().filter(can_say));
    let text = sentences.map(|(_, text)| *text).collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use toolyard_core::tokens;

    use super::*;

    /// Maximum number of tokens of the instructions.
    const MAX_TOKENS: usize = 120;

    #[test]
    fn instructions_name_one_way_to_tools() {
        let all = of_tools(|_| true).expect("instructions");
        assert!(tokens::estimate(all.len()) < MAX_TOKENS, "{}", tokens::estimate(all.len()));
        insta::assert_snapshot!(all, @"Call the tools on your list directly. There may be many more: search_tools finds them by a few keywords, with their parameters, and call_tool calls them. Search before you say that something cannot be done. A result that is too large is put into working memory: read it there in parts. run_tool_script makes many calls in one script. get_tool_guide explains each kind of tool.");
        let scripts = of_tools(|name| name != search::CALL).expect("instructions");
        assert!(tokens::estimate(scripts.len()) < MAX_TOKENS, "{}", tokens::estimate(scripts.len()));
        insta::assert_snapshot!(scripts, @"Call tools in scripts: search_tools finds them by a few keywords, describe_tools shows their types, and run_tool_script runs a script that calls them and returns only what you need. Search before you say that something cannot be done. A result that is too large is put into working memory: read it there in parts. get_tool_guide explains each kind of tool.");
    }

    #[test]
    fn instructions_name_visible_tools_only() {
        let without_search =
            of_tools(|name| name != search::SEARCH && name != RUN_SCRIPT).expect("instructions");
        assert!(tokens::estimate(without_search.len()) < MAX_TOKENS);
        insta::assert_snapshot!(without_search, @"Call the tools on your list directly. Others: mcp_list_services lists the servers with their tools, mcp_get_service_details the parameters, and mcp_invoke_tool calls them. A result that is too large is put into working memory: read it there in parts. get_tool_guide explains each kind of tool.");
        let guides = of_tools(|name| guides::NAMES.contains(&name));
        assert_eq!(guides.as_deref(), Some("get_tool_guide explains each kind of tool."));
        assert_eq!(of_tools(|_| false), None);
    }
}
