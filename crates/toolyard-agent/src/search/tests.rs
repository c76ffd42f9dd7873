use std::sync::Arc;

use futures_util::future::{Either, select};
use serde_json::{Value, json};
use toolyard_core::registry::EntryKind;
use toolyard_core::tokens;
use toolyard_manifest::ServiceRanker;

use super::services::{IndexedServices, results_json, top_services};
use super::testing::{HandlerOffer, SearchHarness, sample};
use super::*;
use crate::testing::definitions;

#[test]
fn tool_definitions() {
    insta::assert_snapshot!(definitions(&sample().backend));
}

/// A model that searches always has these definitions in its context.
#[test]
fn tool_definitions_are_short() {
    let list: usize =
        definitions_of(&sample()).iter().map(|definition| definition.to_string().len() + 1).sum();
    let tokens = tokens::estimate(list);
    assert!(tokens < 450, "{tokens} tokens");
}

fn definitions_of(harness: &SearchHarness) -> Vec<Value> {
    let catalog = harness.backend.catalog().borrow().clone();
    catalog.tools.iter().map(|tool| tool.definition.to_json().to_value()).collect()
}

/// Calls several tools in order and returns their texts.
async fn read_all(harness: &SearchHarness, scope: &[&str], calls: &[(&str, Value)]) -> String {
    let mut all = Vec::new();
    for (tool, arguments) in calls {
        all.push(format!("> {tool} {arguments}\n{}", harness.read(scope, tool, arguments.clone()).await));
    }
    all.join("\n\n")
}

#[tokio::test]
async fn search_tools_results() {
    let calls = [
        (SEARCH, json!({"query": "reschedule a meeting", "limit": 2})),
        (SEARCH, json!({"query": "gitlab_create_issue", "limit": 1})),
        (SEARCH, json!({"query": "play chess"})),
        (SEARCH, json!({"query": "  "})),
        (SEARCH, json!({"query": "issue", "limit": -3})),
        (SEARCH, json!({"limit": 3})),
    ];
    insta::assert_snapshot!(read_all(&sample(), &["*"], &calls).await);
}

