use http::StatusCode;
use insta::assert_snapshot;
use toolyard_core::ClientNotification;

use super::*;

/// A client of a request.
#[derive(Debug)]
struct Asking {
    capabilities: Option<Json>,
    listens: bool,
}

impl Client for Asking {
    fn capabilities(&self) -> Option<&Json> {
        self.capabilities.as_ref()
    }

    fn listens(&self) -> bool {
        self.listens
    }

    fn notify(&self, _notice: ClientNotification) {}
}

fn object(text: &str) -> Object {
    Object::parse(text.to_owned()).unwrap()
}

/// Returns the parameters for a server of each era, for a client with or without a progress token.
fn sent(params: &str, capabilities: &str, listens: bool) -> String {
    let sent = |revision: ProtocolRevision| {
        let params = object(params);
        let meta = params.get("_meta").map(|meta| meta.to_object().unwrap()).unwrap_or_default();
        let capabilities = Some(Json::parse(capabilities.to_owned()).unwrap());
        let call = Call { params, meta, ..Call::tool("own", Json::null()) };
        let call = Call { client: Arc::new(Asking { capabilities, listens }), ..call };
        let (name, params) = call_params(&call, 42, revision, &Json::string("gateway"));
        assert_eq!(&*name, "own");
        params.to_json().as_text().to_owned()
    };
    [ProtocolRevision::LATEST_LEGACY, ProtocolRevision::LATEST_MODERN].map(sent).join("\n")
}

