//! Structured results of every form, of HTTP handlers and of a server on the Python SDK, with third-party clients that
//! validate them: objects in revisions before 2026-07-28, any value since.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::messages::stateless_request;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;
use toolyard_testing::upstream::{BackgroundUpstream, ReceivedRequest, ScriptedReply};

use crate::support::gateway::TestGateway;

/// The tools with their output schemas and structured results, for clients of both eras.
fn tools() -> Vec<(&'static str, Value, Value)> {
    let text = json!({"type": "string"});
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let map = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let (texts, lists, trees) = (json!("a text"), json!([1, 2]), json!([null, {"next": [null]}]));
    vec![
        ("text", text.clone(), texts.clone()),
        ("plain", text.clone(), texts.clone()),
        ("list", list.clone(), lists.clone()),
        ("tree", tree("#"), trees.clone()),
        ("map", map.clone(), json!({"a": 1})),
        ("server_text", text, texts),
        ("server_list", list, lists),
        ("server_tree", tree("#"), trees),
        ("server_map", map, json!({"a": 1})),
        ("server_bare", Value::Null, json!([3])),
    ]
}

/// A schema without a type that refers to its definitions and, at `root`, to itself.
fn tree(root: &str) -> Value {
    let leaf = json!({"type": "object", "properties": {"next": {"$ref": root}}, "required": ["next"]});
    let list = json!({"type": "array", "items": {"$ref": root}});
    json!({"anyOf": [{"type": "null"}, list, {"$ref": "#/$defs/leaf"}], "$defs": {"leaf": leaf}})
}

/// Returns the schema and the result that a legacy client sees.
fn wrapped(schema: &Value, result: &Value) -> (Value, Value) {
    let object = json!({"result": result});
    match schema {
        Value::Null => (Value::Null, object),
        schema if schema["type"] == "object" => (schema.clone(), result.clone()),
        schema if schema["$defs"].is_null() => {
            (json!({"type": "object", "properties": {"result": schema}, "required": ["result"]}), object)
        }
        _ => {
            let mut inner = tree("#/properties/result");
            let definitions = inner.as_object_mut().unwrap().remove("$defs");
            let schema = json!({"type": "object", "properties": {"result": inner}, "required": ["result"], "$defs": definitions});
            (schema, object)
        }
    }
}

/// A gateway with an HTTP service and a server.
struct ServedForms {
    gateway: TestGateway,
    _service: BackgroundUpstream,
}

fn serve() -> ServedForms {
    let service = BackgroundUpstream::start(|request: &ReceivedRequest| {
        let path = request.head.start.split(' ').nth(1).unwrap_or_default();
        let (kind, body) = match path {
            "/text" => ("application/json", r#""a text""#),
            "/plain" => ("text/plain", "a text"),
            "/list" => ("application/json", "[1,2]"),
            "/tree" => ("application/json", r#"[null,{"next":[null]}]"#),
            "/map" => ("application/json", r#"{"a":1}"#),
            _ => ("application/json", r#"{"a":"x","n":1.10}"#),
        };
        ScriptedReply::http(200, &format!("content-type: {kind}\r\n"), body)
    });
    let handler = |name: &str, schema: &Value| {
        let tool = json!({"name": name, "description": name, "inputSchema": {"type": "object"}, "outputSchema": schema});
        let endpoint = json!({"url": service.url(&format!("/{name}"))});
        json!({"name": name, "type": "http", "endpoint": endpoint, "tool": tool, "httpConfig": {"method": "POST"}})
    };
    let tools = tools();
    let over_http = tools.iter().filter(|(name, ..)| !name.starts_with("server_"));
    let mut handlers: Vec<_> = over_http.map(|(name, schema, _)| handler(name, schema)).collect();
    handlers.push(handler("wrong", &json!({"type": "object", "properties": {"a": {"type": "integer"}}})));
    let python = peers::peer("python/bin/python");
    let server = script("forms_server.py");
    handlers.push(stdio_handler("server", python.to_str().unwrap(), &[server.to_str().unwrap()]));
    ServedForms {
        gateway: TestGateway::with_settings(
            &handlers,
            json!({"builtins": {"results": {"outputSchemas": "keep"}}}),
        ),
        _service: service,
    }
}

/// Checks what a client prints that lists all tools and calls each.
#[track_caller]
fn check_client(served: &ServedForms, program: &str, file: &str, mode: &str) {
    let home = TempDir::new().unwrap();
    let tools = tools();
    let mut client = peers::command(program, home.path());
    client.env("NODE_PATH", peers::peer("node_modules"));
    client.arg(script(file)).args([&served.gateway.url(), mode]);
    client.args(tools.iter().map(|(name, ..)| name)).args(["wrong", "server_wrong"]);
    let ended = run(&mut client);
    assert_eq!(ended.code, 0, "{ended}");
    let seen: Value = serde_json::from_str(&ended.stdout).unwrap();
    for (name, schema, result) in tools {
        let (schema, result) = if mode == "legacy" { wrapped(&schema, &result) } else { (schema, result) };
        assert_eq!(seen["schemas"][name], schema, "{mode} {name}");
        assert_eq!(seen["results"][name], result, "{mode} {name}");
    }
    let fault = "The result does not match the output schema of the tool: /a: value is not of type \"integer\". The result:";
    assert_eq!(seen["results"]["wrong"], json!({"isError": [fault, r#"{"a":"x","n":1.10}"#]}));
    // The gateway does not validate the results of a server, but its client does.
    let refused = seen["results"]["server_wrong"].as_str().unwrap();
    assert!(refused.starts_with("refused: ") && refused.contains("'a'"), "{refused}");
}

#[test]
fn typescript_clients_accept_results_of_every_form() {
    let served = serve();
    for mode in ["legacy", "modern"] {
        check_client(&served, "node", "forms.cjs", mode);
    }
}

#[test]
fn python_clients_accept_results_of_every_form() {
    let served = serve();
    for mode in ["legacy", "2026-07-28"] {
        check_client(&served, peers::peer("python/bin/python").to_str().unwrap(), "forms.py", mode);
    }
}

#[test]
fn calls_by_another_tool_and_rest_have_the_form_of_their_caller() {
    let ServedForms { gateway, _service } = &serve();
    let call = json!({"name": "call_tool", "arguments": {"name": "list", "arguments": {}}});
    let legacy = gateway.request("tools/call", call.clone()).result();
    assert_eq!(legacy["structuredContent"], json!({"result": [1, 2]}), "{legacy}");
    let (mut headers, message) = stateless_request("tools/call", call);
    headers.push(("Mcp-Name", "call_tool"));
    let modern = gateway.post(&headers, &message).result();
    assert_eq!(modern["structuredContent"], json!([1, 2]), "{modern}");
    let line = "POST /api/v1/tools/list/call";
    let by_rest = toolyard_testing::http::send_with_key(gateway.address, "", line, "{}");
    assert!(by_rest.body.contains(r#""structuredContent":[1,2]"#), "{}", by_rest.body);
    let described = gateway.get("/api/v1/tools").body;
    assert!(
        described.contains(r#""outputSchema":{"type":"array","items":{"type":"integer"}}"#),
        "{described}"
    );
}
