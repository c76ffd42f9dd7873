//! Agents on the bus: announcements, tasks, their states and results, and cancellations.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending, ready};
use tokio::sync::watch;
use toolyard_bus::agents::record::{
    AgentMessage, AgentTaskCancelRequest, AgentTaskError, AgentTaskRequest, AgentTaskResult, AgentTaskState,
    AgentTaskStatusUpdate, AnnouncedCard, AnnouncedSkill, codes,
};
use toolyard_bus::agents::{
    AgentAnswer, AgentCaller, AgentListener, AgentTaskHandler, AgentTaskOutcome, BusAgent, SentTask,
};
use toolyard_bus::envelope::new_id;
use toolyard_bus::in_process::InProcessBus;
use toolyard_bus::{BusErrorKind, Envelope, Subscription};
use toolyard_manifest::BusSettings;

use crate::support::{TestBroker, on_every_body, topic, within};

/// Runs tasks by the text of their message.
#[derive(Default)]
struct ScriptedAgent {
    running: watch::Sender<usize>,
    dropped: watch::Sender<usize>,
}

struct CountOnDrop<'a>(&'a watch::Sender<usize>);

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|dropped| *dropped += 1);
    }
}

impl AgentTaskHandler for ScriptedAgent {
    fn run(
        &self,
        request: AgentTaskRequest,
        progress: watch::Sender<String>,
    ) -> BoxFuture<'_, AgentTaskOutcome> {
        let AgentTaskRequest { task_id, context_id, skill, message } = request;
        let text = message.parts[0].text.clone().unwrap_or_default();
        match &*text {
            "slow" => async move {
                let _dropped = CountOnDrop(&self.dropped);
                self.running.send_modify(|running| *running += 1);
                progress.send_replace("half way".to_owned());
                pending().await
            }
            .boxed(),
            "fail" => {
                let error = AgentTaskError {
                    task_id,
                    context_id,
                    code: codes::SKILL_NOT_SUPPORTED.to_owned(),
                    message: format!("no skill {skill}"),
                    is_retryable: false,
                };
                ready(Err(error)).boxed()
            }
            text => {
                let text = if text == "large" { "x".repeat(4 << 20) } else { format!("{skill}: {text}") };
                let message = Some(AgentMessage::of_text("agent", text));
                let state = AgentTaskState::Completed;
                ready(Ok(AgentTaskResult {
                    task_id,
                    context_id,
                    state,
                    message,
                    ..AgentTaskResult::default()
                }))
                .boxed()
            }
        }
    }
}

fn card() -> AnnouncedCard {
    let skill =
        AnnouncedSkill { id: "echo".to_owned(), name: "Echo".to_owned(), ..AnnouncedSkill::default() };
    AnnouncedCard { agent_name: "Helper".to_owned(), skills: vec![skill], ..AnnouncedCard::default() }
}

fn task(text: &str) -> AgentTaskRequest {
    AgentTaskRequest {
        task_id: new_id().unwrap(),
        context_id: Some("c".to_owned()),
        skill: "echo".to_owned(),
        message: AgentMessage::of_text("user", text),
    }
}

/// Starts an agent, and returns it once it takes tasks.
async fn agent(broker: &TestBroker) -> (BusAgent, Arc<ScriptedAgent>) {
    let handler = Arc::<ScriptedAgent>::default();
    let agent = BusAgent::start(broker.bus(), card(), handler.clone(), 4, &broker.settings).unwrap();
    assert!(within("the agent", agent.subscribed()).await);
    (agent, handler)
}

