//! The list of servers, within a number of tokens: whole, then without summaries and names of tools, then in pages.

use std::sync::Arc;

use serde::Serialize;
use toolyard_core::tokens;

/// Maximum number of tokens of a list, with its note.
const MAX_TOKENS: usize = 2_000;
/// Tokens for the note.
const NOTE_TOKENS: usize = 100;

/// Maximum length of a filter in characters and in words.
const MAX_FILTER_LENGTH: usize = 256;
const MAX_FILTER_WORDS: usize = 16;

/// A server in the answer of `mcp_list_services`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerListing<'a> {
    pub(super) server_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) display_name: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<String>,
    pub(super) tool_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_names: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) added_at_run_time: bool,
    /// Present only if the server is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) available: Option<bool>,
}

/// A list of servers: a JSON array, and what a model has to know about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServerPage {
    pub(super) array: String,
    pub(super) note: Option<String>,
}

/// Words that a server must have.
pub(super) struct ServerFilter(Vec<String>);

impl ServerFilter {
    /// Reads a filter. Blank texts match every server.
    pub(super) fn new(text: &str) -> Self {
        let text: String = text.chars().take(MAX_FILTER_LENGTH).collect();
        Self(text.to_lowercase().split_whitespace().take(MAX_FILTER_WORDS).map(str::to_owned).collect())
    }

    /// Returns `true` if all words are in the names, the summary or the tools of a server.
    pub(super) fn matches(&self, server: &ServerListing<'_>) -> bool {
        let ServerListing { server_name, display_name, summary, tool_names, .. } = server;
        let texts = [
            *server_name,
            display_name.as_deref().unwrap_or_default(),
            summary.as_deref().unwrap_or_default(),
        ];
        let names = tool_names.iter().flatten().copied();
        let text = texts.into_iter().chain(names).collect::<Vec<_>>().join("\n").to_lowercase();
        self.0.iter().all(|word| text.contains(word.as_str()))
    }
}

/// Returns the list, or the page of it that begins with the server `cursor`.
///
/// # Errors
/// Returns the message for the model if no server has the name `cursor`.
pub(super) fn page(mut servers: Vec<ServerListing<'_>>, cursor: Option<&str>) -> Result<ServerPage, String> {
    let whole = array(&servers);
    if cursor.is_none() && tokens::estimate(whole.len()) <= MAX_TOKENS {
        return Ok(ServerPage { array: whole, note: None });
    }
    for server in &mut servers {
        (server.summary, server.tool_names) = (None, None);
    }
    let start = match cursor {
        None => 0,
        Some(cursor) => servers.iter().position(|server| server.server_name == cursor).ok_or_else(|| {
            "cursor: no server of the list begins a page like that. List again without `cursor`.".to_owned()
        })?,
    };
    let most = MAX_TOKENS - NOTE_TOKENS;
    let (mut bytes, mut end) = (2, start);
    while let Some(server) = servers.get(end) {
        // With the comma after it.
        bytes += json(server).len() + 1;
        if end > start && tokens::estimate(bytes) > most {
            break;
        }
        end += 1;
    }
    let note = note(&servers, start, end);
    Ok(ServerPage { array: array(&servers[start..end]), note: Some(note) })
}

/// Says which part of the list a page is, and how to see the rest.
fn note(servers: &[ServerListing<'_>], start: usize, end: usize) -> String {
    let part = match servers.get(end) {
        None if start == 0 => format!("{} servers", servers.len()),
        _ => format!("Servers {} to {end} of {}", start + 1, servers.len()),
    };
    let next = servers.get(end).map(|next| format!(" Next page: cursor {}.", json(&next.server_name)));
    format!(
        "{part}, without summaries and tools. `filter` with a few words lists fewer, with both.{}",
        next.unwrap_or_default()
    )
}

fn array(servers: &[ServerListing<'_>]) -> String {
    json(servers)
}

/// Serializing these members cannot fail.
fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns servers with a tool each, whose summaries have this length.
    fn servers(names: &[String], summary: usize) -> Vec<ServerListing<'_>> {
        let listing = |name| ServerListing {
            server_name: name,
            display_name: None,
            summary: Some("x".repeat(summary)),
            tool_count: 1,
            tool_names: Some(vec!["search"]),
            added_at_run_time: false,
            available: None,
        };
        names.iter().map(|name| listing(name.as_str())).collect()
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("server-{number}")).collect()
    }

    fn names_in(array: &str) -> Vec<String> {
        let servers: Vec<serde_json::Value> = serde_json::from_str(array).expect("an array");
        servers.iter().map(|server| server["serverName"].as_str().expect("a name").to_owned()).collect()
    }

    #[test]
    fn short_list_is_whole() {
        let names = names(3);
        let list = page(servers(&names, 5), None).expect("a list");
        assert_eq!(list.note, None);
        assert!(list.array.starts_with(
            r#"[{"serverName":"server-0","summary":"xxxxx","toolCount":1,"toolNames":["search"]},"#
        ));
    }

    #[test]
    fn summaries_and_tools_are_dropped_first() {
        let names = names(100);
        let list = page(servers(&names, 80), None).expect("a list");
        assert!(
            list.array.starts_with(r#"[{"serverName":"server-0","toolCount":1},{"serverName":"server-1","#)
        );
        insta::assert_snapshot!(list.note.expect("a note"), @"100 servers, without summaries and tools. `filter` with a few words lists fewer, with both.");
        assert_eq!(names_in(&list.array), names);
    }

    #[test]
    fn every_server_is_on_a_page() {
        let names = names(700);
        let (mut seen, mut cursor, mut notes) = (Vec::new(), None::<String>, Vec::new());
        loop {
            let list = page(servers(&names, 80), cursor.as_deref()).expect("a page");
            let note = list.note.expect("a note");
            assert!(tokens::estimate(list.array.len() + note.len()) <= MAX_TOKENS);
            seen.extend(names_in(&list.array));
            cursor = note.split_once("cursor \"").map(|(_, rest)| rest.trim_end_matches("\".").to_owned());
            notes.push(note);
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, names);
        insta::assert_snapshot!(notes.join("\n"), @r#"
        Servers 1 to 201 of 700, without summaries and tools. `filter` with a few words lists fewer, with both. Next page: cursor "server-201".
        Servers 202 to 400 of 700, without summaries and tools. `filter` with a few words lists fewer, with both. Next page: cursor "server-400".
        Servers 401 to 599 of 700, without summaries and tools. `filter` with a few words lists fewer, with both. Next page: cursor "server-599".
        Servers 600 to 700 of 700, without summaries and tools. `filter` with a few words lists fewer, with both.
        "#);
    }

    #[test]
    fn unknown_cursor_is_an_error() {
        let names = names(2);
        assert!(page(servers(&names, 1), Some("server-9")).is_err_and(|error| error.starts_with("cursor: ")));
    }

    #[test]
    fn filter_matches_all_words() {
        let names = ["github".to_owned()];
        let [server] = &servers(&names, 3)[..] else { panic!() };
        let check = |filter: &str, expected: bool| {
            assert_eq!(ServerFilter::new(filter).matches(server), expected, "{filter}");
        };
        check("", true);
        check("  ", true);
        check("GitHub", true);
        check("hub Search", true);
        check("xxx", true);
        check("github weather", false);
        check(&"x".repeat(100_000), false);
    }
}
