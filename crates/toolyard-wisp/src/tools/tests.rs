use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use insta::assert_snapshot;
use serde_json::{Value, json};
use toolyard_core::{Call, Caller, Json};
use toolyard_manifest::WispSettings;

use crate::testing::{GatewayOptions, WispGateway, text_of, without_ids};

fn gateway() -> WispGateway {
    WispGateway::new(GatewayOptions { has_model: true, ..GatewayOptions::default() })
}

fn with_settings(settings: WispSettings) -> WispGateway {
    WispGateway::new(GatewayOptions { settings, has_model: true })
}

fn mcp(id: &str, tool: &str, params: Value) -> Value {
    json!({"id": id, "mode": "Direct", "gateway": "Mcp", "server": "shop", "tool": tool, "params": params})
}

fn llm(id: &str, prompt: &str) -> Value {
    json!({"id": id, "mode": "Llm", "prompt": prompt})
}

fn wisp(steps: &[Value]) -> Value {
    json!({"description": "test", "steps": steps})
}

/// Returns the value of the member of a step.
fn with(mut step: Value, name: &str, value: Value) -> Value {
    step[name] = value;
    step
}

#[tokio::test]
async fn steps_pass_results_on() {
    let gateway = gateway();
    let steps = [
        mcp("find", "lookup", json!({"id": "a7"})),
        mcp(
            "say",
            "repeat",
            json!({"text": "{{steps.find.result.price.amount}} {{steps.find.result.tags.1}};", "times": "{{steps.find.result.price.amount}}"}),
        ),
    ];
    assert_snapshot!(gateway.spawn(&wisp(&steps)).await, @r#"
    1 wisp: 1 succeeded, 0 failed, N s

    - `W0` "test" [ok] N ms
      Output: 3 red;3 red;3 red;

    Batch `BATCH`, summary in working memory at key `wisp/batch-BATCH/summary`
    "#);
}

#[tokio::test]
async fn every_gateway_of_a_direct_step() {
    let gateway = gateway();
    let script = json!({"id": "s", "gateway": "Script", "params": {"script": "print(1)"}, "input_from": "{{steps.w.result}}"});
    let agent = json!({"id": "a", "gateway": "A2A", "agent": "planner", "skill": "plan", "message": "go", "timeout_minutes": 3, "input_from": "{{steps.w.result}}"});
    let search = json!({"id": "w", "gateway": "Web", "tool": "web_search", "input": {"query": "q"}});
    let browse = json!({"id": "b", "gateway": "Web", "tool": "web_browse", "input_from": r#"{"url": "https://x/{{steps.w.output_to}}"}"#});
    let search = with(search, "output_to", json!("w.txt"));
    let wisps = [script, agent, browse].map(|step| wisp(&[search.clone(), step]));
    assert_snapshot!(gateway.spawn(&json!(wisps)).await, @r#"
    3 wisps: 3 succeeded, 0 failed, N s

    - `W0` "test" [ok] N ms
      Output: execute_python_script {"script":"print(1)","input_data":"web_search {\"query\":\"q\"}"}
    - `W1` "test" [ok] N ms
      Output: invoke_agent {"agent_name":"planner","skill":"plan","message":"go\n\nweb_search {\"query\":\"q\"}","timeout_minutes":3.0}
    - `W2` "test" [ok] N ms
      Output: web_browse {"url":"https://x/w.txt"}

    Batch `BATCH`, summary in working memory at key `wisp/batch-BATCH/summary`
    "#);
}

#[tokio::test]
async fn failures_of_each_category() {
    let gateway = gateway();
    let data = [
        mcp("a", "repeat", json!({"text": "plain"})),
        mcp("b", "repeat", json!({"text": "{{steps.a.result.x}}"})),
    ];
    let params = with(mcp("b", "repeat", json!({})), "input_from", json!("no object"));
    let params = with(params, "input_from", json!("{{steps.a.result}}"));
    let wisps = [
        wisp(&[mcp("a", "gone", json!({}))]),
        wisp(&[mcp("a", "lookup", json!({}))]),
        wisp(&[mcp("a", "lookup", json!({"id": "x", "colour": "red"}))]),
        json!({"description": "d", "tools": ["gone"], "steps": [llm("a", "go")]}),
        wisp(&[mcp("a", "broken", json!({}))]),
        wisp(&[llm("a", "unavailable")]),
        wisp(&[llm("a", "undecided")]),
        wisp(&[llm("a", "empty")]),
        wisp(&data),
        wisp(&[data[0].clone(), params]),
    ];
    assert_snapshot!(gateway.spawn(&json!(wisps)).await, @r#"
    ALL FAILED
    10 wisps: 0 succeeded, 10 failed, N s

    - `W0` "test" [failed] N ms
      Error: Structural: no tool `gone` of a server `shop` is available. Did you mean `slow`, `lookup` or `broken`?
      Tool: shop/gone (step `a`)
    - `W1` "test" [failed] N ms
      Error: Structural: Invalid arguments: "id" is a required property
      Tool: shop/lookup (step `a`)
    - `W2` "test" [failed] N ms
      Error: Structural: Invalid arguments: Additional properties are not allowed ('colour' was unexpected)
      Tool: shop/lookup (step `a`)
    - `W3` "d" [failed] N ms
      Error: Structural: tools: no tool `gone` is available.
      Tool: llm (step `a`)
    - `W4` "test" [failed] N ms
      Error: External: the warehouse is closed
      Tool: shop/broken (step `a`)
    - `W5` "test" [failed] N ms
      Error: External: the model is not available: connection refused
      Tool: llm (step `a`)
    - `W6` "test" [failed] N ms
      Error: Judgment: the model gave no answer: 20 rounds are used up
      Tool: llm (step `a`)
    - `W7` "test" [failed] N ms
      Error: Judgment: the model gave an empty answer: make the prompt more precise
      Tool: llm (step `a`)
    - `W8` "test" [failed] N ms
      Error: Data: the step `a`: the result is a text, not JSON, so that it has no `x`
      Tool: shop/repeat (step `b`)
      Output: plain
    - `W9` "test" [failed] N ms
      Error: Data: input_from: the input of this step is no JSON object with parameters. Put it into one parameter with {{steps.ID.result}} instead
      Tool: shop/repeat (step `b`)
      Output: plain

    Batch `BATCH`, summary in working memory at key `wisp/batch-BATCH/summary`
    "#);
}

#[tokio::test]
async fn batch_of_ten_with_two_failing() {
    let gateway = gateway();
    let wisps: Vec<_> = (0..10)
        .map(|number| match number {
            3 => wisp(&[mcp("a", "broken", json!({}))]),
            7 => wisp(&[mcp("a", "lookup", json!({}))]),
            _ => wisp(&[mcp("a", "repeat", json!({"text": format!("w{number}")}))]),
        })
        .collect();
    let text = gateway.spawn(&json!(wisps)).await;
    assert!(text.starts_with("PARTIAL FAILURE\n10 wisps: 8 succeeded, 2 failed, N s\n"), "{text}");
    assert_eq!((text.matches("[ok]").count(), text.matches("[failed]").count()), (8, 2));
    let outputs: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("  Output: ")).collect();
    assert_eq!(outputs, ["w0", "w1", "w2", "w4", "w5", "w6", "w8", "w9"]);
}

#[tokio::test]
async fn reactions_to_a_failure() {
    let gateway = gateway();
    let say = |id: &str| mcp(id, "repeat", json!({"text": id}));
    let skip = |to: &str| json!({"action": "skip_to", "skip_to": to});
    let broken = |reaction: Value| with(mcp("broken", "broken", json!({})), "on_failure", reaction);
    let uses_skipped = mcp("late", "repeat", json!({"text": "{{steps.middle.result}}"}));
    let uses_failed = mcp("late", "repeat", json!({"text": "{{steps.broken.result}}"}));
    let wisps = [
        wisp(&[broken(json!({"action": "abort"})), say("late")]),
        wisp(&[broken(skip("late")), say("middle"), say("late")]),
        wisp(&[broken(skip("late")), say("middle"), uses_skipped]),
        wisp(&[broken(skip("late")), say("middle"), uses_failed]),
    ];
    assert_snapshot!(gateway.spawn(&json!(wisps)).await, @r#"
    PARTIAL FAILURE
    4 wisps: 1 succeeded, 3 failed, N s

    - `W0` "test" [failed] N ms
      Error: External: the warehouse is closed
      Tool: shop/broken (step `broken`)
    - `W1` "test" [ok] N ms
      Step `broken` failed and was passed over: External: the warehouse is closed
      Output: late
    - `W2` "test" [failed] N ms
      Error: Data: the step `middle` was skipped, so that it has no result
      Tool: shop/repeat (step `late`)
    - `W3` "test" [failed] N ms
      Error: Data: the step `broken` has failed, so that it has no result
      Tool: shop/repeat (step `late`)

    Batch `BATCH`, summary in working memory at key `wisp/batch-BATCH/summary`
    "#);
}

#[tokio::test]
async fn models_get_inputs_and_tools() {
    let gateway = gateway();
    let long = |times: u64| mcp("long", "repeat", json!({"text": "0123456789", "times": times}));
    let with_input = |id: &str| {
        with(llm(id, "Sum up {{steps.long.result.x}}."), "input_from", json!("{{steps.long.result}}"))
    };
    let prior = json!({"description": "d", "tools": ["web_search", "shop/broken"], "steps": [long(401), llm("m", "Sum up.")]});
    let text = gateway.spawn(&prior).await;
    assert!(text.contains("Output: tools: repeat, web_search, broken, save_to_working_memory"), "{text}");
    assert!(text.contains("## Results of earlier steps\n  \n  ### long\n"), "{text}");
    let broken = wisp(&[long(1), with_input("m")]);
    assert!(gateway.spawn(&broken).await.contains("Error: Data: the step `long`: the result is a text"));
    let input =
        |times| wisp(&[long(times), with(llm("m", "Sum up."), "input_from", json!("{{steps.long.result}}"))]);
    let text = gateway.spawn(&input(2)).await;
    assert!(text.contains("prompt: Sum up.\n  \n  ## Input\n  \n  01234567890123456789\n"), "{text}");
    let text = gateway.spawn(&input(801)).await;
    assert!(text.contains("The input is large (8 010 chars) and has been split into 3 chunk(s)"), "{text}");
    let text = gateway.spawn(&wisp(&[llm("m", "call")])).await;
    assert!(text.contains(r#"Output: {"id":"from-model""#), "{text}");
}

#[tokio::test]
async fn prior_results_are_cut() {
    let gateway = with_settings(WispSettings { prior_chars: 5, result_chars: 12, ..WispSettings::default() });
    let steps = [mcp("a", "repeat", json!({"text": "abcdefgh"})), llm("m", "call {{steps.a.output_to}}")];
    let problems = gateway.spawn(&wisp(&steps)).await;
    assert!(problems.contains("the step `a` has no `output_to`"), "{problems}");
    let steps = [mcp("a", "repeat", json!({"text": "abcdefgh"})), llm("m", "Go.")];
    let text = gateway.read("spawn_wisps", &json!({"definitions": wisp(&steps)})).await;
    assert!(text.contains("  Output: tools: repea\n  [truncated — "), "{text}");
    let key = text
        .split("the whole output is at key `")
        .nth(1)
        .and_then(|rest| rest.split('`').next())
        .expect("a key");
    let whole = gateway.read("get_from_working_memory", &json!({"key": key})).await;
    assert!(
        whole
            .contains("### a\n\nabcde\n[truncated — 3 chars omitted; the whole result is at key `wisp/wisp-"),
        "{whole}"
    );
}

#[tokio::test]
async fn outputs_and_summary_are_in_working_memory() {
    let gateway = gateway();
    let good =
        wisp(&[mcp("a", "repeat", json!({"text": "one"})), mcp("b", "repeat", json!({"text": "two"}))]);
    let bad = wisp(&[mcp("a", "repeat", json!({"text": "one"})), mcp("b", "broken", json!({}))]);
    let text = gateway.read("spawn_wisps", &json!({"definitions": [good, bad]})).await;
    let ids: Vec<_> = text.split("- `").skip(1).filter_map(|rest| rest.split('`').next()).collect();
    assert!(ids.iter().all(|id| id.len() == "wisp-".len() + 11 && id.starts_with("wisp-")), "{ids:?}");
    let summary = text.rsplit("at key `").next().and_then(|rest| rest.split('`').next()).expect("a key");
    assert!(summary.starts_with("wisp/batch-batch-") && summary.ends_with("/summary"), "{summary}");
    assert_eq!(summary.len(), "wisp/batch-batch-/summary".len() + 12);
    for (wisp, step, expected) in [(0, "a", "one"), (0, "b", "two"), (1, "a", "one")] {
        let key = format!("wisp/{}/{step}/output", ids[wisp]);
        assert_eq!(gateway.read("get_from_working_memory", &json!({"key": key})).await, expected);
    }
    let list = gateway.read("list_working_memory", &json!({})).await;
    let left = |id: &str| {
        let line = list.lines().find(|line| line.contains(&format!("{id}/a/output"))).unwrap_or_default();
        line.to_owned()
    };
    // The outputs of a wisp with a failure stay longer.
    assert!(left(ids[0]).contains("5m0s") || left(ids[0]).contains("4m59s"), "{list}");
    assert!(left(ids[1]).contains("1h0m0s") || left(ids[1]).contains("59m59s"), "{list}");
    let summary = gateway.read("get_from_working_memory", &json!({"key": summary})).await;
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["state"], "completed");
    assert_eq!(
        (&summary["total"], &summary["succeeded"], &summary["failed"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert_eq!(summary["wisps"][1]["failure"]["category"], "External");
    assert_eq!(summary["wisps"][1]["steps"][0]["outputKey"], format!("wisp/{}/a/output", ids[1]));
    assert_eq!(summary["wisps"][1]["steps"][1]["state"], "failed");
}

#[tokio::test]
async fn outputs_are_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let gateway = with_settings(WispSettings {
        shared_folder: Some(folder.path().to_owned()),
        ..WispSettings::default()
    });
    std::fs::write(folder.path().join("in.json"), r#"{"id": "from-file"}"#).expect("a file");
    std::os::unix::fs::symlink("/etc", folder.path().join("link")).expect("a link");
    let reads = |path: &str| with(mcp("a", "lookup", json!({})), "input_from", json!(path));
    let writes = |path: &str| with(mcp("a", "repeat", json!({"text": "out"})), "output_to", json!(path));
    let text = gateway
        .spawn(&json!([
            wisp(&[reads("in.json")]),
            wisp(&[writes("deep/out.txt")]),
            wisp(&[reads("gone.json")]),
            wisp(&[writes("link/passwd")]),
            wisp(&[reads("link/passwd")])
        ]))
        .await;
    assert_snapshot!(text, @r#"
    PARTIAL FAILURE
    5 wisps: 2 succeeded, 3 failed, N s

    - `W0` "test" [ok] N ms
      Output: {"id":"from-file","price":{"amount":3,"currency":"EUR"},"tags":["new","red"]}
    - `W1` "test" [ok] N ms
      Output: out
    - `W2` "test" [failed] N ms
      Error: Data: the shared folder has no file `gone.json`
      Tool: shop/lookup (step `a`)
    - `W3` "test" [failed] N ms
      Error: Structural: `link/passwd` leads through a symbolic link, or through something that is neither a folder nor a file: it is refused. Use another path
      Tool: shop/repeat (step `a`)
    - `W4` "test" [failed] N ms
      Error: Structural: `link/passwd` leads through a symbolic link, or through something that is neither a folder nor a file: it is refused. Use another path
      Tool: shop/lookup (step `a`)

    Batch `BATCH`, summary in working memory at key `wisp/batch-BATCH/summary`
    "#);
    assert_eq!(std::fs::read_to_string(folder.path().join("deep/out.txt")).expect("a file"), "out");
}

#[tokio::test]
async fn results_have_a_maximum_size() {
    let gateway = with_settings(WispSettings { output_bytes: 4096, ..WispSettings::default() });
    let text = gateway.spawn(&wisp(&[mcp("a", "repeat", json!({"text": "x", "times": 5000}))])).await;
    assert!(text.contains("Error: Data: the output has 5000 bytes, and the limit is 4096"), "{text}");
    let two = [
        mcp("a", "repeat", json!({"text": "x", "times": 4000})),
        mcp("b", "repeat", json!({"text": "{{steps.a.result}}{{steps.a.result}}"})),
    ];
    let text = gateway.spawn(&wisp(&two)).await;
    assert!(text.contains("Error: Data: the arguments have"), "{text}");
    let gateway = with_settings(WispSettings { definition_bytes: 100, ..WispSettings::default() });
    let text = gateway.spawn(&wisp(&two)).await;
    assert!(text.starts_with("error: definitions: have ") && text.contains("the limit is 100"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn time_limits_of_steps_and_batches() {
    let gateway =
        with_settings(WispSettings { timeout: Duration::from_secs(600), ..WispSettings::default() });
    let slow = mcp("b", "slow", json!({}));
    let first = mcp("a", "repeat", json!({"text": "one"}));
    let limited = with(slow.clone(), "timeout_minutes", json!(1));
    let text = gateway.spawn(&json!([wisp(&[first.clone(), limited]), wisp(&[first, slow])])).await;
    assert_snapshot!(text, @r#"
    ALL FAILED
    2 wisps: 0 succeeded, 2 failed, N s

    - `W0` "test" [failed] N ms
      Error: External: The tool did not answer in time
      Tool: shop/slow (step `b`)
      Output: one
    - `W1` "test" [failed] N ms
      Error: External: The tool did not answer in time
      Tool: shop/slow (step `b`)
      Output: one

    Batch `BATCH`, summary in working memory at key `wisp/batch-BATCH/summary`
    "#);
    assert_eq!(gateway.slow_calls.load(Ordering::SeqCst), 0);
}

/// Returns a call of `spawn_wisps` with a step that never ends after one that does.
fn endless() -> Call {
    let steps = [mcp("a", "repeat", json!({"text": "one"})), mcp("b", "slow", json!({}))];
    let arguments = json!({"definitions": [wisp(&steps), wisp(&steps)]});
    let caller = Caller { principal: Some("k1".into()), ..Caller::default() };
    Call { caller, ..Call::tool("spawn_wisps", Json::from_value(&arguments)) }
}

/// Returns the summary of the only batch.
async fn summary(gateway: &WispGateway) -> Option<Value> {
    let found = gateway.read("search_working_memory", &json!({"query": "", "category": "wisp"})).await;
    let key = &found[found.find("wisp/batch-batch-")?..];
    let key = key.split('`').next().unwrap_or_default();
    let text = gateway.read("get_from_working_memory", &json!({"key": key})).await;
    serde_json::from_str(&text).ok()
}

#[tokio::test]
async fn cancelled_call_leaves_nothing_running() {
    let gateway = gateway();
    let mut running = gateway.gateway.invoke(endless()).boxed();
    // The summary says how far each step came.
    let is_running = |summary: &Value| {
        summary["wisps"].as_array().is_some_and(|wisps| {
            let states = wisps.iter().map(|wisp| [&wisp["steps"][0]["state"], &wisp["steps"][1]["state"]]);
            states.into_iter().all(|states| states == ["succeeded", "running"])
        })
    };
    let summary = loop {
        // Tokio's budget for polls is new after it.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            ended = &mut running => panic!("{ended:?}"),
            summary = summary(&gateway) => if let Some(summary) = summary.filter(is_running) { break summary },
        }
    };
    assert_eq!(gateway.slow_calls.load(Ordering::SeqCst), 2);
    drop(running);
    assert_eq!(gateway.slow_calls.load(Ordering::SeqCst), 0);
    // It also says until when the batch could run.
    assert_eq!(summary["state"], "running");
    assert!(summary["note"].as_str().is_some_and(|note| note.contains("`endsBy`")), "{summary}");
    assert!(summary["endsBy"].as_str() > summary["startedAt"].as_str());
}

#[tokio::test]
async fn same_wisp_is_stopped() {
    let gateway = with_settings(WispSettings { repeats: 2, ..WispSettings::default() });
    let same = wisp(&[mcp("a", "repeat", json!({"text": "one"}))]);
    let text = gateway.spawn(&json!([same, same, same])).await;
    assert!(text.starts_with("PARTIAL FAILURE\n3 wisps: 2 succeeded, 1 failed"), "{text}");
    assert!(text.contains("Error: Structural: the same wisp was spawned 2 times in 300 s"), "{text}");
}

#[tokio::test]
async fn wisps_spawn_no_wisps() {
    let gateway = gateway();
    let inner = wisp(&[mcp("a", "repeat", json!({"text": "one"}))]);
    let spawn = json!({"id": "a", "gateway": "Mcp", "server": "builtins", "tool": "spawn_wisps", "params": {"definitions": inner}});
    let text = gateway.spawn(&wisp(&[spawn])).await;
    assert!(
        text.contains("Error: Structural: no tool `spawn_wisps` of a server `builtins` is available."),
        "{text}"
    );
    let keep = json!({"id": "a", "gateway": "Mcp", "server": "builtins", "tool": "save_to_working_memory", "params": {"key": "k", "data": "kept"}});
    assert!(gateway.spawn(&wisp(&[keep])).await.contains("[ok]"));
    assert_eq!(gateway.read("get_from_working_memory", &json!({"key": "k"})).await, "kept");
}

#[tokio::test]
async fn nothing_runs_if_a_definition_has_problems() {
    let gateway = WispGateway::new(GatewayOptions::default());
    let keep = json!({"id": "a", "gateway": "Mcp", "server": "builtins", "tool": "save_to_working_memory", "params": {"key": "k", "data": "kept"}});
    let text = gateway.spawn(&json!([wisp(&[keep]), wisp(&[llm("a", "go")])])).await;
    assert_snapshot!(text, @"
    error: No wisp was started: the definitions have 1 problem.
    definitions[1].steps[0].mode: `Llm` steps need a language model, and this gateway has none
      hint: use `Direct` steps, or do this part yourself; the operator of the gateway can configure a model
    ");
    assert!(gateway.read("get_from_working_memory", &json!({"key": "k"})).await.contains("not found"));
}

#[tokio::test]
async fn examples_of_the_guide_run() {
    let gateway = WispGateway::new(GatewayOptions::default());
    let examples: Vec<&str> =
        crate::GUIDE_TEXT.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 3);
    let mut results = Vec::new();
    for example in examples {
        let arguments: Value = serde_json::from_str(example).expect("JSON");
        results.push(gateway.spawn(&arguments["definitions"]).await);
    }
    assert_snapshot!(results.join("\n---\n"), @r#"
    1 wisp: 1 succeeded, 0 failed, N s

    - `W0` "Find the article and write its price down" [ok] N ms
      Output: a7 costs 3 EUR

    Batch `BATCH`, summary in working memory at key `wisp/batch-BATCH/summary`
    ---
    2 wisps: 2 succeeded, 0 failed, N s

    - `W0` "Search and summarize page 1" [ok] N ms
      Output: execute_python_script {"script":"print('done')"}
    - `W1` "Search for something else" [ok] N ms
      Output: web_search {"query":"changelog"}

    Batch `BATCH`, summary in working memory at key `wisp/batch-BATCH/summary`
    ---
    1 wisp: 1 succeeded, 0 failed, N s

    - `W0` "Compute with the text of a tool" [ok] N ms
      Output: execute_python_script {"script":"import os; print(len(os.environ['TOOLYARD_INPUT'].splitlines()))","input_data":"row\nrow\nrow\nrow\nrow\nrow\nrow\nrow\nrow\n"}

    Batch `BATCH`, summary in working memory at key `wisp/batch-BATCH/summary`
    "#);
}

#[tokio::test]
async fn caller_without_a_namespace_gets_outputs_only() {
    let gateway = gateway();
    let steps = [mcp("a", "repeat", json!({"text": "one"}))];
    let arguments = json!({"definitions": wisp(&steps)});
    let call = Call::tool("spawn_wisps", Json::from_value(&arguments));
    let output = gateway.gateway.invoke_to_end(call).await.expect("a result");
    assert_snapshot!(without_ids(&text_of(&output.body.to_json().to_value())), @r#"
    1 wisp: 1 succeeded, 0 failed, N s

    - `W0` "test" [ok] N ms
      Output: one

    Batch `BATCH`, without a summary in working memory: this call has no namespace there, as it has neither a session, nor a key, nor a valid `toolyard/session`
    "#);
}
