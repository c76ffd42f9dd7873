//! Prompts, resources and completion pass the gateway: whose they are, what they are called, and what is said of them.

use insta::assert_snapshot;
use toolyard_server::Options;

use crate::client::{Client, MODERN_META, Speech};
use crate::door::{Yard, memory};
use crate::json;
use crate::stocked::{ERAS, LISTS, Stocked, ask, clients, everything, never};
use crate::upstream::{Era, Received, Reply, Upstream};
use crate::{gateway, manifest};

/// What is asked for, by what callers call it and by what its owner does.
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

/// Results and errors as a server says them.
const SAID: [&str; 3] = [
    r#""result":{"vendor":1.10,"messages":[{"b":1,"a":1e0}],"contents":[],"completion":{"values":["1"]},"resultType":"complete","ttlMs":7,"cacheScope":"public"}"#,
    r#""error":{"code":-32042,"message":"no","data":{"vendor":1.10},"vendor":[ ]}"#,
    r#""error":{"code":-32602,"message":"Resource not found","data":{"uri":"x"}}"#,
];

#[tokio::test]
async fn calls_and_their_answers_are_not_changed() {
    for (era, said) in ERAS.into_iter().flat_map(|era| SAID.map(|said| (era, said))) {
        let answer =
            move |r: &Received| Reply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},{said}}}"#, r.id()));
        let upstream = Upstream::start(Stocked::new(era, answer));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        for client in &mut clients(&running).await {
            for (method, params, renamed) in CALLS {
                let response = ask(client, method, params).await;
                let expected = json::read(&format!(r#"{{"jsonrpc":"2.0","id":7,{said}}}"#));
                assert_eq!(json::read(&response.body), expected, "{era:?} {:?} {method}", client.speech);
                let mut sent = upstream.now(|log| log.last(method).params());
                sent.members().retain(|(name, _)| name != "_meta");
                let expected = renamed
                    .split_once('=')
                    .map_or_else(|| params.to_owned(), |(published, own)| params.replace(published, own));
                assert_eq!(sent, json::read(&format!("{{{expected}}}")), "{era:?} {:?}", client.speech);
            }
        }
    }
}

#[tokio::test]
async fn headers_say_what_is_sent() {
    let upstream = Upstream::start(Stocked::new(Era::Modern, |r: &Received| Reply::result(r, "{}")));
    let running = gateway(&[("h", upstream.address, "")], "").await;
    let mut client = Client::new(running.address(), Speech::Modern).await;
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

/// What a result of another era does not say, and what is said in another way.
#[tokio::test]
async fn what_eras_say_differently() {
    let cases = [
        r#""result":{"contents":[]}"#,
        r#""error":{"code":-32002,"message":"none","data":{"vendor":1.10}}"#,
        r#""error":{"code":-32002,"message":"none","vendor":1.10}"#,
        r#""error":{"code":-32002,"message":"none","data":[1.10]}"#,
    ];
    let mut lines = Vec::new();
    for said in cases {
        let answer =
            move |r: &Received| Reply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},{said}}}"#, r.id()));
        let upstream = Upstream::start(Stocked::new(Era::Legacy, answer));
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
    {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"none","data":[1.10]}}
    "#);
}

