use serde_json::json;
use toolyard_core::{ClientIdentity, Json, OwnCatalog};

use super::*;

/// An MCP handler with this pin mode.
fn handler(pin: &str) -> manifest::HandlerConfig {
    let text = format!(
        "apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: r}}\nspec: {{handlers: [\
         {{name: h, type: mcp, pin: {pin}, mcpConfig: {{transport: stdio, command: x}}}}]}}"
    );
    let source = manifest::ManifestSource { name: "test.yaml".to_owned(), text };
    manifest::parse_with(&[source], &|_| None).unwrap().handlers.remove(0)
}

/// A catalog of tools with descriptions, as `name=description`.
fn catalog(tools: &str) -> Arc<Catalog> {
    let tool = |tool: &str| {
        let (name, description) = tool.split_once('=').unwrap();
        let definition = json!({"name": name, "description": description, "inputSchema": {"type": "object"}});
        Arc::new(Tool::from_definition(&Json::from_value(&definition)).unwrap())
    };
    let tools = tools.split_whitespace().map(tool).collect();
    Arc::new(Catalog { phase: BackendPhase::Ready, tools, ..Catalog::default() })
}

/// The same catalog of an unavailable server.
fn unavailable(tools: &str) -> Arc<Catalog> {
    let phase = BackendPhase::Unavailable { reason: "gone".into() };
    Arc::new(Catalog { phase, ..(*catalog(tools)).clone() })
}

fn tool_list(catalog: &Catalog) -> String {
    let tool = |tool: &Arc<Tool>| {
        let description = tool.definition.get_str("description").unwrap().into_owned();
        format!("{}={description}", tool.name)
    };
    catalog.tools.iter().map(tool).collect::<Vec<_>>().join(" ")
}

