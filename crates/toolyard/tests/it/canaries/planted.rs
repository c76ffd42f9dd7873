//! A manifest with a secret in every place where one can stand.

use std::path::Path;

use serde_json::{Value, json};

use super::servers::Server;
use super::yard::Yard;
use crate::support::peers::{free_port, peer};
use crate::support::scripted::script;

/// A file of its own for a secret.
#[track_caller]
pub(crate) fn write(path: &Path, text: &str) -> String {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Servers on MCP over HTTP, each with another way to show its credentials, and to fail.
pub(crate) fn over_http(yard: &mut Yard, folder: &Path, server: &Server) -> Vec<Value> {
    let url = |rest: &str| format!("http://{}/{rest}", server.address);
    let file = write(&folder.join("token"), &yard.secret("auth-file"));
    write(&folder.join("secrets/api/token"), &yard.secret("auth-secret-ref"));
    let mcp = |name: &str, endpoint: String, more: Value| {
        let mut config = json!({"transport": "streamable-http", "endpoint": endpoint});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"name": name, "type": "mcp", "timeout": "5s", "mcpConfig": config})
    };
    let header = |value: String| json!({"headers": {"X-Key": value}});
    let basic = format!("user:{}", yard.secret("auth-basic"));
    let mut with_auth = mcp("with-auth", url("mcp"), json!({}));
    with_auth["auth"] = json!({"type": "bearer", "token": yard.reference("auth-token")});
    let pin = json!({"arguments": {"pinned": {"pin": yard.secret("pin")}}});
    with_auth["overrides"] = json!({"over_http_fail": pin});
    vec![
        with_auth,
        mcp("of-file", url("refusing"), json!({"authType": "bearer", "authToken": format!("file:{file}")})),
        mcp(
            "of-folder",
            url("refusing"),
            json!({"authType": "bearer", "authSecretRef": {"name": "api", "key": "token"}}),
        ),
        mcp("basic", url("strange"), json!({"authType": "basic", "authToken": basic})),
        mcp("literal-header", url("refusing"), header(format!("Key {}", yard.secret("header-of-mcp")))),
        mcp("closed", url("closed"), header(yard.reference("header-reference"))),
        mcp("broken", url("broken"), header(yard.secret("header-broken"))),
        mcp("garbage", url("garbage"), header(yard.secret("header-garbage"))),
        mcp("query", url(&format!("refusing?key={}", yard.secret("query"))), json!({})),
        mcp("path", url(&format!("refusing/{}/x", yard.reference("path"))), json!({})),
        {
            // All of it from outside, as many a service hands it out.
            let secret = yard.secret("url");
            yard.environment.push(("WHOLE_URL".to_owned(), url(&format!("refusing/{secret}"))));
            mcp("whole", "${WHOLE_URL}".to_owned(), json!({}))
        },
        mcp("down", format!("http://127.0.0.1:{}/{}", free_port(), yard.reference("path-down")), json!({})),
    ]
}

/// Tools that are HTTP endpoints.
pub(crate) fn plain_http(yard: &mut Yard, server: &Server) -> Vec<Value> {
    let mut tool = |name: &str, manner: &str| {
        let url = format!("http://{}/{manner}/{}", server.address, yard.reference(&format!("path-{name}")));
        json!({
            "name": name.replace('_', "-"),
            "type": "http",
            "timeout": "1s",
            "endpoint": {"url": url},
            "tool": {"name": name, "description": "A tool", "inputSchema": {
                "type": "object",
                "properties": {"number": {"type": "number"}, "secret": {"type": "string"}, "pinned": {}},
            }},
            "httpConfig": {
                "headers": {"X-Key": yard.secret(&format!("header-{name}"))},
                "staticQuery": {"key": yard.secret(&format!("static-query-{name}"))},
                "staticBody": {"key": {"inner": [yard.secret(&format!("static-body-{name}"))]}},
                "authType": "bearer",
                "authToken": yard.reference(&format!("auth-{name}")),
            },
            "overrides": {name: {"arguments": {"pinned": {"pin": {"x": yard.secret(&format!("pin-{name}"))}}}}},
        })
    };
    let mut tools = ["plain_ok", "plain_hidden", "plain_broken", "plain_slow", "plain_unfit", "plain_gone"]
        .map(|name| tool(name, name.split_once('_').unwrap().1));
    tools[1]["httpConfig"]["redact"] = json!(["password"]);
    // What comes is no list.
    tools[4]["httpConfig"]["responseMapping"] = json!("join(',', ok)");
    tools[5]["endpoint"]["url"] = json!(format!("http://127.0.0.1:{}/", free_port()));
    tools.to_vec()
}

/// Programs on stdio, which tell everybody their arguments and their environment.
pub(crate) fn programs(yard: &mut Yard) -> Vec<Value> {
    let python = peer("python/bin/python").to_str().unwrap().to_owned();
    let mut program = |manner: &str| {
        json!({"name": manner, "type": "mcp", "timeout": "5s", "mcpConfig": {
            "transport": "stdio",
            "command": python,
            "args": [
                script("leaky.py").to_str().unwrap(), manner,
                yard.reference(&format!("argument-{manner}")),
                format!("--header=Bearer {}", yard.reference(&format!("argument-part-{manner}"))),
                "--token", yard.secret(&format!("option-{manner}")),
                format!("--key={}", yard.secret(&format!("option-part-{manner}"))),
                format!("postgres://me:{}@db/x", yard.secret(&format!("password-{manner}"))),
            ],
            "env": {
                "TOKEN": yard.secret(&format!("variable-{manner}")),
                "URL": format!("https://a/{}", yard.reference(&format!("variable-reference-{manner}"))),
            },
        }})
    };
    let mut programs = ["open", "refusing", "chatty", "missing"].map(&mut program).to_vec();
    programs[3]["mcpConfig"]["command"] = json!("no-such-program");
    programs
}

/// The `Toolyard` document.
pub(crate) fn process(yard: &mut Yard, folder: &Path, collector: &Server) -> Value {
    json!({
        "secretsDir": folder.join("secrets"),
        "timeouts": {"manifestCheck": "20ms", "firstList": "10s", "eraProbe": "2s", "connect": "8s", "keyCheck": "20ms"},
        "audit": {"arguments": "redacted", "redact": ["secret"], "file": folder.join("audit.jsonl")},
        "telemetry": {"otlp": {
            "endpoint": format!("http://{}/{}", collector.address, yard.reference("otlp-path")),
            "protocol": "http",
            "headers": {"x-key": yard.secret("otlp-header")},
            "interval": "100ms",
        }},
    })
}
