//! Examples of queries, and the tools that they find.

use std::sync::Arc;

use crate::{IndexChange, RankingWeights, SearchLexicon, ToolDocument, ToolIndex};

fn empty() -> ToolIndex {
    ToolIndex::new(Arc::new(SearchLexicon::english()), RankingWeights::default())
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
fn values_match_texts_and_no_names() {
    let document = |name: &str, description: &str, parameters: &[(&str, &str)]| ToolDocument {
        key: name.to_owned(),
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: parameters.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(),
        ..ToolDocument::default()
    };
    let tools = vec![
        document("multiply_by_4", "Multiplies it", &[]),
        document("to_roman", "Writes roman numerals", &[]),
        document("get_weather", "Forecasts rain", &[]),
        document("lookup_music", "Finds songs", &[("genre", "One of\nPop\nMetal")]),
    ];
    let index = empty().apply([IndexChange::Put { server: "tools".to_owned(), tools }]);
    for (query, expected) in [
        ("write 4 in roman numerals", ["to_roman"].as_slice()),
        ("songs called \"Weather\"", &["lookup_music"]),
        ("something by 'Metal' people", &["lookup_music"]),
        ("\"get_weather\"", &["get_weather"]),
        ("4", &["multiply_by_4"]),
    ] {
        let hits = index.search(query, 10);
        assert_eq!(hits.iter().map(|hit| &*hit.key).collect::<Vec<_>>(), expected, "{query}");
    }
}
