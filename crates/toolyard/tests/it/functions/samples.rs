//! The samples that functions were described with, in each language: all who ask get the same answers.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Yard, json_of};
use crate::support::gateway::toolyard;
use crate::support::peers;
use crate::support::process::run;

const LANGUAGES: [&str; 3] = ["py", "js", "lua"];

/// A gateway with the three samples as they are, published by the command line; each is a handler too.
fn samples() -> Yard {
    let handler = |language| {
        let name = format!("echo-{language}");
        json!({"name": language, "type": "function", "prefix": "always", "functionConfig": {"id": name}})
    };
    let yard = Yard::start(&LANGUAGES.map(handler), json!({}));
    for language in LANGUAGES {
        let file = format!("cortexone_function.{language}");
        let sample = peers::root().join("fixtures/functions/echo").join(language).join(&file);
        let id = format!("echo-{language}");
        yard.write(&id, &file, &std::fs::read_to_string(sample).unwrap(), json!({}));
        let said = yard.done(&["publish", &id]);
        assert!(said.ends_with(&format!("{id} 1.0.0 is published\n")), "{said}");
    }
    yard
}

/// Requests, and what the answers have in `result` or `error`.
fn requests() -> [(&'static str, Value, Value); 5] {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let tool = json!({"name": "echo", "description": "Echo back the input string.", "inputSchema": schema});
    let initialized = json!({
        "protocolVersion": "2024-11-05",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "my-mcp-server", "version": "1.0.0"},
    });
    let text = "hello, \u{fc} \u{1f600} \"\\ \u{0}";
    let said = json!({"content": [{"type": "text", "text": text}]});
    let echo = json!({"name": "echo", "arguments": {"text": text}});
    [
        ("initialize", json!({}), json!({"result": initialized})),
        ("tools/list", json!({}), json!({"result": {"tools": [tool]}})),
        ("tools/call", echo, json!({"result": said})),
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

/// A request, and the whole answer to it.
fn exchange(id: &Value, (method, params, answer): &(&str, Value, Value)) -> (Value, Value) {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let mut expected = answer.clone();
    (expected["jsonrpc"], expected["id"]) = (json!("2.0"), id.clone());
    (request, expected)
}

#[test]
fn the_samples_answer_whoever_invokes_them_the_same_way() {
    let yard = samples();
    let wanted = json!({"name": "all", "scopes": ["functions"]});
    let key = yard.key("", &wanted);
    for language in LANGUAGES {
        for (number, request) in requests().iter().enumerate() {
            for id in [json!(number), json!(format!("id-{number}"))] {
                let (event, expected) = exchange(&id, request);
                for event in [event.clone(), json!(event.to_string())] {
                    for header in [key.clone(), format!("Bearer {key}")] {
                        let answer = yard.invoke(&header, &format!("echo-{language}/latest"), &event);
                        assert_eq!(json_of(&answer, 200), expected, "{language} {event}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_version_has_many_names() {
    let yard = samples();
    let (event, expected) = exchange(&json!(1), &requests()[2]);
    for version in ["1.0.0", "v1.0.0", "1.0", "v1.0", "1", "latest", "draft"] {
        let answer = yard.invoke("", &format!("echo-py/{version}"), &event);
        assert_eq!(json_of(&answer, 200), expected, "{version}");
        let printed = yard.done(&["invoke", &format!("echo-py@{version}"), &event.to_string()]);
        assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), expected, "{version}");
    }
}

#[test]
fn the_samples_are_servers_of_the_gateway() {
    let yard = samples();
    let home = TempDir::new().unwrap();
    for language in LANGUAGES {
        let tool = format!("{language}_echo");
        for era in ["legacy", "modern"] {
            let mut inspector = peers::command("mcp-inspector", home.path());
            inspector.args(["--cli", "-q", "--format", "json", "--transport", "http"]);
            inspector.args(["--server-url", &yard.gateway.url(), "--protocol-era", era]);
            inspector.args(["--method", "tools/call", "--tool-name", &tool, "--tool-arg", "text=hello"]);
            let ended = run(&mut inspector);
            assert_eq!(ended.code, 0, "{ended}");
            let said: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert_eq!(
                said["result"]["content"],
                json!([{"type": "text", "text": "hello"}]),
                "{language} {era}"
            );
        }
        let mut call = toolyard(home.path());
        let ended = run(call.args(["call", &tool, "text=hello", "--url", &yard.gateway.url()]));
        assert_eq!((ended.code, &*ended.stdout), (0, "hello\n"), "{ended}");
    }
    let named: Vec<_> = LANGUAGES.iter().map(|language| format!("{language}_echo")).collect();
    assert_eq!(yard.gateway.tools(), named);
}
