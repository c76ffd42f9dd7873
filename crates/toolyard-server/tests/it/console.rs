//! The console, and the resources of the REST API that it was the first to need.

use std::net::SocketAddr;

use serde_json::Value;
use toolyard_manifest::ListenAddress;
use toolyard_testing::wire_client::{WireConnection, WireEventStream, WireResponse};

use crate::keyed_gateway::{KeyedGateway, short};

async fn get(address: SocketAddr, path: &str, headers: &str) -> WireResponse {
    let mut connection = WireConnection::open(address).await;
    connection.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n").as_bytes()).await;
    connection.response().await.expect("a response")
}

/// Exchanges a one-time code of the key for the token of a session.
async fn session(gateway: &KeyedGateway, key: &str) -> String {
    let code = gateway.ask(key, "POST /api/v1/session-codes", "").await;
    assert_eq!(code.head.status(), 201, "{code:?}");
    let code: Value = serde_json::from_str(&code.body).unwrap();
    let exchange = serde_json::json!({"code": code["code"]}).to_string();
    let session = gateway.ask("", "POST /api/v1/sessions", &exchange).await;
    assert_eq!(session.head.status(), 201, "{session:?}");
    let session: Value = serde_json::from_str(&session.body).unwrap();
    session["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn page_is_served_without_a_key_and_in_no_frame() {
    let gateway = KeyedGateway::start("").await;
    let _requires_keys = gateway.key_for("admin").await;
    let page = get(gateway.running.address(), "/", "").await;
    assert_eq!(page.head.status(), 200);
    let header = |name: &str| page.head.header(name).unwrap_or_default().to_owned();
    assert_eq!(header("content-type"), "text/html; charset=utf-8");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("referrer-policy"), "no-referrer");
    assert_eq!(header("cache-control"), "no-cache");
    let policy = header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    // The connection ends with the response, which has no body.
    let again = format!("if-none-match: {}\r\nconnection: close\r\n", header("etag"));
    assert_eq!(get(gateway.running.address(), "/", &again).await.head.status(), 304);
    // Names of scripts and styles contain a hash of their content.
    let script = page.body.split('"').find(|text| text.ends_with(".js")).expect("a script");
    let script = get(gateway.running.address(), script.trim_start_matches('.'), "").await;
    assert_eq!(script.head.status(), 200);
    assert_eq!(script.head.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(script.head.header("content-type"), Some("text/javascript; charset=utf-8"));
}

#[tokio::test]
async fn console_is_switched_off_by_the_manifest() {
    let gateway = KeyedGateway::start("console: {enabled: false}").await;
    assert_eq!(get(gateway.running.address(), "/", "").await.head.status(), 404);
}

#[tokio::test]
async fn console_has_addresses_of_its_own() {
    let gateway = KeyedGateway::start("console: {listen: '127.0.0.1:0'}").await;
    assert_eq!(get(gateway.running.address(), "/", "").await.head.status(), 404);
    let own = gateway.running.console_listening().iter().find_map(ListenAddress::tcp).expect("an address");
    assert_eq!(get(own, "/", "").await.head.status(), 200);
    assert_eq!(get(own, "/api/v1/status", "").await.head.status(), 200);
}

#[tokio::test]
async fn browser_that_opens_the_endpoint_gets_a_page() {
    const BROWSER: &str = "accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";
    let check = async |process: &str, with_key: bool, path: &str, headers: &str, status: u16, text: &str| {
        let gateway = KeyedGateway::start(process).await;
        gateway.running.gateway().settled().await;
        if with_key {
            gateway.key_for("admin").await;
        }
        let page = get(gateway.running.address(), path, headers).await;
        assert_eq!(page.head.status(), status, "{process} {path} {headers}");
        assert!(page.body.contains(text), "{process} {path} {headers}: {}", page.body);
    };
    let (on, off) = ("", "console: {enabled: false}");
    check(on, false, "/mcp", BROWSER, 200, "Tools: 3. Handlers that are ready: 2 of 2.").await;
    check(on, true, "/mcp", BROWSER, 200, "Requests need an API key").await;
    check(on, false, "/mcp", BROWSER, 200, "<a href=\"/\">console</a>").await;
    check(off, false, "/", BROWSER, 200, "<p>Tools: 3. Handlers that are ready: 2 of 2.</p>\n<p><a").await;
    check(on, false, "/", BROWSER, 200, "<script").await;
    check(on, false, "/mcp", "accept: text/event-stream\r\n", 405, "").await;
    check(off, false, "/", "accept: application/json\r\n", 404, "").await;
    let foreign = format!("{BROWSER}origin: http://evil.example\r\n");
    check(on, false, "/mcp", &foreign, 403, "evil.example").await;
}

#[tokio::test]
async fn session_has_the_rights_of_its_key_until_either_ends() {
    let gateway = KeyedGateway::start("").await;
    let (admin, key) = (gateway.key_for("admin").await, gateway.key_for("rest tools:web/s*").await);
    let token = session(&gateway, &key).await;
    assert_eq!(gateway.short(&token, "GET /api/v1/tools", "", "/tools/0/name").await, "200 \"search\"");
    assert_eq!(gateway.short(&token, "GET /api/v1/keys", "", "").await, "403 denied");
    assert_eq!(
        gateway.short(&token, "GET /api/v1/caller", "", "/access").await,
        r#"200 {"rest":true,"admin":false,"functions":false,"metrics":false,"publish":false}"#
    );
    assert_eq!(gateway.short(&token, "DELETE /api/v1/sessions/current", "", "/ended").await, "200 true");
    assert_eq!(gateway.short(&token, "GET /api/v1/tools", "", "").await, "401 unauthenticated");
    // A key is no session.
    assert_eq!(gateway.short(&key, "DELETE /api/v1/sessions/current", "", "").await, "404 not_found");

    let token = session(&gateway, &key).await;
    let id = key.split('_').nth(1).unwrap();
    assert_eq!(gateway.short(&admin, &format!("DELETE /api/v1/keys/{id}"), "", "/none").await, "200 null");
    assert_eq!(gateway.short(&token, "GET /api/v1/tools", "", "").await, "401 unauthenticated");
}

#[tokio::test]
async fn code_is_valid_once_and_for_its_own_purpose() {
    let gateway = KeyedGateway::start("").await;
    let key = gateway.key_for("rest tools:*").await;
    let code = gateway.ask(&key, "POST /api/v1/session-codes", "").await;
    let code: Value = serde_json::from_str(&code.body).unwrap();
    let code = code["code"].as_str().unwrap();
    assert_eq!(gateway.short(code, "GET /api/v1/tools", "", "").await, "401 unauthenticated");
    let exchange = serde_json::json!({"code": code}).to_string();
    assert_eq!(gateway.short("", "POST /api/v1/sessions", &exchange, "/none").await, "201 null");
    assert_eq!(gateway.short("", "POST /api/v1/sessions", &exchange, "").await, "404 not_found");
    let evil = "origin: http://evil.example\r\n";
    let response = gateway.ask_with("", "POST /api/v1/sessions", evil, &exchange).await;
    assert_eq!(short(&response, ""), "403 denied");
}

#[tokio::test]
async fn gateway_without_keys_needs_no_session() {
    let gateway = KeyedGateway::start("").await;
    assert_eq!(gateway.short("", "POST /api/v1/session-codes", "", "").await, "409 no_key");
    assert_eq!(gateway.short("", "GET /api/v1/caller", "", "/key").await, "200 null");
}

#[tokio::test]
async fn search_ranks_the_tools_of_the_key() {
    let gateway = KeyedGateway::start("").await;
    let (all, some) = (gateway.key_for("rest tools:*").await, gateway.key_for("rest tools:math/*").await);
    let found = async |key: &str| {
        let response = gateway.ask(key, "GET /api/v1/search?query=searches", "").await;
        let body: Value = serde_json::from_str(&response.body).unwrap();
        let tools = body["tools"].as_array().unwrap().clone();
        let name = |found: &Value| found["tool"]["name"].as_str().unwrap().to_owned();
        assert!(tools.iter().all(|found| found["score"].as_f64().unwrap() > 0.0), "{tools:?}");
        tools.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(found(&all).await, ["search"]);
    assert_eq!(found(&some).await, Vec::<String>::new());
    assert_eq!(gateway.short(&all, "GET /api/v1/search", "", "").await, "400 bad_request");
    assert_eq!(gateway.short(&all, "GET /api/v1/search?query=%20", "", "").await, "400 bad_request");
}

#[tokio::test]
async fn key_to_create_is_previewed() {
    let gateway = KeyedGateway::start("").await;
    let admin = gateway.key_for("admin").await;
    let preview = async |scopes: &str| {
        let body = format!("{{\"scopes\":[{scopes}]}}");
        gateway.short(&admin, "POST /api/v1/keys/tools", &body, "/tools").await
    };
    assert_eq!(preview(r#""tools:web/*","rest""#).await, r#"200 ["search","delete"]"#);
    assert_eq!(preview(r#""rest""#).await, "200 []");
    assert_eq!(preview(r#""nothing""#).await, "400 bad_request");
    assert_eq!(preview("").await, "400 bad_request");
}

#[tokio::test]
async fn manifest_is_checked_without_the_gateways_variables_and_files() {
    let gateway = KeyedGateway::start("").await;
    let check = async |path: &str, text: &str, pick: &str| {
        let body = serde_json::json!({"text": text}).to_string();
        gateway.short("", &format!("POST /api/v1/manifest/{path}"), &body, pick).await
    };
    let settings =
        |field: &str| format!("apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {{{field}}}");
    assert_eq!(check("check", &settings("listen: '127.0.0.1:1'"), "/problems").await, "200 []");
    assert_eq!(check("check", &settings("listen: '127.0.0.1:1'"), "/handlers").await, "200 []");
    assert_eq!(check("check", &settings("lissten: 1"), "/problems/0/line").await, "200 3");
    // Whether a variable is set stays unknown.
    for name in ["PATH", "NO_SUCH_VARIABLE"] {
        let secret = settings(&format!("secretsDir: '${{{name}}}'"));
        assert_eq!(check("check", &secret, "/problems").await, "200 []", "{name}");
    }
    let client = r#"{"mcpServers": {"weather": {"command": "weather", "args": ["--fast"]}}}"#;
    let imported = check("import", client, "/manifest").await;
    assert!(imported.contains("kind: ToolRegistry") && imported.contains("name: weather"), "{imported}");
    assert_eq!(check("import", "{", "/problems/0/file").await, "200 \"text\"");
}

#[tokio::test]
async fn series_count_calls_of_the_running_minute() {
    let gateway = KeyedGateway::start("").await;
    for tool in ["search", "search", "delete"] {
        gateway.ask("", &format!("POST /api/v1/tools/{tool}/call"), "{}").await;
    }
    let response = gateway.ask("", "GET /api/v1/series", "").await;
    let series: Value = serde_json::from_str(&response.body).unwrap();
    assert_eq!(series["calls"], serde_json::json!([3]), "{series}");
    assert_eq!(series["errors"], serde_json::json!([1]), "{series}");
    assert_eq!(series["handlers"]["web"]["calls"], serde_json::json!([3]), "{series}");
    assert!(series["memory"][0].as_u64().unwrap() > 1 << 20, "{series}");
    assert!(series["p95"][0].as_f64().unwrap() > 0.0, "{series}");
}

/// Opens the stream of events.
async fn events(gateway: &KeyedGateway, key: &str) -> WireEventStream {
    let mut connection = WireConnection::open(gateway.running.address()).await;
    let request =
        format!("GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n");
    connection.send(request.as_bytes()).await;
    connection.stream().await
}

#[tokio::test]
async fn administrators_follow_the_audit_trail() {
    let gateway = KeyedGateway::start("").await;
    let (admin, key) = (gateway.key_for("admin").await, gateway.key_for("rest tools:*").await);
    let mut followed = events(&gateway, &admin).await;
    assert_eq!(followed.head.header("content-type"), Some("text/event-stream"));
    assert_eq!(followed.event().await.as_deref(), Some("event: handlers\ndata: {}"));
    gateway.ask(&key, "POST /api/v1/tools/search/call", "{}").await;
    let record = followed.event().await.unwrap();
    let record = record.strip_prefix("event: record\ndata: ").unwrap();
    let record: Value = serde_json::from_str(record).unwrap();
    assert_eq!((&record["name"], &record["outcome"]), (&"search".into(), &"ok".into()));
}

#[tokio::test]
async fn events_end_with_the_key_and_require_a_scope() {
    let gateway = KeyedGateway::start("").await;
    let (admin, key) = (gateway.key_for("admin").await, gateway.key_for("rest tools:*").await);
    for scopes in ["tools:*", "metrics", "functions"] {
        let other = gateway.key_for(scopes).await;
        assert_eq!(gateway.short(&other, "GET /api/v1/events", "", "").await, "403 denied", "{scopes}");
    }
    assert_eq!(gateway.short("", "GET /api/v1/events", "", "").await, "401 unauthenticated");
    let mut followed = events(&gateway, &key).await;
    assert_eq!(followed.event().await.as_deref(), Some("event: handlers\ndata: {}"));
    let id = key.split('_').nth(1).unwrap();
    gateway.ask(&admin, &format!("DELETE /api/v1/keys/{id}"), "").await;
    // Others do not see the trail, in which this action is.
    assert_eq!(followed.rest().await, "");
}

#[tokio::test]
async fn restarted_handler_serves_until_its_successor_answers() {
    let gateway = KeyedGateway::start("").await;
    let lists = || {
        let [_, web] = &gateway.upstreams;
        web.now(|log| log.requests.iter().filter(|request| request.body.contains("tools/list")).count())
    };
    let before = lists();
    assert_eq!(gateway.short("", "POST /api/v1/handlers/web/restart", "", "/restarting").await, "202 true");
    assert_eq!(gateway.short("", "POST /api/v1/handlers/none/restart", "", "").await, "404 not_found");
    while lists() == before {
        let called = gateway.short("", "POST /api/v1/tools/search/call", "{}", "/content/0/text").await;
        assert_eq!(called, "200 \"found\"");
    }
    let called = gateway.short("", "POST /api/v1/tools/search/call", "{}", "/content/0/text").await;
    assert_eq!(called, "200 \"found\"");
}

#[tokio::test]
async fn disabled_handler_offers_nothing_until_its_restart() {
    let gateway = KeyedGateway::start("").await;
    let tools =
        async || gateway.short("", "GET /api/v1/tools", "", "/tools").await.matches("inputSchema").count();
    let phase = async || gateway.short("", "GET /api/v1/handlers", "", "/handlers/1/phase").await;
    assert_eq!((tools().await, phase().await), (3, "200 \"Ready\"".to_owned()));
    assert_eq!(gateway.short("", "POST /api/v1/handlers/web/disable", "", "/disabling").await, "202 true");
    assert_eq!(gateway.short("", "POST /api/v1/handlers/none/disable", "", "").await, "404 not_found");
    let mut changes = gateway.running.gateway().watch();
    let has_search = |registry: &std::sync::Arc<toolyard_core::Registry>| registry.tool("search").is_ok();
    changes.wait_for(|registry| !has_search(registry)).await.unwrap();
    assert_eq!((tools().await, phase().await), (1, "200 \"Unavailable\"".to_owned()));
    let cause = gateway.short("", "GET /api/v1/handlers", "", "/handlers/1/lastError/message").await;
    assert!(cause.contains("disabled by an administrator"), "{cause}");
    gateway.ask("", "POST /api/v1/handlers/web/restart", "").await;
    changes.wait_for(has_search).await.unwrap();
    assert_eq!(phase().await, "200 \"Ready\"");
}
