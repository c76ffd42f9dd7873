use futures_util::FutureExt;
use serde_json::{Value, json};
use toolyard_core::{Client, ClientWrapper, NoClient};

use super::*;
use crate::testing::{AgentReply, AgentSite, KEY, caller, task};

/// A client that takes tasks.
#[derive(Debug)]
struct TaskTaker;

impl ClientWrapper for TaskTaker {
    fn inner(&self) -> &dyn Client {
        &NoClient
    }

    fn takes_tasks(&self) -> bool {
        true
    }
}

/// An agent that answers at once, or begins and falls silent.
fn scripted(method: &str, text: &str, _params: &Value) -> AgentReply {
    match (method, text) {
        ("SendStreamingMessage", "quick") => {
            AgentReply::Events(vec![json!({"task": task("COMPLETED", "done")})])
        }
        ("SendStreamingMessage", _) => AgentReply::Silent(vec![json!({"task": task("WORKING", "half")})]),
        ("CancelTask", _) => AgentReply::Result(task("CANCELED", "")),
        (method, text) => panic!("{method} {text}"),
    }
}

async fn invoke(site: &AgentSite, arguments: Value) -> Result<Outcome, ToolError> {
    let call = Call {
        caller: caller(KEY),
        client: Arc::new(TaskTaker),
        ..Call::tool(INVOKE, Json::from_value(&arguments))
    };
    site.backend.call(call).await
}

/// Starts a task, and returns its id.
async fn start(site: &AgentSite, message: &str) -> Arc<str> {
    let arguments = json!({"agent_name": "Helper", "skill": "echo", "message": message});
    match invoke(site, arguments).await {
        Ok(Outcome::Task(started)) => {
            let body = started.body.to_json().to_value();
            assert_eq!((&body["resultType"], started.is_here), (&json!("task"), true));
            body["taskId"].as_str().expect("an id").into()
        }
        other => panic!("{other:?}"),
    }
}

/// Runs an action on a task, and returns the result without times.
async fn act(site: &AgentSite, key: &str, id: &Arc<str>, action: TaskAction) -> String {
    let task = TaskReference { tool: INVOKE.into(), handler: "builtins".into(), id: id.clone(), action };
    let call = Call {
        target: CallTarget::Task(task),
        caller: caller(key),
        ..Call::tool("", Json::parse("{}").expect("JSON"))
    };
    match site.backend.call(call).await {
        Ok(Outcome::Done(output)) => {
            let body = output.body.to_json().to_value();
            let text = body["result"]["content"][0]["text"].as_str().unwrap_or_default();
            match body["status"].as_str() {
                Some(status) => format!("{status} {text}"),
                None => body.to_string(),
            }
        }
        Ok(other) => format!("{other:?}"),
        Err(error) => error.to_string(),
    }
}

/// Waits until a task has ended.
async fn ended(site: &AgentSite, id: &Arc<str>) -> String {
    site.ended().await;
    act(site, KEY, id, TaskAction::Get).await
}

#[tokio::test]
async fn call_of_a_client_that_takes_tasks_is_the_task() {
    let site = AgentSite::start(true, scripted).await;
    let id = start(&site, "quick").await;
    assert_eq!(ended(&site, &id).await, "completed done");
}

#[tokio::test]
async fn cancelled_task_is_cancelled_at_its_agent() {
    let site = AgentSite::start(true, scripted).await;
    let id = start(&site, "slow").await;
    site.upstream.saw(|log| log.count("SendStreamingMessage") == 1, |_| ()).await;
    assert_eq!(act(&site, KEY, &id, TaskAction::Get).await, "working ");
    let complete = r#"{"resultType":"complete"}"#;
    assert_eq!(act(&site, KEY, &id, TaskAction::Update).await, complete);
    let unknown = act(&site, "k2", &id, TaskAction::Cancel).await;
    assert!(unknown.contains("unknown `taskId`: the task was removed, or never existed"), "{unknown}");
    // The agent may not have answered yet: then it does not know the task.
    let stored = |text: &str| text.contains("state: working");
    while !stored(&site.task(KEY, &id).await.expect("a task")) {
        tokio::task::yield_now().await;
    }
    assert_eq!(act(&site, KEY, &id, TaskAction::Cancel).await, complete);
    assert_eq!(ended(&site, &id).await, "cancelled ");
    let shown = site.task(KEY, &id).await.expect("a task");
    assert!(shown.ends_with("The task was cancelled. Until then it had answered:\n\nhalf\n"), "{shown}");
    assert_eq!(site.upstream.now(|log| log.count("CancelTask")), 1);
    // Its end is not changed any more.
    assert_eq!(act(&site, KEY, &id, TaskAction::Cancel).await, complete);
    assert_eq!(ended(&site, &id).await, "cancelled ");
}

#[tokio::test]
async fn call_that_starts_no_task_has_a_result() {
    let site = AgentSite::start(true, scripted).await;
    let outcome = invoke(&site, json!({"agent_name": "Nobody", "skill": "echo", "message": "hi"})).await;
    let text = "No agent named 'Nobody' is known. Known agents: Helper.";
    assert_eq!(outcome.expect("a result"), Outcome::Done(CallOutput::text(text)));
    let outcome = invoke(&site, json!({"agent_name": "Helper", "skill": "echo", "message": " "})).await;
    let text = "message: is empty; expected the instruction for the agent";
    assert_eq!(outcome.expect("a result"), Outcome::Done(CallOutput::failure(text)));
    let outcome = invoke(&site, json!({"agent_name": 1})).await;
    assert_eq!(outcome.expect_err("an error").code(), ErrorCode::InvalidArguments);
    assert!(site.upstream.now(|log| log.count("SendStreamingMessage")) == 0);
    assert!(site.agents.updates().subscribe().recv().now_or_never().is_none());
}
