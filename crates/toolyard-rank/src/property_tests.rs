//! Property tests of the search, over random tools and queries.

use std::sync::Arc;

use proptest::prelude::*;

use crate::vocabulary::{MIN_CORRECTED_LENGTH, WordVocabulary};
use crate::words::each_word;
use crate::{IndexChange, RankingWeights, SearchHit, SearchLexicon, ToolDocument, ToolIndex};

/// Texts of a few words that occur often, or of arbitrary characters.
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
        "天气预报",
        "GitHub",
        "github",
        "git",
        "hub",
        "databsae",
        "getUserProfile",
        "getuserprofile",
    ]);
    prop_oneof![
        4 => prop::collection::vec(word, 0..12).prop_map(|words| words.join(" ")),
        1 => any::<String>(),
    ]
}

fn tool() -> impl Strategy<Value = ToolDocument> {
    let parameters = prop::collection::vec((text(), text()), 0..3);
    (text(), prop::option::of(text()), text(), parameters).prop_map(
        |(name, title, description, parameters)| ToolDocument {
            key: String::new(),
            name,
            title,
            description,
            parameters,
        },
    )
}

/// Servers with a few tools each, with unique keys.
fn servers() -> impl Strategy<Value = Vec<(String, Vec<ToolDocument>)>> {
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

fn put((server, tools): &(String, Vec<ToolDocument>)) -> IndexChange {
    IndexChange::Put { server: server.clone(), tools: tools.clone() }
}

fn empty() -> ToolIndex {
    ToolIndex::new(Arc::new(SearchLexicon::english()), RankingWeights::default())
}

fn search(index: &ToolIndex, query: &str) -> Vec<SearchHit> {
    index.search(query, usize::MAX)
}

#[test]
fn hits_are_sorted_for_any_query() {
    let empty = empty();
    proptest!(|(servers in servers(), query in text(), limit in 0_usize..8)| {
        let index = empty.apply(servers.iter().map(put));
        prop_assert_eq!(index.len(), servers.iter().map(|(_, tools)| tools.len()).sum::<usize>());
        let all = search(&index, &query);
        prop_assert!(all.iter().all(|hit| hit.score.is_finite() && hit.score > 0.0));
        let falls = |pair: &[SearchHit]| {
            let [one, other] = [&pair[0], &pair[1]];
            one.score > other.score || (one.score == other.score && one.key < other.key)
        };
        prop_assert!(all.windows(2).all(falls));
        prop_assert_eq!(&index.search(&query, limit)[..], &all[..limit.min(all.len())]);
    });
}

#[test]
fn order_of_servers_does_not_matter() {
    let empty = empty();
    proptest!(|(servers in servers(), query in text())| {
        let forward = empty.apply(servers.iter().map(put));
        let backward = empty.apply(servers.iter().rev().map(put));
        prop_assert_eq!(search(&forward, &query), search(&backward, &query));
    });
}

#[test]
fn changed_index_equals_a_new_one() {
    let empty = empty();
    proptest!(|(before in servers(), between in servers(), after in servers(), query in text())| {
        let snapshot = empty.apply(before.iter().map(put));
        let begin = search(&snapshot, &query);
        let mut changed = snapshot.clone();
        for change in between.iter().map(put) {
            changed = changed.apply([change]);
        }
        let others = before.iter().chain(&between).map(|(server, _)| server);
        let gone = others.filter(|server| !after.iter().any(|(other, _)| other == *server));
        let gone: Vec<IndexChange> = gone.map(|server| IndexChange::Remove { server: server.clone() }).collect();
        changed = changed.apply(after.iter().map(put)).apply(gone);
        let rebuilt = empty.apply(after.iter().map(put));
        prop_assert_eq!(changed.len(), rebuilt.len());
        prop_assert_eq!(search(&changed, &query), search(&rebuilt, &query));
        prop_assert_eq!(search(&snapshot, &query), begin);
    });
}

#[test]
fn long_query_and_long_tool_are_truncated() {
    let long = "list the files of a movie, then send it. ".repeat(20_000);
    let parameters = vec![("x".repeat(100), "a file".to_owned()); 10_000];
    let tool = ToolDocument {
        key: "long".to_owned(),
        name: long.clone(),
        title: Some(long.clone()),
        description: long.clone(),
        parameters,
    };
    let index = empty().apply([IndexChange::Put { server: long.clone(), tools: vec![tool] }]);
    let hits = index.search(&long, 10);
    assert_eq!(hits.len(), 1);
    assert!(hits[0].score.is_finite());
}

#[test]
fn words_of_any_text_are_bounded() {
    proptest!(|(text in any::<String>(), letters in "[a-zA-Z0-9_ .天气\\u{ac00}カé]{0,40}")| {
        for text in [text, letters] {
            let mut words = Vec::new();
            each_word(&text, |word| words.push(word.to_owned()));
            prop_assert!(words.iter().all(|word| !word.is_empty() && word.len() <= 80));
            prop_assert!(words.iter().all(|word| word.chars().all(char::is_alphanumeric)));
            prop_assert!(words.len() <= text.chars().count());
        }
    });
}

#[test]
fn any_word_with_one_error_is_corrected() {
    proptest!(|(word in "[a-z]{5,12}", at in 0_usize..12, letter in "[a-z]", kind in 0..4, others in prop::collection::vec("[a-z]{1,12}", 0..20))| {
        let at = at % (word.len() - 1);
        let mistyped = match kind {
            0 => format!("{}{letter}{}", &word[..at], &word[at + 1..]),
            1 => format!("{}{letter}{}", &word[..at], &word[at..]),
            2 => format!("{}{}", &word[..at], &word[at + 1..]),
            _ => format!("{}{}{}{}", &word[..at], &word[at + 1..at + 2], &word[at..=at], &word[at + 2..]),
        };
        let mut vocabulary = WordVocabulary::default();
        let words: Vec<Arc<str>> = [&word].into_iter().chain(&others).map(|word| word.as_str().into()).collect();
        // A word of most servers is among the corrections, however many others are alike.
        (0..2).for_each(|_| vocabulary.add(&words[..1]));
        vocabulary.add(&words[1..]);
        if mistyped.len() >= MIN_CORRECTED_LENGTH && mistyped != word {
            prop_assert!(vocabulary.corrections(&mistyped).contains(&word.as_str()), "{mistyped} of {word}");
        }
    });
}
