//! Forwarding of prompts, resources and completions: their owners, their names, and the fidelity of their results.

use insta::assert_snapshot;
use toolyard_server::GatewayOptions;
use toolyard_testing::json;
use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream, UpstreamEra};
use toolyard_testing::wire_client::{ClientMode, MODERN_META, WireClient};

use crate::catalog_server::{CatalogServer, ERAS, LISTS, all_lists, ask, clients, never};
use crate::gateway::{gateway, manifest, started_on};
use crate::keyed_gateway::{KeyedGateway, memory};

/// Requests: the method, the parameters of the client, and the parameters at the server.
const CALLS: [(&str, &str, &str); 5] = [
    ("prompts/get", r#""name":"h_a_b","arguments":{"x":1.10},"vendor":1.10"#, "h_a_b=a.b"),
    ("resources/read", r#""uri":"res://one","vendor":[1e0]"#, ""),
    ("resources/read", r#""uri":"doc://7/x""#, ""),
    (
        "completion/complete",
        r#""ref":{"type":"ref/prompt","name":"h_a_b","title":"T"},"argument":{"name":"x","value":"1"},"context":{"arguments":{}}"#,
        "h_a_b=a.b",
    ),
    (
        "completion/complete",
        r#""ref":{"type":"ref/resource","uri":"doc://{id}/x"},"argument":{"name":"id","value":"1"}"#,
        "",
    ),
];

/// Results and errors of a server.
const OUTCOMES: [&str; 3] = [
    r#""result":{"vendor":1.10,"messages":[{"b":1,"a":1e0}],"contents":[],"completion":{"values":["1"]},"resultType":"complete","ttlMs":7,"cacheScope":"public"}"#,
    r#""error":{"code":-32042,"message":"no","data":{"vendor":1.10},"vendor":[ ]}"#,
    r#""error":{"code":-32602,"message":"Resource not found","data":{"uri":"x"}}"#,
];

#[tokio::test]
async fn requests_and_results_are_forwarded_unchanged() {
    for (era, said) in ERAS.into_iter().flat_map(|era| OUTCOMES.map(|said| (era, said))) {
        let answer = move |r: &ReceivedRequest| {
            ScriptedReply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},{said}}}"#, r.id()))
        };
        let upstream = TestUpstream::start(CatalogServer::new(era, answer));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        for client in &mut clients(&running).await {
            for (method, params, renamed) in CALLS {
                let response = ask(client, method, params).await;
                let expected = json::read(&format!(r#"{{"jsonrpc":"2.0","id":7,{said}}}"#));
                assert_eq!(json::read(&response.body), expected, "{era:?} {:?} {method}", client.mode);
                let mut sent = upstream.now(|log| log.last(method).params());
                sent.members().retain(|(name, _)| name != "_meta");
                let expected = renamed
                    .split_once('=')
                    .map_or_else(|| params.to_owned(), |(published, own)| params.replace(published, own));
                assert_eq!(sent, json::read(&format!("{{{expected}}}")), "{era:?} {:?}", client.mode);
            }
        }
    }
}

#[tokio::test]
async fn headers_mirror_the_forwarded_request() {
    let upstream = TestUpstream::start(CatalogServer::new(UpstreamEra::Modern, |r: &ReceivedRequest| {
        ScriptedReply::result(r, "{}")
    }));
    let running = gateway(&[("h", upstream.address, "")], "").await;
    let mut client = WireClient::new(running.address(), ClientMode::Modern).await;
    let mut lines = Vec::new();
    for (method, params, _) in CALLS {
        ask(&mut client, method, params).await;
        lines.push(upstream.now(|log| {
            let head = &log.last(method).head;
            format!("{:?} {:?}", head.header("mcp-method"), head.header("mcp-name"))
        }));
    }
    assert_snapshot!(lines.join("\n"), @r#"
    Some("prompts/get") Some("a.b")
    Some("resources/read") Some("res://one")
    Some("resources/read") Some("doc://7/x")
    Some("completion/complete") None
    Some("completion/complete") None
    "#);
}

/// Results of the other era get their missing members, and renamed errors.
#[tokio::test]
async fn results_are_translated_between_eras() {
    let cases = [
        r#""result":{"contents":[]}"#,
        r#""error":{"code":-32002,"message":"none","data":{"vendor":1.10}}"#,
        r#""error":{"code":-32002,"message":"none","vendor":1.10}"#,
        r#""error":{"code":-32002,"message":"none","data":[1.10]}"#,
    ];
    let mut lines = Vec::new();
    for said in cases {
        let answer = move |r: &ReceivedRequest| {
            ScriptedReply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},{said}}}"#, r.id()))
        };
        let upstream = TestUpstream::start(CatalogServer::new(UpstreamEra::Legacy, answer));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        for client in &mut clients(&running).await[1..] {
            lines.push(ask(client, "resources/read", r#""uri":"res://one""#).await.body);
        }
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":7,"result":{"contents":[]}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"none","data":{"vendor":1.10}}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"none","data":{"vendor":1.10,"uri":"res://one"}}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"none","vendor":1.10}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"none","vendor":1.10,"data":{"uri":"res://one"}}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"none","data":[1.10]}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"none","data":{"data":[1.10],"uri":"res://one"}}}
    "#);
}

/// A result behind a key is not public, whatever cache scope the server declares.
#[tokio::test]
async fn results_for_a_key_are_cached_privately() {
    let answer = |r: &ReceivedRequest| {
        ScriptedReply::result(
            r,
            r#"{"contents":[],"vendor":1.10,"ttlMs":7,"cacheScope":"public","resultType":"complete"}"#,
        )
    };
    let upstream = TestUpstream::start(CatalogServer::new(UpstreamEra::Modern, answer));
    let options = GatewayOptions { store: Some(memory().await), ..GatewayOptions::default() };
    let manifest = manifest(&[("h", upstream.address, "")], "allowUnauthenticated: true");
    let running = toolyard_server::start(&manifest, &options).await.unwrap();
    let gateway = KeyedGateway {
        running,
        store: options.store.unwrap(),
        upstreams: [upstream, TestUpstream::start(never)],
    };
    let key = gateway.key_for("tools:*").await;
    let params = format!(r#"{{"uri":"res://one","_meta":{{{MODERN_META}}}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{params}}}"#);
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: resources/read\r\nmcp-name: res://one\r\n";
    let mut lines = Vec::new();
    for key in ["", &key] {
        lines.push(gateway.ask_with(key, "POST /mcp", headers, &body).await.body);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":7,"result":{"contents":[],"vendor":1.10,"ttlMs":7,"cacheScope":"public","resultType":"complete"}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[],"vendor":1.10,"ttlMs":7,"cacheScope":"private","resultType":"complete"}}
    "#);
}

/// Unknown names are errors, and missing lists are empty.
#[tokio::test]
async fn unknown_names_are_not_found() {
    let upstream =
        TestUpstream::start(CatalogServer::new(UpstreamEra::Modern, never).with_capabilities("{}"));
    let running = gateway(&[("h", upstream.address, "")], "").await;
    let mut lines = vec![all_lists(&running).await];
    for client in &mut clients(&running).await[1..] {
        for (method, params, _) in CALLS {
            let response = json::read(&ask(client, method, params).await.body);
            let error = response.get("error");
            lines.push(format!("{method}: {} {}", error.get("code").text(), error.get("message").text()));
        }
    }
    assert_snapshot!(lines.join("\n"), @r#"
    [{"name":"t","inputSchema":{"type":"object"}}]
    []
    []
    []
    prompts/get: -32602 "Unknown prompt: h_a_b"
    resources/read: -32002 "Resource not found"
    resources/read: -32002 "Resource not found"
    completion/complete: -32602 "Unknown prompt: h_a_b"
    completion/complete: -32002 "Resource not found"
    prompts/get: -32602 "Unknown prompt: h_a_b"
    resources/read: -32602 "Resource not found"
    resources/read: -32602 "Resource not found"
    completion/complete: -32602 "Unknown prompt: h_a_b"
    completion/complete: -32602 "Resource not found"
    "#);
    for (method, ..) in CALLS {
        assert_eq!(upstream.now(|log| log.count(method)), 0, "{method}");
    }
}

/// A URI that two servers have belongs to the first one in the manifest, unless the client names the other one.
#[tokio::test]
async fn uri_selects_its_server() {
    let server = |name: &'static str| {
        let server = CatalogServer::new(UpstreamEra::Modern, move |r: &ReceivedRequest| {
            ScriptedReply::result(r, &format!(r#"{{"from":"{name}"}}"#))
        });
        server.set("resources/list", &format!(r#""resources":[{{"uri":"u:shared"}},{{"uri":"u:{name}"}}]"#));
        server.set(
            "resources/templates/list",
            &format!(r#""resourceTemplates":[{{"uriTemplate":"{name}:{{x}}"}}]"#),
        );
        TestUpstream::start(server)
    };
    let (one, two) = (server("one"), server("two"));
    let running = gateway(&[("one", one.address, ""), ("two", two.address, "")], "").await;
    let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
    for (uri, from) in [
        ("u:shared", "one"),
        ("two+u:shared", "two"),
        ("u:one", "one"),
        ("u:two", "two"),
        ("two:7", "two"),
        ("one:7", "one"),
    ] {
        let read = ask(&mut client, "resources/read", &format!(r#""uri":"{uri}""#)).await;
        assert_eq!(json::read(&read.body).get("result").get("from").plain(), from, "{uri}");
    }
    for (name, from) in [("one_a_b", "one"), ("two_a_b", "two")] {
        let got = ask(&mut client, "prompts/get", &format!(r#""name":"{name}""#)).await;
        assert_eq!(json::read(&got.body).get("result").get("from").plain(), from, "{name}");
    }
}

#[tokio::test]
async fn names_outside_the_scope_do_not_exist() {
    let server = |scheme: &str| {
        let server = CatalogServer::new(UpstreamEra::Modern, |r: &ReceivedRequest| {
            match r.body.contains(r#""closed:"#) {
                // A server may have more resources than it lists. The gateway asks the permitted server, which does not
                // have this one.
                true => {
                    let error = r#"{"code":-32602,"message":"Resource not found"}"#;
                    ScriptedReply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, r.id()))
                }
                false => ScriptedReply::result(r, "{}"),
            }
        });
        server.set("prompts/list", &format!(r#""prompts":[{{"name":"p_{scheme}"}}]"#));
        server.set("resources/list", &format!(r#""resources":[{{"uri":"{scheme}:list"}}]"#));
        let template = format!(r#""resourceTemplates":[{{"uriTemplate":"{scheme}:{{x}}"}}]"#);
        server.set("resources/templates/list", &template);
        TestUpstream::start(server)
    };
    let (open, closed) = (server("open"), server("closed"));
    let (store, handlers) = (memory().await, [("open", open.address, ""), ("closed", closed.address, "")]);
    let running = started_on(&store, &manifest(&handlers, "")).await;
    let gateway = KeyedGateway { running, store, upstreams: [open, closed] };
    let key = gateway.key_for("tools:open/*").await;
    let ask = async |method: &str, params: &str, pick: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
        gateway.short(&key, "POST /mcp", &body, pick).await
    };
    for (method, member) in LISTS {
        let list = ask(method, "", &format!("/result/{member}")).await;
        assert!(list.starts_with("200 [{") && !list.contains("closed"), "{list}");
    }
    let complete = |scheme: &str, reference: &str| {
        format!(r#""ref":{{{}}},"argument":{{"name":"x","value":""}}"#, reference.replace("SCHEME", scheme))
    };
    for (scheme, is_there) in [("open", true), ("closed", false)] {
        let calls = [
            ("prompts/get", format!(r#""name":"p_{scheme}""#)),
            ("resources/read", format!(r#""uri":"{scheme}:list""#)),
            ("resources/read", format!(r#""uri":"{scheme}:other""#)),
            ("completion/complete", complete(scheme, r#""type":"ref/prompt","name":"p_SCHEME""#)),
            ("completion/complete", complete(scheme, r#""type":"ref/resource","uri":"SCHEME:{x}""#)),
        ];
        for (method, params) in calls {
            let error = ask(method, &params, "/error").await;
            assert_eq!(error == "200 null", is_there, "{method} {params}: {error}");
        }
    }
    let [_, closed] = &gateway.upstreams;
    assert!(CALLS.iter().all(|(method, ..)| closed.now(|log| log.count(method)) == 0));
}