fn change_list(changes: &[DefinitionChange]) -> String {
    let name = |change: &DefinitionChange| match change.old {
        Some(_) => format!("{}:{:?}", change.tool, change.served),
        None => format!("+{}:{:?}", change.tool, change.served),
    };
    changes.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Restores the definitions from their records, as in another run of the gateway.
fn restarted(definitions: &ToolDefinitions, handler: &manifest::HandlerConfig) -> ToolDefinitions {
    let records = definitions.records([handler].into_iter());
    let records = records.into_iter().filter_map(|(key, record)| Some((key, record?))).collect();
    ToolDefinitions::from_records(std::slice::from_ref(handler), &records)
}

/// Checks the steps: the offered catalog, the served tools, the reported and the waiting changes.
#[track_caller]
fn check(pin: &str, restart: bool, steps: &[(Arc<Catalog>, &str, &str, &str)]) {
    let handler = handler(pin);
    let mut definitions = ToolDefinitions::default();
    for (number, (offered, expect, reported_changes, pending)) in steps.iter().enumerate() {
        if restart {
            definitions = restarted(&definitions, &handler);
        }
        let review = definitions.review(&handler, offered.clone());
        let outcome = (
            tool_list(&review.catalog),
            change_list(&review.reported_changes),
            change_list(&definitions.pending(&handler)),
        );
        assert_eq!(
            (&*outcome.0, &*outcome.1, &*outcome.2),
            (*expect, *reported_changes, *pending),
            "{pin}, {restart}, step {number}"
        );
        let again = definitions.review(&handler, offered.clone());
        assert!(again.reported_changes.is_empty() && Arc::ptr_eq(&again.catalog, &review.catalog));
    }
}

#[test]
fn changed_tools_are_served_by_pin_mode() {
    for restart in [false, true] {
        check(
            "warn",
            restart,
            &[
                (catalog("a=1 b=1"), "a=1 b=1", "", ""),
                (catalog("a=2 b=1"), "a=2 b=1", "a:New", "a:New"),
                (catalog("a=2 b=1 c=1"), "a=2 b=1 c=1", "", "a:New"),
                (catalog("a=2 b=2"), "a=2 b=2", "b:New", "a:New b:New"),
                (catalog("a=1 b=2"), "a=1 b=2", "", "b:New"),
                (catalog("a=1"), "a=1", "", ""),
                // A tool that returns is compared with its accepted definition.
                (catalog("a=1 b=1 c=2"), "a=1 b=1 c=2", "c:New", "c:New"),
            ],
        );
        check(
            "hold",
            restart,
            &[
                (catalog("a=1 b=1"), "a=1 b=1", "", ""),
                (catalog("a=2 b=1"), "a=1 b=1", "a:Old", "a:Old"),
                (catalog("a=2 b=1 c=1"), "a=1 b=1", "+c:Nothing", "a:Old +c:Nothing"),
                (unavailable("a=2 b=3 c=1"), "a=1 b=1", "", "a:Old +c:Nothing"),
                (catalog("a=1 b=1"), "a=1 b=1", "", ""),
                (catalog("b=1"), "b=1", "", ""),
                (catalog("b=1 a=3"), "b=1 a=1", "a:Old", "a:Old"),
            ],
        );
        // A handler that has never answered is trusted at its first answer.
        check(
            "hold",
            restart,
            &[(unavailable(""), "", "", ""), (catalog(""), "", "", ""), (catalog("a=1"), "a=1", "", "")],
        );
    }
}

#[test]
fn accepted_definition_is_served() {
    let handler = handler("hold");
    let mut definitions = ToolDefinitions::default();
    let review = |definitions: &mut ToolDefinitions, tools: &str| {
        tool_list(&definitions.review(&handler, catalog(tools)).catalog)
    };
    review(&mut definitions, "a=1 b=1");
    assert_eq!(review(&mut definitions, "a=2 b=2 c=1"), "a=1 b=1");
    let accepted = definitions.accept(&handler, Some("a"), None).unwrap();
    assert_eq!(change_list(&accepted), "a:New");
    assert_eq!(review(&mut definitions, "a=2 b=2 c=1"), "a=2 b=1");
    let b = definitions.pending(&handler)[0].new.clone();
    assert_eq!(
        definitions.accept(&handler, Some("b"), Some("sha256:0")),
        Err(AcceptError::Another(b.clone()))
    );
    assert_eq!(definitions.accept(&handler, Some("a"), None), Err(AcceptError::NoChange("a".to_owned())));
    assert_eq!(definitions.accept(&handler, Some("b"), Some(&b.0)).map(|accepted| accepted.len()), Ok(1));
    definitions = restarted(&definitions, &handler);
    assert_eq!(review(&mut definitions, "a=2 b=2 c=1"), "a=2 b=2");
    assert_eq!(change_list(&definitions.accept(&handler, None, None).unwrap()), "+c:New");
    assert_eq!(definitions.accept(&handler, None, None), Ok(Vec::new()));
    assert_eq!(review(&mut definitions, "a=2 b=2 c=1"), "a=2 b=2 c=1");
}

#[test]
fn changed_pin_mode_applies_at_once() {
    let (warn, hold) = (handler("warn"), handler("hold"));
    let mut definitions = ToolDefinitions::default();
    let changed_now = catalog("a=2 b=1");
    definitions.review(&warn, catalog("a=1"));
    assert_eq!(tool_list(&definitions.review(&warn, changed_now.clone()).catalog), "a=2 b=1");
    // The accepted definition is still known after the pin mode changes.
    assert_eq!(tool_list(&definitions.review(&hold, changed_now.clone()).catalog), "a=1 b=1");
    assert_eq!(tool_list(&definitions.review(&warn, changed_now).catalog), "a=2 b=1");
}

#[test]
fn unknown_accepted_definition_is_not_served() {
    let (warn, hold) = (handler("warn"), handler("hold"));
    let mut definitions = ToolDefinitions::default();
    definitions.review(&warn, catalog("a=1 b=1"));
    // Only digests are stored with the pin mode `warn`.
    let mut definitions = restarted(&definitions, &warn);
    let review = definitions.review(&hold, catalog("a=2 b=1"));
    assert_eq!((&*tool_list(&review.catalog), &*change_list(&review.reported_changes)), ("b=1", "a:Nothing"));
}

#[test]
fn digest_depends_on_the_definition_only() {
    let digest = |text: &str| {
        DefinitionDigest::of(&Tool::from_definition(&Json::parse(text.to_owned()).unwrap()).unwrap())
    };
    let tool = r#"{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{"type":"string"},"y":{}}}}"#;
    let same = [
        r#"{"inputSchema":{"properties":{"y":{ },"x":{"type":"string"}},"type":"object"},"description":"d","name":"a"}"#,
        r#"{"name":"a","description":"\u0064","inputSchema":{"type":"object","properties":{"x":{"type":"string"},"y":{}}},"_meta":{"at":1}}"#,
    ];
    for other in same {
        assert_eq!(digest(other), digest(tool), "{other}");
    }
    let deep =
        |end: &str| format!(r#"{{"name":"a","inputSchema":{}{end}{}}}"#, "[".repeat(100), "]".repeat(100));
    let others = [
        tool.replace("\"d\"", "\"e\""),
        tool.replace("string", "number"),
        tool.replace("\"name\":\"a\"", "\"name\":\"b\""),
        tool.replace("{\"name\"", "{\"title\":\"A\",\"name\""),
        tool.replace("{\"name\"", "{\"annotations\":{\"readOnlyHint\":true},\"name\""),
        tool.replace("{\"name\"", "{\"outputSchema\":{},\"name\""),
        deep(""),
        deep("1"),
    ];
    let mut digests: Vec<_> = others.iter().map(|other| digest(other).to_string()).collect();
    digests.push(digest(tool).to_string());
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), others.len() + 1);
}

