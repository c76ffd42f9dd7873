//! The documented sample functions in each language: all interfaces return the same responses.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::peers;
use toolyard_testing::process::run;

use super::{FunctionWorkspace, json_of};
use crate::support::gateway::toolyard;

const LANGUAGES: [&str; 3] = ["py", "js", "lua"];

/// Starts a gateway with the three samples, published by the command line, each also a handler.
fn samples() -> FunctionWorkspace {
    let handler = |language| {
        let name = format!("echo-{language}");
        json!({"name": language, "type": "function", "prefix": "always", "functionConfig": {"id": name}})
    };
    let workspace = FunctionWorkspace::start(&LANGUAGES.map(handler), json!({}));
    for language in LANGUAGES {
        let file = format!("cortexone_function.{language}");
        let sample = peers::root().join("fixtures/functions/echo").join(language).join(&file);
        let id = format!("echo-{language}");
        workspace.write(&id, &file, &std::fs::read_to_string(sample).unwrap(), json!({}));
        let output = workspace.succeed(&["publish", &id]);
        assert!(output.contains(&format!("published {id} 1.0.0\n")), "{output}");
    }
    workspace
}

/// Returns requests and the `result` or `error` of their responses.
fn requests() -> [(&'static str, Value, Value); 5] {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let tool = json!({"name": "echo", "description": "Echo back the input string.", "inputSchema": schema});
    let initialized = json!({
        "protocolVersion": "2024-11-05",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "my-mcp-server", "version": "1.0.0"},
    });
    let text = "hello, \u{fc} \u{1f600} \"\\ \u{0}";
    let result = json!({"content": [{"type": "text", "text": text}]});
    let echo = json!({"name": "echo", "arguments": {"text": text}});
    [
        ("initialize", json!({}), json!({"result": initialized})),
        ("tools/list", json!({}), json!({"result": {"tools": [tool]}})),
        ("tools/call", echo, json!({"result": result})),
        (
            "tools/call",
            json!({"name": "nope", "arguments": {}}),
            json!({"error": {"code": -32602, "message": "Unknown tool: nope"}}),
        ),
        (
            "resources/list",
            json!({}),
            json!({"error": {"code": -32601, "message": "Method not found: resources/list"}}),
        ),
    ]
}

/// Returns a request and the complete response.
fn exchange(id: &Value, (method, params, answer): &(&str, Value, Value)) -> (Value, Value) {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let mut expected = answer.clone();
    (expected["jsonrpc"], expected["id"]) = (json!("2.0"), id.clone());
    (request, expected)
}

#[test]
fn samples_return_same_result_by_every_interface() {
    let workspace = samples();
    let key_settings = json!({"name": "all", "scopes": ["functions"]});
    let key = workspace.key("", &key_settings);
    for language in LANGUAGES {
        for (number, request) in requests().iter().enumerate() {
            for id in [json!(number), json!(format!("id-{number}"))] {
                let (event, expected) = exchange(&id, request);
                for event in [event.clone(), json!(event.to_string())] {
                    for header in [key.clone(), format!("Bearer {key}")] {
                        let answer = workspace.invoke(&header, &format!("echo-{language}/latest"), &event);
                        assert_eq!(json_of(&answer, 200), expected, "{language} {event}");
                    }
                }
            }
        }
    }
}

#[test]
fn version_can_be_named_in_several_forms() {
    let workspace = samples();
    let (event, expected) = exchange(&json!(1), &requests()[2]);
    for version in ["1.0.0", "v1.0.0", "1.0", "v1.0", "1", "latest", "draft"] {
        let answer = workspace.invoke("", &format!("echo-py/{version}"), &event);
        assert_eq!(json_of(&answer, 200), expected, "{version}");
        let printed = workspace.succeed(&["invoke", &format!("echo-py@{version}"), &event.to_string()]);
        assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), expected, "{version}");
    }
}

#[test]
fn samples_are_tools_of_the_gateway() {
    let workspace = samples();
    let home = TempDir::new().unwrap();
    for language in LANGUAGES {
        let tool = format!("{language}_echo");
        for era in ["legacy", "modern"] {
            let mut inspector = peers::command("mcp-inspector", home.path());
            inspector.args(["--cli", "-q", "--format", "json", "--transport", "http"]);
            inspector.args(["--server-url", &workspace.gateway.url(), "--protocol-era", era]);
            inspector.args(["--method", "tools/call", "--tool-name", &tool, "--tool-arg", "text=hello"]);
            let ended = run(&mut inspector);
            assert_eq!(ended.code, 0, "{ended}");
            let response: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert_eq!(
                response["result"]["content"],
                json!([{"type": "text", "text": "hello"}]),
                "{language} {era}"
            );
        }
        let mut call = toolyard(home.path());
        let ended = run(call.args(["call", &tool, "text=hello", "--url", &workspace.gateway.url()]));
        assert_eq!((ended.code, &*ended.stdout), (0, "hello\n"), "{ended}");
    }
    let named: Vec<_> = LANGUAGES.iter().map(|language| format!("{language}_echo")).collect();
    assert_eq!(workspace.gateway.tools(), named);
}
