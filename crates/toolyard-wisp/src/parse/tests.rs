use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::definition::{DirectAction, FailureReaction, InputSource, StepAction, WebTool};

fn read(value: &Value) -> Result<Vec<WispDefinition>, DefinitionProblems> {
    let settings = WispSettings::default();
    definitions(value, DefinitionRules { settings: &settings, has_model: true })
}

/// Reads one step after the steps `a`, with the output `out/a.json`, and `b`.
fn step_after_others(step: &Value) -> Result<WispStep, DefinitionProblems> {
    let web = json!({"mode": "Direct", "gateway": "Web", "tool": "web_search", "params": {"query": "q"}});
    let mut a = web.clone();
    (a["id"], a["output_to"]) = (json!("a"), json!("out/a.json"));
    let mut b = web.clone();
    b["id"] = json!("b");
    let mut last = web;
    last["id"] = json!("last");
    let definition = json!({"description": "d", "steps": [a, b, step, last]});
    let mut wisps = read(&definition)?;
    Ok(wisps.remove(0).steps.remove(2))
}

#[track_caller]
fn check(step: Value, expected: WispStep) {
    assert_eq!(step_after_others(&step).map_err(|problems| problems.to_string()), Ok(expected), "{step}");
}

fn step(action: StepAction) -> WispStep {
    WispStep {
        id: "s".to_owned(),
        action,
        input_from: None,
        output_to: None,
        on_failure: FailureReaction::Abort,
        timeout: None,
    }
}

fn members(value: Value) -> serde_json::Map<String, Value> {
    serde_json::from_value(value).expect("an object")
}

fn lookup() -> StepAction {
    let (server, tool) = ("shop".to_owned(), "lookup".to_owned());
    StepAction::Direct(DirectAction::Mcp {
        server,
        tool,
        params: members(json!({"id": "{{steps.a.result}}"})),
    })
}

#[test]
fn steps_of_each_mode_and_gateway() {
    let params = json!({"id": "{{steps.a.result}}"});
    let mcp = json!({"id": "s", "mode": "Direct", "gateway": "Mcp", "server": "shop", "tool": "lookup"});
    for name in ["params", "input", "arguments"] {
        for value in [params.clone(), json!(params.to_string())] {
            let mut written = mcp.clone();
            written[name] = value;
            check(written, step(lookup()));
        }
    }
    check(
        json!({"id": "s", "mode": "direct", "gateway": "mcp", "server": "shop", "tool": "lookup", "params": params, "prompt": null}),
        step(lookup()),
    );
    check(
        json!({"id": "s", "gateway": "A2A", "agent": "planner", "skill": "plan", "message": "go", "timeout_minutes": 2.5}),
        WispStep {
            timeout: Some(std::time::Duration::from_secs(150)),
            ..step(StepAction::Direct(DirectAction::A2a {
                agent: "planner".to_owned(),
                skill: "plan".to_owned(),
                message: "go".to_owned(),
            }))
        },
    );
    let script = json!({"script": "print('{{x}}')"});
    for (language, expected) in [(Value::Null, "python"), (json!("Python"), "python"), (json!("lua"), "lua")]
    {
        check(
            json!({"id": "s", "mode": "Direct", "gateway": "Script", "language": language, "params": script}),
            step(StepAction::Direct(DirectAction::Script {
                language: expected.to_owned(),
                params: members(script.clone()),
            })),
        );
    }
    for (name, tool) in [("web_search", WebTool::Search), ("web_browse", WebTool::Browse)] {
        check(
            json!({"id": "s", "mode": "Direct", "gateway": "Web", "tool": name, "params": {"x": 1}}),
            step(StepAction::Direct(DirectAction::Web { tool, params: members(json!({"x": 1})) })),
        );
    }
    check(
        json!({"id": "s", "mode": "Llm", "prompt": "Sum up."}),
        step(StepAction::Llm("Sum up.".to_owned())),
    );
}