#[test]
fn remembered_definitions_are_limited() {
    let handler = handler("warn");
    let mut definitions = ToolDefinitions::default();
    for list in 0..5 {
        let tools: Vec<_> = (0..400).map(|tool| format!("t{list}-{tool}=1")).collect();
        definitions.review(&handler, catalog(&tools.join(" ")));
    }
    let handler_definitions = &definitions.handlers[&key(&handler)];
    assert!(handler_definitions.accepted.len() <= 400 + REMEMBERED, "{}", handler_definitions.accepted.len());
}

#[test]
fn acceptance_applies_to_other_gateways() {
    let handler = handler("hold");
    let record = |definitions: &ToolDefinitions| {
        definitions.acceptances(std::iter::once(&handler)).into_values().next().flatten().unwrap()
    };
    let [mut here, mut there, mut late] = [(); 3].map(|()| ToolDefinitions::default());
    for gateway in [&mut here, &mut there, &mut late] {
        gateway.review(&handler, catalog("t=old u=old"));
    }
    here.review(&handler, catalog("t=new u=new v=new"));
    there.review(&handler, catalog("t=other u=new v=new"));
    here.accept(&handler, None, None).unwrap();
    assert_eq!(change_list(&there.merge_acceptances(&handler, &record(&here))), "u:Old +v:Nothing");
    assert_eq!(change_list(&there.pending(&handler)), "t:Old", "another definition than the accepted one");
    assert_eq!(
        tool_list(&there.review(&handler, catalog("t=other u=new v=new")).catalog),
        "t=old u=new v=new"
    );
    // A gateway that sees the change later already knows the acceptance.
    assert_eq!(late.merge_acceptances(&handler, &record(&here)), []);
    let review = late.review(&handler, catalog("t=new u=new v=new"));
    assert_eq!(
        (&*tool_list(&review.catalog), &*change_list(&review.reported_changes)),
        ("t=new u=new v=new", "")
    );
    // A known acceptance is not stored again.
    let before = late.acceptance_changes();
    late.merge_acceptances(&handler, &record(&here));
    assert_eq!(late.acceptance_changes(), before);
    // Two gateways that accept at the same time merge their acceptances.
    late.review(&handler, catalog("t=new u=newer v=new"));
    late.accept(&handler, Some("u"), None).unwrap();
    here.merge_acceptances(&handler, &record(&late));
    here.review(&handler, catalog("t=new u=newer v=new"));
    assert_eq!(change_list(&here.pending(&handler)), "");
}

/// The same catalog with other tools for single clients.
fn with_own(catalog: Arc<Catalog>, own: &[&str]) -> Arc<Catalog> {
    let client = |(number, tools): (usize, &&str)| OwnCatalog {
        client: ClientIdentity::Session(number.to_string().into()),
        tools: Some(self::catalog(tools).tools.clone()),
        prompts: None,
        resources: None,
        templates: None,
    };
    Arc::new(Catalog { own: own.iter().enumerate().map(client).collect(), ..(*catalog).clone() })
}

/// Checks the tools that single clients see after these steps, and the reported changes of the last one.
#[track_caller]
fn check_own(
    pin: &str,
    steps: &[Arc<Catalog>],
    accepted: Option<&str>,
    expect: &str,
    reported_changes: &str,
) {
    let handler = handler(pin);
    let mut definitions = ToolDefinitions::default();
    let reviews: Vec<_> = steps.iter().map(|offered| definitions.review(&handler, offered.clone())).collect();
    let mut last = reviews.into_iter().last().unwrap();
    assert_eq!(change_list(&last.reported_changes), reported_changes, "{pin}");
    if accepted.is_some() {
        definitions.accept(&handler, accepted, None).unwrap();
        let again = Arc::new(Catalog::clone(steps.last().unwrap()));
        last = definitions.review(&handler, again);
    }
    let own = last.catalog.own.iter().map(|own| {
        let tools = own.tools.clone().unwrap();
        tool_list(&Catalog { tools, ..Catalog::default() })
    });
    assert_eq!(own.collect::<Vec<_>>().join(" | "), expect, "{pin}");
    assert_eq!(tool_list(&last.catalog), tool_list(steps.last().unwrap()), "{pin}");
}

#[test]
fn tools_of_single_clients_are_pinned() {
    let first = catalog("a=1");
    let two = || with_own(catalog("a=1"), &["a=1 b=1", "a=2"]);
    check_own("warn", &[first.clone(), two()], None, "a=1 b=1 | a=2", "");
    check_own("hold", &[first.clone(), two()], None, "a=1 | a=1", "+b:Nothing");
    check_own("hold", &[first.clone(), two()], Some("b"), "a=1 b=1 | a=1", "+b:Nothing");
    let changed = with_own(catalog("a=1"), &["b=2"]);
    check_own("warn", &[first, two(), changed], None, "b=2", "b:New");
}
