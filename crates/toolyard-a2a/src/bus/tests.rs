use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::ready;
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_manifest::AgentSettings;
use toolyard_testing::wait;

use super::*;
use crate::agents::Agents;
use crate::testing::{AgentReply, AgentSite, task};
use crate::tools::{DETAILS, INVOKE};

/// A bus whose agents answer by the text of the message.
struct ScriptedBus {
    announcements: watch::Sender<Option<AgentAnnouncement>>,
    sent: Mutex<Vec<BusTask>>,
    dropped: Arc<watch::Sender<usize>>,
}

struct CountOnDrop(Arc<watch::Sender<usize>>);

impl Drop for CountOnDrop {
    fn drop(&mut self) {
        self.0.send_modify(|dropped| *dropped += 1);
    }
}

impl AgentBus for ScriptedBus {
    fn announcements(&self) -> BoxStream<'static, AgentAnnouncement> {
        let announcements = self.announcements.subscribe();
        let next = async |mut announcements: watch::Receiver<Option<AgentAnnouncement>>| {
            announcements.changed().await.ok()?;
            let announcement = announcements.borrow_and_update().clone()?;
            Some((announcement, announcements))
        };
        stream::unfold(announcements, next).boxed()
    }

    fn send(&self, sent: BusTask) -> BoxFuture<'_, Result<BusEvents, AgentError>> {
        let event = |value: Value| Ok(TaskEvent::of_value(value).expect("an event"));
        let text = sent.message.clone();
        self.sent.lock().expect("a lock").push(sent);
        let working = json!({"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_WORKING"}}});
        let events: Vec<Result<TaskEvent, AgentError>> = match &*text {
            "unreachable" => return ready(Err(AgentError::Bus("no broker".to_owned()))).boxed(),
            "refuse" => vec![Err(AgentError::RefusedTask {
                code: "skill_not_supported".to_owned(),
                message: "no such skill".to_owned(),
            })],
            "lose" | "slow" => vec![event(working)],
            _ => vec![event(working), event(json!({"task": task("COMPLETED", "done on the bus")}))],
        };
        let events = stream::iter(events);
        let events = match &*text {
            "slow" => {
                let guard = CountOnDrop(self.dropped.clone());
                let silence = stream::once(async move {
                    let _guard = guard;
                    std::future::pending().await
                });
                events.chain(silence).boxed()
            }
            _ => events.boxed(),
        };
        ready(Ok(events)).boxed()
    }
}

struct BusSite {
    bus: Arc<ScriptedBus>,
    site: AgentSite,
}

impl BusSite {
    /// Starts a gateway on a bus where the agent `Walker` has announced itself.
    async fn start(settings: AgentSettings) -> Self {
        let bus = Arc::new(ScriptedBus {
            announcements: watch::Sender::new(None),
            sent: Mutex::default(),
            dropped: Arc::default(),
        });
        let unused = |_: &str, _: &str, _: &Value| AgentReply::Never;
        let site = AgentSite::on_bus(false, settings, unused, Some(bus.clone())).await;
        Self { bus, site }
    }

    fn announce(&self, name: &str, is_leaving: bool) {
        let skill = json!({"id": "walk", "description": "Walks."});
        let card = AgentCard::of_value(json!({"agentName": name, "skills": [skill]})).expect("a card");
        self.bus.announcements.send_replace(Some(AgentAnnouncement { card, is_leaving }));
    }

    async fn walked(&self, message: &str, minutes: f64) -> String {
        let arguments = json!({"agent_name": "walker", "skill": "WALK", "message": message,
            "timeout_minutes": minutes});
        let text = self.site.call(INVOKE, arguments).await;
        assert!(text.starts_with("Task dispatched to agent 'Walker'"), "{text}");
        let task = self.site.ended().await;
        format!("{}: {}", task.state.word(), task.text)
    }
}

fn knows(agents: &Agents, name: &str) -> bool {
    agents.directory().find(name).is_some()
}

async fn announced(site: &BusSite, name: &str) {
    // The listener may not listen yet.
    wait::until_async("the agent is known", || {
        site.announce(name, false);
        knows(&site.site.agents, name)
    })
    .await;
}

#[tokio::test]
async fn announced_agents_are_invoked_over_the_bus() {
    for (message, expected) in [
        ("walk", "completed: done on the bus"),
        (
            "refuse",
            "failed: The task failed: the agent refused the task: no such skill (skill_not_supported).",
        ),
        ("unreachable", "failed: The task failed: the message bus did not carry the task: no broker."),
        ("lose", "failed: The task failed: the connection to the agent broke."),
        ("slow", "failed: The agent did not finish within 0.12 seconds."),
    ] {
        let site = BusSite::start(AgentSettings::default()).await;
        announced(&site, "Walker").await;
        let minutes = if message == "slow" { 0.002 } else { 1.0 };
        assert_eq!(site.walked(message, minutes).await, expected);
        let sent = site.bus.sent.lock().expect("a lock").pop().expect("a task");
        assert_eq!((&*sent.agent, &*sent.skill, &*sent.message), ("Walker", "walk", message));
        assert_eq!(*site.bus.dropped.borrow(), usize::from(message == "slow"), "the end cancels it");
    }
}

#[tokio::test]
async fn announcements_of_the_gateway_itself_are_ignored() {
    let site = BusSite::start(AgentSettings::default()).await;
    announced(&site, "Walker").await;
    site.announce("GATEWAY", false);
    announced(&site, "Other").await;
    assert!(!knows(&site.site.agents, "Gateway"));
    let details = site.site.call(DETAILS, json!({"agent_name": "Other"})).await;
    let details: Value = serde_json::from_str(&details).expect("JSON");
    assert_eq!((&details["url"], &details["lastSeen"]), (&Value::Null, &json!("just now")));
    site.announce("Other", true);
    wait::until_async("the agent has left", || !knows(&site.site.agents, "Other")).await;
    assert!(knows(&site.site.agents, "Walker"));
}

#[tokio::test]
async fn bus_is_not_used_if_the_manifest_refuses_it() {
    let site = BusSite::start(AgentSettings { bus: false, ..AgentSettings::default() }).await;
    site.announce("Walker", false);
    assert!(site.bus.announcements.is_closed(), "nothing listens");
    assert!(!knows(&site.site.agents, "Walker"));
}
