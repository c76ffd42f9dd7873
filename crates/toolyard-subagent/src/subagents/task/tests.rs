use insta::assert_snapshot;

use super::*;
use crate::record::SubagentResult;

fn record(state: SubagentState, output: &str, error: Option<&str>) -> SubagentRecord {
    let result = SubagentResult {
        task_id: "0a1b2c3d4e5f".to_owned(),
        subagent_session_id: "subagent/0a1b2c3d4e5f".to_owned(),
        primary_session_id: None,
        output: output.to_owned(),
        is_success: error.is_none(),
        error: error.map(str::to_owned),
        timestamp: "2026-03-01T09:00:00Z".to_owned(),
    };
    SubagentRecord {
        id: "0a1b2c3d4e5f".to_owned(),
        description: "d".to_owned(),
        state,
        started: 0,
        changed: 5_000,
        progress: Some("half".to_owned()),
        is_cancelled: false,
        result: (state != SubagentState::Running).then_some(result),
    }
}

#[test]
fn subagent_is_a_task_with_its_state() {
    let describe = |record: &SubagentRecord, requests: Option<Object>| {
        describe(record, requests).to_object().to_json().as_text().to_owned()
    };
    let running = record(SubagentState::Running, "", None);
    let question = Object::new().with("sampling-1", Json::empty_object());
    let lines = [
        describe(&running, None),
        describe(&running, Some(question)),
        describe(&running.clone().as_of(SystemTime::UNIX_EPOCH + Duration::from_secs(60)), None),
        describe(&record(SubagentState::Succeeded, "Done.", None), None),
        describe(&record(SubagentState::Failed, "", Some("the model is gone")), None),
        describe(&record(SubagentState::TimedOut, "", Some("its time is over")), None),
        describe(&record(SubagentState::Cancelled, "", Some("it was cancelled")), None),
    ];
    assert_snapshot!(lines.join("\n"), @r#"
    {"resultType":"complete","taskId":"0a1b2c3d4e5f","status":"working","createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":86400000,"pollIntervalMs":1000,"statusMessage":"half"}
    {"resultType":"complete","taskId":"0a1b2c3d4e5f","status":"input_required","createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":86400000,"pollIntervalMs":1000,"statusMessage":"half","inputRequests":{"sampling-1":{}}}
    {"resultType":"complete","taskId":"0a1b2c3d4e5f","status":"completed","createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":86400000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"The subagent 0a1b2c3d4e5f ended without a result: the gateway that ran the subagent has ended"}],"isError":true,"resultType":"complete"}}
    {"resultType":"complete","taskId":"0a1b2c3d4e5f","status":"completed","createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":86400000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"Done."}],"resultType":"complete"}}
    {"resultType":"complete","taskId":"0a1b2c3d4e5f","status":"completed","createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":86400000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"The subagent 0a1b2c3d4e5f ended without a result: the model is gone"}],"isError":true,"resultType":"complete"}}
    {"resultType":"complete","taskId":"0a1b2c3d4e5f","status":"completed","createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":86400000,"pollIntervalMs":1000,"result":{"content":[{"type":"text","text":"The subagent 0a1b2c3d4e5f ended without a result: its time is over"}],"isError":true,"resultType":"complete"}}
    {"resultType":"complete","taskId":"0a1b2c3d4e5f","status":"cancelled","createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:05.000Z","ttlMs":86400000,"pollIntervalMs":1000}
    "#);
}
