//! The gRPC service, from the view of the Python implementation of gRPC and of clients that speak no gRPC.

mod caller;

use std::fmt::Write;

use insta::assert_snapshot;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolyard_manifest::ListenAddress;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{
    ReceivedRequest, RequestLog, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};

use self::caller::GrpcCaller;
use crate::gateway::{manifest, started};
use crate::keyed_gateway::KeyedGateway;

/// The setting that opens the service on a free port.
const GRPC: &str = "grpc: {listen: '127.0.0.1:0'}";

/// Returns the address of the service.
fn address(running: &RunningGateway) -> String {
    running.grpc_listening().iter().find_map(ListenAddress::tcp).unwrap().to_string()
}

/// A gateway in front of a server with one tool, `t`, that replies like this.
async fn gateway(
    process: &str,
    reply: impl Fn(&ReceivedRequest) -> ScriptedReply + Send + Sync + 'static,
) -> (RunningGateway, TestUpstream) {
    let upstream = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], reply));
    let handlers = [("x", upstream.address, "")];
    (started(&manifest(&handlers, &format!("{GRPC}, {process}"))).await, upstream)
}

fn calls(log: &RequestLog) -> usize {
    log.count("tools/call")
}

#[tokio::test(flavor = "multi_thread")]
async fn python_client_lists_and_calls_tools() {
    let gateway = KeyedGateway::start(GRPC).await;
    let mut caller = GrpcCaller::start(&address(&gateway.running), &[]);
    let mut lines = String::new();
    writeln!(lines, "{}", caller.ask(&json!({"do": "list"}))).unwrap();
    for (tool, arguments) in [
        ("add", r#"{"a":1.10}"#),
        ("search", ""),
        ("search", "null"),
        ("search", "{}"),
        ("delete", ""),
        ("add", r#"{"a":"x"}"#),
        ("add", r#"{"a":13}"#),
        ("search", "[1]"),
        ("search", "{"),
        ("sarch", "{}"),
    ] {
        writeln!(lines, "{tool} {arguments}\n  {}", caller.execute(tool, arguments)).unwrap();
    }
    assert_snapshot!(lines, @r#"
    {"tools":[["add","Adds.","{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\"}},\"required\":[\"a\"]}"],["search","Searches.","{\"type\":\"object\"}"],["delete","","{\"type\":\"object\"}"]]}
    add {"a":1.10}
      {"result":"{\"sum\":2}"}
    search 
      {"result":"{\"result\":\"found\"}"}
    search null
      {"result":"{\"result\":\"found\"}"}
    search {}
      {"result":"{\"result\":\"found\"}"}
    delete 
      {"result":"","isError":true,"message":"no"}
    add {"a":"x"}
      {"code":"INVALID_ARGUMENT","details":"Invalid arguments: /a: value is not of type \"number\"","reason":"INVALID_ARGUMENTS"}
    add {"a":13}
      {"result":"{\"sum\":\"?\"}"}
    search [1]
      {"code":"INVALID_ARGUMENT","details":"`arguments_json` is not a JSON object"}
    search {
      {"code":"INVALID_ARGUMENT","details":"`arguments_json` is not JSON: expected a string at byte 1"}
    sarch {}
      {"code":"NOT_FOUND","details":"Unknown tool: sarch. Did you mean `search`?","reason":"TOOL_NOT_FOUND"}
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_and_metadata_reach_the_server() {
    let reply = |request: &ReceivedRequest| {
        ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"{\"n\": 1.0}"}]}"#)
    };
    let (running, upstream) = gateway("", reply).await;
    let mut caller = GrpcCaller::start(&address(&running), &[]);
    let metadata = json!({"tenant": "a", "progressToken": "b"});
    let answer = caller.ask(
        &json!({"do": "execute", "tool": "t", "arguments": r#"{"a": 1.10, "b": 12345678901234567890}"#, "metadata": metadata}),
    );
    assert_eq!(answer, json!({"result": "{\"n\": 1.0}"}));
    let params = upstream.now(|log| log.last("tools/call").params().text());
    assert!(params.contains(r#""arguments":{"a":1.10,"b":12345678901234567890}"#), "{params}");
    let expected = r#""omnia.altairalabs.ai/metadata":{"progressToken":"b","tenant":"a"}"#;
    assert!(params.contains(expected), "{params}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_and_health_need_no_key() {
    let gateway = KeyedGateway::start(GRPC).await;
    gateway.key_for("rest").await;
    let mut caller = GrpcCaller::start(&address(&gateway.running), &[]);
    while caller.execute("search", "")["code"] != "UNAUTHENTICATED" {}
    let mut lines = String::new();
    for request in [
        json!({"do": "reflect", "version": "v1"}),
        json!({"do": "reflect", "version": "v1alpha"}),
        json!({"do": "health"}),
        json!({"do": "health", "service": "omnia.tools.v1.ToolService"}),
        json!({"do": "health", "service": "other"}),
        json!({"do": "list"}),
    ] {
        writeln!(lines, "{request}\n  {}", caller.ask(&request)).unwrap();
    }
    assert_snapshot!(lines, @r#"
    {"do":"reflect","version":"v1"}
      {"services":["grpc.health.v1.Health","grpc.reflection.v1.ServerReflection","omnia.tools.v1.ToolService"],"methods":["Execute","ListTools"]}
    {"do":"reflect","version":"v1alpha"}
      {"services":["grpc.health.v1.Health","grpc.reflection.v1alpha.ServerReflection","omnia.tools.v1.ToolService"],"methods":["Execute","ListTools"]}
    {"do":"health"}
      {"status":"SERVING"}
    {"do":"health","service":"omnia.tools.v1.ToolService"}
      {"status":"SERVING"}
    {"do":"health","service":"other"}
      {"code":"NOT_FOUND","details":"service not registered"}
    {"do":"list"}
      {"code":"UNAUTHENTICATED","details":"missing key: send `Authorization: Bearer KEY`; for commands of toolyard, set TOOLYARD_KEY or use `--key-file`","reason":"UNAUTHENTICATED"}
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_their_limits_apply() {
    let gateway = KeyedGateway::start(GRPC).await;
    let address = address(&gateway.running);
    let mut caller = GrpcCaller::start(&address, &[]);
    let mut call = |key: &str, tool: &str| {
        caller.ask(&json!({"do": "execute", "tool": tool, "arguments": "", "key": key}))
    };
    let searcher = gateway.key_for("rest tools:search").await;
    while call(&searcher, "search")["code"] == "UNAUTHENTICATED" {}
    let no_rest = gateway.key_for("tools:*").await;
    let limited = gateway.key(r#"{"name":"q","scopes":["tools:*","rest"],"rate":"2/h"}"#).await;
    let mut lines = String::new();
    for (case, key, tool) in [
        ("no key", "", "search"),
        ("wrong key", "ty_000000000000_x", "search"),
        ("scope of the tool", &searcher, "search"),
        ("scope of another tool", &searcher, "delete"),
        ("no scope for calls", &no_rest, "search"),
        ("within the rate", &limited, "search"),
        ("within the rate", &limited, "search"),
        ("beyond the rate", &limited, "search"),
    ] {
        let mut answer = call(key, tool);
        if answer["reason"] == "RATE_LIMITED" {
            answer["details"] = Value::Null;
        }
        writeln!(lines, "{case}: {answer}").unwrap();
    }
    assert_snapshot!(lines, @r#"
    no key: {"code":"UNAUTHENTICATED","details":"missing key: send `Authorization: Bearer KEY`; for commands of toolyard, set TOOLYARD_KEY or use `--key-file`","reason":"UNAUTHENTICATED"}
    wrong key: {"code":"UNAUTHENTICATED","details":"wrong key: the gateway has no such key; commands of toolyard send TOOLYARD_KEY or that of `--key-file`","reason":"UNAUTHENTICATED"}
    scope of the tool: {"result":"{\"result\":\"found\"}"}
    scope of another tool: {"code":"NOT_FOUND","details":"Unknown tool: delete","reason":"TOOL_NOT_FOUND"}
    no scope for calls: {"code":"PERMISSION_DENIED","details":"the key lacks the scope `rest`","reason":"DENIED"}
    within the rate: {"result":"{\"result\":\"found\"}"}
    within the rate: {"result":"{\"result\":\"found\"}"}
    beyond the rate: {"code":"RESOURCE_EXHAUSTED","details":null,"reason":"RATE_LIMITED"}
    "#);
    let listed = caller.ask(&json!({"do": "list", "key": searcher}));
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1);
    assert_eq!(listed["tools"][0][0], "search");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_audited_and_the_status_lists_the_address() {
    let gateway = KeyedGateway::start(GRPC).await;
    let address = address(&gateway.running);
    let mut caller = GrpcCaller::start(&address, &[]);
    caller.execute("search", "");
    let status: Value = serde_json::from_str(&gateway.ask("", "GET /api/v1/status", "").await.body).unwrap();
    let http = gateway.running.address().to_string();
    let expected = json!([{"protocol": "http", "address": http}, {"protocol": "grpc", "address": address}]);
    assert_eq!(status["listeners"], expected);
    let audit = async || gateway.ask("", "GET /api/v1/audit", "").await.body;
    while !audit().await.contains(r#""name":"search""#) {
        tokio::task::yield_now().await;
    }
    let metrics = gateway.ask("", "GET /metrics", "").await.body;
    assert!(metrics.lines().any(|line| line.contains("search") && line.ends_with(" 1")), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn thousand_calls_side_by_side() {
    let gateway = KeyedGateway::start(&format!("{GRPC}, limits: {{queuedCalls: 1000}}")).await;
    let mut caller = GrpcCaller::start(&address(&gateway.running), &[]);
    let request = |channels| json!({"do": "many", "calls": 1000, "channels": channels, "tool": "add", "arguments": r#"{"a":1}"#});
    for channels in [1, 8] {
        assert_eq!(caller.ask(&request(channels)), json!({r#"{"sum":2}"#: 1000}), "{channels}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overload_is_an_exhausted_resource() {
    let (running, upstream) =
        gateway("limits: {concurrentCalls: 1, queuedCalls: 1}", |_: &ReceivedRequest| ScriptedReply::never())
            .await;
    let mut waiting = GrpcCaller::start(&address(&running), &[]);
    waiting.send(&json!({"do": "many", "calls": 2, "channels": 1, "tool": "t"}));
    upstream.saw(|log| calls(log) == 1, |_| ()).await;
    let mut caller = GrpcCaller::start(&address(&running), &[]);
    let answer = loop {
        // The second call may not have arrived yet.
        let answer = caller.ask(&json!({"do": "execute", "tool": "t", "timeout": 0.2}));
        if answer["code"] != "DEADLINE_EXCEEDED" {
            break answer;
        }
    };
    assert_eq!(
        (&answer["code"], &answer["reason"]),
        (&json!("RESOURCE_EXHAUSTED"), &json!("OVERLOADED")),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn caller_that_stops_waiting_drops_its_call() {
    let (running, upstream) = gateway("", |_: &ReceivedRequest| ScriptedReply::never()).await;
    let dropped = |count| {
        move |log: &RequestLog| log.dropped.iter().filter(|method| *method == "tools/call").count() == count
    };
    let mut caller = GrpcCaller::start(&address(&running), &[]);
    let answer = caller.ask(&json!({"do": "execute", "tool": "t", "timeout": 0.5}));
    assert_eq!(answer["code"], "DEADLINE_EXCEEDED");
    upstream.saw(dropped(1), |_| ()).await;

    assert_eq!(caller.ask(&json!({"do": "cancel", "tool": "t"})), json!({"started": true}));
    upstream.saw(|log| calls(log) == 2, |_| ()).await;
    assert_eq!(caller.ask(&json!({})), json!({"code": "CANCELLED"}));
    upstream.saw(dropped(2), |_| ()).await;

    caller.send(&json!({"do": "execute", "tool": "t"}));
    upstream.saw(|log| calls(log) == 3, |_| ()).await;
    caller.kill();
    upstream.saw(dropped(3), |_| ()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_that_asks_its_client_is_refused() {
    let ask = |request: &ReceivedRequest| {
        let question = r#"{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;
        ScriptedReply::result(
            request,
            &format!(
                r#"{{"resultType":"input_required","inputRequests":{{"q":{question}}},"requestState":"s"}}"#
            ),
        )
    };
    let (running, _upstream) = gateway("", ask).await;
    let mut caller = GrpcCaller::start(&address(&running), &[]);
    assert_snapshot!(caller.execute("t", ""), @r#"{"code":"FAILED_PRECONDITION","details":"the tool requests input from its caller, which only MCP supports"}"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn task_that_a_tool_starts_is_cancelled() {
    let start = |request: &ReceivedRequest| {
        let task = r#"{"resultType":"task","taskId":"7","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null}"#;
        ScriptedReply::result(request, task)
    };
    let (running, upstream) = gateway("", start).await;
    let mut caller = GrpcCaller::start(&address(&running), &[]);
    assert_snapshot!(caller.execute("t", ""), @r#"{"code":"FAILED_PRECONDITION","details":"the tool continues as a task, which only MCP supports"}"#);
    upstream.saw(|log| log.count("tasks/cancel") == 1, |_| ()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_messages_pass_up_to_the_limit() {
    let reply = |request: &ReceivedRequest| {
        let text = "x".repeat(5 << 20);
        ScriptedReply::result(request, &format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#))
    };
    let (running, upstream) = gateway("limits: {requestBodyBytes: 1MiB}", reply).await;
    let mut caller = GrpcCaller::start(&address(&running), &[]);
    let argument = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "y".repeat(bytes));
    let answer = caller.execute("t", &argument(1_000_000));
    assert_eq!(answer["result"].as_str().map(str::len), Some((5 << 20) + r#"{"result":""}"#.len()));
    let refused = caller.execute("t", &argument(1 << 20));
    assert_snapshot!(refused, @r#"{"code":"RESOURCE_EXHAUSTED","details":"the message is larger than 1048576 bytes"}"#);
    assert_eq!(upstream.now(calls), 1);
}

/// Sends bytes to the service. Returns what it sends before it closes the connection.
async fn answer_to(running: &RunningGateway, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address(running)).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // The connection may be reset.
    let _end = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_other_protocols_are_refused() {
    let gateway = KeyedGateway::start(GRPC).await;
    let running = &gateway.running;
    let answer =
        answer_to(running, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}").await;
    assert!(answer.starts_with("HTTP/1.1 505 HTTP Version Not Supported\r\n"), "{answer}");
    for bytes in [
        &b"\x00\x01\x02\x03 garbage \xff\xfe\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"PRI * HTTP/2.0\r\n\r\nXX",
    ] {
        let answer = answer_to(running, bytes).await;
        assert!(!answer.contains("200"), "{answer}");
    }
    let mut caller = GrpcCaller::start(&address(running), &[]);
    assert_eq!(caller.execute("search", ""), json!({"result": r#"{"result":"found"}"#}));
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_gateway_ends_its_calls_first() {
    let (open, gate) = tokio::sync::watch::channel(false);
    let reply = move |request: &ReceivedRequest| {
        let mut gate = gate.clone();
        let reply = ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"late"}]}"#);
        reply.after(async move { drop(gate.wait_for(|open| *open).await) })
    };
    let (running, upstream) = gateway("", reply).await;
    let mut watcher = GrpcCaller::start(&address(&running), &[]);
    watcher.send(&json!({"do": "watch"}));
    assert_eq!(watcher.answer(), json!({"watched": "SERVING"}));
    let mut caller = GrpcCaller::start(&address(&running), &[]);
    caller.send(&json!({"do": "execute", "tool": "t"}));
    upstream.saw(|log| calls(log) == 1, |_| ()).await;
    let stopping = tokio::spawn(running.stop());
    assert_eq!(watcher.answer(), json!({"watched": "NOT_SERVING"}));
    open.send_replace(true);
    assert_eq!(caller.answer(), json!({"result": r#"{"result":"late"}"#}));
    stopping.await.unwrap();
    assert_eq!(watcher.answer()["statuses"][1], "NOT_SERVING");
    assert_eq!(caller.execute("t", "")["code"], "UNAVAILABLE");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_of_the_listeners_applies() {
    let folder = tempfile::TempDir::new().unwrap();
    let write = |name: &str, text: String| {
        std::fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name).display().to_string()
    };
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "authority");
    let authority = rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().unwrap()).unwrap();
    let issue = |name: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        (write(&format!("{name}.crt"), certificate.pem()), write(&format!("{name}.key"), key.serialize_pem()))
    };
    let ca = write("ca.pem", authority.pem());
    let ((cert, key), (client_cert, client_key)) = (issue("server"), issue("client"));
    let reply = |request: &ReceivedRequest| {
        ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"ok"}]}"#)
    };
    let (running, _upstream) =
        gateway(&format!("tls: {{certFile: '{cert}', keyFile: '{key}', clientCAFile: '{ca}'}}"), reply).await;
    let target = address(&running).replace("127.0.0.1", "localhost");
    let call = |options: &[String]| {
        let mut caller = GrpcCaller::start(&target, options);
        caller.ask(&json!({"do": "execute", "tool": "t", "timeout": 20}))
    };
    let [ca, cert, key] = [("ca", &ca), ("cert", &client_cert), ("certkey", &client_key)]
        .map(|(name, file)| format!("{name}={file}"));
    assert_eq!(call(&[ca.clone(), cert, key]), json!({"result": r#"{"result":"ok"}"#}));
    for without in [&[ca][..], &[]] {
        assert_eq!(call(without)["code"], "UNAVAILABLE", "{without:?}");
    }
}

/// The C core of gRPC names a socket by its encoded path, which `http::Uri` refuses.
#[tokio::test(flavor = "multi_thread")]
async fn unix_socket_needs_another_authority() {
    let folder = tempfile::tempdir().unwrap();
    let target = format!("unix:{}", folder.path().join("grpc.sock").display());
    let reply = |request: &ReceivedRequest| ScriptedReply::result(request, "{}");
    let upstream = TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], reply));
    let handlers = [("x", upstream.address, "")];
    let _running = started(&manifest(&handlers, &format!("grpc: {{listen: '{target}'}}"))).await;
    let list = |options: &[String]| GrpcCaller::start(&target, options).ask(&json!({"do": "list"}));
    assert_eq!(list(&["authority=localhost".to_owned()])["tools"][0][0], "t");
}
