//! A manifest with a secret in every place that accepts one.

use std::path::Path;

use serde_json::{Value, json};
use toolyard_testing::peers::{free_port, peer};
use toolyard_testing::scripted_server::script;

use super::reflecting_server::ReflectingServer;
use super::secret_tracker::SecretTracker;

/// Writes a secret to its own file.
#[track_caller]
pub(crate) fn write(path: &Path, text: &str) -> String {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// MCP servers over HTTP, each with different credentials and a different failure.
pub(crate) fn over_http(secrets: &mut SecretTracker, folder: &Path, server: &ReflectingServer) -> Vec<Value> {
    let url = |rest: &str| format!("http://{}/{rest}", server.address);
    let file = write(&folder.join("token"), &secrets.secret("auth-file"));
    write(&folder.join("secrets/api/token"), &secrets.secret("auth-secret-ref"));
    let mcp = |name: &str, endpoint: String, more: Value| {
        let mut config = json!({"transport": "streamable-http", "endpoint": endpoint});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"name": name, "type": "mcp", "timeout": "5s", "mcpConfig": config})
    };
    let header = |value: String| json!({"headers": {"X-Key": value}});
    let basic = format!("user:{}", secrets.secret("auth-basic"));
    let mut with_auth = mcp("with-auth", url("mcp"), json!({}));
    with_auth["auth"] = json!({"type": "bearer", "token": secrets.reference("auth-token")});
    let pin = json!({"arguments": {"pinned": {"pin": secrets.secret("pin")}}});
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
        mcp("literal-header", url("refusing"), header(format!("Key {}", secrets.secret("header-of-mcp")))),
        mcp("closed", url("closed"), header(secrets.reference("header-reference"))),
        mcp("broken", url("broken"), header(secrets.secret("header-broken"))),
        mcp("garbage", url("garbage"), header(secrets.secret("header-garbage"))),
        mcp("query", url(&format!("refusing?key={}", secrets.secret("query"))), json!({})),
        mcp("path", url(&format!("refusing/{}/x", secrets.reference("path"))), json!({})),
        {
            // The whole value comes from the environment, as many services issue it.
            let secret = secrets.secret("url");
            secrets.environment.push(("WHOLE_URL".to_owned(), url(&format!("refusing/{secret}"))));
            mcp("whole", "${WHOLE_URL}".to_owned(), json!({}))
        },
        mcp(
            "down",
            format!("http://127.0.0.1:{}/{}", free_port(), secrets.reference("path-down")),
            json!({}),
        ),
    ]
}

/// HTTP endpoints as tools.
pub(crate) fn plain_http(secrets: &mut SecretTracker, server: &ReflectingServer) -> Vec<Value> {
    let mut tool = |name: &str, manner: &str| {
        let url =
            format!("http://{}/{manner}/{}", server.address, secrets.reference(&format!("path-{name}")));
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
                "headers": {"X-Key": secrets.secret(&format!("header-{name}"))},
                "staticQuery": {"key": secrets.secret(&format!("static-query-{name}"))},
                "staticBody": {"key": {"inner": [secrets.secret(&format!("static-body-{name}"))]}},
                "authType": "bearer",
                "authToken": secrets.reference(&format!("auth-{name}")),
            },
            "overrides": {name: {"arguments": {"pinned": {"pin": {"x": secrets.secret(&format!("pin-{name}"))}}}}},
        })
    };
    let mut tools = ["plain_ok", "plain_hidden", "plain_broken", "plain_slow", "plain_unfit", "plain_gone"]
        .map(|name| tool(name, name.split_once('_').unwrap().1));
    tools[1]["httpConfig"]["redact"] = json!(["password"]);
    // The response is not a list.
    tools[4]["httpConfig"]["responseMapping"] = json!("join(',', ok)");
    tools[5]["endpoint"]["url"] = json!(format!("http://127.0.0.1:{}/", free_port()));
    tools.to_vec()
}

/// Programs on stdio that print their arguments and environment.
pub(crate) fn programs(secrets: &mut SecretTracker) -> Vec<Value> {
    let python = peer("python/bin/python").to_str().unwrap().to_owned();
    let mut program = |manner: &str| {
        json!({"name": manner, "type": "mcp", "timeout": "5s", "mcpConfig": {
            "transport": "stdio",
            "command": python,
            "args": [
                script("leaky.py").to_str().unwrap(), manner,
                secrets.reference(&format!("argument-{manner}")),
                format!("--header=Bearer {}", secrets.reference(&format!("argument-part-{manner}"))),
                "--token", secrets.secret(&format!("option-{manner}")),
                format!("--key={}", secrets.secret(&format!("option-part-{manner}"))),
                format!("postgres://me:{}@db/x", secrets.secret(&format!("password-{manner}"))),
            ],
            "env": {
                "TOKEN": secrets.secret(&format!("variable-{manner}")),
                "URL": format!("https://a/{}", secrets.reference(&format!("variable-reference-{manner}"))),
            },
        }})
    };
    let mut programs = ["open", "refusing", "chatty", "missing"].map(&mut program).to_vec();
    programs[3]["mcpConfig"]["command"] = json!("no-such-program");
    programs
}

/// Returns the `Toolyard` document.
pub(crate) fn process(secrets: &mut SecretTracker, folder: &Path, collector: &ReflectingServer) -> Value {
    json!({
        "secretsDir": folder.join("secrets"),
        "timeouts": {"manifestCheck": "20ms", "firstList": "10s", "eraProbe": "2s", "connect": "8s", "keyCheck": "20ms"},
        "builtins": builtins(secrets, collector),
        "a2a": {"skills": [{"tool": "plain_ok", "description": "A tool."}],
            "push": {"private": true, "attempts": 2, "retryDelay": "20ms"}},
        "audit": {"arguments": "redacted", "redact": ["secret"], "file": folder.join("audit.jsonl")},
        "telemetry": {"otlp": {
            "endpoint": format!("http://{}/{}", collector.address, secrets.reference("otlp-path")),
            "protocol": "http",
            "headers": {"x-key": secrets.secret("otlp-header")},
            "interval": "100ms",
        }},
    })
}

/// Returns the groups of built-in tools that have secrets. OpenRouter and the receiver of webhooks are the same server.
fn builtins(secrets: &mut SecretTracker, server: &ReflectingServer) -> Value {
    let others = ["scripts", "memory", "results", "guides", "skills", "search", "mcp"];
    let mut builtins: Value =
        others.map(|group| (group.to_owned(), json!({"enabled": false}))).into_iter().collect();
    builtins["openRouter"] = json!({
        "baseURL": format!("http://{}/quoting", server.address),
        "apiKey": secrets.reference("openrouter-key"),
    });
    let webhook = json!({
        "url": format!("http://{}/closed/{}", server.address, secrets.reference("webhook-path")),
        "secret": secrets.secret("webhook-secret"),
        "private": true,
    });
    let url = |secret: String| format!("http://{}/refusing/{secret}", server.address);
    builtins["agents"] = json!({
        "refresh": "1s",
        "pushURL": url(secrets.reference("agent-push-path")),
        "cards": [{
            "url": url(secrets.reference("agent-card-path")),
            "endpoint": url(secrets.reference("agent-endpoint-path")),
            "headers": {"Authorization": format!("Bearer {}", secrets.reference("agent-header"))},
            "signature": {"url": url(secrets.reference("agent-keys-path"))},
        }],
    });
    builtins["schedules"] = json!({"minInterval": "1s", "check": "20ms", "action": {"webhook": webhook}});
    builtins
}
