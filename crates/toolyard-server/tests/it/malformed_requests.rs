//! Malformed requests: the gateway answers with a status and an error that name the fault, and the next request
//! succeeds.

use std::net::SocketAddr;

use insta::assert_snapshot;
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, MODERN_META, WireClient, WireConnection, post};

use crate::gateway::gateway;

/// A tool with an argument that is mirrored in a header.
const MIRRORING: &str = r#"{"name":"m","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}"#;

/// A gateway for malformed requests.
struct RequestTarget {
    address: SocketAddr,
    _upstream: TestUpstream,
    _running: toolyard_server::RunningGateway,
}

impl RequestTarget {
    async fn start(process: &str) -> Self {
        let server =
            ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL, MIRRORING], |request: &ReceivedRequest| {
                ScriptedReply::result(request, "{}")
            });
        let upstream = TestUpstream::start(server);
        let running = gateway(&[("h", upstream.address, "")], process).await;
        Self { address: running.address(), _upstream: upstream, _running: running }
    }

    /// The answer of the gateway to these bytes. Checks afterwards that the gateway still works.
    async fn answer(&self, bytes: &[u8]) -> String {
        let mut connection = WireConnection::open(self.address).await;
        connection.send(bytes).await;
        let answer = match connection.response().await {
            Some(response) => format!("{} {}", response.head.status(), response.body),
            None => "closed".to_owned(),
        };
        self.check_answers().await;
        answer.trim_end().to_owned()
    }

    async fn check_answers(&self) {
        let response = WireClient::new(self.address, ClientMode::Modern).await.call("t", "{}").await;
        assert_eq!(response.body, r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}"#);
    }

    /// One line for each case.
    async fn table(&self, cases: &[(&str, Vec<u8>)]) -> String {
        let mut lines = Vec::new();
        for (name, bytes) in cases {
            lines.push(format!("{name}: {}", self.answer(bytes).await));
        }
        lines.join("\n")
    }
}

/// A POST request with a message of the legacy era.
fn legacy(body: &str) -> Vec<u8> {
    post("", body)
}

/// A legacy call with these parameters.
fn params(params: &str) -> Vec<u8> {
    legacy(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))
}

