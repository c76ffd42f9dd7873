use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use toolyard_manifest::{AgentSettings, EndpointUrl};
use toolyard_testing::upstream::RequestLog;
use toolyard_testing::wait;

use super::*;
use crate::agents::PushError;
use crate::resources::TASKS_URI;
use crate::tasks::AgentTask;
use crate::testing::{AgentReply, AgentScript, AgentSite, KEY, caller, task};

/// An agent that answers by the message: its first word is the state of the task.
fn scripted(method: &str, text: &str, params: &Value) -> AgentReply {
    let working = || json!({"task": task("WORKING", "")});
    let status = |state: &str| json!({"statusUpdate": {"taskId": "remote-1", "status": {"state": state}}});
    let artifact = |text: &str, append: bool| {
        let artifact = json!({"artifactId": "a", "parts": [{"text": text}]});
        json!({"artifactUpdate": {"taskId": "remote-1", "artifact": artifact, "append": append}})
    };
    match (method, text) {
        ("SendMessage", "at once") => AgentReply::Result(json!({"message": {"parts": [{"text": "hi"}]}})),
        ("SendMessage", "done") => AgentReply::Result(json!({"task": task("COMPLETED", "finished")})),
        ("SendMessage", "ask") => {
            let message = json!({"parts": [{"text": "Which one?"}]});
            let status = json!({"state": "TASK_STATE_INPUT_REQUIRED", "message": message});
            AgentReply::Result(json!({"task": {"id": "remote-1", "status": status}}))
        }
        ("SendMessage", "reject") => AgentReply::Result(json!({"task": task("REJECTED", "not my job")})),
        ("SendMessage", "refuse") => AgentReply::Error(-32004, "This operation is not supported"),
        ("SendMessage", "html") => AgentReply::Raw(200, "<html>"),
        ("SendMessage", "login") => AgentReply::Raw(401, "no"),
        ("SendMessage", "empty") => AgentReply::Result(json!({"task": {"id": "", "status": {}}})),
        ("SendMessage", "slow") => AgentReply::Never,
        ("SendMessage", _) => AgentReply::Result(working()),
        ("GetTask", _) if params["id"] == "remote-1" => AgentReply::Result(task("COMPLETED", "polled")),
        ("CancelTask", _) => AgentReply::Result(task("CANCELED", "")),
        ("SendStreamingMessage", "pieces") => AgentReply::Events(vec![
            json!({"task": task("SUBMITTED", "")}),
            status("TASK_STATE_WORKING"),
            artifact("one ", false),
            artifact("two", true),
            status("TASK_STATE_COMPLETED"),
        ]),
        ("SendStreamingMessage", "cut off") => AgentReply::Events(vec![working()]),
        ("SendStreamingMessage", "single") => AgentReply::Result(json!({"task": task("COMPLETED", "one")})),
        ("SendStreamingMessage", "stalled") => AgentReply::Silent(vec![working(), artifact("half", false)]),
        ("SendStreamingMessage", "nonsense") => AgentReply::Events(vec![json!({"x": 1})]),
        (method, text) => panic!("{method} {text}"),
    }
}

/// Returns the state and the text of a task.
fn outcome(task: &AgentTask) -> String {
    format!("{}: {}", task.state.word(), task.text)
}

