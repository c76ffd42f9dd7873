use std::sync::Mutex;

use futures_util::future::{BoxFuture, FutureExt, ready};
use serde_json::{Value, json};
use toolyard_core::{Call, ErrorCode, Json, Outcome, ToolError};

use super::*;

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
    let runner = Arc::new(FixedScriptExecutor { ended, last: Mutex::default() });
    let server = add(Server::new("scripts", "1.0.0"), runner.clone()).expect("a tool").into_backend();
    match server.call(Call::tool(TOOL, Json::from_value(&arguments))).await {
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

#[tokio::test]
async fn empty_script_is_not_run() {
    for script in ["", " \n"] {
        let (text, is_error, ran) = call(ended("", "", 0), json!({"script": script})).await;
        assert!(is_error && ran.is_none(), "{script:?}");
        assert_eq!(text, "script: is empty, where Python source is expected");
    }
}

#[test]
fn tool_definition() {
    let runner = Arc::new(FixedScriptExecutor { ended: ended("", "", 0), last: Mutex::default() });
    let backend = add(Server::new("scripts", "1.0.0"), runner).expect("a tool").into_backend();
    let catalog = backend.catalog().borrow().clone();
    let definition = catalog.tools[0].definition.to_json().to_value();
    insta::assert_snapshot!(serde_json::to_string_pretty(&definition).expect("JSON"));
}