/// A modern request that is valid except for its headers.
fn headers(method: &str, params: &str, headers: &str) -> Vec<u8> {
    let params = params.replace("META", &format!("\"_meta\":{{{MODERN_META}}}"));
    post(headers, &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#))
}

#[tokio::test]
async fn invalid_json_is_refused() {
    let target = RequestTarget::start("").await;
    let mut not_utf8 = post("", "");
    not_utf8.truncate(not_utf8.len() - "content-length: 0\r\n\r\n".len());
    not_utf8.extend_from_slice(b"content-length: 6\r\n\r\n{\"\xff\":1");
    let nested = |depth: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}{}}}}}"#,
            "[".repeat(depth - 2),
            "]".repeat(depth - 2)
        )
    };
    let cases = [
        ("empty", legacy("")),
        ("blank", legacy(" \r\n")),
        ("words", legacy("hello")),
        ("truncated", legacy(r#"{"jsonrpc":"2.0","id":1,"method":"ping""#)),
        ("two messages", legacy(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}{}"#)),
        ("not UTF-8", not_utf8),
        (
            "a control character in a string",
            legacy("{\"jsonrpc\":\"2.0\",\"id\":\"\t\",\"method\":\"ping\"}"),
        ),
        ("NaN", legacy(r#"{"jsonrpc":"2.0","id":NaN,"method":"ping"}"#)),
        ("an unknown escape", legacy(r#"{"jsonrpc":"2.0","id":"\x","method":"ping"}"#)),
        ("a hundred thousand levels", legacy(&nested(100_000))),
        ("a million brackets", legacy(&"[".repeat(1_000_000))),
    ];
    assert_snapshot!(target.table(&cases).await, @r#"
    empty: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the text ends where a value is expected at byte 0"}}
    blank: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the text ends where a value is expected at byte 3"}}
    words: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: expected a value at byte 0"}}
    truncated: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: expected `,` or `}` at byte 39"}}
    two messages: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: text after the value at byte 40"}}
    not UTF-8: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: not UTF-8 at byte 2"}}
    a control character in a string: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: a control character in a string at byte 23"}}
    NaN: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: expected a value at byte 22"}}
    an unknown escape: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: an unknown escape at byte 24"}}
    a hundred thousand levels: 200 {"jsonrpc":"2.0","id":1,"result":{}}
    a million brackets: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the text ends where a value is expected at byte 1000000"}}
    "#);
}

/// The TypeScript SDK refuses the id `null`, which the schema has no longer; the Python SDK refuses responses of older
/// revisions without an id; and the tool contract wants HTTP 200 for a request without a handshake.
#[tokio::test]
async fn refusal_of_an_unreadable_message_depends_on_the_revision() {
    let target = RequestTarget::start("limits: {requestBodyBytes: 1KiB}").await;
    let in_session = async |revision: &str| {
        let params = format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}"#
        );
        let mut client = WireClient::new(target.address, ClientMode::Bare).await;
        let response = client.ask("initialize", &params).await;
        format!("mcp-session-id: {}\r\n", response.head.header("mcp-session-id").unwrap())
    };
    let version = |revision: &str| format!("mcp-protocol-version: {revision}\r\n");
    let cases = [
        ("no header", post("", "oops")),
        ("2025-03-26", post(&version("2025-03-26"), "oops")),
        ("2025-06-18", post(&version("2025-06-18"), "oops")),
        ("2025-11-25", post(&version("2025-11-25"), "oops")),
        ("2026-07-28", post(&version("2026-07-28"), "oops")),
        ("an unknown revision", post(&version("2027-01-01"), "oops")),
        ("a session of 2025-03-26", post(&in_session("2025-03-26").await, "oops")),
        ("a session of 2025-11-25", post(&in_session("2025-11-25").await, "oops")),
        ("no header, no message", post("", "[]")),
        ("no header, an id", post("", r#"{"id":1,"method":"ping"}"#)),
        ("2025-11-25, an id", post(&version("2025-11-25"), r#"{"id":1,"method":"ping"}"#)),
        ("no header, too large", post("", &" ".repeat(1025))),
        ("2025-11-25, too large", post(&version("2025-11-25"), &" ".repeat(1025))),
    ];
    assert_snapshot!(target.table(&cases).await, @r#"
    no header: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: expected a value at byte 0"}}
    2025-03-26: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: expected a value at byte 0"}}
    2025-06-18: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: expected a value at byte 0"}}
    2025-11-25: 400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: expected a value at byte 0"}}
    2026-07-28: 400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: expected a value at byte 0"}}
    an unknown revision: 400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: expected a value at byte 0"}}
    a session of 2025-03-26: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: expected a value at byte 0"}}
    a session of 2025-11-25: 400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: expected a value at byte 0"}}
    no header, no message: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    no header, an id: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: `jsonrpc` is not \"2.0\""}}
    2025-11-25, an id: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: `jsonrpc` is not \"2.0\""}}
    no header, too large: 413 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the body is larger than 1024 bytes"}}
    2025-11-25, too large: 413 {"jsonrpc":"2.0","error":{"code":-32600,"message":"the body is larger than 1024 bytes"}}
    "#);
}

/// A client that writes its whole request before it reads sees the refusal, and no broken pipe.
#[tokio::test]
async fn body_over_the_limit_is_answered_after_it_was_sent() {
    let target = RequestTarget::start("limits: {requestBodyBytes: 1KiB}").await;
    for (path, kind) in [("/mcp", "-32600"), ("/api/v1/tools/t/call", "too_large")] {
        for chunked in [false, true] {
            let size = 12 << 20;
            let framing = match chunked {
                true => "transfer-encoding: chunked".to_owned(),
                false => format!("content-length: {size}"),
            };
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{framing}\r\n\r\n"
            );
            let body = match chunked {
                true => format!("100000\r\n{}\r\n", " ".repeat(1 << 20)).repeat(size >> 20) + "0\r\n\r\n",
                false => " ".repeat(size),
            };
            let address = target.address;
            let answer = tokio::task::spawn_blocking(move || {
                use std::io::{Read, Write};
                let mut stream = std::net::TcpStream::connect(address)?;
                stream.write_all(head.as_bytes())?;
                stream.write_all(body.as_bytes())?;
                let mut answer = vec![0; 4096];
                let read = stream.read(&mut answer)?;
                answer.truncate(read);
                Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
            });
            let answer = answer.await.unwrap().unwrap_or_else(|error| format!("{error}"));
            let case = format!("{path} chunked {chunked}");
            assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains(kind), "{case}: {answer}");
        }
    }
    target.check_answers().await;
}

#[tokio::test]
async fn invalid_messages_are_refused() {
    let target = RequestTarget::start("").await;
    let cases = [
        ("a batch", legacy(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#)),
        ("an empty batch", legacy("[]")),
        ("a string", legacy("\"ping\"")),
        ("a number", legacy("1")),
        ("null", legacy("null")),
        ("an empty object", legacy("{}")),
        ("no jsonrpc", legacy(r#"{"id":1,"method":"ping"}"#)),
        ("jsonrpc 1.0", legacy(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#)),
        ("jsonrpc is a number", legacy(r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#)),
        ("no method", legacy(r#"{"jsonrpc":"2.0","id":1}"#)),
        ("method is a number", legacy(r#"{"jsonrpc":"2.0","id":1,"method":1}"#)),
        ("id null", legacy(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#)),
        ("id object", legacy(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#)),
        ("id array", legacy(r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#)),
        ("id boolean", legacy(r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#)),
        (
            "result and error",
            legacy(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#),
        ),
        ("id twice", legacy(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#)),
        (
            "method twice, once escaped",
            legacy(r#"{"jsonrpc":"2.0","id":1,"method":"ping","meth\u006fd":"tools/call"}"#),
        ),
        ("a response to no request", legacy(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)),
        ("an unknown notification", legacy(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#)),
    ];
    assert_snapshot!(target.table(&cases).await, @r#"
    a batch: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    an empty batch: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    a string: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    a number: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    null: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    an empty object: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: `jsonrpc` is not \"2.0\""}}
    no jsonrpc: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: `jsonrpc` is not \"2.0\""}}
    jsonrpc 1.0: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: `jsonrpc` is not \"2.0\""}}
    jsonrpc is a number: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: `jsonrpc` is not \"2.0\""}}
    no method: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: none of `method`, `result` and `error`"}}
    method is a number: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: `method` is not a string"}}
    id null: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: `id` is null"}}
    id object: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: `id` is neither a string nor a number"}}
    id array: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: `id` is neither a string nor a number"}}
    id boolean: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: `id` is neither a string nor a number"}}
    result and error: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: both `result` and `error`"}}
    id twice: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: a member is named twice in the object at byte 0"}}
    method twice, once escaped: 200 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: a member is named twice in the object at byte 0"}}
    a response to no request: 202
    an unknown notification: 202
    "#);
}

#[tokio::test]
async fn invalid_call_parameters_are_refused() {
    let target = RequestTarget::start("").await;
    let cases = [
        ("an array", params(r#"["t"]"#)),
        ("a string", params("\"t\"")),
        ("none", params("null")),
        ("no name", params(r#"{"arguments":{}}"#)),
        ("name is a number", params(r#"{"name":1}"#)),
        ("an unknown name", params(r#"{"name":"x"}"#)),
        ("name twice", params(r#"{"name":"t","name":"m"}"#)),
        ("name twice, once escaped", params(r#"{"name":"t","n\u0061me":"m"}"#)),
        ("_meta null", params(r#"{"name":"t","_meta":null}"#)),
        ("_meta array", params(r#"{"name":"t","_meta":[]}"#)),
        ("a member of _meta twice", params(r#"{"name":"t","_meta":{"progressToken":1,"progressToken":2}}"#)),
        ("arguments null", params(r#"{"name":"t","arguments":null}"#)),
        ("arguments array", params(r#"{"name":"t","arguments":[]}"#)),
        ("arguments string", params(r#"{"name":"t","arguments":"{}"}"#)),
        ("an argument twice", params(r#"{"name":"t","arguments":{"a":1,"a":2}}"#)),
        ("an argument twice, once escaped", params(r#"{"name":"t","arguments":{"a":1,"\u0061":2}}"#)),
        ("an argument of another type", params(r#"{"name":"m","arguments":{"r":1}}"#)),
        ("an unknown method", legacy(r#"{"jsonrpc":"2.0","id":1,"method":"tools/x"}"#)),
        (
            "initialize without a version",
            legacy(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#),
        ),
    ];
    assert_snapshot!(target.table(&cases).await, @r#"
    an array: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params` is not an object with unique members"}}
    a string: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params` is not an object with unique members"}}
    none: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params.name` is not a string"}}
    no name: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params.name` is not a string"}}
    name is a number: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params.name` is not a string"}}
    an unknown name: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: x","data":{"code":"tool_not_found","reason":"no tool of this name","retryable":false}}}
    name twice: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params` is not an object with unique members"}}
    name twice, once escaped: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params` is not an object with unique members"}}
    _meta null: 200 {"jsonrpc":"2.0","id":1,"result":{}}
    _meta array: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params._meta` is not an object with unique members"}}
    a member of _meta twice: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params._meta` is not an object with unique members"}}
    arguments null: 200 {"jsonrpc":"2.0","id":1,"result":{}}
    arguments array: 200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Invalid arguments: expected an object"}],"isError":true}}
    arguments string: 200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Invalid arguments: expected an object"}],"isError":true}}
    an argument twice: 200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Invalid arguments: a member is named twice in the object"}],"isError":true}}
    an argument twice, once escaped: 200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Invalid arguments: a member is named twice in the object"}],"isError":true}}
    an argument of another type: 200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Invalid arguments: /r: value is not of type \"string\""}],"isError":true}}
    an unknown method: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: tools/x"}}
    initialize without a version: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params.protocolVersion` is not a string"}}
    "#);
}

#[tokio::test]
async fn invalid_modern_requests_are_refused() {
    let target = RequestTarget::start("").await;
    const VERSION: &str = "mcp-protocol-version: 2026-07-28\r\n";
    const CALL: &str = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n";
    const T: &str = r#"{"name":"t",META}"#;
    const M: &str = r#"{"name":"m","arguments":{"r":"eu"},META}"#;
    let list =
        |body: &str, rest: &str| headers("tools/list", body, &format!("mcp-method: tools/list\r\n{rest}"));
    let call = |body: &str, rest: &str| headers("tools/call", body, &format!("{CALL}{rest}"));
    let future = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01","io.modelcontextprotocol/clientCapabilities":{}}}"#;
    let legacy = &future.replace("2027-01-01", "2025-11-25");
    let incomplete = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    let cases = [
        ("no version header", list("{META}", "")),
        ("another version header", list("{META}", "mcp-protocol-version: 2025-11-25\r\n")),
        ("a version header alone", list("{}", VERSION)),
        ("no method header", headers("tools/list", "{META}", VERSION)),
        ("another method header", headers("tools/call", T, &format!("{VERSION}mcp-method: tools/list\r\n"))),
        ("no name header", call(T, "")),
        ("another name header", call(T, "mcp-name: m\r\n")),
        ("a name header in another case", call(T, "mcp-name: T\r\n")),
        ("bad base64 in the name header", call(T, "mcp-name: =?base64?!!?=\r\n")),
        ("base64 of no text", call(T, "mcp-name: =?base64?gA==?=\r\n")),
        ("no argument header", call(M, "mcp-name: m\r\n")),
        ("another argument header", call(M, "mcp-name: m\r\nmcp-param-region: us\r\n")),
        (
            "an argument header for nothing",
            call(&M.replace("\"eu\"", "null"), "mcp-name: m\r\nmcp-param-region: eu\r\n"),
        ),
        ("a good argument header", call(M, "mcp-name: m\r\nmcp-param-region: =?base64?ZXU=?=\r\n")),
        ("an unknown version", list(future, "mcp-protocol-version: 2027-01-01\r\n")),
        ("a legacy version", list(legacy, "mcp-protocol-version: 2025-11-25\r\n")),
        ("an unknown version in the header alone", list("{}", "mcp-protocol-version: 2027-01-01\r\n")),
        ("no capabilities", list(incomplete, VERSION)),
        (
            "capabilities are no object",
            list(&incomplete.replace("}}", r#","io.modelcontextprotocol/clientCapabilities":1}}"#), VERSION),
        ),
        ("a version that is no string", list(&incomplete.replace("\"2026-07-28\"", "20260728"), VERSION)),
        ("an unknown method", headers("tools/x", "{META}", &format!("{VERSION}mcp-method: tools/x\r\n"))),
        ("a removed method", headers("ping", "{META}", &format!("{VERSION}mcp-method: ping\r\n"))),
        ("an unknown tool", call(r#"{"name":"x",META}"#, "mcp-name: x\r\n")),
    ];
    assert_snapshot!(target.table(&cases).await, @r#"
    no version header: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-protocol-version header is missing"}}
    another version header: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-protocol-version header does not match the body"}}
    a version header alone: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params._meta[\"io.modelcontextprotocol/protocolVersion\"]` is missing or malformed"}}
    no method header: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-method header is missing"}}
    another method header: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-method header does not match the body"}}
    no name header: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-name header is missing"}}
    another name header: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-name header does not match the body"}}
    a name header in another case: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-name header does not match the body"}}
    bad base64 in the name header: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-name header has invalid characters"}}
    base64 of no text: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-name header has invalid characters"}}
    no argument header: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-param-region header is missing"}}
    another argument header: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-param-region header does not match the body"}}
    an argument header for nothing: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-param-region header has no counterpart in the body"}}
    a good argument header: 200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}
    an unknown version: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2027-01-01"}}}
    a legacy version: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}}
    an unknown version in the header alone: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2027-01-01"}}}
    no capabilities: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params._meta[\"io.modelcontextprotocol/clientCapabilities\"]` is missing or malformed"}}
    capabilities are no object: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params._meta[\"io.modelcontextprotocol/clientCapabilities\"]` is missing or malformed"}}
    a version that is no string: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"`params._meta[\"io.modelcontextprotocol/protocolVersion\"]` is missing or malformed"}}
    an unknown method: 404 {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: tools/x"}}
    a removed method: 404 {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: ping"}}
    an unknown tool: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: x","data":{"code":"tool_not_found","reason":"no tool of this name","retryable":false}}}
    "#);
}

#[tokio::test]
async fn invalid_http_requests_are_refused() {
    let target = RequestTarget::start("limits: {requestBodyBytes: 1KiB, headerBytes: 8KiB}").await;
    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let request = |method: &str, path: &str, rest: &str| {
        format!("{method} {path} HTTP/1.1\r\n{rest}content-length: 0\r\n\r\n").into_bytes()
    };
    let host = "host: localhost\r\n";
    let chunked = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let big = chunked.to_owned() + &format!("400\r\n{}\r\n", " ".repeat(1024)).repeat(2);
    let typed = |kind: &str| {
        String::from_utf8(post("", PING)).unwrap().replace("application/json", kind).into_bytes()
    };
    let cases = [
        ("text/plain", typed("text/plain")),
        ("a longer type", typed("application/json-rpc")),
        (
            "no type",
            format!("POST /mcp HTTP/1.1\r\n{host}content-length: {}\r\n\r\n{PING}", PING.len()).into_bytes(),
        ),
        ("a type with a parameter", typed("Application/JSON; charset=utf-8")),
        ("a body over the limit", legacy(&format!("{PING}{}", " ".repeat(1024)))),
        ("a chunked body over the limit", big.into_bytes()),
        ("a chunk without a size", (chunked.to_owned() + "size\r\n").into_bytes()),
        ("an unknown session", post("mcp-session-id: x\r\n", PING)),
        (
            "a notification in an unknown session",
            post("mcp-session-id: x\r\n", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        ),
        ("GET without a session", request("GET", "/mcp", host)),
        (
            "GET in an unknown session",
            request("GET", "/mcp", "host: localhost\r\naccept: text/event-stream\r\nmcp-session-id: x\r\n"),
        ),
        ("DELETE without a session", request("DELETE", "/mcp", host)),
        (
            "DELETE of an unknown session",
            request("DELETE", "/mcp", "host: localhost\r\nmcp-session-id: x\r\n"),
        ),
        ("PUT", request("PUT", "/mcp", host)),
        ("OPTIONS", request("OPTIONS", "/mcp", host)),
        ("another path", request("POST", "/none", host)),
        ("two types", post("content-type: text/plain\r\n", PING)),
        ("headers over the limit", post(&format!("x-long: {}\r\n", "x".repeat(9000)), PING)),
        ("too many headers", post(&"x: 1\r\n".repeat(200), PING)),
        ("not HTTP", b"hello\r\n\r\n".to_vec()),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
    ];
    assert_snapshot!(target.table(&cases).await, @r#"
    text/plain: 415
    a longer type: 415
    no type: 415
    a type with a parameter: 200 {"jsonrpc":"2.0","id":1,"result":{}}
    a body over the limit: 413 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the body is larger than 1024 bytes"}}
    a chunked body over the limit: 413 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the body is larger than 1024 bytes"}}
    a chunk without a size: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the connection broke before the end of the body"}}
    an unknown session: 404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"}}
    a notification in an unknown session: 404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"}}
    GET without a session: 405
    GET in an unknown session: 404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"}}
    DELETE without a session: 405
    DELETE of an unknown session: 404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found"}}
    PUT: 405
    OPTIONS: 405
    another path: 404 {"type":"urn:toolyard:problem:not_found","title":"Not Found","status":404,"detail":"no such endpoint: see /api/v1/openapi.json","code":"not_found","retryable":false}
    two types: 415
    headers over the limit: 431
    too many headers: 431
    not HTTP: 400
    TLS: 400
    "#);
}

#[tokio::test]
async fn invalid_hosts_and_origins_are_refused() {
    let target = RequestTarget::start("limits: {headerBytes: 8KiB}").await;
    let request = |method: &str, path: &str, rest: &str| {
        format!("{method} {path} HTTP/1.1\r\n{rest}content-length: 0\r\n\r\n").into_bytes()
    };
    let host = "host: localhost\r\n";
    let cases = [
        ("another host", request("POST", "/mcp", "host: evil.example\r\n")),
        ("two hosts", request("POST", "/mcp", "host: localhost\r\nhost: evil.example\r\n")),
        ("no host", request("POST", "/mcp", "")),
        ("a list of hosts", request("POST", "/mcp", "host: localhost, evil.example\r\n")),
        ("a target with another host", request("POST", "http://evil.example/mcp", host)),
        ("a target beside another host", request("POST", "http://localhost/mcp", "host: evil.example\r\n")),
        ("a target with its host", request("PUT", "http://localhost/mcp", host)),
        (
            "an origin with no such port",
            request("POST", "/mcp", "host: localhost\r\norigin: http://localhost:99999\r\n"),
        ),
        ("another origin", request("POST", "/mcp", "host: localhost\r\norigin: https://evil.example\r\n")),
    ];
    assert_snapshot!(target.table(&cases).await, @r#"
    another host: 403 {"jsonrpc":"2.0","error":{"code":-32600,"message":"unknown host in the Host header"}}
    two hosts: 400 duplicate Host header
    no host: 400 missing Host header
    a list of hosts: 400 invalid Host header: expected a host with an optional port
    a target with another host: 400 the hosts of the request target and the Host header differ
    a target beside another host: 400 the hosts of the request target and the Host header differ
    a target with its host: 405
    an origin with no such port: 403 {"jsonrpc":"2.0","error":{"code":-32600,"message":"origin not allowed"}}
    another origin: 403 {"jsonrpc":"2.0","error":{"code":-32600,"message":"origin not allowed"}}
    "#);
}

#[tokio::test]
async fn missing_request_head_times_out() {
    let target = RequestTarget::start("timeouts: {requestHead: 100ms}").await;
    let cases =
        [("nothing", Vec::new()), ("half a head", b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n".to_vec())];
    assert_snapshot!(target.table(&cases).await, @"
    nothing: closed
    half a head: closed
    ");
}
