//! Every message type as JSON.

use std::fmt::Debug;

use serde_json::Value;
use toolyard_bus::announcement::{WorkerQuery, WorkerState, WorkerTools};
use toolyard_bus::envelope::TraceContext;
use toolyard_bus::message::{
    McpGetServiceDetailsRequest, McpGetServiceDetailsResponse, McpMetadataRefreshRequest,
    McpRegisterServerRequest, McpRegisterServerResponse, McpServerSummary, McpServersIndexed, McpToolDetails,
    McpUnregisterServerRequest, McpUnregisterServerResponse, ScriptInvokeRequest, ScriptInvokeResponse,
    TYPES, ToolCancel, ToolLog, ToolProgress, ToolResult,
};
use toolyard_bus::record::{ToolInvokeError, ToolInvokeRequest, ToolInvokeResponse};
use toolyard_bus::{BusMessage, Envelope};

use crate::support::request;

fn add<M: BusMessage + PartialEq + Debug>(envelopes: &mut Vec<Envelope>, message: &M) {
    let mut envelope = Envelope::of(message, "sender").unwrap();
    assert_eq!(&envelope.read::<M>().unwrap(), message);
    envelope.message_type = format!("other.{}", M::TYPE.to_uppercase());
    assert_eq!(&envelope.read::<M>().unwrap(), message);
    envelope.message_type = M::TYPE.to_owned();
    envelopes.push(envelope);
}

/// The messages of agents.
mod agents {
    use toolyard_bus::agents::record::{
        AgentArtifact, AgentMessage, AgentMessagePart, AgentTaskCancelRequest, AgentTaskError,
        AgentTaskRequest, AgentTaskResult, AgentTaskState, AgentTaskStatusUpdate, AnnouncedCard,
        AnnouncedSkill,
    };

    use super::*;

    pub(super) fn add_all(all: &mut Vec<Envelope>) {
        let (task_id, context_id) = (|| "t1".to_owned(), || Some("x1".to_owned()));
        let skill = AnnouncedSkill {
            id: "echo".into(),
            name: "Echo".into(),
            description: Some("Echoes.".into()),
            tags: vec!["a".into()],
            examples: Vec::new(),
        };
        let card = AnnouncedCard {
            agent_name: "Helper".into(),
            description: None,
            version: Some("1.0".into()),
            skills: vec![skill],
            is_deregistering: true,
        };
        add(all, &card);
        let message = AgentMessage::of_text("user", "hunter2");
        assert!(!format!("{message:?}").contains("hunter2"));
        let request = AgentTaskRequest {
            task_id: task_id(),
            context_id: None,
            skill: "echo".into(),
            message: message.clone(),
        };
        add(all, &request);
        let data = AgentMessagePart {
            kind: "data".into(),
            data: Some("[1]".into()),
            mime_type: Some("application/json".into()),
            ..AgentMessagePart::default()
        };
        let artifact = AgentArtifact { name: "result".into(), description: None, parts: vec![data] };
        let result = AgentTaskResult {
            task_id: task_id(),
            context_id: context_id(),
            state: AgentTaskState::Completed,
            artifacts: vec![artifact],
            message: Some(message),
        };
        add(all, &result);
        let state = AgentTaskState::InputRequired;
        add(
            all,
            &AgentTaskStatusUpdate { task_id: task_id(), context_id: context_id(), state, message: None },
        );
        let error = AgentTaskError {
            task_id: task_id(),
            context_id: None,
            code: "execution_failed".into(),
            message: "broken".into(),
            is_retryable: true,
        };
        add(all, &error);
        add(all, &AgentTaskCancelRequest { task_id: task_id(), context_id: context_id() });
    }
}