#[tokio::test]
async fn tasks_end_with_the_answer_of_the_agent() {
    #[track_caller]
    fn check(found: &str, expected: &str, message: &str) {
        assert_eq!(found, expected, "{message}");
    }
    let cases: [(bool, &str, &str); 13] = [
        (false, "at once", "completed: hi"),
        (false, "done", "completed: finished"),
        (false, "poll", "completed: polled"),
        (
            false,
            "ask",
            "input-required: The agent waits for input (input-required), which a new task has to give.\n\nWhich one?",
        ),
        (false, "reject", "rejected: not my job"),
        (
            false,
            "refuse",
            "failed: The task failed: the agent refused the request: This operation is not supported (-32004).",
        ),
        (
            false,
            "html",
            "failed: The task failed: the answer of the agent is not A2A: the response is not JSON-RPC.",
        ),
        (
            false,
            "login",
            "failed: The task failed: the agent answered with status 401: its operator may require credentials.",
        ),
        (false, "empty", "failed: The task failed: the answer of the agent is not A2A: it has no task."),
        (true, "pieces", "completed: one two"),
        (true, "cut off", "completed: polled"),
        (true, "single", "completed: one"),
        (
            true,
            "nonsense",
            "failed: The task failed: the answer of the agent is not A2A: expected a task, a message or an update: \
             unknown variant `x`, expected one of `task`, `message`, `statusUpdate`, `artifactUpdate`.",
        ),
    ];
    for (streaming, message, expected) in cases {
        let site = AgentSite::start(streaming, scripted).await;
        let text = site.invoke(message, 1.0).await;
        assert!(text.starts_with("Task dispatched to agent 'Helper' with task_id: "), "{text}");
        check(&outcome(&site.ended().await), expected, message);
    }
}

#[tokio::test]
async fn task_that_exceeds_its_time_is_cancelled() {
    for (streaming, message, expected) in [
        (false, "slow", "failed: The agent did not finish within 0.12 seconds."),
        (
            true,
            "stalled",
            "failed: The agent did not finish within 0.12 seconds. Until then it had answered:\n\nhalf",
        ),
    ] {
        let site = AgentSite::start(streaming, scripted).await;
        site.invoke(message, 0.002).await;
        assert_eq!(outcome(&site.ended().await), expected);
        let cancelled = site.upstream.now(|log| log.count("CancelTask"));
        assert_eq!(cancelled, usize::from(streaming), "a task whose id is known is cancelled");
    }
}

#[tokio::test]
async fn endless_stream_is_cut_off() {
    let settings = AgentSettings { result_bytes: 1024, ..AgentSettings::default() };
    let site = AgentSite::with(true, settings, |method, _, _| match method {
        "CancelTask" => AgentReply::Result(task("CANCELED", "")),
        _ => {
            let piece = json!({"artifactId": "a", "parts": [{"text": "x".repeat(500)}]});
            let piece = json!({"artifactUpdate": {"taskId": "remote-1", "artifact": piece, "append": true}});
            AgentReply::Silent(vec![piece; 100])
        }
    })
    .await;
    site.invoke("go", 5.0).await;
    let found = outcome(&site.ended().await);
    let expected = "failed: The task failed: the answer of the agent is larger than 32768 bytes. Until then it had \
                    answered:\n\nxxx";
    assert!(found.starts_with(expected), "{found:.200}");
    assert_eq!(site.upstream.now(|log| log.count("CancelTask")), 1);
}

