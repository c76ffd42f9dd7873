//! Prompts, resources, templates and completion pass the gateway: whose they are, what they are called, and what is said
//! of them.

use insta::assert_snapshot;
use toolyard_server::{Options, Running};

use crate::client::{Client, MODERN_META, Response, Speech};
use crate::door::{Yard, memory};
use crate::json;
use crate::stocked::{LISTS, Stocked};
use crate::upstream::{Era, Log, Received, Reply, Upstream, but};
use crate::{gateway, manifest};

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

fn never(_: &Received) -> Reply {
    Reply::never()
}

/// Sends a request with these members as its parameters, in the way of the client.
async fn ask(client: &mut Client, method: &str, members: &str) -> Response {
    let own = if client.speech == Speech::Modern { MODERN_META } else { "" };
    let comma = if members.is_empty() { "" } else { "," };
    client.ask(method, &format!(r#"{{{members}{comma}"_meta":{{{own}}}}}"#)).await
}

/// A client of each kind.
async fn clients(running: &Running) -> [Client; 3] {
    let address = running.address();
    [
        Client::in_session(address).await,
        Client::new(address, Speech::Bare).await,
        Client::new(address, Speech::Modern).await,
    ]
}

/// What is on a list, as the client has it.
async fn listed(client: &mut Client, (method, member): (&str, &str)) -> String {
    json::read(&ask(client, method, "").await.body).get("result").get(member).text()
}

/// Everything that a gateway lists.
async fn everything(running: &Running) -> String {
    let mut client = Client::new(running.address(), Speech::Bare).await;
    let mut lists = Vec::new();
    for list in LISTS {
        lists.push(listed(&mut client, list).await);
    }
    lists.join("\n")
}

/// Definitions are as they came; only a name that is none for models is another one.
const STOCK: &str = r#"[{"name":"t","inputSchema":{"type":"object"}}]
[{"name":"h_a_b","arguments":[{"name":"x","vendor":1.10}],"vendor":1.10}]
[{"uri":"res://one","name":"One","size":48e0,"vendor":{"b":1,"a":[]}}]
[{"uriTemplate":"doc://{id}/x","name":"Documents","vendor":1.10}]"#;

#[tokio::test]
async fn lists_of_every_kind() {
    for era in ERAS {
        let upstream = Upstream::start(Stocked::new(era, never));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        for client in &mut clients(&running).await {
            let mut lists = Vec::new();
            for list in LISTS {
                lists.push(listed(client, list).await);
            }
            assert_eq!(lists.join("\n"), STOCK, "{era:?} {:?}", client.speech);
        }
    }
}

#[tokio::test]
async fn lists_in_pages() {
    let pages = |request: &Received| {
        let (_, member) = LISTS.into_iter().find(|(method, _)| request.method() == *method)?;
        let is_second = request.params().find("cursor").is_some();
        let number = if is_second { 2 } else { 1 };
        let item = format!(r#"{{"name":"n{number}","uri":"u:{number}","uriTemplate":"t:{number}"}}"#);
        let next = if is_second { "" } else { r#","nextCursor":"next""# };
        Some(Reply::result(request, &format!(r#"{{"{member}":[{item}]{next}}}"#)))
    };
    for era in ERAS {
        let upstream = Upstream::start(but(Stocked::new(era, never), pages));
        for (limits, places) in [("", 2), ("limits: {toolsPerHandler: 1}", 1)] {
            let running = gateway(&[("h", upstream.address, "")], limits).await;
            let listed = everything(&running).await;
            let counts = listed.lines().map(|list| json::read(list).items().len());
            assert_eq!(counts.collect::<Vec<_>>(), [places; 4], "{listed}");
        }
    }
}

/// How a server fails.
type Failing = fn(&Received) -> Reply;

/// A server that fails at one list has the others.
#[tokio::test]
async fn a_list_that_fails() {
    let failures: [(&str, Failing); 5] = [
        ("an error", |r| {
            let error = r#"{"code":-32603,"message":"broken"}"#;
            Reply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, r.id()))
        }),
        ("500", |_| Reply::http(500, "", "")),
        ("garbage", |_| Reply::json("{")),
        ("no list", |r| Reply::result(r, "{}")),
        ("an end", |_| Reply::raw("")),
    ];
    for (failure, reply) in failures {
        for (broken, (method, _)) in LISTS.into_iter().enumerate().skip(1) {
            let fail = move |r: &Received| (r.method() == method).then(|| reply(r));
            let upstream = Upstream::start(but(Stocked::new(Era::Modern, never), fail));
            let running = gateway(&[("h", upstream.address, "")], "").await;
            let listed = everything(&running).await;
            let expected = STOCK.lines().enumerate().map(|(at, list)| if at == broken { "[]" } else { list });
            assert!(listed.lines().eq(expected), "{failure} at {method}: {listed}");
        }
    }
}

/// Who says that it has no such thing is not asked for it.
#[tokio::test]
async fn only_what_a_server_declares_is_asked_for() {
    let cases = [
        ("{}", [1, 0, 0, 0]),
        (r#"{"tools":{},"prompts":{}}"#, [1, 1, 0, 0]),
        (r#"{"resources":{"subscribe":false}}"#, [1, 0, 1, 1]),
        (r#"{"prompts":null,"resources":7}"#, [1, 0, 0, 0]),
    ];
    for (era, (capabilities, expected)) in ERAS.into_iter().flat_map(|era| cases.map(|case| (era, case))) {
        let upstream = Upstream::start(Stocked::new(era, never).with_capabilities(capabilities));
        let _running = gateway(&[("h", upstream.address, "")], "").await;
        assert_eq!(upstream.now(asked), expected, "{era:?} {capabilities}");
    }
}

/// How often each list was asked for.
fn asked(log: &Log) -> [usize; 4] {
    LISTS.map(|(method, _)| log.count(method))
}

/// A change of one list of one server is followed by one request, for that list, at that server.
#[tokio::test]
async fn what_has_changed_is_asked_for_again_and_nothing_else() {
    const CHANGES: [(&str, &str, [usize; 4]); 3] = [
        ("notifications/tools/list_changed", "tools/list", [1, 0, 0, 0]),
        ("notifications/prompts/list_changed", "prompts/list", [0, 1, 0, 0]),
        ("notifications/resources/list_changed", "resources/templates/list", [0, 0, 1, 1]),
    ];
    for era in ERAS {
        let servers = [(); 3].map(|()| Stocked::new(era, never));
        let upstreams = servers.clone().map(Upstream::start);
        let handlers = ["a", "b", "c"].into_iter().zip(&upstreams);
        let handlers: Vec<_> = handlers.map(|(name, upstream)| (name, upstream.address, "")).collect();
        let running = gateway(&handlers, "").await;
        let stream = if era == Era::Legacy { "GET" } else { "subscriptions/listen" };
        for upstream in &upstreams {
            upstream.saw(|log| log.count(stream) > 0, |_| ()).await;
        }
        for (notification, method, more) in CHANGES {
            let before = upstreams.each_ref().map(|upstream| upstream.now(asked));
            let mut registry = running.gateway().watch();
            registry.mark_unchanged();
            let (_, member) = LISTS.into_iter().find(|(list, _)| *list == method).unwrap();
            let item = r#"{"name":"new","uri":"u:new","uriTemplate":"t:new"}"#;
            servers[1].set(method, &format!(r#""{member}":[{item}]"#));
            servers[1].say(notification, "{}");
            registry.changed().await.unwrap();
            assert!(everything(&running).await.contains(item), "{notification}");
            let mut expected = before;
            for (count, more) in expected[1].iter_mut().zip(more) {
                *count += more;
            }
            let after = upstreams.each_ref().map(|upstream| upstream.now(asked));
            assert_eq!(after, expected, "{era:?} {notification}");
        }
    }
}

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

/// Of two servers that have the same resource, the one that stands first in the manifest is asked.
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
    for (uri, from) in
        [("u:shared", "one"), ("u:one", "one"), ("u:two", "two"), ("two:7", "two"), ("one:7", "one")]
    {
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
        let server = Stocked::new(Era::Modern, |r: &Received| Reply::result(r, "{}"));
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

/// A server logs as much as the client wants that wants most, and each client hears what it wants.
#[tokio::test]
async fn log_levels() {
    const LEVEL: &str = "io.modelcontextprotocol/logLevel";
    let answer = |r: &Received| {
        if r.method() == "logging/setLevel" {
            return Reply::result(r, "{}");
        }
        let log = |level: &str| {
            let params = format!(r#"{{"level":"{level}","data":1.10}}"#);
            format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{params}}}\n\n"
            )
        };
        let end = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}\n\n", r.id());
        Reply::events([(log("debug") + &log("error") + &end).into()])
    };
    for era in ERAS {
        let upstream = Upstream::start(Stocked::new(era, answer));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        let mut lines = Vec::new();
        for level in ["error", "debug", "error", "critical"] {
            let meta = format!(r#"{MODERN_META},"{LEVEL}":"{level}""#);
            let client = Client::new(running.address(), Speech::Modern).await;
            let mut stream =
                client.open("resources/read", &format!(r#"{{"uri":"res://one","_meta":{{{meta}}}}}"#)).await;
            let mut heard = Vec::new();
            while let Some(message) = stream.message().await {
                let params = json::read(&message).find("params").cloned();
                heard.extend(params.map(|params| params.get("level").plain()));
            }
            let params = upstream.now(|log| log.last("resources/read").params());
            let told = params.find("_meta").and_then(|meta| meta.find(LEVEL)).cloned();
            let told = told.map_or_else(|| "nothing".to_owned(), |level| level.plain());
            let asked = upstream.now(|log| log.count("logging/setLevel"));
            lines.push(format!("{level}: heard {heard:?}, told {told}, asked {asked} times"));
        }
        match era {
            Era::Legacy => assert_snapshot!(lines.join("\n"), @r#"
            error: heard ["error"], told nothing, asked 1 times
            debug: heard ["debug", "error"], told nothing, asked 2 times
            error: heard ["error"], told nothing, asked 2 times
            critical: heard [], told nothing, asked 2 times
            "#),
            Era::Modern => assert_snapshot!(lines.join("\n"), @r#"
            error: heard ["error"], told error, asked 0 times
            debug: heard ["debug", "error"], told debug, asked 0 times
            error: heard ["error"], told error, asked 0 times
            critical: heard [], told critical, asked 0 times
            "#),
        }
        if era == Era::Legacy {
            assert_eq!(
                upstream.now(|log| log.last("logging/setLevel").params().text()),
                r#"{"level":"debug"}"#
            );
        }
        // Who hears nothing wants nothing.
        let other = Upstream::start(Stocked::new(era, answer));
        let running = gateway(&[("h", other.address, "")], "").await;
        ask(
            &mut Client::new(running.address(), Speech::Bare).await,
            "resources/read",
            r#""uri":"res://one""#,
        )
        .await;
        assert!(!other.now(|log| log.requests.iter().any(|r| r.body.contains("evel\""))));
    }
}