/// Returns an envelope of each message type, and checks that each is read as it was written, in any case of names.
pub(crate) fn of_every_type() -> Vec<Envelope> {
    let mut all = Vec::new();
    let (id, name) = (|| "c1".to_owned(), || "weather".to_owned());
    add::<ToolInvokeRequest>(&mut all, &request("t", r#"{"a":1}"#));
    let response =
        |content| ToolInvokeResponse { tool_call_id: id(), tool_name: name(), content, is_error: true };
    add::<ToolInvokeResponse>(&mut all, &response(Some("sunny — ☀".into())));
    add::<ToolInvokeError>(&mut all, &request("t", "{}").not_registered());
    let summary = McpServerSummary {
        server_name: name(),
        display_name: Some("Weather".into()),
        summary: None,
        tool_count: 2,
        tool_names: vec!["a".into(), "b".into()],
    };
    add(&mut all, &McpServersIndexed { servers: vec![summary], removed_servers: vec!["old".into()] });
    add(&mut all, &McpMetadataRefreshRequest { server_name: None });
    add(&mut all, &McpGetServiceDetailsRequest { server_name: name() });
    let tool =
        McpToolDetails { name: "a".into(), description: "A".into(), parameters_schema: Some("{}".into()) };
    add(&mut all, &McpGetServiceDetailsResponse { server_name: name(), tools: vec![tool], error: None });
    let env = [("KEY".to_owned(), "hunter2".to_owned())].into();
    let register = McpRegisterServerRequest {
        server_name: name(),
        r#type: "stdio".into(),
        url: None,
        command: Some("npx".into()),
        args: vec!["-y".into()],
        env,
    };
    assert!(!format!("{register:?}").contains("hunter2"));
    add(&mut all, &register);
    let registered =
        McpRegisterServerResponse { server_name: name(), success: true, summary: None, error: None };
    add(&mut all, &registered);
    add(&mut all, &McpUnregisterServerRequest { server_name: name() });
    let error = Some("unknown".to_owned());
    add(&mut all, &McpUnregisterServerResponse { server_name: name(), success: false, error });
    let script = ScriptInvokeRequest {
        tool_call_id: id(),
        script: "print(1)".into(),
        input_data: Some("x".into()),
        timeout_seconds: 30,
        pip_packages: vec!["numpy".into()],
    };
    add(&mut all, &script);
    let ran = ScriptInvokeResponse {
        tool_call_id: id(),
        output: Some("1\n".into()),
        stderr: None,
        exit_code: -1,
        is_success: false,
        elapsed_ms: 12,
    };
    add(&mut all, &ran);
    agents::add_all(&mut all);
    add(&mut all, &ToolProgress { tool_call_id: id(), params: "{}".into() });
    add(&mut all, &ToolLog { tool_call_id: id(), params: "{}".into() });
    add(&mut all, &ToolCancel { tool_call_id: id() });
    let result = r#"{"content":[]}"#.to_owned();
    add(&mut all, &ToolResult { tool_call_id: id(), tool_name: name(), result, is_error: false });
    let state = WorkerState {
        worker_id: "w1".into(),
        group: "toolyard".into(),
        revision: 2,
        parts: 1,
        interval_ms: 5000,
        phase: "serving".into(),
    };
    add(&mut all, &state);
    let tools = vec![r#"{"name":"t"}"#.to_owned()];
    add(&mut all, &WorkerTools { worker_id: "w1".into(), revision: 2, part: 0, tools });
    add(&mut all, &WorkerQuery { worker_id: None });
    all
}

#[test]
fn every_type_is_written_as_documented() {
    let all = of_every_type();
    let types: Vec<_> = all.iter().map(|envelope| &*envelope.message_type).collect();
    assert_eq!(types, TYPES, "each type has a case");
    let bodies = all.iter().skip(3).map(|envelope| {
        let name = envelope.message_type.rsplit('.').next().unwrap();
        let body: Value = serde_json::from_slice(&envelope.body).unwrap();
        format!("{name} {body}")
    });
    insta::assert_snapshot!(bodies.collect::<Vec<_>>().join("\n"), @r#"
    McpServersIndexed {"servers":[{"serverName":"weather","displayName":"Weather","summary":null,"toolCount":2,"toolNames":["a","b"]}],"removedServers":["old"]}
    McpMetadataRefreshRequest {"serverName":null}
    McpGetServiceDetailsRequest {"serverName":"weather"}
    McpGetServiceDetailsResponse {"serverName":"weather","tools":[{"name":"a","description":"A","parametersSchema":"{}"}],"error":null}
    McpRegisterServerRequest {"serverName":"weather","type":"stdio","url":null,"command":"npx","args":["-y"],"env":{"KEY":"hunter2"}}
    McpRegisterServerResponse {"serverName":"weather","success":true,"summary":null,"error":null}
    McpUnregisterServerRequest {"serverName":"weather"}
    McpUnregisterServerResponse {"serverName":"weather","success":false,"error":"unknown"}
    ScriptInvokeRequest {"toolCallId":"c1","script":"print(1)","inputData":"x","timeoutSeconds":30,"pipPackages":["numpy"]}
    ScriptInvokeResponse {"toolCallId":"c1","output":"1\n","stderr":null,"exitCode":-1,"isSuccess":false,"elapsedMs":12}
    AgentCard {"agentName":"Helper","description":null,"version":"1.0","skills":[{"id":"echo","name":"Echo","description":"Echoes.","tags":["a"],"examples":[]}],"isDeregistering":true}
    AgentTaskRequest {"taskId":"t1","contextId":null,"skill":"echo","message":{"role":"user","parts":[{"kind":"text","text":"hunter2","data":null,"mimeType":null}]}}
    AgentTaskResult {"taskId":"t1","contextId":"x1","state":3,"artifacts":[{"name":"result","description":null,"parts":[{"kind":"data","text":null,"data":"[1]","mimeType":"application/json"}]}],"message":{"role":"user","parts":[{"kind":"text","text":"hunter2","data":null,"mimeType":null}]}}
    AgentTaskStatusUpdate {"taskId":"t1","contextId":"x1","state":2,"message":null}
    AgentTaskError {"taskId":"t1","contextId":null,"code":"execution_failed","message":"broken","isRetryable":true}
    AgentTaskCancelRequest {"taskId":"t1","contextId":"x1"}
    ToolProgress {"toolCallId":"c1","params":"{}"}
    ToolLog {"toolCallId":"c1","params":"{}"}
    ToolCancel {"toolCallId":"c1"}
    ToolResult {"toolCallId":"c1","toolName":"weather","result":"{\"content\":[]}","isError":false}
    WorkerState {"workerId":"w1","group":"toolyard","revision":2,"parts":1,"intervalMs":5000,"phase":"serving"}
    WorkerTools {"workerId":"w1","revision":2,"part":0,"tools":["{\"name\":\"t\"}"]}
    WorkerQuery {"workerId":null}
    "#);
}

#[test]
fn forged_bodies_are_refused_without_their_content() {
    let deep = format!("{}1{}", r#"{"toolCallId":"#.to_owned() + &"[".repeat(100_000), "]".repeat(100_000));
    let check = |body: &str, expected: &str| {
        let mut envelope = Envelope::of(&request("t", "{}"), "sender").unwrap();
        envelope.body = body.to_owned().into();
        let error = envelope.read::<ToolInvokeRequest>().unwrap_err().to_string();
        let expected = format!("the body is no RockBot.Tools.ToolInvokeRequest: {expected}");
        assert!(error.starts_with(&expected), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    };
    check("", "EOF while parsing");
    check(r#"{"toolCallId": "1", "toolNa"#, "EOF while parsing");
    check(r#"{"toolCallId": "1"}"#, "`toolName` is required");
    check(r#"{"toolCallId": 1, "toolName": "t"}"#, "`toolCallId` must be a string");
    check(
        r#"{"toolCallId": "1", "toolName": "t", "arguments": {"k": "hunter2"}}"#,
        "`arguments` must be a string",
    );
    check(r#""hunter2""#, "a value has the wrong type");
    check(r#"["hunter2"]"#, "a value has the wrong type");
    check(r#"{"a": 1, "A": 2}"#, "duplicate member");
    check(&deep, "recursion limit exceeded");
    let mut envelope = Envelope::of(&request("t", "{}"), "sender").unwrap();
    envelope.message_type = "RockBot.Tools.Other".to_owned();
    let error = envelope.read::<ToolInvokeRequest>().unwrap_err().to_string();
    assert_eq!(error, r#"the message type is "RockBot.Tools.Other" and not RockBot.Tools.ToolInvokeRequest"#);
}

#[test]
fn trace_contexts_are_of_version_00() {
    let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let parse = |text: &str, state: Option<&str>| TraceContext::parse(text, state);
    let context = parse(valid, Some("a=1")).unwrap();
    assert_eq!((&*context.parent, context.state.as_deref()), (valid, Some("a=1")));
    assert_eq!(parse(valid, Some("a\n1")).unwrap().state, None);
    for text in [
        "",
        "00",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
    ] {
        assert_eq!(parse(text, None), None, "{text}");
    }
}