/// Returns the last message about a task, without the id of the task.
async fn end_of(mut sent: SentTask) -> String {
    let end = async {
        loop {
            match sent.next().await.unwrap() {
                AgentAnswer::Status(_) => {}
                AgentAnswer::Result(AgentTaskResult { state, message, context_id, .. }) => {
                    let text = message.and_then(|message| message.parts[0].text.clone());
                    return format!("{state:?} {context_id:?} {text:?}");
                }
                AgentAnswer::Error(AgentTaskError { code, message, .. }) => {
                    return format!("{code}: {message}");
                }
            }
        }
    };
    within("the end of the task", end).await
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn agents_announce_themselves_and_answer_tasks() {
    on_every_body("agents", async |broker| {
        let mut listener = AgentListener::new(broker.bus(), &broker.settings);
        assert!(within("the listener", listener.subscribed()).await);
        let caller = AgentCaller::new(broker.bus(), &broker.settings);
        let unknown = caller.send("Helper", &task("hi"), MINUTE).await.unwrap_err();
        assert_eq!(unknown.kind(), BusErrorKind::NoRoute, "{unknown}");
        let (agent, _handler) = agent(&broker).await;
        assert_eq!(within("an announcement", listener.next()).await, Some(card()));
        for (text, expected) in [
            ("hi", r#"Completed Some("c") Some("echo: hi")"#),
            ("fail", "skill_not_supported: no skill echo"),
        ] {
            let sent = within("the task", caller.send("Helper", &task(text), MINUTE)).await.unwrap();
            assert_eq!(end_of(sent).await, expected);
        }
        let large = within("the task", caller.send("Helper", &task("large"), MINUTE)).await.unwrap();
        let large = end_of(large).await;
        assert!(large.starts_with("execution_failed: The result is too large for the bus"), "{large}");
        within("the stop", agent.stop(Duration::from_secs(1))).await;
        let farewell = AnnouncedCard { is_deregistering: true, ..card() };
        assert_eq!(within("an announcement", listener.next()).await, Some(farewell));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn task_that_is_dropped_is_cancelled() {
    on_every_body("cancelled", async |broker| {
        let (_agent, handler) = agent(&broker).await;
        let caller = AgentCaller::new(broker.bus(), &broker.settings);
        let mut sent = within("the task", caller.send("Helper", &task("slow"), MINUTE)).await.unwrap();
        let progress = async {
            loop {
                let AgentAnswer::Status(update) = sent.next().await.unwrap() else { panic!("an end") };
                assert_eq!(update.state, AgentTaskState::Working);
                if let Some(message) = update.message {
                    return message;
                }
            }
        };
        assert_eq!(within("progress", progress).await, AgentMessage::of_text("agent", "half way"));
        drop(sent);
        let mut dropped = handler.dropped.subscribe();
        within("the cancellation", dropped.wait_for(|dropped| *dropped == 1)).await.unwrap();
        // The time limit of the request ends the next one.
        let sent = caller.send("Helper", &task("slow"), Duration::from_millis(300)).await.unwrap();
        assert_eq!(end_of(sent).await, "execution_failed: The time limit of the task has ended.");
        within("the end", dropped.wait_for(|dropped| *dropped == 2)).await.unwrap();
    })
    .await;
}

/// A client that writes messages as RockBot does, and reads the answers as texts.
#[tokio::test(flavor = "multi_thread")]
async fn messages_have_the_forms_of_rockbot() {
    on_every_body("forms", async |broker| {
        let (_agent, handler) = agent(&broker).await;
        let bus = broker.bus();
        let answers = Subscription::alone(topic("agent.response.RockBot"));
        let states = Subscription::alone(topic("agent.task.status"));
        let mut answers = within("answers", bus.subscribe(answers)).await.unwrap();
        let mut states = within("states", bus.subscribe(states)).await.unwrap();
        let send = async |to: &str, message_type: &str, body: String| {
            let envelope = Envelope::with_body(message_type, body.into_bytes().into(), "RockBot").unwrap();
            let envelope = envelope.correlated("t1").replying_to(&topic("agent.response.RockBot"));
            within("the task", bus.broadcast(&topic(to), envelope)).await.unwrap();
        };
        let part = |text: &str| format!(r#"{{"kind":"text","text":"{text}","data":null,"mimeType":null}}"#);
        let request = |text: &str| {
            let message = format!(r#"{{"role":"user","parts":[{}]}}"#, part(text));
            format!(r#"{{"taskId":"t1","contextId":null,"skill":"echo","message":{message}}}"#)
        };
        send("agent.task.Helper", "RockBot.A2A.AgentTaskRequest", request("hi")).await;
        let answer = within("an answer", answers.next()).await.unwrap();
        let envelope = &answer.envelope;
        assert_eq!(envelope.message_type, "RockBot.A2A.AgentTaskResult");
        assert_eq!((&*envelope.source, envelope.correlation_id.as_deref()), ("Helper", Some("t1")));
        let message = format!(r#"{{"role":"agent","parts":[{}]}}"#, part("echo: hi"));
        let expected =
            format!(r#"{{"taskId":"t1","contextId":null,"state":3,"artifacts":[],"message":{message}}}"#);
        assert_eq!(std::str::from_utf8(&envelope.body).unwrap(), expected);
        let state = within("a state", states.next()).await.unwrap();
        assert_eq!(state.envelope.correlation_id.as_deref(), Some("t1"));
        let working = r#"{"taskId":"t1","contextId":null,"state":1,"message":null}"#;
        assert_eq!(std::str::from_utf8(&state.envelope.body).unwrap(), working);
        assert!(state.envelope.is::<AgentTaskStatusUpdate>());

        send("agent.task.Helper", "rockbot.a2a.agenttaskrequest", request("slow")).await;
        let mut running = handler.running.subscribe();
        within("the task", running.wait_for(|running| *running == 1)).await.unwrap();
        let cancel = AgentTaskCancelRequest { task_id: "t1".to_owned(), context_id: None };
        let cancel = Envelope::of(&cancel, "RockBot").unwrap();
        bus.broadcast(&topic("agent.task.cancel.Helper"), cancel).await.unwrap();
        let answer = within("an answer", answers.next()).await.unwrap();
        let cancelled: AgentTaskResult = answer.envelope.read().unwrap();
        assert_eq!(cancelled.state, AgentTaskState::Canceled);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn announcement_is_repeated_every_two_minutes() {
    let settings = BusSettings::default();
    let bus = InProcessBus::new(&settings);
    let mut listener = AgentListener::new(bus.clone(), &settings);
    assert!(listener.subscribed().await);
    let handler = Arc::<ScriptedAgent>::default();
    let _agent = BusAgent::start(bus, card(), handler, 1, &settings).unwrap();
    let mut times = Vec::new();
    let start = tokio::time::Instant::now();
    for _ in 0..3 {
        listener.next().await.unwrap();
        times.push(start.elapsed().as_secs());
    }
    assert_eq!(times, [0, 120, 240]);
}

#[tokio::test]
async fn name_that_is_no_segment_of_a_topic_is_refused() {
    let settings = BusSettings::default();
    let caller = AgentCaller::new(InProcessBus::new(&settings), &settings);
    for name in ["a b", "a.b", "", "*", "status", "cancel"] {
        let refused = caller.send(name, &task("hi"), MINUTE).await.unwrap_err();
        assert_eq!(refused.kind(), BusErrorKind::Invalid, "{name}: {refused}");
    }
}
