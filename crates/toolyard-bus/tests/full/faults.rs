//! Brokers that are killed and started again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::task::{JoinSet, block_in_place};
use tokio::time::sleep;
use toolyard_bus::caller::{RemoteCall, ToolCaller};
use toolyard_bus::worker::{BusWorker, WorkerPrincipal};
use toolyard_bus::{BusErrorKind, Subscription};
use toolyard_core::{Backend, BackendPhase, Caller, Catalog, CauseCode, ErrorCode, ToolError};

use crate::remote;
use crate::support::{
    BusBody, CountingBackend, TestBroker, TestPrincipal, gateway, number_of, numbered, pattern, request,
    topic, within,
};

/// Time limit of each call under load, longer than a restart takes.
const CALL_LIMIT: Duration = Duration::from_secs(15);

struct AnyTool;

impl WorkerPrincipal for AnyTool {
    fn caller(&self) -> BoxFuture<'_, Result<Caller, ToolError>> {
        ready(Ok(Caller::default())).boxed()
    }
}

async fn accepted_messages_survive(body: BusBody) {
    let mut broker = TestBroker::start(body);
    let (bus, work) = (toolyard_bus::connect(&broker.settings).unwrap(), topic("tool.invoke"));
    let subscription = Subscription::of_group("g", work.clone());
    drop(bus.subscribe(subscription.clone()).await.unwrap());
    let mut accepted = Vec::new();
    for number in 0..50 {
        bus.publish(&work, numbered(number)).await.unwrap();
        accepted.push(number);
    }
    let server = broker.server.as_mut().unwrap();
    block_in_place(|| server.kill());
    // Without a broker, every operation ends in time with its reason.
    let refused = within("an error", bus.publish(&work, numbered(1000))).await.unwrap_err();
    let kinds = [BusErrorKind::Unavailable, BusErrorKind::Unconfirmed];
    assert!(kinds.contains(&refused.kind()), "{refused:?}");
    let refused = within("an error", bus.publish(&work, numbered(1001))).await.unwrap_err();
    assert_eq!(refused.kind(), BusErrorKind::Unavailable);
    let refused = within("an error", bus.subscribe(subscription.clone())).await.unwrap_err();
    assert_eq!(refused.kind(), BusErrorKind::Unavailable);
    block_in_place(|| server.run());
    let mut deliveries = within("the subscription", async {
        loop {
            match bus.subscribe(subscription.clone()).await {
                Ok(deliveries) => break deliveries,
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    })
    .await;
    let mut received = Vec::new();
    while received.len() < accepted.len() {
        let delivery = within("an accepted message", deliveries.next()).await.unwrap();
        received.push(number_of(&delivery));
        delivery.ack().await.unwrap();
    }
    received.sort_unstable();
    assert_eq!(received, accepted);
}

/// Calls tools while the broker is killed and started again: every call ends in time, and calls with effects run at most
/// once.
async fn calls_end_while_the_broker_restarts(body: BusBody) {
    const CALLERS: usize = 20;
    const CALLS: usize = 20;
    let mut broker = TestBroker::start(body);
    let backend = CountingBackend::new();
    let bus = toolyard_bus::connect(&broker.settings).unwrap();
    let worker =
        BusWorker::start(bus, gateway(backend.clone()), Arc::new(AnyTool), &broker.settings).unwrap();
    assert!(within("the worker", worker.subscribed()).await);
    let bus = toolyard_bus::connect(&broker.settings).unwrap();
    let caller = Arc::new(ToolCaller::start(bus.clone(), "agent", 1000).await.unwrap());
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let caller = caller.clone();
        callers.spawn(async move {
            let mut ended = Vec::new();
            for call in 0..CALLS {
                let tool = if (number + call) % 2 == 0 { "read" } else { "write" };
                let text = format!("{tool} {number} {call}");
                let request = request(tool, &format!(r#"{{"text": "{text}"}}"#));
                let answer = caller.call(&request, RemoteCall::within(CALL_LIMIT)).await;
                ended.push((text, answer.map(drop).map_err(|error| error.code())));
                // So that calls are under way before, during and after the restart.
                sleep(Duration::from_millis(5)).await;
            }
            ended
        });
    }
    within("calls", async {
        while backend.runs.lock().unwrap().len() < 40 {
            sleep(Duration::from_millis(1)).await
        }
    })
    .await;
    let server = broker.server.as_mut().unwrap();
    block_in_place(|| {
        server.kill();
        server.run();
    });
    let ended: Vec<_> = tokio::time::timeout(Duration::from_secs(100), callers.join_all())
        .await
        .expect("every call ends")
        .into_iter()
        .flatten()
        .collect();
    let runs = backend.runs.lock().unwrap().clone();
    let mut classified = BTreeMap::<String, usize>::new();
    for (text, answer) in &ended {
        let runs = runs.get(text).copied().unwrap_or_default();
        if text.starts_with("write") {
            assert!(runs <= 1, "{text} ran {runs} times");
        }
        match answer {
            Ok(()) => assert!(runs >= 1, "{text} was answered and has not run"),
            Err(code) => *classified.entry(format!("{code:?}")).or_default() += 1,
        }
    }
    let group = &broker.settings.worker.group;
    let dead = within("dead letters", async {
        loop {
            match bus.dead_letters(group, &pattern("tool.invoke"), 100).await {
                Ok(dead) => break dead.len(),
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    })
    .await;
    let answered = ended.iter().filter(|(_, answer)| answer.is_ok()).count();
    let failed: usize = classified.values().sum();
    println!("{body:?} restarted under load");
    println!("  sent {} = answered {answered} + classified {failed} {classified:?}", ended.len());
    println!("  dead letters {dead}, tools run {}", runs.values().sum::<usize>());
    assert_eq!((ended.len(), answered + failed), (CALLERS * CALLS, CALLERS * CALLS));
    assert!(answered >= CALLERS * CALLS / 2, "most calls are not affected");
    // The connections are made again.
    let answer = caller.call(&request("read", "{}"), RemoteCall::within(CALL_LIMIT)).await;
    assert!(answer.is_ok(), "{answer:?}");
}

/// Tools of workers stay known while the broker is down, although their announcements are missed.
async fn tools_stay_known_while_the_broker_restarts(body: BusBody) {
    let mut broker = TestBroker::start(body);
    broker.settings.worker.announce_interval = Duration::from_millis(100);
    broker.settings.publish_timeout = Duration::from_secs(1);
    let worker = BusWorker::start(
        toolyard_bus::connect(&broker.settings).unwrap(),
        gateway(CountingBackend::new()),
        Arc::new(TestPrincipal("read write")),
        &broker.settings,
    )
    .unwrap();
    assert!(within("the worker", worker.subscribed()).await);
    let backend = remote::remote(toolyard_bus::connect(&broker.settings).unwrap(), &broker.settings);
    remote::published(&backend, "read write").await;
    let server = broker.server.as_mut().unwrap();
    block_in_place(|| server.kill());
    let mut catalog = backend.catalog();
    let is_down = |catalog: &Arc<Catalog>| matches!(&catalog.phase, BackendPhase::Unavailable { reason } if reason.code == CauseCode::Broker);
    let down = within("the cause", catalog.wait_for(is_down)).await.unwrap().clone();
    let BackendPhase::Unavailable { reason } = &down.phase else { panic!("{:?}", down.phase) };
    assert!(reason.message.starts_with("the message broker cannot be used: "), "{reason:?}");
    assert_eq!(down.tools.len(), 2);
    let refused = within("an error", remote::call(&backend, "read", "x")).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Unavailable, "{refused:?}");
    block_in_place(|| server.run());
    let is_ready = |catalog: &Arc<Catalog>| catalog.phase == BackendPhase::Ready;
    let ready = within("the tools", catalog.wait_for(is_ready)).await.unwrap().clone();
    assert_eq!(ready.tools.len(), 2);
    within("an answer", async {
        while remote::call(&backend, "read", "x").await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_stay_known_while_rabbitmq_restarts() {
    tools_stay_known_while_the_broker_restarts(BusBody::RabbitMq).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_stay_known_while_nats_restarts() {
    tools_stay_known_while_the_broker_restarts(BusBody::Nats).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rabbitmq_keeps_accepted_messages() {
    accepted_messages_survive(BusBody::RabbitMq).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_keeps_accepted_messages() {
    accepted_messages_survive(BusBody::Nats).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_end_while_rabbitmq_restarts() {
    calls_end_while_the_broker_restarts(BusBody::RabbitMq).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_end_while_nats_restarts() {
    calls_end_while_the_broker_restarts(BusBody::Nats).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broker_may_start_after_its_clients() {
    let mut broker = TestBroker::start(BusBody::Nats);
    let server = broker.server.as_mut().unwrap();
    block_in_place(|| server.kill());
    let bus = toolyard_bus::connect(&broker.settings).unwrap();
    let worker =
        BusWorker::start(bus, gateway(CountingBackend::new()), Arc::new(AnyTool), &broker.settings).unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(200), worker.subscribed()).await.is_err());
    block_in_place(|| server.run());
    assert!(within("the worker", worker.subscribed()).await);
}

#[tokio::test]
async fn errors_never_show_the_password() {
    for url in ["amqp://me:hunter2@127.0.0.1:1/", "nats://me:hunter2@127.0.0.1:1"] {
        let broker = TestBroker::start(BusBody::InProcess);
        let settings = toolyard_manifest::BusSettings {
            url: Some(url.parse().unwrap()),
            publish_timeout: Duration::from_millis(300),
            ..broker.settings
        };
        let bus = toolyard_bus::connect(&settings).unwrap();
        let error = bus.publish(&topic("tool.invoke"), numbered(1)).await.unwrap_err();
        assert_eq!(error.kind(), BusErrorKind::Unavailable);
        let shown = format!("{error:?} {error} {bus:?} {settings:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
