use std::sync::Arc;

use futures_util::future::{Either, select};
use serde_json::{Value, json};
use toolyard_core::registry::Kind;
use toolyard_core::tokens;

use super::services::{ReadServices, found, told};
use super::testing::{Offer, Yard, town};
use super::*;
use crate::testing::definitions;

#[test]
fn the_tools_describe_themselves() {
    insta::assert_snapshot!(definitions(&town().backend));
}

/// What a model that searches has always before it.
#[test]
fn the_tools_are_short() {
    let list: usize = definitions_of(&town()).iter().map(|definition| definition.to_string().len() + 1).sum();
    let tokens = tokens::estimate(list);
    assert!(tokens < 450, "{tokens} tokens");
}

fn definitions_of(yard: &Yard) -> Vec<Value> {
    let catalog = yard.backend.catalog().borrow().clone();
    catalog.tools.iter().map(|tool| tool.definition.to_json().to_value()).collect()
}

/// Calls tools one after the other; what the model of a caller reads of it all.
async fn read_all(yard: &Yard, scope: &[&str], calls: &[(&str, Value)]) -> String {
    let mut all = Vec::new();
    for (tool, arguments) in calls {
        all.push(format!("> {tool} {arguments}\n{}", yard.read(scope, tool, arguments.clone()).await));
    }
    all.join("\n\n")
}

#[tokio::test]
async fn what_a_model_reads_of_tools() {
    let calls = [
        (SEARCH, json!({"query": "reschedule a meeting", "limit": 2})),
        (SEARCH, json!({"query": "gitlab_create_issue", "limit": 1})),
        (SEARCH, json!({"query": "play chess"})),
        (SEARCH, json!({"query": "  "})),
        (SEARCH, json!({"query": "issue", "limit": -3})),
        (SEARCH, json!({"limit": 3})),
    ];
    insta::assert_snapshot!(read_all(&town(), &["*"], &calls).await);
}

#[tokio::test]
async fn what_a_model_reads_whose_call_is_not_made() {
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
    insta::assert_snapshot!(read_all(&town(), &["*"], &calls).await);
}

/// It is compared with each name that there is, which takes long for long ones.
#[tokio::test]
async fn of_a_name_that_is_too_long_the_beginning_is_looked_at() {
    let name = format!("create_isue{}", "x".repeat(1_000_000));
    let read = read_all(&town(), &["*"], &[(CALL, json!({"name": name}))]).await;
    let told = read.lines().last().unwrap_or_default();
    assert!(told.contains("There is no tool `create_isuexxx") && told.len() < 500, "{} bytes", told.len());
}

#[tokio::test]
async fn what_a_model_reads_of_services() {
    let calls = [
        (SERVICES, json!({"query": "open an issue on GitHub"})),
        (SERVICES, json!({"query": "chess"})),
        (SERVICES, json!({"query": ""})),
        (SERVICES, json!({})),
    ];
    insta::assert_snapshot!(read_all(&town(), &["*"], &calls).await);
}