#[test]
fn members_beside_the_action() {
    let llm = |other: Value| {
        let mut written = json!({"id": "s", "mode": "Llm", "prompt": "p"});
        written.as_object_mut().expect("an object").extend(members(other));
        written
    };
    let plain = || step(StepAction::Llm("p".to_owned()));
    let path = |text: &str| SharedPath::parse(text).expect("a path");
    check(llm(json!({"output_to": "out/s.md"})), WispStep { output_to: Some(path("out/s.md")), ..plain() });
    check(
        llm(json!({"input_from": "{{steps.b.result.x}} and"})),
        WispStep {
            input_from: Some(InputSource::Template("{{steps.b.result.x}} and".to_owned())),
            ..plain()
        },
    );
    check(
        llm(json!({"input_from": "out/a.json"})),
        WispStep { input_from: Some(InputSource::Step(0)), ..plain() },
    );
    check(
        llm(json!({"timeout_minutes": "1"})),
        WispStep { timeout: Some(std::time::Duration::from_secs(60)), ..plain() },
    );
    check(llm(json!({"on_failure": {"action": "abort"}})), plain());
    check(
        llm(json!({"on_failure": {"action": "skip_to", "skip_to": "last"}})),
        WispStep { on_failure: FailureReaction::SkipTo(3), ..plain() },
    );
}

#[test]
fn forms_of_definitions() {
    let one =
        json!({"description": "d", "tools": ["t"], "steps": [{"id": "s", "mode": "Llm", "prompt": "p"}]});
    let text = json!(one.to_string());
    for (written, count) in [
        (one.clone(), 1),
        (text.clone(), 1),
        (json!([one.clone()]), 1),
        (json!([one, text]), 2),
        (json!(json!([text]).to_string()), 1),
    ] {
        let wisps = read(&written).expect("definitions");
        assert_eq!(wisps.len(), count, "{written}");
        assert_eq!(wisps[0].tools, ["t"]);
        assert_eq!((wisps[0].digest.len(), &wisps[0].digest), (16, &wisps[count - 1].digest));
    }
}

