use std::sync::Mutex;

use futures_util::future::{BoxFuture, FutureExt, ready};
use serde_json::{Value, json};
use toolyard_core::{Call, ErrorCode, Json, Outcome, ToolError};
use toolyard_manifest::MemorySettings;

use super::*;
use crate::memory::testing::ManualStore;
use crate::memory::{ChunkPlace, MemoryNamespace, NewEntry, SESSION_META};

/// Ends each script in the same way, and records the last one.
struct FixedScriptExecutor {
    ended: Result<ScriptOutcome, &'static str>,
    last: Mutex<Option<PythonScript>>,
}

impl ScriptExecutor for FixedScriptExecutor {
    fn run(&self, script: PythonScript) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        *self.last.lock().unwrap() = Some(script);
        ready(self.ended.clone().map_err(|why| ToolError::new(ErrorCode::Unavailable, why))).boxed()
    }
}

fn ended(output: &str, stderr: &str, exit_code: i32) -> Result<ScriptOutcome, &'static str> {
    let (output, stderr) = (output.to_owned(), stderr.to_owned());
    Ok(ScriptOutcome { output, stderr, exit_code, elapsed: Duration::from_millis(2_040) })
}

/// Calls the tool. Returns the text of the result, whether it is an error, and the script that was run.
async fn call(
    ended: Result<ScriptOutcome, &'static str>,
    arguments: Value,
) -> (String, bool, Option<PythonScript>) {
    call_with(None, ended, arguments).await
}

/// Calls the tool in the session `abc123`, with a working memory or without one.
async fn call_with(
    memory: Option<MemoryReader>,
    ended: Result<ScriptOutcome, &'static str>,
    arguments: Value,
) -> (String, bool, Option<PythonScript>) {
    let runner = Arc::new(FixedScriptExecutor { ended, last: Mutex::default() });
    let handle = match &memory {
        Some(reader) => Some(ManualStore::handle(reader.memory(), "abc123").await),
        None => None,
    };
    let server = add(Server::new("scripts", "1.0.0"), runner.clone(), memory).expect("a tool").into_backend();
    let mut call = Call::tool(TOOL, Json::from_value(&arguments));
    if let Some(handle) = handle {
        call.meta.set(SESSION_META, Json::string(&handle));
    }
    match server.call(call).await {
        Ok(Outcome::Done(output)) => {
            let body = output.body.to_json().to_value();
            let text = body["content"][0]["text"].as_str().unwrap_or_default().to_owned();
            (text, output.is_error, runner.last.lock().unwrap().take())
        }
        Ok(other) => panic!("{other:?}"),
        Err(error) => (error.to_string(), true, None),
    }
}

#[tokio::test]
async fn result_is_the_output_or_the_failure() {
    async fn check(outcome: Result<ScriptOutcome, &'static str>, expected: &str, is_error: bool) {
        let (text, was_error, _) = call(outcome, json!({"script": "x"})).await;
        assert_eq!((text.as_str(), was_error), (expected, is_error));
    }
    check(ended("{\"a\": 1}\n", "a warning", 0), "{\"a\": 1}\n", false).await;
    check(ended("", "", 0), "(no output)", false).await;
    check(ended("half\n", "Traceback", 1), "Script failed (exit 1):\nhalf", true).await;
    check(ended("", "Traceback", 3), "Script failed (exit 3):\nTraceback", true).await;
    check(ended("", "", 137), "Script failed (exit 137):", true).await;
    check(ended("", "too much memory\n", 137), "Script failed (exit 137): too much memory", true).await;
    check(
        ended("so far", "a\ntoo much memory", 137),
        "Script failed (exit 137): too much memory\nso far",
        true,
    )
    .await;
    check(ended("so far", "", -1), "Script failed (exit -1): It took longer than 2 s.\nso far", true).await;
    check(Err("There are no walls here"), "There are no walls here", true).await;
}

#[tokio::test]
async fn arguments_are_passed_to_the_script() {
    async fn check(arguments: Value, seconds: f64, input: Option<&str>, packages: &[&str]) {
        let (_, _, script) = call(ended("", "", 0), arguments.clone()).await;
        let script = script.unwrap_or_else(|| panic!("{arguments} was not run"));
        assert_eq!(script.source, "print(1)");
        assert_eq!(script.timeout, Duration::from_secs_f64(seconds), "{arguments}");
        assert_eq!(script.input.as_deref(), input, "{arguments}");
        assert_eq!(script.packages, packages, "{arguments}");
    }
    let script = "print(1)";
    check(json!({"script": script}), 30.0, None, &[]).await;
    check(json!({"script": script, "timeout_seconds": 0}), 1.0, None, &[]).await;
    check(json!({"script": script, "timeout_seconds": -5}), 1.0, None, &[]).await;
    check(json!({"script": script, "timeout_seconds": 2.5}), 2.5, None, &[]).await;
    check(json!({"script": script, "timeout_seconds": 1e9}), 300.0, None, &[]).await;
    check(json!({"script": script, "timeout_seconds": null, "input_data": null}), 30.0, None, &[]).await;
    check(json!({"script": script, "input_data": ""}), 30.0, Some(""), &[]).await;
    let packages = json!({"script": script, "input_data": "{}", "pip_packages": ["numpy", "rich>=13"]});
    check(packages, 30.0, Some("{}"), &["numpy", "rich>=13"]).await;
}