#[tokio::test]
async fn agent_that_is_away_for_a_while_is_asked_again() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let site = AgentSite::start(false, |method, text, params| match method {
        "GetTask" if ASKED.fetch_add(1, Ordering::SeqCst) < 3 => AgentReply::Raw(502, "<html>"),
        _ => scripted(method, text, params),
    })
    .await;
    site.invoke("poll", 1.0).await;
    assert_eq!(outcome(&site.ended().await), "completed: polled");
    assert_eq!(ASKED.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn result_is_in_working_memory_and_in_a_resource_of_its_key() {
    let site = AgentSite::start(false, scripted).await;
    let mut changes = site.backend.follow(TASKS_URI, &caller(KEY));
    let mut foreign = site.backend.follow(TASKS_URI, &caller("k2"));
    let text = site.invoke("done", 5.0).await;
    let task = site.ended().await;
    assert_eq!(
        text,
        format!(
            "Task dispatched to agent 'Helper' with task_id: {0}. The result will arrive asynchronously and fold into the \
             conversation. It will be in working memory under the key `key/k1/a2a/Helper/{0}/result`, and in the resource \
             toolyard://agents/tasks/{0}.",
            task.id
        )
    );
    assert!(changes.next().now_or_never().is_some());
    assert!(foreign.next().now_or_never().is_none());
    let access = site.memory.access(MemoryCaller::new(&caller(KEY), None)).await.expect("a store");
    let keys = access.readable(&format!("a2a/Helper/{}/result", task.id)).expect("a key");
    let (record, value) = site.memory.get(&keys[0]).await.expect("a store").expect("an entry");
    assert_eq!(value, "finished");
    assert_eq!(record.left(site.memory.now()).as_secs().div_ceil(60), 60);
    let resource = site.task(KEY, &task.id).await.expect("a resource");
    let expected = format!(
        "# Task {0}\n\n- agent: Helper\n- skill: echo\n- state: completed\n- started: just now\n- ended: just now\n\
         - whole result in working memory: `key/k1/a2a/Helper/{0}/result`\n\nfinished\n",
        task.id
    );
    assert_eq!(resource, expected);
    assert_eq!(site.task("k2", &task.id).await, None);
    let list = site.resource(KEY, TASKS_URI).await.expect("a resource");
    assert_eq!(
        list,
        format!("# Tasks of agents\n\n- {}: Helper (echo), completed, started just now\n", task.id)
    );
}

#[tokio::test]
async fn request_names_the_skill_and_has_the_credentials() {
    let site = AgentSite::start(false, scripted).await;
    site.invoke("done", 5.0).await;
    site.ended().await;
    let request = site.upstream.now(|log| log.last("SendMessage").clone());
    let header = |name: &str| request.head.header(name).unwrap_or_default().to_owned();
    assert_eq!(header("authorization"), "Bearer secret");
    assert_eq!(header("a2a-version"), "1.0");
    let body: Value = serde_json::from_str(&request.body).expect("JSON");
    let mut params = body["params"].clone();
    params["message"]["messageId"] = json!("ID");
    let message = json!({
        "messageId": "ID", "role": "ROLE_USER", "metadata": {"skill": "echo"},
        "parts": [{"text": "done", "mediaType": "text/plain"}],
    });
    assert_eq!(params, json!({"message": message, "configuration": {"returnImmediately": true}}));
}

#[tokio::test]
async fn texts_for_a_model() {
    let site = AgentSite::start(true, scripted).await;
    let mut transcript = Vec::new();
    let invoke = |agent: &str, skill: &str, message: &str, minutes: f64| {
        let arguments =
            json!({"agent_name": agent, "skill": skill, "message": message, "timeout_minutes": minutes});
        (INVOKE, arguments)
    };
    for (tool, arguments) in [
        (LIST, json!({"skill": "PLAN"})),
        (LIST, json!({"skill": "cook"})),
        (DETAILS, json!({"agent_name": " HELPER "})),
        (DETAILS, json!({"agent_name": "Nobody"})),
        invoke("Nobody", "echo", "hi", 1.0),
        invoke("Helper", "cook", "hi", 1.0),
        invoke("gateway", "echo", "hi", 1.0),
        invoke("Helper", "echo", " ", 1.0),
        invoke("Helper", "echo", "hi", 0.0),
        invoke("Helper", "echo", "hi", 61.0),
        invoke("Helper", "echo", "hi", -1e300),
    ] {
        let words = arguments.as_object().into_iter().flatten().map(|(_, value)| value.to_string());
        let label = words.collect::<Vec<_>>().join(" ");
        let text = site.call(tool, arguments).await;
        transcript.push(format!("> {tool} {label}\n{text}"));
    }
    let transcript = transcript.join("\n\n").replace(&site.upstream.address.to_string(), "ADDRESS");
    insta::assert_snapshot!(transcript);
}

#[tokio::test]
async fn tool_definitions() {
    let site = AgentSite::start(false, scripted).await;
    let catalog = site.backend.catalog().borrow().clone();
    let tools: Vec<_> = catalog.tools.iter().map(|tool| tool.definition.to_json().to_value()).collect();
    insta::assert_snapshot!(serde_json::to_string_pretty(&tools).expect("JSON"));
}

#[tokio::test]
async fn running_tasks_are_limited_and_end_with_the_gateway() {
    let settings = AgentSettings { concurrent: 2, concurrent_per_key: Some(1), ..AgentSettings::default() };
    let site = AgentSite::with(false, settings, scripted).await;
    site.invoke("slow", 5.0).await;
    assert_eq!(
        site.invoke("done", 5.0).await,
        "error: The task is not started: 1 of your tasks are running, the maximum. Wait until one has ended."
    );
    site.upstream.saw(|log| log.count("SendMessage") == 1, |_| ()).await;
    site.agents.stop().await;
    assert_eq!(
        outcome(&site.ended().await),
        "failed: The gateway was stopped before the agent had answered."
    );
    let dropped = |log: &RequestLog| log.dropped == ["SendMessage"];
    site.upstream.saw(dropped, |_| ()).await;
    let refused = site.invoke("done", 5.0).await;
    assert_eq!(refused, "error: The task is not started: the gateway is stopping. Try again later.");
    assert_eq!(site.upstream.now(|log| log.count("SendMessage")), 1);
}

#[tokio::test]
async fn agents_are_gone_with_their_settings() {
    let site = AgentSite::start(false, scripted).await;
    site.agents.enable(None);
    let expected = "error: Other agents are switched off. The operator of the gateway can enable them: `builtins: {agents: {}}`.";
    for (tool, arguments) in [(LIST, json!({})), (DETAILS, json!({"agent_name": "Helper"}))] {
        assert_eq!(site.call(tool, arguments).await, expected);
    }
    assert_eq!(site.invoke("done", 5.0).await, expected);
}

#[tokio::test]
async fn notification_of_the_agent_ends_the_wait() {
    let push_url = Some(EndpointUrl::parse("https://tools.example/a2a/notifications").expect("a URL"));
    let settings = AgentSettings { push_url, poll: Duration::from_secs(3600), ..AgentSettings::default() };
    let site = AgentSite::with(false, settings, scripted).await;
    site.invoke("poll", 5.0).await;
    let sent =
        site.upstream.saw(|log| log.count("SendMessage") == 1, |log| log.last("SendMessage").clone()).await;
    let sent: Value = serde_json::from_str(&sent.body).expect("JSON");
    let config = &sent["params"]["configuration"]["taskPushNotificationConfig"];
    let token = config["token"].as_str().expect("a token");
    let expected = json!({"url": "https://tools.example/a2a/notifications", "token": token,
        "authentication": {"scheme": "Bearer", "credentials": token}});
    assert_eq!((config, token.len()), (&expected, 64));
    assert_eq!(site.agents.check_token("forged"), Err(PushError::UnknownToken));
    assert_eq!(site.agents.check_token(token), Ok(()));
    let event = |id: &str| json!({"statusUpdate": {"taskId": id, "status": {}}}).to_string();
    assert_eq!(site.agents.notify(token, b"{}"), Err(PushError::WrongTask));
    assert_eq!(site.agents.notify(token, event("remote-1").as_bytes()), Ok(()));
    assert_eq!(outcome(&site.ended().await), "completed: polled");
    // The task is recorded before it is forgotten.
    wait::until_async("the token has ended", || site.agents.check_token(token).is_err()).await;
}

#[tokio::test]
async fn agent_that_refuses_notifications_is_asked_for_the_task() {
    let refusing: AgentScript = |method, text, params| {
        let has_config = params["configuration"].get("taskPushNotificationConfig").is_some();
        match method {
            "SendMessage" if has_config => AgentReply::Error(-32003, "Push notifications are not supported"),
            _ => scripted(method, text, params),
        }
    };
    let push_url = Some(EndpointUrl::parse("https://tools.example/a2a/notifications").expect("a URL"));
    let site = AgentSite::with(false, AgentSettings { push_url, ..AgentSettings::default() }, refusing).await;
    site.invoke("poll", 5.0).await;
    assert_eq!(outcome(&site.ended().await), "completed: polled");
}