/// A word of another language that a tool happens to have finds that tool.
#[tokio::test]
async fn results_for_another_language_advise_english() {
    let harness = sample();
    let check = async |query: &str, expected: bool| {
        let read = harness.read(&["*"], SEARCH, json!({"query": query})).await;
        let advises = read.contains("describe it in English") && read.contains(r#""name":"#);
        assert_eq!(advises, expected, "{query}: {read}");
    };
    check("customer Bestellungen anzeigen lassen", true).await;
    check("list the Bestellungen anzeigen of a customer", false).await;
    check("list orders customer", false).await;
    check("create_issue", false).await;
}

#[tokio::test]
async fn errors_of_invalid_calls() {
    let calls = [
        (CALL, json!({"name": "create_isue"})),
        (CALL, json!({"name": "calendar_event_create", "arguments": {}})),
        (CALL, json!({"name": "xyzzy"})),
        (CALL, json!({"name": "x\u{7}y".repeat(70)})),
        (CALL, json!({"name": CALL, "arguments": {"name": "create_issue"}})),
        (CALL, json!({"name": CALL, "arguments": {"name": CALL}})),
        (CALL, json!({"name": "create_issue", "arguments": "{\"title\": "})),
        (CALL, json!({"name": "create_issue", "parameters": {"title": "x"}})),
        (CALL, json!({"name": "create_issue", "title": "x"})),
        (CALL, json!({"name": "create_issue", "arguments": [1]})),
        (CALL, json!({"name": "create_issue", "arguments": "[1]"})),
        (CALL, json!({"arguments": {}})),
        (CALL, json!({"name": 7})),
        (CALL, json!({})),
    ];
    insta::assert_snapshot!(read_all(&sample(), &["*"], &calls).await);
}

/// Comparing a long name with all names would take long.
#[tokio::test]
async fn long_name_is_cut_before_comparison() {
    let name = format!("create_isue{}", "x".repeat(1_000_000));
    let read = read_all(&sample(), &["*"], &[(CALL, json!({"name": name}))]).await;
    let line = read.lines().last().unwrap_or_default();
    assert!(line.contains("There is no tool `create_isuexxx") && line.len() < 500, "{} bytes", line.len());
}

#[tokio::test]
async fn search_services_results() {
    let calls = [
        (SERVICES, json!({"query": "open an issue on GitHub"})),
        (SERVICES, json!({"query": "chess"})),
        (SERVICES, json!({"query": ""})),
        (SERVICES, json!({})),
    ];
    insta::assert_snapshot!(read_all(&sample(), &["*"], &calls).await);
}

/// The tools that fit come first, whatever their order on the server.
#[tokio::test]
async fn top_tools_are_those_that_fit() {
    let harness = sample();
    let view = harness.view(&["*"]);
    let check = async |query: &str, ranker: ServiceRanker, expected: &str| {
        let found = harness.search.services.search(&view, query, ranker).await;
        let [first, ..] = &found[..] else { panic!("{query} {ranker:?}") };
        let tools = first.top_tools.clone().unwrap_or_default();
        assert_eq!(format!("{} {}", first.id, tools[0]), expected, "{query} {ranker:?}");
    };
    for ranker in [ServiceRanker::Bm25, ServiceRanker::Toolyard] {
        check("delete an event", ranker, "calendar delete_event").await;
        check("reschedule a meeting of people", ranker, "calendar move_event").await;
        check("list github issues", ranker, "github list_issues").await;
    }
}

/// Tools that have nothing of the query are not named, unless the name of the service is all that matches.
#[tokio::test]
async fn top_tools_that_do_not_fit_are_left_out() {
    let offers: [HandlerOffer; 2] = [
        (
            "weather",
            vec![
                ("health_check", "Tells whether the service is up.", ""),
                ("get_forecast", "Forecast of the weather of a city.", "city"),
                ("get_local_time", "The time in a city.", "city"),
            ],
        ),
        ("chess", vec![("play_move", "Plays a move.", "move"), ("resign", "Ends the game.", "")]),
    ];
    let harness = SearchHarness::new(&offers, &[]);
    let view = harness.view(&["*"]);
    let check = async |query: &str, expected: &str| {
        for ranker in [ServiceRanker::Bm25, ServiceRanker::Toolyard] {
            let found = harness.search.services.search(&view, query, ranker).await;
            let tools = found.first().and_then(|service| service.top_tools.clone()).unwrap_or_default();
            assert_eq!(tools.join(" "), expected, "{query} {ranker:?}");
        }
    };
    check("weather", "get_forecast").await;
    check("weather forecast for tomorrow", "get_forecast").await;
    check("chess", "play_move resign").await;
}

/// The call runs with the scope of the caller.
#[tokio::test]
async fn call_runs_within_the_callers_scope() {
    let calls = [
        (CALL, json!({"name": "gitlab_create_issue", "arguments": {"title": "x"}})),
        (CALL, json!({"name": "list_orders", "arguments": {"customer": "7"}})),
        (CALL, json!({"name": SERVICES, "arguments": {"query": "chess"}})),
    ];
    insta::assert_snapshot!(read_all(&sample(), &["builtins/*", "gitlab/*"], &calls).await, @r#"
    > call_tool {"name":"gitlab_create_issue","arguments":{"title":"x"}}
    create_issue {"title":"x"}

    > call_tool {"name":"list_orders","arguments":{"customer":"7"}}
    error: There is no tool `list_orders`. Take a name exactly as search_tools shows it.

    > call_tool {"name":"search_known_services","arguments":{"query":"chess"}}
    {"results": []}
    "#);
}

#[test]
fn call_tool_arguments_are_parsed() {
    let harness = sample();
    let check = |arguments: Value, expected: Option<&str>| {
        assert_eq!(harness.forwarded(arguments.clone()).as_deref(), expected, "{arguments}");
    };
    let day = json!({"day": "today"});
    check(json!({"name": "list_events", "arguments": day}), Some(r#"list_events {"day":"today"}"#));
    check(
        json!({"name": " list_events ", "arguments": r#"{"day": "today"}"#}),
        Some(r#"list_events {"day":"today"}"#),
    );
    for none in [json!(null), json!({}), json!(""), json!(" ")] {
        check(json!({"name": "list_events", "arguments": none}), Some("list_events {}"));
    }
    check(json!({"name": "list_events"}), Some("list_events {}"));
    check(
        json!({"name": "search_tools", "arguments": {"query": "x"}}),
        Some(r#"search_tools {"query":"x"}"#),
    );
    check(json!({"name": "gitlab_create_issue"}), Some("gitlab_create_issue {}"));
    for arguments in [json!([]), json!(7), json!("[]"), json!("{"), json!("x")] {
        check(json!({"name": "list_events", "arguments": arguments}), None);
    }
    check(json!({"name": "call_tool", "arguments": {"name": "list_events"}}), None);
    check(json!({"name": "events"}), None);
    check(json!({"arguments": {}}), None);
}

#[tokio::test]
async fn forbidden_tools_are_not_returned() {
    let harness = sample();
    assert_eq!(
        harness.search_names(&["*"], "open an issue", 10).await[..2],
        ["create_issue", "gitlab_create_issue"]
    );
    assert_eq!(harness.search_names(&["gitlab/*"], "open an issue", 10).await, ["gitlab_create_issue"]);
    // The caller cannot see the best matches, so others are returned.
    assert_eq!(harness.search_names(&["list_*"], "open an issue", 1).await, ["list_issues"]);
    assert_eq!(harness.search_names(&["nothing"], "open an issue", 10).await, [""; 0]);
    let calls = [
        (SEARCH, json!({"query": "create_issue"})),
        (CALL, json!({"name": "create_isue"})),
        (SERVICES, json!({"query": "issue github calendar"})),
    ];
    insta::assert_snapshot!(read_all(&harness, &["builtins/*", "shop/*", "gitlab/*"], &calls).await, @r#"
    > search_tools {"query":"create_issue"}
    {"tools":[{"name":"gitlab_create_issue","server":"gitlab","description":"Opens an issue in a project.","inputSchema":{"type":"object","properties":{"project":{"type":"string"},"title":{"type":"string"}}}}]}

    > call_tool {"name":"create_isue"}
    error: There is no tool `create_isue`. Did you mean `gitlab_create_issue`? Take a name exactly as search_tools shows it.

    > search_known_services {"query":"issue github calendar"}
    {
      "results": [
        {
          "id": "gitlab",
          "type": "mcp",
          "summary": "Provides 1 tool(s).",
          "relevance_score": 1.0,
          "top_tools": [
            "gitlab_create_issue"
          ]
        }
      ]
    }
    "#);
}

#[tokio::test]
async fn only_changed_handlers_are_indexed() {
    let mut harness = sample();
    let mut check = async |change: fn(&mut SearchHarness), tools: usize, read: usize| {
        change(&mut harness);
        harness.publish();
        assert_eq!(harness.search.finder.read().await, (tools, read));
        assert_eq!(harness.search.finder.read().await, (tools, read), "nothing is read again");
    };
    check(|_| {}, 8, 4).await;
    check(|_| {}, 8, 0).await;
    check(|harness| harness.put("chess", &[("play_move", "Plays a move.", "move")]), 9, 1).await;
    // An equal definition in another allocation is the same tool.
    check(|harness| harness.put("chess", &[("play_move", "Plays a move.", "move")]), 9, 0).await;
    check(|harness| harness.put("chess", &[("play_move", "Makes a move.", "move")]), 9, 1).await;
    check(|harness| harness.remove("calendar"), 5, 0).await;
    assert_eq!(harness.search_names(&["*"], "reschedule a meeting", 3).await, [""; 0]);
    assert_eq!(harness.search_names(&["*"], "move", 3).await, ["play_move"]);
}

/// `follow` builds the index without a search, and ends with the gateway.
#[tokio::test]
async fn finder_follows_the_registry() {
    let mut harness = sample();
    let finder = harness.search.finder.clone();
    let following = Box::pin(finder.follow());
    let adding = Box::pin(async move {
        harness.put("chess", &[("play_move", "Plays a move.", "move")]);
        harness.publish();
        (harness.search_names(&["*"], "chess move", 1).await, harness)
    });
    match select(following, adding).await {
        Either::Right(((names, harness), following)) => {
            assert_eq!(names, ["play_move"]);
            drop(harness);
            following.await;
        }
        Either::Left(_) => panic!("the registry is still there"),
    }
}

/// Compares with the sample in the documentation of agents.
#[test]
fn services_have_the_documented_form() {
    let service = |kind, name: &str, summary: &str, abilities: &[&str]| KnownService {
        kind,
        name: name.into(),
        display_name: None,
        summary: summary.to_owned(),
        abilities: abilities.iter().map(|name| Arc::from(*name)).collect(),
        texts: Vec::new(),
    };
    let services = vec![
        service(
            ServiceKind::Mcp,
            "salesforce-mcp",
            "Direct access to Salesforce objects (Accounts, Leads, Opportunities).",
            &["search_leads", "update_opportunity"],
        ),
        service(
            ServiceKind::A2a,
            "SalesOpsAgent",
            "Autonomous agent for complex sales workflows and multi-step reporting.",
            &["generate-qbr-report", "audit-pipeline", "close-quarter", "forecast"],
        ),
        service(ServiceKind::Mcp, "bare", "", &[]),
    ];
    let services = IndexedServices::new(services);
    let ranked = services.ranked("sales workflows and leads of a bare report");
    let results = top_services(&ranked, 5, |service| service.abilities.clone());
    insta::assert_snapshot!(results_json(&results).expect("JSON"));
    assert_eq!(results_json(&[]).expect("JSON"), r#"{"results": []}"#);
}

/// An index is used again until one of its services changes.
#[test]
fn services_are_indexed_once() {
    let mut harness = sample();
    let read = |harness: &SearchHarness, scope: &[&str]| harness.search.services.read(&harness.view(scope));
    let (all, some) = (read(&harness, &["*"]), read(&harness, &["github/*"]));
    harness.publish();
    assert!(Arc::ptr_eq(&all, &read(&harness, &["*"])) && Arc::ptr_eq(&some, &read(&harness, &["github/*"])));
    assert_eq!((all.len(), some.len()), (4, 1));
    harness.put("shop", &[("cancel_order", "Cancels an order.", "id")]);
    harness.publish();
    assert!(
        !Arc::ptr_eq(&all, &read(&harness, &["*"])) && Arc::ptr_eq(&some, &read(&harness, &["github/*"]))
    );
}

#[tokio::test]
async fn hint_names_services_that_stand_out() {
    let harness = sample();
    let view = harness.view(&["*"]);
    let check = async |message: &str, expected: &[&str]| {
        let hint = harness.search.services.hint(&view, message).await;
        let services = hint.iter().flat_map(|hint| &hint.services);
        assert_eq!(services.map(|service| &*service.id).collect::<Vec<_>>(), expected, "{message}");
    };
    check("Please list the issues of my GitHub repositories", &["github"]).await;
    check("Which meetings and events do I have today?", &["calendar"]).await;
    check("What did my customer order? List the orders.", &["shop"]).await;
    check(
        "List the issues of my GitHub repositories, and create an event in the calendar",
        &["github", "calendar"],
    )
    .await;
    // No service fits these messages.
    check("thanks, that is exactly what I wanted", &[]).await;
    check("write a short poem about autumn leaves", &[]).await;
    check("could you list the three primary colours", &[]).await;
    check("", &[]).await;
    check("   ", &[]).await;
    // One word is enough in a short message, if it names the service.
    check("what is on my calendar today", &["calendar"]).await;
    check("what is on at the shop", &["shop"]).await;
    check("write a poem, with a calendar of all the months of the year", &[]).await;
    // These messages are too short.
    check("GitHub issues", &[]).await;
    check("github", &[]).await;
}

#[tokio::test]
async fn hint_text() {
    let harness = sample();
    let hint = async |scope: &[&str], message: &str| {
        let hint = harness.search.services.hint(&harness.view(scope), message).await;
        hint.map_or_else(|| "nothing".to_owned(), |hint| hint.text)
    };
    let message = "List the issues of my GitHub repositories, and create an event in the calendar";
    insta::assert_snapshot!(hint(&["*"], message).await, @"
    Potentially relevant services for this request (call search_known_services for full search):
    - github (mcp): Repositories and their issues on GitHub, top tools: list_issues, create_issue
    - calendar (mcp): Meetings and events of people: creates, moves and deletes them, top tools: create_event, list_events, delete_event
    ");
    // A caller that cannot use the search tool is not line about it.
    insta::assert_snapshot!(hint(&["github/*", "shop/*"], message).await, @"
    Potentially relevant services for this request:
    - github (mcp): Repositories and their issues on GitHub, top tools: list_issues, create_issue
    ");
    assert_eq!(hint(&["shop/*"], message).await, "nothing");
    assert!(hint(&["*"], &message.repeat(10_000)).await.lines().count() == 3);
    let view = harness.view(&["*"]);
    assert!(view.entries(EntryKind::Tools).iter().any(|entry| &*entry.name == SERVICES));
}

#[tokio::test]
async fn one_common_word_is_no_reason_for_a_hint() {
    let offers: [HandlerOffer; 4] = [
        (
            "chembl",
            ["example_activity", "example_assay", "example_drug", "example_target"]
                .map(|name| (name, "Returns an example.", ""))
                .to_vec(),
        ),
        ("summaries", vec![("quick_summarize", "Summarizes a text.", "text")]),
        ("calendar", vec![("create_event", "Creates an event.", "title")]),
        ("shop", vec![("list_orders", "Lists orders.", "customer")]),
    ];
    let harness = SearchHarness::new(&offers, &[]);
    let view = harness.view(&["*"]);
    let check = async |message: &str, expected: &[&str]| {
        let hint = harness.search.services.hint(&view, message).await;
        let services = hint.iter().flat_map(|hint| &hint.services);
        assert_eq!(services.map(|service| &*service.id).collect::<Vec<_>>(), expected, "{message}");
    };
    check("take a screenshot of example.com", &[]).await;
    check("the quick brown fox jumps over the lazy dog", &[]).await;
    check("an example of a drug and its activity, please", &["chembl"]).await;
    check("please create an event for the party on Friday", &["calendar"]).await;
}

/// Schemas that are too long are left out, and available by searching for the tool's name.
#[tokio::test]
async fn reply_length_is_limited() {
    let arguments: String = (0..600).map(|number| format!("long_parameter_of_a_tool_{number} ")).collect();
    let arguments: &'static str = Box::leak(arguments.into_boxed_str());
    let long: &'static str = Box::leak("Paints a wall. ".repeat(200).into_boxed_str());
    let tools = ["paint_wall_a", "paint_wall_b", "paint_wall_c"].map(|name| (name, long, arguments));
    let offers: [HandlerOffer; 1] = [("painter", tools.to_vec())];
    let harness = SearchHarness::new(&offers, &[]);
    let text = harness.read(&["*"], SEARCH, json!({"query": "paint a wall"})).await;
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    let has_schema: Vec<_> = answer["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool.get("inputSchema").is_some())
        .collect();
    assert_eq!(has_schema, [true, false, false]);
    assert!(
        answer["note"].as_str().is_some_and(|note| note.contains("search for its name")),
        "{}",
        answer["note"]
    );
    assert_eq!(answer["tools"][0]["description"].as_str().map(|text| text.chars().count()), Some(501));
    let text = harness.read(&["*"], SEARCH, json!({"query": "paint_wall_c", "limit": 1})).await;
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["tools"][0]["name"], "paint_wall_c");
    assert!(answer["tools"][0]["inputSchema"]["properties"].as_object().is_some_and(|all| all.len() == 600));
}