#[test]
fn parameters_of_a_bare_call() {
    assert_snapshot!(sent(r#"{"name":"given"}"#, "{}", false), @r#"
    {"name":"own"}
    {"name":"own","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":"gateway"}}
    "#);
    assert_snapshot!(sent(r#"{"arguments":{ "n":1.0 }}"#, "{}", true), @r#"
    {"arguments":{ "n":1.0 },"name":"own","_meta":{"progressToken":42}}
    {"arguments":{ "n":1.0 },"name":"own","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":"gateway","progressToken":42}}
    "#);
}

#[test]
fn parameters_keep_order_and_unknown_members() {
    let params =
        r#"{"z":1,"_meta":{"a":1.10,"progressToken":"mine","traceparent":"t"},"name":"given","\u0061":{}}"#;
    assert_snapshot!(sent(params, "{}", true), @r#"
    {"z":1,"_meta":{"a":1.10,"progressToken":42,"traceparent":"t"},"name":"own","\u0061":{}}
    {"z":1,"_meta":{"a":1.10,"progressToken":42,"traceparent":"t","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":"gateway"},"name":"own","\u0061":{}}
    "#);
    assert_snapshot!(sent(params, "{}", false), @r#"
    {"z":1,"_meta":{"a":1.10,"traceparent":"t"},"name":"own","\u0061":{}}
    {"z":1,"_meta":{"a":1.10,"traceparent":"t","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":"gateway"},"name":"own","\u0061":{}}
    "#);
}

#[test]
fn client_metadata_follows_the_era() {
    let params = r#"{"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2099-01-01",
        "io.modelcontextprotocol/clientInfo":{"name":"client"},
        "io.modelcontextprotocol/clientCapabilities":{"forged":{}},
        "io.modelcontextprotocol/logLevel":"debug",
        "io.modelcontextprotocol/related-task":{"taskId":"1"}
    }}"#;
    let capabilities = r#"{"elicitation":{},"extensions":{"x":{}},"y":1}"#;
    assert_snapshot!(sent(params, capabilities, false), @r#"
    {"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}},"name":"own"}
    {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"client"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"x":{}},"y":1},"io.modelcontextprotocol/related-task":{"taskId":"1"}},"name":"own"}
    "#);
    assert_snapshot!(sent("{}", "7", false), @r#"
    {"name":"own"}
    {"name":"own","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":"gateway"}}
    "#);
}

/// Converts an answer of a server of each era.
fn comes_to(answer: &str, to_answer: impl Fn(Json) -> UpstreamResult) -> String {
    let outcome = |era| match outcome(to_answer(Json::parse(answer.to_owned()).unwrap()), era, 512, 1) {
        Ok(Outcome::Done(output)) if output.is_error => "failed".to_owned(),
        Ok(Outcome::Done(_)) => "done".to_owned(),
        Ok(Outcome::NeedsInput(_)) => "needs input".to_owned(),
        Ok(Outcome::Task(_)) => "task".to_owned(),
        Err(error) => {
            let peer = error.peer().map_or("not passed on", |_| "passed on");
            format!("{:?} ({error}; {peer})", error.code())
        }
    };
    format!("{answer}: {} | {}", outcome(ProtocolEra::Legacy), outcome(ProtocolEra::Modern))
}

#[test]
fn results_become_outcomes() {
    let results = [
        "{}",
        r#"{"isError":true}"#,
        r#"{"isError":"true"}"#,
        r#"{"resultType":"complete","isError":true}"#,
        r#"{"resultType":"input_required"}"#,
        r#"{"resultType":"t\u0061sk"}"#,
        r#"{"resultType":"later"}"#,
        r#"{"resultType":null}"#,
        r#"{"a":1,"a":2}"#,
        "[]",
    ];
    assert_snapshot!(results.map(|result| comes_to(result, Ok)).join("\n"), @r#"
    {}: done | done
    {"isError":true}: failed | failed
    {"isError":"true"}: done | done
    {"resultType":"complete","isError":true}: failed | failed
    {"resultType":"input_required"}: done | needs input
    {"resultType":"t\u0061sk"}: done | task
    {"resultType":"later"}: done | ExecutionFailed (The server's result is of an unknown type; not passed on)
    {"resultType":null}: done | ExecutionFailed (The server's result is of an unknown type; not passed on)
    {"a":1,"a":2}: ExecutionFailed (The server's result is malformed; not passed on) | ExecutionFailed (The server's result is malformed; not passed on)
    []: ExecutionFailed (The server's result is malformed; not passed on) | ExecutionFailed (The server's result is malformed; not passed on)
    "#);
}

#[test]
fn peer_errors_are_converted() {
    let errors = [
        r#"{"code":1,"message":"m","data":[],"x":1}"#,
        r#"{"code":-32020,"message":"m"}"#,
        r#"{"code":-32022,"message":"m"}"#,
        r#"{"code":"1","message":"m"}"#,
        r#"{"code":1.5,"message":"m"}"#,
        r#"{"code":1}"#,
        r#"{"code":1,"code":2,"message":"m"}"#,
        "\"m\"",
        "null",
    ];
    assert_snapshot!(errors.map(|error| comes_to(error, |body| Err(RpcError::from_peer(body)))).join("\n"), @r#"
    {"code":1,"message":"m","data":[],"x":1}: ExecutionFailed (m; passed on) | ExecutionFailed (m; passed on)
    {"code":-32020,"message":"m"}: ExecutionFailed (The server refused the gateway's request; not passed on) | ExecutionFailed (The server refused the gateway's request; not passed on)
    {"code":-32022,"message":"m"}: ExecutionFailed (The server refused the gateway's request; not passed on) | ExecutionFailed (The server refused the gateway's request; not passed on)
    {"code":"1","message":"m"}: ExecutionFailed (The server's error is malformed; not passed on) | ExecutionFailed (The server's error is malformed; not passed on)
    {"code":1.5,"message":"m"}: ExecutionFailed (The server's error is malformed; not passed on) | ExecutionFailed (The server's error is malformed; not passed on)
    {"code":1}: ExecutionFailed (The server's error is malformed; not passed on) | ExecutionFailed (The server's error is malformed; not passed on)
    {"code":1,"code":2,"message":"m"}: ExecutionFailed (The server's error is malformed; not passed on) | ExecutionFailed (The server's error is malformed; not passed on)
    "m": ExecutionFailed (The server's error is malformed; not passed on) | ExecutionFailed (The server's error is malformed; not passed on)
    null: ExecutionFailed (The server's error is malformed; not passed on) | ExecutionFailed (The server's error is malformed; not passed on)
    "#);
}

#[test]
fn transport_errors_are_converted() {
    let errors = [
        TransportError::Unreachable("refused".into()),
        TransportError::Broken("reset".into()),
        TransportError::SessionExpired,
        TransportError::SessionLost,
        TransportError::Status(StatusCode::BAD_GATEWAY),
        TransportError::Status(StatusCode::UNAUTHORIZED),
        TransportError::Malformed("oops".into()),
        TransportError::TooLarge(7),
    ];
    let lines = errors.map(|error| {
        let error = ToolError::from(error);
        format!("{:?}: {error} <- {}", error.code(), std::error::Error::source(&error).unwrap())
    });
    assert_snapshot!(lines.join("\n"), @"
    Unavailable: The server cannot be reached <- the server cannot be reached
    Unavailable: The connection to the server broke <- the connection broke before the response
    Unavailable: The server has ended the session <- the server has ended the session
    Unavailable: The server has ended the session <- the server has ended the session during the response
    Unavailable: The server failed to answer <- the server answered with HTTP status 502 Bad Gateway
    ExecutionFailed: The server refused the request <- the server answered with HTTP status 401 Unauthorized
    ExecutionFailed: The server's answer is malformed <- the server's response is not an MCP message: oops
    ExecutionFailed: The server's answer is too large <- the server's response is larger than 7 bytes
    ");
}
