//! What holds for any tools and any query.

use std::sync::Arc;

use proptest::prelude::*;

use crate::{Change, Hit, Index, Lexicon, Ranking, Tool};

/// Texts of a few words that meet often, and of any letters.
fn text() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "get",
        "list",
        "file",
        "files",
        "movie",
        "film",
        "db",
        "database",
        "sendEmail",
        "user_id",
        "the",
        "Then",
        ",",
        ".",
        "天气",
    ]);
    prop_oneof![
        4 => prop::collection::vec(word, 0..12).prop_map(|words| words.join(" ")),
        1 => any::<String>(),
    ]
}

fn tool() -> impl Strategy<Value = Tool> {
    let parameters = prop::collection::vec((text(), text()), 0..3);
    (text(), prop::option::of(text()), text(), parameters).prop_map(
        |(name, title, description, parameters)| Tool {
            key: String::new(),
            name,
            title,
            description,
            parameters,
        },
    )
}

/// Servers with a few tools each, whose keys are their own.
fn servers() -> impl Strategy<Value = Vec<(String, Vec<Tool>)>> {
    let tools = prop::collection::vec(prop::collection::vec(tool(), 0..5), 1..6);
    tools.prop_map(|servers| {
        let named = servers.into_iter().enumerate().map(|(server, mut tools)| {
            for (at, tool) in tools.iter_mut().enumerate() {
                tool.key = format!("{server}.{at}");
            }
            (format!("server {server} file"), tools)
        });
        named.collect()
    })
}

fn put((server, tools): &(String, Vec<Tool>)) -> Change {
    Change::Put { server: server.clone(), tools: tools.clone() }
}

fn empty() -> Index {
    Index::new(Arc::new(Lexicon::english()), Ranking::default())
}

fn found(index: &Index, query: &str) -> Vec<Hit> {
    index.search(query, usize::MAX)
}

#[test]
fn whatever_is_asked_the_answer_is_in_order() {
    let empty = empty();
    proptest!(|(servers in servers(), query in text(), limit in 0_usize..8)| {
        let index = empty.apply(servers.iter().map(put));
        prop_assert_eq!(index.len(), servers.iter().map(|(_, tools)| tools.len()).sum::<usize>());
        let all = found(&index, &query);
        prop_assert!(all.iter().all(|hit| hit.score.is_finite() && hit.score > 0.0));
        let falls = |pair: &[Hit]| {
            let [one, other] = [&pair[0], &pair[1]];
            one.score > other.score || (one.score == other.score && one.key < other.key)
        };
        prop_assert!(all.windows(2).all(falls));
        prop_assert_eq!(&index.search(&query, limit)[..], &all[..limit.min(all.len())]);
    });
}

#[test]
fn the_order_of_servers_does_not_matter() {
    let empty = empty();
    proptest!(|(servers in servers(), query in text())| {
        let forward = empty.apply(servers.iter().map(put));
        let backward = empty.apply(servers.iter().rev().map(put));
        prop_assert_eq!(found(&forward, &query), found(&backward, &query));
    });
}

#[test]
fn an_index_that_was_changed_is_one_that_was_made_so() {
    let empty = empty();
    proptest!(|(before in servers(), between in servers(), after in servers(), query in text())| {
        let snapshot = empty.apply(before.iter().map(put));
        let begin = found(&snapshot, &query);
        let mut changed = snapshot.clone();
        for change in between.iter().map(put) {
            changed = changed.apply([change]);
        }
        let others = before.iter().chain(&between).map(|(server, _)| server);
        let gone = others.filter(|server| !after.iter().any(|(kept, _)| kept == *server));
        let gone: Vec<Change> = gone.map(|server| Change::Remove { server: server.clone() }).collect();
        changed = changed.apply(after.iter().map(put)).apply(gone);
        let made = empty.apply(after.iter().map(put));
        prop_assert_eq!(changed.len(), made.len());
        prop_assert_eq!(found(&changed, &query), found(&made, &query));
        prop_assert_eq!(found(&snapshot, &query), begin);
    });
}

#[test]
fn a_very_long_query_and_a_very_long_tool_are_read_in_part() {
    let long = "list the files of a movie, then send it. ".repeat(20_000);
    let parameters = vec![("x".repeat(100), "a file".to_owned()); 10_000];
    let tool = Tool {
        key: "long".to_owned(),
        name: long.clone(),
        title: Some(long.clone()),
        description: long.clone(),
        parameters,
    };
    let index = empty().apply([Change::Put { server: long.clone(), tools: vec![tool] }]);
    let hits = index.search(&long, 10);
    assert_eq!(hits.len(), 1);
    assert!(hits[0].score.is_finite());
}

#[track_caller]
fn check(query: &str, expected: &[&str]) {
    let tool = |server: &str, name: &str, description: &str| Tool {
        key: format!("{server}.{name}"),
        name: name.to_owned(),
        description: description.to_owned(),
        ..Tool::default()
    };
    let servers = [
        (
            "disk",
            vec![
                tool("disk", "readFile", "Read a file"),
                tool("disk", "delete_file", "Delete a file from disk"),
            ],
        ),
        (
            "cinema",
            vec![
                tool("cinema", "search-movies", "Find films by their title"),
                tool("cinema", "get_cast", "Who plays in it"),
            ],
        ),
        (
            "mail",
            vec![
                tool("mail", "send", "Send an email to somebody"),
                tool("mail", "inbox", "List new messages"),
            ],
        ),
    ];
    let index = empty().apply(
        servers
            .iter()
            .map(|(server, tools)| Change::Put { server: (*server).to_owned(), tools: tools.clone() }),
    );
    let hits = index.search(query, expected.len().max(1));
    assert_eq!(hits.iter().map(|hit| &*hit.key).collect::<Vec<_>>(), expected, "{query}");
}

#[test]
fn tools_are_found_by_what_people_say() {
    check("read_file", &["disk.readFile"]);
    check("please erase this document", &["disk.delete_file"]);
    check("cinema", &["cinema.search-movies", "cinema.get_cast"]);
    check("Look for a movie. Then send its title to my friend.", &["mail.send", "cinema.search-movies"]);
    check("astronomy", &[]);
    check("the", &[]);
}