/// Returns the problems of a step without the first line, which is the same for all.
#[track_caller]
fn problems(step: &Value) -> String {
    let problems = step_after_others(step).expect_err("problems").to_string();
    let lines = problems.lines().skip(1).map(|line| line.replace("definitions[0].steps[2]", "step"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn problems_of_a_step() {
    assert_snapshot!(problems(&json!({"mode": "Fast", "toolz": 1})), @"
    step.toolz: unknown member
      expected one of id, mode, gateway, server, tool, language, params, input, arguments, prompt, agent, skill, message, timeout_minutes, input_from, output_to, on_failure
      hint: did you mean `tool`?
    step.id: the member is missing
      expected letters, digits, `-` and `_`, at most 64, unique in the wisp
    step.mode: found `Fast`
      expected one of Direct, Llm
    ");
    assert_snapshot!(problems(&json!({"id": "a b", "mode": "Llm"})), @"
    step.id: found `a b`
      expected letters, digits, `-` and `_`, at most 64, unique in the wisp
    step.prompt: the member is missing
      expected the instruction for the model
    ");
    assert_snapshot!(problems(&json!({"id": "A", "mode": "Llm", "prompt": " "})), @"
    step.id: another step has the id `A`
      expected letters, digits, `-` and `_`, at most 64, unique in the wisp
    step.prompt: the text is empty
      expected a text
    ");
    assert_snapshot!(problems(&json!({"id": "s"})), @"
    step.gateway: the member is missing
      expected one of Mcp, A2A, Script, Web
    ");
    assert_snapshot!(problems(&json!({"id": "s", "gateway": "Smtp"})), @"
    step.gateway: found `Smtp`
      expected one of Mcp, A2A, Script, Web
    ");
    assert_snapshot!(problems(&json!({"id": "s", "gateway": "Mcp", "params": 1})), @"
    step.params: found a number
      expected an object
    step.server: the member is missing
      expected the name of a server
    step.tool: the member is missing
      expected the name of a tool of the server
    ");
    assert_snapshot!(problems(&json!({"id": "s", "gateway": "A2A", "params": {"a": 1}, "timeout_minutes": 0})), @"
    step.agent: the member is missing
      expected the name of an agent
    step.skill: the member is missing
      expected the id of a skill of the agent
    step.message: the member is missing
      expected the text for the agent
    step.params: a step for an agent has no parameters
      expected `agent`, `skill` and `message`
    step.timeout_minutes: found 0
      expected a number above 0, at most 1440
    ");
    assert_snapshot!(problems(&json!({"id": "s", "gateway": "Script", "language": "../sh", "params": {}})), @"
    step.language: found `../sh`
      expected a name such as python
    ");
    assert_snapshot!(problems(&json!({"id": "s", "gateway": "Script"})), @"
    step.params.script: the member is missing
      expected the source of the script
    ");
    assert_snapshot!(problems(&json!({"id": "s", "gateway": "Web", "params": {"a": 1}, "input": {"a": 1}})), @"
    step.input: `params` is present as well
      expected one of them
    step.tool: the member is missing
      expected one of web_search, web_browse
    ");
}

#[test]
fn problems_of_references() {
    let web = |params: Value| json!({"id": "s", "gateway": "Web", "tool": "web_search", "params": params});
    assert_snapshot!(problems(&web(json!({"q": "{{steps.c.result}}", "r": ["{{steps.s.result}}"], "t": {"u": "{{steps.last.result}}"}}))), @"
    step.params.q: `c` is no earlier step.
      expected the id of a step before this one
    step.params.r[0]: `s` is no earlier step.
      expected the id of a step before this one
    step.params.t.u: `last` is no earlier step. Did you mean `a`?
      expected the id of a step before this one
    ");
    assert_snapshot!(problems(&web(json!({"q": "{{steps.b.output_to}} {{steps.a.out}}", "r": "{{steps.a.out}}"}))), @"
    step.params.q: `{{steps.a.out}}` is not a reference to a step
      expected {{steps.ID.result}}, {{steps.ID.result.MEMBER}} or {{steps.ID.output_to}}
    step.params.r: `{{steps.a.out}}` is not a reference to a step
      expected {{steps.ID.result}}, {{steps.ID.result.MEMBER}} or {{steps.ID.output_to}}
    ");
    let llm = |name: &str, value: Value| json!({"id": "s", "mode": "Llm", "prompt": "p {{steps.a.result}}", name: value});
    assert_snapshot!(problems(&llm("input_from", json!("out/b.json"))), @"
    step.input_from: no earlier step has the output `out/b.json`, and there is no shared folder with files
      expected `output_to` of an earlier step, or a template such as {{steps.ID.result}}
    ");
    assert_snapshot!(problems(&llm("input_from", json!("../a"))), @"
    step.input_from: the path has a component `.`, `..` or an empty one: it would leave the shared folder
      expected a relative path such as reports/summary.md
    ");
    assert_snapshot!(problems(&llm("output_to", json!("/etc/passwd"))), @"
    step.output_to: the path is absolute: paths are relative to the shared folder
      expected a relative path such as reports/summary.md
    ");
    assert_snapshot!(problems(&llm("on_failure", json!({"action": "skip_to", "skip_to": "a", "x": 1}))), @"
    step.on_failure.x: unknown member
      expected one of action, skip_to
    step.on_failure.skip_to: `a` is no later step
      expected the id of a later step
    ");
    assert_snapshot!(problems(&llm("on_failure", json!({"action": "skip_to"}))), @"
    step.on_failure.skip_to: the member is missing
      expected the id of a later step
    ");
    assert_snapshot!(problems(&llm("on_failure", json!("abort"))), @"
    step.on_failure: found a text
      expected an object
    ");
}

#[test]
fn every_problem_of_definitions_is_reported() {
    let llm = json!({"id": "s", "mode": "Llm", "prompt": "p", "output_to": "same.txt"});
    let wisp = json!({"description": "d", "steps": [llm]});
    let settings = WispSettings {
        batch: 5,
        steps: 2,
        shared_folder: Some(PathBuf::from("shared")),
        ..WispSettings::default()
    };
    let check = |value: &Value| {
        let rules = DefinitionRules { settings: &settings, has_model: false };
        definitions(value, rules).expect_err("problems").to_string()
    };
    assert_snapshot!(check(&json!(7)), @"
    No wisp was started: the definitions have 1 problem.
    definitions: found a number
      expected an array of definitions, or one definition
    ");
    assert_snapshot!(check(&json!([])), @"
    No wisp was started: the definitions have 1 problem.
    definitions: the array is empty
      expected at least one definition
    ");
    assert_snapshot!(check(&json!("{")), @"
    No wisp was started: the definitions have 1 problem.
    definitions: the text is not JSON: EOF while parsing an object at line 1 column 1
      expected a JSON object, or a text with one
    ");
    assert_snapshot!(check(&json!([7, "[", {"description": 1, "steps": [], "tools": "x", "step": 1}, {"description": "d"}, {"description": "d", "steps": [1, 2, 3]}])), @r#"
    No wisp was started: the definitions have 8 problems.
    definitions[0]: found a number
      expected an object
    definitions[1]: the text is not JSON: EOF while parsing a list at line 1 column 1
      expected a JSON object, or a text with one
    definitions[2].step: unknown member
      expected one of description, tools, steps
      hint: did you mean `steps`?
    definitions[2].description: found a number
      expected a text
    definitions[2].tools: found "x"
      expected an array of at most 50 names
    definitions[2].steps: the array is empty
      expected at least one step
    definitions[3].steps: the member is missing
      expected at least one step
    definitions[4].steps: there are 3 items
      expected at most 2
    "#);
    assert_snapshot!(check(&json!([wisp, wisp, wisp, wisp, wisp, wisp])), @"
    No wisp was started: the definitions have 10 problems.
    definitions: there are 6 definitions
      expected at most 5
      hint: spawn the others with another call
    definitions[0].steps[0].mode: `Llm` steps need a language model, and this gateway has none
      hint: use `Direct` steps, or do this part yourself; the operator of the gateway can configure a model
    definitions[1].steps[0].mode: `Llm` steps need a language model, and this gateway has none
      hint: use `Direct` steps, or do this part yourself; the operator of the gateway can configure a model
    definitions[2].steps[0].mode: `Llm` steps need a language model, and this gateway has none
      hint: use `Direct` steps, or do this part yourself; the operator of the gateway can configure a model
    definitions[3].steps[0].mode: `Llm` steps need a language model, and this gateway has none
      hint: use `Direct` steps, or do this part yourself; the operator of the gateway can configure a model
    definitions[4].steps[0].mode: `Llm` steps need a language model, and this gateway has none
      hint: use `Direct` steps, or do this part yourself; the operator of the gateway can configure a model
    definitions[1].steps[0].output_to: definitions[0] writes the file `same.txt` as well
      expected a file of its own for each wisp
    definitions[2].steps[0].output_to: definitions[0] writes the file `same.txt` as well
      expected a file of its own for each wisp
    definitions[3].steps[0].output_to: definitions[0] writes the file `same.txt` as well
      expected a file of its own for each wisp
    definitions[4].steps[0].output_to: definitions[0] writes the file `same.txt` as well
      expected a file of its own for each wisp
    ");
    let many =
        json!([{"description": "d", "steps": (0..30).map(|_| json!({"id": "s"})).collect::<Vec<_>>()}]);
    let settings = WispSettings { steps: 50, ..settings.clone() };
    let rules = DefinitionRules { settings: &settings, has_model: true };
    let shown = definitions(&many, rules).expect_err("problems").to_string();
    assert_eq!(shown.lines().next(), Some("No wisp was started: the definitions have 59 problems."));
    assert_eq!(shown.lines().last(), Some("… and 39 more"));
}