/// What a key opens is not there for everybody, whatever the server says.
#[tokio::test]
async fn what_a_key_has_read_is_for_its_holder() {
    let answer = |r: &Received| {
        Reply::result(
            r,
            r#"{"contents":[],"vendor":1.10,"ttlMs":7,"cacheScope":"public","resultType":"complete"}"#,
        )
    };
    let upstream = Upstream::start(Stocked::new(Era::Modern, answer));
    let options = Options { store: Some(memory().await), ..Options::default() };
    let manifest = manifest(&[("h", upstream.address, "")], "allowUnauthenticated: true");
    let running = toolyard_server::start(&manifest, &options).await.unwrap();
    let yard = Yard { running, store: options.store.unwrap(), upstreams: [upstream, Upstream::start(never)] };
    let key = yard.key_for("tools:*").await;
    let params = format!(r#"{{"uri":"res://one","_meta":{{{MODERN_META}}}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{params}}}"#);
    let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: resources/read\r\nmcp-name: res://one\r\n";
    let mut lines = Vec::new();
    for key in ["", &key] {
        lines.push(yard.ask_with(key, "POST /mcp", headers, &body).await.body);
    }
    assert_snapshot!(lines.join("\n"), @r#"
    {"jsonrpc":"2.0","id":7,"result":{"contents":[],"vendor":1.10,"ttlMs":7,"cacheScope":"public","resultType":"complete"}}
    {"jsonrpc":"2.0","id":7,"result":{"contents":[],"vendor":1.10,"ttlMs":7,"cacheScope":"private","resultType":"complete"}}
    "#);
}

/// What nobody offers is not there, and lists of nothing are empty.
#[tokio::test]
async fn what_nobody_has() {
    let upstream = Upstream::start(Stocked::new(Era::Modern, never).with_capabilities("{}"));
    let running = gateway(&[("h", upstream.address, "")], "").await;
    let mut lines = vec![everything(&running).await];
    for client in &mut clients(&running).await[1..] {
        for (method, params, _) in CALLS {
            let said = json::read(&ask(client, method, params).await.body);
            let error = said.get("error");
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

/// Of two servers that have the same resource, the one that stands first in the manifest is asked, unless the other is named.
#[tokio::test]
async fn a_uri_leads_to_its_server() {
    let server = |name: &'static str| {
        let server = Stocked::new(Era::Modern, move |r: &Received| {
            Reply::result(r, &format!(r#"{{"from":"{name}"}}"#))
        });
        server.set("resources/list", &format!(r#""resources":[{{"uri":"u:shared"}},{{"uri":"u:{name}"}}]"#));
        server.set(
            "resources/templates/list",
            &format!(r#""resourceTemplates":[{{"uriTemplate":"{name}:{{x}}"}}]"#),
        );
        Upstream::start(server)
    };
    let (one, two) = (server("one"), server("two"));
    let running = gateway(&[("one", one.address, ""), ("two", two.address, "")], "").await;
    let mut client = Client::new(running.address(), Speech::Bare).await;
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
async fn what_a_key_may_not_use_does_not_exist_for_it() {
    let server = |scheme: &str| {
        let server = Stocked::new(Era::Modern, |r: &Received| match r.body.contains(r#""closed:"#) {
            // A server may have more than it lists. The one that is there is asked, and has not got it.
            true => {
                let error = r#"{"code":-32602,"message":"Resource not found"}"#;
                Reply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, r.id()))
            }
            false => Reply::result(r, "{}"),
        });
        server.set("prompts/list", &format!(r#""prompts":[{{"name":"p_{scheme}"}}]"#));
        server.set("resources/list", &format!(r#""resources":[{{"uri":"{scheme}:list"}}]"#));
        let template = format!(r#""resourceTemplates":[{{"uriTemplate":"{scheme}:{{x}}"}}]"#);
        server.set("resources/templates/list", &template);
        Upstream::start(server)
    };
    let (open, closed) = (server("open"), server("closed"));
    let (store, handlers) = (memory().await, [("open", open.address, ""), ("closed", closed.address, "")]);
    let options = Options { store: Some(store.clone()), ..Options::default() };
    let running = toolyard_server::start(&manifest(&handlers, ""), &options).await.unwrap();
    running.gateway().settled().await;
    let yard = Yard { running, store, upstreams: [open, closed] };
    let key = yard.key_for("tools:open/*").await;
    let ask = async |method: &str, params: &str, pick: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
        yard.short(&key, "POST /mcp", &body, pick).await
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
    let [_, closed] = &yard.upstreams;
    assert!(CALLS.iter().all(|(method, ..)| closed.now(|log| log.count(method)) == 0));
}