/// What is found is called by its own owner, in the caller's own scope.
#[tokio::test]
async fn calls_reach_the_tool_that_is_meant() {
    let calls = [
        (CALL, json!({"name": "gitlab_create_issue", "arguments": {"title": "x"}})),
        (CALL, json!({"name": "list_orders", "arguments": {"customer": "7"}})),
        (CALL, json!({"name": SERVICES, "arguments": {"query": "chess"}})),
    ];
    insta::assert_snapshot!(read_all(&town(), &["builtins/*", "gitlab/*"], &calls).await, @r#"
    > call_tool {"name":"gitlab_create_issue","arguments":{"title":"x"}}
    create_issue {"title":"x"}

    > call_tool {"name":"list_orders","arguments":{"customer":"7"}}
    error: There is no tool `list_orders`. Take a name exactly as search_tools shows it.

    > call_tool {"name":"search_known_services","arguments":{"query":"chess"}}
    {"results": []}
    "#);
}

#[test]
fn the_call_that_is_meant() {
    let yard = town();
    let check = |arguments: Value, expected: Option<&str>| {
        assert_eq!(yard.forwarded(arguments.clone()).as_deref(), expected, "{arguments}");
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
async fn what_a_caller_may_not_use_is_not_found() {
    let yard = town();
    assert_eq!(yard.found(&["*"], "open an issue", 10).await[..2], ["create_issue", "gitlab_create_issue"]);
    assert_eq!(yard.found(&["gitlab/*"], "open an issue", 10).await, ["gitlab_create_issue"]);
    // The best ones are not there, so others are.
    assert_eq!(yard.found(&["list_*"], "open an issue", 1).await, ["list_issues"]);
    assert_eq!(yard.found(&["nothing"], "open an issue", 10).await, [""; 0]);
    let calls = [
        (SEARCH, json!({"query": "create_issue"})),
        (CALL, json!({"name": "create_isue"})),
        (SERVICES, json!({"query": "issue github calendar"})),
    ];
    insta::assert_snapshot!(read_all(&yard, &["builtins/*", "shop/*", "gitlab/*"], &calls).await, @r#"
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
async fn only_what_has_changed_is_read() {
    let mut yard = town();
    let mut check = async |change: fn(&mut Yard), tools: usize, read: usize| {
        change(&mut yard);
        yard.publish();
        assert_eq!(yard.search.finder.read().await, (tools, read));
        assert_eq!(yard.search.finder.read().await, (tools, read), "nothing is read again");
    };
    check(|_| {}, 8, 4).await;
    check(|_| {}, 8, 0).await;
    check(|yard| yard.put("chess", &[("play_move", "Plays a move.", "move")]), 9, 1).await;
    // The same definition in another place is the same tool.
    check(|yard| yard.put("chess", &[("play_move", "Plays a move.", "move")]), 9, 0).await;
    check(|yard| yard.put("chess", &[("play_move", "Makes a move.", "move")]), 9, 1).await;
    check(|yard| yard.remove("calendar"), 5, 0).await;
    assert_eq!(yard.found(&["*"], "reschedule a meeting", 3).await, [""; 0]);
    assert_eq!(yard.found(&["*"], "move", 3).await, ["play_move"]);
}

/// Whoever follows makes the index without being asked, and ends with the registry.
#[tokio::test]
async fn a_finder_follows() {
    let mut yard = town();
    let finder = yard.search.finder.clone();
    let following = Box::pin(finder.follow());
    let adding = Box::pin(async move {
        yard.put("chess", &[("play_move", "Plays a move.", "move")]);
        yard.publish();
        (yard.found(&["*"], "chess move", 1).await, yard)
    });
    match select(following, adding).await {
        Either::Right(((found, yard), following)) => {
            assert_eq!(found, ["play_move"]);
            drop(yard);
            following.await;
        }
        Either::Left(_) => panic!("the registry is still there"),
    }
}

/// Services in the form that agents know: the sample of their documentation.
#[test]
fn services_are_told_as_agents_know_them() {
    let service = |kind, name: &str, summary: &str, abilities: &[&str]| Service {
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
    let found = found(&ReadServices::new(services).ranked("sales workflows and leads of a bare report"), 5);
    insta::assert_snapshot!(told(&found).expect("JSON"));
    assert_eq!(told(&[]).expect("JSON"), r#"{"results": []}"#);
}

/// What was read is used again as long as nothing of it has changed.
#[test]
fn services_are_read_once() {
    let mut yard = town();
    let read = |yard: &Yard, scope: &[&str]| yard.search.services.read(&yard.view(scope));
    let (all, some) = (read(&yard, &["*"]), read(&yard, &["github/*"]));
    yard.publish();
    assert!(Arc::ptr_eq(&all, &read(&yard, &["*"])) && Arc::ptr_eq(&some, &read(&yard, &["github/*"])));
    assert_eq!((all.len(), some.len()), (4, 1));
    yard.put("shop", &[("cancel_order", "Cancels an order.", "id")]);
    yard.publish();
    assert!(!Arc::ptr_eq(&all, &read(&yard, &["*"])) && Arc::ptr_eq(&some, &read(&yard, &["github/*"])));
}

#[test]
fn a_message_has_a_hint_where_a_service_stands_out() {
    let yard = town();
    let view = yard.view(&["*"]);
    let check = |message: &str, expected: &[&str]| {
        let hint = yard.search.services.hint(&view, message);
        let services = hint.iter().flat_map(|hint| &hint.services);
        assert_eq!(services.map(|service| &*service.id).collect::<Vec<_>>(), expected, "{message}");
    };
    check("Please list the issues of my GitHub repositories", &["github"]);
    check("Which meetings and events do I have today?", &["calendar"]);
    check("What did my customer order? List the orders.", &["shop"]);
    check(
        "List the issues of my GitHub repositories, and create an event in the calendar",
        &["github", "calendar"],
    );
    // Nothing that a service is for.
    check("thanks, that is exactly what I wanted", &[]);
    check("write a short poem about autumn leaves", &[]);
    check("could you list the three primary colours", &[]);
    check("", &[]);
    check("   ", &[]);
    // Too short to say anything.
    check("GitHub issues", &[]);
    check("github", &[]);
}

#[test]
fn hints_as_a_model_reads_them() {
    let yard = town();
    let hint = |scope: &[&str], message: &str| {
        let hint = yard.search.services.hint(&yard.view(scope), message);
        hint.map_or_else(|| "nothing".to_owned(), |hint| hint.text)
    };
    let message = "List the issues of my GitHub repositories, and create an event in the calendar";
    insta::assert_snapshot!(hint(&["*"], message), @"
    Potentially relevant services for this request (call search_known_services for full search):
    - github (mcp): Repositories and their issues on GitHub, top tools: create_issue, list_issues
    - calendar (mcp): Meetings and events of people: creates, moves and deletes them, top tools: create_event, list_events, move_event
    ");
    // Who has no tool to search with is not told to.
    insta::assert_snapshot!(hint(&["github/*", "shop/*"], message), @"
    Potentially relevant services for this request:
    - github (mcp): Repositories and their issues on GitHub, top tools: create_issue, list_issues
    ");
    assert_eq!(hint(&["shop/*"], message), "nothing");
    assert!(hint(&["*"], &message.repeat(10_000)).lines().count() == 3);
    let view = yard.view(&["*"]);
    assert!(view.entries(Kind::Tools).iter().any(|entry| &*entry.name == SERVICES));
}

/// However long schemas are, an answer has an end; what a tool takes is found by its name.
#[tokio::test]
async fn an_answer_is_bounded() {
    let arguments: String = (0..600).map(|number| format!("long_parameter_of_a_tool_{number} ")).collect();
    let arguments: &'static str = Box::leak(arguments.into_boxed_str());
    let long: &'static str = Box::leak("Paints a wall. ".repeat(200).into_boxed_str());
    let tools = ["paint_wall_a", "paint_wall_b", "paint_wall_c"].map(|name| (name, long, arguments));
    let offers: [Offer; 1] = [("painter", tools.to_vec())];
    let yard = Yard::new(&offers, &[]);
    let text = yard.read(&["*"], SEARCH, json!({"query": "paint a wall"})).await;
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    let has_schema: Vec<_> = answer["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| tool.get("inputSchema").is_some())
        .collect();
    assert_eq!(has_schema, [true, false, false]);
    assert!(answer["note"].as_str().is_some_and(|note| note.contains("by its name")), "{}", answer["note"]);
    assert_eq!(answer["tools"][0]["description"].as_str().map(|text| text.chars().count()), Some(501));
    let text = yard.read(&["*"], SEARCH, json!({"query": "paint_wall_c", "limit": 1})).await;
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["tools"][0]["name"], "paint_wall_c");
    assert!(answer["tools"][0]["inputSchema"]["properties"].as_object().is_some_and(|all| all.len() == 600));
}
