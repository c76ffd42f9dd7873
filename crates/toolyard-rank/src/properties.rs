//! Property tests over random tools and queries.

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

#[track_caller]
fn check(query: &str, expected: &[&str]) {
    let tool = |server: &str, name: &str, description: &str| ToolDocument {
        key: format!("{server}.{name}"),
        name: name.to_owned(),
        description: description.to_owned(),
        ..ToolDocument::default()
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
            .map(|(server, tools)| IndexChange::Put { server: (*server).to_owned(), tools: tools.clone() }),
    );
    let hits = index.search(query, expected.len().max(1));
    assert_eq!(hits.iter().map(|hit| &*hit.key).collect::<Vec<_>>(), expected, "{query}");
}

#[test]
fn natural_queries_find_their_tools() {
    check("read_file", &["disk.readFile"]);
    check("please erase this document", &["disk.delete_file"]);
    check("cinema", &["cinema.search-movies", "cinema.get_cast"]);
    check("Look for a movie. Then send its title to my friend.", &["mail.send", "cinema.search-movies"]);
    check("astronomy", &[]);
    check("the", &[]);
}

/// Checks the tool that is found first among tools of several services.
#[track_caller]
fn check_services(query: &str, expected: &[&str]) {
    let tools = [
        ("GitHub", "create_issue", "Create an issue in a GitHub repository"),
        ("gitlab", "open_merge_request", "Open a merge request on gitlab"),
        ("warehouse", "run_bigquery", "Run a statement on bigquery"),
        ("pg", "execute", "Execute a statement on PostgreSQL"),
        ("shop", "searchproducts", "Lists goods"),
        ("calendar", "listEvents", "Lists the events of a calendar"),
        ("forecast", "daily", "Weather of the coming days"),
        ("amap", "maps_tianqi", "查询天气预报"),
        ("music", "play", "播放音乐"),
    ];
    let put = |(server, name, description): &(&str, &str, &str)| IndexChange::Put {
        server: (*server).to_owned(),
        tools: vec![ToolDocument {
            key: format!("{server}.{name}"),
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            ..ToolDocument::default()
        }],
    };
    let index = empty().apply(tools.iter().map(put));
    let hits = index.search(query, expected.len().max(1));
    assert_eq!(hits.iter().map(|hit| &*hit.key).collect::<Vec<_>>(), expected, "{query}");
}

#[test]
fn compounds_match_in_both_directions() {
    for query in ["GitHub", "github", "git hub", "Git Hub", "git-hub", "issues on github"] {
        check_services(query, &["GitHub.create_issue"]);
    }
    for query in ["GitLab", "gitlab", "git lab"] {
        check_services(query, &["gitlab.open_merge_request"]);
    }
    for query in ["bigquery", "BigQuery", "big query", "big_query"] {
        check_services(query, &["warehouse.run_bigquery"]);
    }
    for query in ["PostgreSQL", "postgres", "postgresql", "Postgres"] {
        check_services(query, &["pg.execute"]);
    }
    for query in ["searchProducts", "search products", "search_products", "searchproducts", "products"] {
        check_services(query, &["shop.searchproducts"]);
    }
    for query in ["listevents", "list events", "ListEvents"] {
        check_services(query, &["calendar.listEvents"]);
    }
}

#[test]
fn names_of_several_words_match_in_each_spelling() {
    let tools = ["getUserByID", "HTTPServerStatus", "listcalendarevents", "search_on_duckduckgo", "other"];
    let described = [("camel", "Fetches captions of YouTube"), ("lower", "Fetches captions of youtube")];
    let document = |name: &str, description: &str| ToolDocument {
        key: name.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        ..ToolDocument::default()
    };
    let tools = tools.iter().map(|name| document(name, ""));
    let tools = tools.chain(described.iter().map(|(name, text)| document(name, text))).collect();
    let index = empty().apply([IndexChange::Put { server: "tools".to_owned(), tools }]);
    let check = |query: &str, expected: &[&str]| {
        let mut hits: Vec<_> = index.search(query, 10).into_iter().map(|hit| hit.key).collect();
        hits.sort();
        assert_eq!(hits.iter().map(|key| &**key).collect::<Vec<_>>(), expected, "{query}");
    };
    for query in ["youtube", "YouTube", "you tube"] {
        check(query, &["camel", "lower"]);
    }
    for query in ["duckduckgo", "DuckDuckGo", "duck duck go"] {
        check(query, &["search_on_duckduckgo"]);
    }
    check("getuserbyid", &["getUserByID"]);
    check("httpserverstatus", &["HTTPServerStatus"]);
    check("listCalendarEvents", &["listcalendarevents"]);
}

#[test]
fn misspelled_words_find_their_tools() {
    for query in ["calendsr", "claendar", "calednar", "calendr", "xalendar", "calendra"] {
        check_services(query, &["calendar.listEvents"]);
    }
    check_services("what will the waether be", &["forecast.daily"]);
    check_services("open a mrege request", &["gitlab.open_merge_request"]);
    check_services("mereg", &["gitlab.open_merge_request"]);
    check_services("pgg", &[]);
}

#[test]
fn adjacent_letters_match_in_scripts_without_spaces() {
    check_services("天气", &["amap.maps_tianqi"]);
    check_services("今天天气怎么样", &["amap.maps_tianqi"]);
    check_services("播放一首歌", &["music.play"]);
    check_services("今天", &[]);
    check_services("气", &[]);
}

#[test]
fn queries_of_other_languages_find_nothing() {
    check_services("Wie wird morgen das Wetter in Hamburg?", &[]);
    check_services("quiero reservar una mesa para cuatro", &[]);
    check_services("как создать задачу", &[]);
    check_services("astronomy", &[]);
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
