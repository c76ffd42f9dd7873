//! The errors of the cases are those of foreign SDKs, as they were received.

use toolyard_core::{CallOutput, ErrorCode};

use super::*;

fn rpc_error(code: i32, message: &str) -> AttemptResult {
    let error = RpcError::new(code, message.to_owned());
    Err(ToolError::new(ErrorCode::ExecutionFailed, message.to_owned()).from_peer(error.body().clone()).into())
}

fn tool_error(text: &str) -> AttemptResult {
    let item = Object::new().with("type", Json::string("text")).with("text", Json::string(text));
    let body = Object::new().with("content", Json::array(&[item.to_json()]));
    Ok(Outcome::Done(CallOutput { body, is_error: true }))
}

fn modern(result: &AttemptResult) -> bool {
    may_be_of_era(result, ProtocolEra::Modern, &DeclaredCapabilities::all())
}

fn legacy(result: &AttemptResult) -> bool {
    may_be_of_era(result, ProtocolEra::Legacy, &DeclaredCapabilities::all())
}

#[test]
fn missing_channel_is_recognized() {
    let python = "Cannot send 'elicitation/create': this transport context has no back-channel for server-initiated requests.";
    let fastmcp = "elicitation via server-initiated requests is unavailable on 2026-07-28 connections.";
    let fastmcp_roots = "Error calling tool 'roots': Cannot send 'roots/list': this transport context has no back-channel for server-initiated requests.";
    let typescript = "Server-to-client requests are not available on protocol revision 2026-07-28: 'sampling/createMessage' cannot be sent while serving a request on that revision.";
    let rust = "server-to-client requests are not allowed on protocol 2026-07-28 or later; return InputRequiredResult instead";
    let cases = [
        (rpc_error(-32600, python), true),
        // The code alone is enough.
        (rpc_error(-32600, "refused"), true),
        (rpc_error(-32601, "Method not found"), true),
        (tool_error(fastmcp), true),
        (tool_error(fastmcp_roots), true),
        (tool_error(typescript), true),
        (rpc_error(-32603, rust), true),
        (rpc_error(-32603, "The database is down."), false),
        (rpc_error(-32602, "Invalid arguments"), false),
        (tool_error("No flights on 2026-07-28."), false),
        (tool_error("The sampling rate is invalid."), false),
        (tool_error(&format!("{}{python}", "x".repeat(5000))), false),
        (Ok(Outcome::Done(CallOutput::text(fastmcp))), false),
        (Err(ToolError::new(ErrorCode::Unavailable, python).into()), false),
    ];
    for (result, expected) in cases {
        assert_eq!(modern(&result), expected, "{result:?}");
    }
}

#[test]
fn required_capability_that_the_client_declared_is_recognized() {
    for (required, expected) in [
        (r#"{"requiredCapabilities":{"sampling":{}}}"#, true),
        (r#"{"requiredCapabilities":{"roots":{},"x":1}}"#, true),
        (r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#, false),
        (r#"{"requiredCapabilities":[]}"#, false),
        ("{}", false),
        ("1", false),
    ] {
        let body = RpcError::with_data(-32021, "need", Json::parse(required).unwrap()).body().clone();
        let result = Err(ToolError::new(ErrorCode::ExecutionFailed, "need").from_peer(body).into());
        assert_eq!(modern(&result), expected, "{required}");
        assert!(!may_be_of_era(&result, ProtocolEra::Modern, &DeclaredCapabilities::none()), "{required}");
    }
}

#[test]
fn answer_of_the_modern_era_is_recognized() {
    let fastmcp = "Tool 'by_hand' returned an InputRequiredResult to request client input, but the multi-round-trip result type (SEP-2322) only exists at MCP 2026-07-28; this connection negotiated '2025-11-25'.";
    let typescript = "Handler for tools/call returned an input-required result, but this request is served on protocol revision 2025-11-25, which has no input_required vocabulary";
    let cases = [
        (rpc_error(-32603, "Handler returned an invalid result"), true),
        (rpc_error(-32602, fastmcp), true),
        (rpc_error(-32603, typescript), true),
        (rpc_error(-32603, "database locked"), false),
        (rpc_error(-32602, "Handler returned an invalid result"), false),
        (rpc_error(-32021, "Tool 'job' requires the tasks extension"), true),
        (rpc_error(-32602, "Unknown tool: x"), false),
        (tool_error("input_required"), false),
    ];
    for (result, expected) in cases {
        assert_eq!(legacy(&result), expected, "{result:?}");
    }
}

#[test]
fn failure_keeps_its_text_and_gets_a_hint() {
    for (era, hint) in
        [(ProtocolEra::Modern, "then uses the session-based era"), (ProtocolEra::Legacy, "2026-07-28")]
    {
        let Err(failure) = with_hint(rpc_error(-32600, "refused"), era) else { panic!() };
        let body = failure.peer().unwrap().to_value();
        assert_eq!(body["code"], -32600);
        let message = body["message"].as_str().unwrap();
        assert!(message.starts_with("refused. ") && message.contains(hint), "{message}");
        let Ok(Outcome::Done(output)) = with_hint(tool_error("failed"), era) else { panic!() };
        let content = output.body.to_json().to_value()["content"].clone();
        assert_eq!(content[0]["text"], "failed");
        assert!(content[1]["text"].as_str().unwrap().contains(hint), "{content}");
    }
}