/// A script reads what its caller can read, and nothing else.
#[tokio::test]
async fn script_reads_entries_of_working_memory() {
    let (_, memory) = ManualStore::memory(MemorySettings::default());
    let save = async |path: &str, entry: NewEntry<'_>| {
        let (namespace, _) = MemoryNamespace::of_path(path).expect("a path");
        memory.save(&namespace, &[NewEntry { key: path, ..entry }]).await.expect("room");
    };
    let place = |before| Some(ChunkPlace { before, ..ChunkPlace::default() });
    save("session/abc123/notes", NewEntry::new("", "a \"note\"\0")).await;
    save(
        "session/abc123/tool-t-a1b2c3-chunk0",
        NewEntry { place: place(4), ..NewEntry::new("", "# A\none\n") },
    )
    .await;
    save(
        "session/abc123/tool-t-a1b2c3-chunk1",
        NewEntry { place: place(4), ..NewEntry::new("", "# B\ntwo\n") },
    )
    .await;
    save("session/abc123/tool-t-a1b2c3-index", NewEntry { chunks: Some(2), ..NewEntry::new("", "outline") })
        .await;
    save("session/other/secret", NewEntry::new("", "of another session")).await;
    let run = async |keys: Value, input: Value| {
        let arguments = json!({"script": "print(1)", "memory_keys": keys, "input_data": input});
        let reader = Some(MemoryReader::new(memory.clone()));
        let (text, _, script) = call_with(reader, ended("ran", "", 0), arguments).await;
        script.map_or(text, |script| script.input.unwrap_or_default())
    };
    let check = async |keys: Value, input: Value, expected: Value| {
        let values: Value = serde_json::from_str(&run(keys, input).await).expect("JSON");
        assert_eq!(values, expected);
    };
    check(json!(["notes"]), Value::Null, json!({"memory": {"notes": "a \"note\"\0"}, "input": null})).await;
    let chunk = "session/abc123/tool-t-a1b2c3-chunk1";
    check(
        json!([chunk, "notes"]),
        json!("x"),
        json!({"memory": {chunk: "two\n", "notes": "a \"note\"\0"}, "input": "x"}),
    )
    .await;
    for whole in ["session/abc123/tool-t-a1b2c3-index", "tool-t-a1b2c3"] {
        check(json!([whole]), Value::Null, json!({"memory": {whole: "# A\none\n# B\ntwo\n"}, "input": null}))
            .await;
    }
    // Without keys the input is the text itself.
    assert_eq!(run(json!([]), json!("x")).await, "x");
    let refused = [
        run(json!(["session/other/secret"]), Value::Null).await,
        run(json!(["notes", "nothing"]), Value::Null).await,
        run(json!(vec!["notes"; 21]), Value::Null).await,
        call(ended("ran", "", 0), json!({"script": "print(1)", "memory_keys": ["notes"]})).await.0,
    ];
    insta::assert_snapshot!(refused.join("\n"));
}

#[tokio::test]
async fn empty_script_is_not_run() {
    for script in ["", " \n"] {
        let (text, is_error, ran) = call(ended("", "", 0), json!({"script": script})).await;
        assert!(is_error && ran.is_none(), "{script:?}");
        assert_eq!(text, "script: is empty; expected Python source");
    }
}

#[test]
fn tool_definition() {
    let runner = Arc::new(FixedScriptExecutor { ended: ended("", "", 0), last: Mutex::default() });
    let (_, memory) = ManualStore::memory(MemorySettings::default());
    let definition = |memory| {
        let server = add(Server::new("scripts", "1.0.0"), runner.clone(), memory).expect("a tool");
        let catalog = server.into_backend().catalog().borrow().clone();
        catalog.tools[0].definition.to_json().to_value()
    };
    let mut with_memory = definition(Some(MemoryReader::new(memory)));
    insta::assert_snapshot!(serde_json::to_string_pretty(&with_memory).expect("JSON"));
    let properties = with_memory["inputSchema"]["properties"].as_object_mut().expect("an object");
    assert!(properties.shift_remove("memory_keys").is_some());
    assert_eq!(definition(None), with_memory);
}
