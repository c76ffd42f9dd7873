//! The cases of the suite.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_bus::envelope::TraceContext;
use toolyard_bus::record::{ToolInvokeRequest, ToolInvokeResponse};
use toolyard_bus::reply::reply_to;
use toolyard_bus::request::Requester;
use toolyard_bus::{BusErrorKind, Deliveries, Envelope, MessageBus, Subscription};
use toolyard_manifest::BusSettings;

use crate::messages::of_every_type;
use crate::support::{BusBody, TestBroker, number_of, numbered, pattern, request, topic, within};

pub(crate) type SuiteCase = for<'a> fn(&'a TestBroker, &'a str) -> BoxFuture<'a, ()>;

/// All cases, by names that can be part of a queue's name.
pub(crate) const ALL: [(&str, SuiteCase); 15] = [
    ("round-trip", |broker, name| round_trip(broker, name).boxed()),
    ("shared", |broker, name| members_share(broker, name).boxed()),
    ("fan-out", |broker, name| all_subscriptions_receive(broker, name).boxed()),
    ("patterns", |broker, name| patterns_select_topics(broker, name).boxed()),
    ("dead", |broker, name| retried_message_dies(broker, name).boxed()),
    ("fatal", |broker, name| message_that_ends_consumers_dies(broker, name).boxed()),
    ("poison", |broker, name| poison_does_not_block(broker, name).boxed()),
    ("dropped", |broker, name| dropped_delivery_returns(broker, name).boxed()),
    ("duplicate", |broker, name| duplicates_have_equal_ids(broker, name).boxed()),
    ("full", |broker, name| full_queue_refuses(broker, name).boxed()),
    ("slow", |broker, name| slow_consumer_is_bounded(broker, name).boxed()),
    ("large", |broker, name| large_messages_are_refused(broker, name).boxed()),
    ("no-route", |broker, name| message_without_group_is_refused(broker, name).boxed()),
    ("garbage", |broker, name| garbage_is_delivered_as_it_is(broker, name).boxed()),
    ("requests", |broker, name| thousand_requests_are_answered(broker, name).boxed()),
];

/// Time in which a message would have arrived.
const QUIET: Duration = Duration::from_millis(300);

async fn next(deliveries: &mut Deliveries) -> toolyard_bus::Delivery {
    within("a message", deliveries.next()).await.unwrap()
}

async fn is_quiet(deliveries: &mut Deliveries) -> bool {
    timeout(QUIET, deliveries.next()).await.is_err()
}

async fn round_trip(broker: &TestBroker, name: &str) {
    let case = broker.case(name, |_| {});
    let (sender, receiver) = (case.bus(), case.bus());
    let work = topic("tool.invoke");
    let mut deliveries = receiver.subscribe(Subscription::of_group("g", work.clone())).await.unwrap();
    for envelope in of_every_type() {
        let mut envelope = envelope
            .correlated("corr-1")
            .replying_to(&topic("tool.result.agent"))
            .header("rb-mcp-server", "weather — ☀")
            .header("rb-content-trust", "system")
            .header("x-other", "")
            .traced(TraceContext::parse(
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                Some("vendor=a,b=c"),
            ));
        envelope.destination = Some("receiver".to_owned());
        // AMQP has whole seconds.
        envelope.timestamp -= envelope.timestamp % 1000;
        sender.publish(&work, envelope.clone()).await.unwrap();
        let delivery = next(&mut deliveries).await;
        assert_eq!(*delivery.envelope, envelope);
        assert_eq!((delivery.envelope.body.as_ref(), delivery.attempt), (envelope.body.as_ref(), 1));
        assert_eq!(delivery.envelope.headers, envelope.headers);
        assert_eq!(delivery.topic, work);
        delivery.ack().await.unwrap();
    }
}

async fn members_share(broker: &TestBroker, name: &str) {
    const MESSAGES: usize = 60;
    let case = broker.case(name, |settings| settings.prefetch = 3);
    let work = topic("tool.invoke");
    let mut members = Vec::new();
    for _ in 0..2 {
        let bus = case.bus();
        let deliveries = bus.subscribe(Subscription::of_group("g", work.clone())).await.unwrap();
        members.push((bus, deliveries));
    }
    let sender = case.bus();
    join_all((0..MESSAGES).map(|number| sender.publish(&work, numbered(number))))
        .await
        .into_iter()
        .for_each(|sent| sent.unwrap());
    let mut received = Vec::new();
    for (bus, mut deliveries) in members {
        received.push(async move {
            let _connected = bus;
            let mut numbers = Vec::new();
            while let Ok(Some(delivery)) = timeout(Duration::from_secs(1), deliveries.next()).await {
                numbers.push(number_of(&delivery));
                // The work takes its time, so that no member is done before the other begins.
                tokio::time::sleep(Duration::from_millis(2)).await;
                delivery.ack().await.unwrap();
            }
            numbers
        });
    }
    let received = within("all messages", join_all(received)).await;
    assert!(received.iter().all(|numbers| numbers.len() >= MESSAGES / 10), "{received:?}");
    let all: BTreeSet<_> = received.iter().flatten().copied().collect();
    let total: usize = received.iter().map(Vec::len).sum();
    assert_eq!((total, all), (MESSAGES, (0..MESSAGES).collect()));
}

async fn all_subscriptions_receive(broker: &TestBroker, name: &str) {
    let case = broker.case(name, |_| {});
    let work = topic("tool.meta.mcp.agent");
    let buses: Vec<_> = (0..4).map(|_| case.bus()).collect();
    let mut subscribed = Vec::new();
    for (bus, group) in buses.iter().zip([Some("a"), Some("b"), None, None]) {
        let subscription = match group {
            Some(group) => Subscription::of_group(group, work.clone()),
            None => Subscription::alone(work.clone()),
        };
        subscribed.push(bus.subscribe(subscription).await.unwrap());
    }
    let sender = case.bus();
    sender.publish(&work, numbered(1)).await.unwrap();
    sender.broadcast(&work, numbered(2)).await.unwrap();
    for deliveries in &mut subscribed {
        let mut numbers = BTreeSet::new();
        for _ in 0..2 {
            let delivery = next(deliveries).await;
            numbers.insert(number_of(&delivery));
            delivery.ack().await.unwrap();
        }
        assert_eq!(numbers, [1, 2].into());
        assert!(is_quiet(deliveries).await);
    }
}

async fn patterns_select_topics(broker: &TestBroker, name: &str) {
    let case = broker.case(name, |_| {});
    let bus = case.bus();
    let mut one = bus.subscribe(Subscription::alone(pattern("agent.task.*"))).await.unwrap();
    let mut any = bus.subscribe(Subscription::of_group("g", pattern("agent.#"))).await.unwrap();
    for (number, target) in
        ["agent.task.a", "agent.task.b.c", "agent.status", "other.task.a"].iter().enumerate()
    {
        bus.broadcast(&topic(target), numbered(number)).await.unwrap();
    }
    let delivery = next(&mut one).await;
    assert_eq!((number_of(&delivery), delivery.topic.as_str()), (0, "agent.task.a"));
    delivery.ack().await.unwrap();
    assert!(is_quiet(&mut one).await);
    let mut numbers = BTreeSet::new();
    for _ in 0..3 {
        let delivery = next(&mut any).await;
        numbers.insert(number_of(&delivery));
        delivery.ack().await.unwrap();
    }
    assert_eq!(numbers, [0, 1, 2].into());
    assert!(is_quiet(&mut any).await);
}

async fn retried_message_dies(broker: &TestBroker, name: &str) {
    let case = broker.case(name, |settings| settings.redeliveries = 2);
    let (bus, work) = (case.bus(), topic("tool.invoke"));
    let mut deliveries = bus.subscribe(Subscription::of_group("g", work.clone())).await.unwrap();
    let sent = numbered(7).header("rb-mcp-server", "weather");
    bus.publish(&work, sent.clone()).await.unwrap();
    for attempt in 1..=3 {
        let delivery = next(&mut deliveries).await;
        assert_eq!((delivery.attempt, &delivery.envelope.message_id), (attempt, &sent.message_id));
        delivery.retry().await.unwrap();
    }
    assert!(is_quiet(&mut deliveries).await);
    // Reading leaves them in place, also for another process.
    for reader in [&bus, &case.bus()] {
        let dead = eventually_dead(reader, &case, 1).await;
        assert_eq!((&*dead[0].topic, dead[0].attempts), ("tool.invoke", Some(3)));
        assert_eq!(dead[0].reason, "redelivered 2 times");
        assert_eq!(dead[0].envelope.body, sent.body);
        assert_eq!(dead[0].envelope.headers, sent.headers);
        assert_eq!(dead[0].envelope.message_id, sent.message_id);
    }
    let none = bus.dead_letters("other", &pattern("tool.invoke"), 10).await.unwrap();
    assert_eq!(none, []);
}

/// Returns the dead letters of the group `g` once there are so many.
async fn eventually_dead(
    bus: &Arc<dyn MessageBus>,
    _case: &TestBroker,
    number: usize,
) -> Vec<toolyard_bus::DeadLetter> {
    let find = async {
        loop {
            let dead = bus.dead_letters("g", &pattern("tool.invoke"), 10).await.unwrap();
            if dead.len() >= number {
                return dead;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let dead = within("dead letters", find).await;
    assert_eq!(dead.len(), number);
    dead
}

async fn poison_does_not_block(broker: &TestBroker, name: &str) {
    let case = broker.case(name, |settings| settings.prefetch = 1);
    let (bus, work) = (case.bus(), topic("tool.invoke"));
    let mut deliveries = bus.subscribe(Subscription::of_group("g", work.clone())).await.unwrap();
    for number in 0..3 {
        bus.publish(&work, numbered(number)).await.unwrap();
    }
    let mut done = Vec::new();
    for _ in 0..3 {
        let delivery = next(&mut deliveries).await;
        match number_of(&delivery) {
            1 => delivery.dead_letter("no worker can read it").await.unwrap(),
            number => {
                done.push(number);
                delivery.ack().await.unwrap();
            }
        }
    }
    assert_eq!(done, [0, 2]);
    let dead = eventually_dead(&bus, &case, 1).await;
    assert_eq!((&*dead[0].reason, dead[0].attempts), ("no worker can read it", Some(1)));
}

/// A message that every consumer dies of is delivered no more often than one that they return.
async fn message_that_ends_consumers_dies(broker: &TestBroker, name: &str) {
    let case = broker.case(name, |settings| settings.redeliveries = 2);
    let work = topic("tool.invoke");
    let subscription = Subscription::of_group("g", work.clone());
    let sent = numbered(7);
    for attempt in 1..=3 {
        let bus = case.bus();
        let mut deliveries = bus.subscribe(subscription.clone()).await.unwrap();
        if attempt == 1 {
            bus.publish(&work, sent.clone()).await.unwrap();
        }
        let delivery = next(&mut deliveries).await;
        assert_eq!((delivery.attempt, &delivery.topic), (attempt, &work));
        assert_eq!(delivery.envelope.message_id, sent.message_id);
        // The connection ends first, and nothing is settled.
        drop(bus);
        drop(delivery);
    }
    let bus = case.bus();
    let _deliveries = bus.subscribe(subscription).await.unwrap();
    let dead = eventually_dead(&bus, &case, 1).await;
    assert_eq!((&*dead[0].topic, &dead[0].envelope.message_id), ("tool.invoke", &sent.message_id));
    assert_eq!(dead[0].reason, "redelivered 2 times");
}

async fn dropped_delivery_returns(broker: &TestBroker, name: &str) {
    let case = broker.case(name, |_| {});
    let (bus, work) = (case.bus(), topic("tool.invoke"));
    let subscription = Subscription::of_group("g", work.clone());
    let mut deliveries = bus.subscribe(subscription.clone()).await.unwrap();
    bus.publish(&work, numbered(1)).await.unwrap();
    drop(next(&mut deliveries).await);
    let delivery = next(&mut deliveries).await;
    assert_eq!(delivery.attempt, 2);
    // A delivery can be acknowledged after its subscription has ended.
    drop(deliveries);
    delivery.ack().await.unwrap();
    let mut deliveries = bus.subscribe(subscription).await.unwrap();
    assert!(is_quiet(&mut deliveries).await);
}

async fn duplicates_have_equal_ids(broker: &TestBroker, name: &str) {
    let case = broker.case(name, |_| {});
    let (bus, work) = (case.bus(), topic("tool.invoke"));
    let mut deliveries = bus.subscribe(Subscription::of_group("g", work.clone())).await.unwrap();
    let message = numbered(1);
    for _ in 0..2 {
        bus.publish(&work, message.clone()).await.unwrap();
    }
    // JetStream stores the message once.
    for _ in 0..if broker.body == BusBody::Nats { 1 } else { 2 } {
        let delivery = next(&mut deliveries).await;
        assert_eq!((&delivery.envelope.message_id, delivery.attempt), (&message.message_id, 1));
        delivery.ack().await.unwrap();
    }
    assert!(is_quiet(&mut deliveries).await);
}

async fn full_queue_refuses(broker: &TestBroker, name: &str) {
    let case = broker.case(name, |settings| settings.queued_messages = 5);
    let (bus, work) = (case.bus(), topic("tool.invoke"));
    let subscription = Subscription::of_group("g", work.clone());
    // The queue exists from now on, and is not consumed.
    drop(bus.subscribe(subscription.clone()).await.unwrap());
    let mut accepted = Vec::new();
    let refused = loop {
        let number = accepted.len();
        match bus.publish(&work, numbered(number)).await {
            Ok(()) => accepted.push(number),
            Err(error) => break error,
        }
        assert!(number < 1000, "the queue has no limit");
    };
    assert_eq!(refused.kind(), BusErrorKind::Full);
    assert!(accepted.len() >= 5);
    let mut deliveries = bus.subscribe(subscription).await.unwrap();
    let mut received = Vec::new();
    for _ in &accepted {
        let delivery = next(&mut deliveries).await;
        received.push(number_of(&delivery));
        delivery.ack().await.unwrap();
    }
    received.sort_unstable();
    assert_eq!(received, accepted);
    assert!(is_quiet(&mut deliveries).await);
    within("room in the queue", async {
        while bus.publish(&work, numbered(1)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

async fn slow_consumer_is_bounded(broker: &TestBroker, name: &str) {
    const MESSAGES: usize = 200;
    let case = broker.case(name, |settings| {
        settings.prefetch = 4;
        settings.queued_messages = 1000;
    });
    let (bus, work) = (case.bus(), topic("tool.invoke"));
    // It never reads, and delays no other.
    let _slow = case.bus().subscribe(Subscription::alone(work.clone())).await.unwrap();
    let mut slow_member = bus.subscribe(Subscription::of_group("g", work.clone())).await.unwrap();
    join_all((0..MESSAGES).map(|number| bus.publish(&work, numbered(number))))
        .await
        .into_iter()
        .for_each(|sent| sent.unwrap());
    // A member that holds its deliveries gets as many as it may hold; the others go to the next member.
    let mut held = Vec::new();
    while let Ok(Some(delivery)) = timeout(QUIET, slow_member.next()).await {
        held.push(delivery);
    }
    assert_eq!(held.len(), 4);
    let other = case.bus();
    let mut quick = other.subscribe(Subscription::of_group("g", work.clone())).await.unwrap();
    let mut received: BTreeSet<_> = held.iter().map(number_of).collect();
    for _ in 0..MESSAGES - 4 {
        let delivery = next(&mut quick).await;
        received.insert(number_of(&delivery));
        delivery.ack().await.unwrap();
    }
    for delivery in held {
        assert_eq!(delivery.attempt, 1);
        delivery.ack().await.unwrap();
    }
    assert_eq!(received.len(), MESSAGES);
}

async fn large_messages_are_refused(broker: &TestBroker, name: &str) {
    let case = broker.case(name, |settings| settings.max_message_bytes = 10_000);
    let (bus, work) = (case.bus(), topic("tool.invoke"));
    let mut deliveries = bus.subscribe(Subscription::of_group("g", work.clone())).await.unwrap();
    let mut large = numbered(1);
    large.body = vec![b'x'; 20_000].into();
    let refused = bus.publish(&work, large.clone()).await.unwrap_err();
    assert_eq!(refused.kind(), BusErrorKind::TooLarge);
    let with_headers = numbered(2).header("rb-x", "x".repeat(8000)).header("rb-y", "y".repeat(8000));
    assert_eq!(bus.publish(&work, with_headers).await.unwrap_err().kind(), BusErrorKind::TooLarge);
    if broker.body != BusBody::InProcess {
        // A sender with a higher limit does not reach the receiver.
        let settings = BusSettings { max_message_bytes: 100_000, ..case.settings.clone() };
        let generous = toolyard_bus::connect(&settings).unwrap();
        generous.publish(&work, large).await.unwrap();
        assert!(is_quiet(&mut deliveries).await);
        let dead = eventually_dead(&bus, &case, 1).await;
        assert!(dead[0].reason.contains("more than the limit of 10000"), "{}", dead[0].reason);
    }
    let mut fitting = numbered(3);
    fitting.body = vec![b' '; 9_000].into();
    bus.publish(&work, fitting.clone()).await.unwrap();
    let delivery = next(&mut deliveries).await;
    assert_eq!(delivery.envelope.body, fitting.body);
    delivery.ack().await.unwrap();
}

async fn message_without_group_is_refused(broker: &TestBroker, name: &str) {
    let case = broker.case(name, |_| {});
    let (bus, work) = (case.bus(), topic("script.invoke"));
    let refused = bus.publish(&work, numbered(1)).await.unwrap_err();
    assert_eq!(refused.kind(), BusErrorKind::NoRoute);
    bus.broadcast(&work, numbered(1)).await.unwrap();
    // A group that has subscribed once has a queue.
    drop(bus.subscribe(Subscription::of_group("g", work.clone())).await.unwrap());
    bus.publish(&work, numbered(2)).await.unwrap();
    let mut deliveries = bus.subscribe(Subscription::of_group("g", work.clone())).await.unwrap();
    let delivery = next(&mut deliveries).await;
    assert_eq!(number_of(&delivery), 2);
    delivery.ack().await.unwrap();
}

async fn garbage_is_delivered_as_it_is(broker: &TestBroker, name: &str) {
    let case = broker.case(name, |_| {});
    let (bus, work) = (case.bus(), topic("tool.invoke"));
    let mut deliveries = bus.subscribe(Subscription::of_group("g", work.clone())).await.unwrap();
    let deep = "[".repeat(50_000);
    for body in [&b""[..], b"{", b"\xff\xfe\x00", b"null", br#"{"toolCallId": {}}"#, deep.as_bytes()] {
        let mut envelope = numbered(1);
        envelope.message_type = "ROCKBOT.tools.toolInvokeRequest".to_owned();
        envelope.body = body.to_vec().into();
        envelope.timestamp = u64::MAX / 2000 * 1000;
        bus.publish(&work, envelope.clone()).await.unwrap();
        let delivery = next(&mut deliveries).await;
        assert_eq!(delivery.envelope.body, envelope.body);
        assert!(delivery.envelope.read::<ToolInvokeRequest>().is_err());
        assert_eq!(delivery.envelope.age(), Duration::ZERO);
        delivery.ack().await.unwrap();
    }
}

async fn thousand_requests_are_answered(broker: &TestBroker, name: &str) {
    const REQUESTS: usize = 1000;
    let case = broker.case(name, |settings| settings.prefetch = 50);
    let work = topic("tool.invoke");
    let worker = case.bus();
    let mut calls = worker.subscribe(Subscription::of_group("g", work.clone())).await.unwrap();
    let mut echo = JoinSet::new();
    echo.spawn(async move {
        while let Some(delivery) = calls.next().await {
            let bus = worker.clone();
            let request: ToolInvokeRequest = delivery.envelope.read().unwrap();
            let response = ToolInvokeResponse {
                tool_call_id: request.tool_call_id,
                tool_name: request.tool_name,
                content: request.arguments,
                is_error: false,
            };
            let reply = reply_to(&delivery.envelope, &response, "worker").unwrap();
            let to = delivery.envelope.reply_topic().unwrap().unwrap();
            bus.broadcast(&to, reply).await.unwrap();
            delivery.ack().await.unwrap();
        }
    });
    let requester = Requester::start(case.bus(), REQUESTS).await.unwrap();
    let limit = Duration::from_secs(25);
    let answers = join_all((0..REQUESTS).map(|number| {
        let request = request("echo", &number.to_string());
        let (requester, work) = (&requester, &work);
        async move {
            let sent = Envelope::of(&request, "agent").unwrap();
            let reply = requester.request(work, sent, limit).await?;
            let response: ToolInvokeResponse = reply.read().unwrap();
            assert_eq!(response.tool_call_id, request.tool_call_id);
            assert_eq!(response.content, request.arguments);
            Ok::<_, toolyard_bus::BusError>(())
        }
    }));
    let answers = within("a thousand answers", answers).await;
    let answered = answers.iter().filter(|answer| answer.is_ok()).count();
    println!("accepted {REQUESTS} = answered {answered} + classified {}", REQUESTS - answered);
    assert_eq!(answered, REQUESTS);
    // Without a worker, the next request ends in time; one too many is refused at once.
    echo.abort_all();
    let late = requester.request(&work, numbered(1), Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(late.kind(), BusErrorKind::Timeout);
    let narrow = Requester::start(case.bus(), 1).await.unwrap();
    let first = narrow.send(&work, numbered(1)).await.unwrap();
    assert_eq!(narrow.send(&work, numbered(2)).await.unwrap_err().kind(), BusErrorKind::Full);
    drop(first);
    narrow.send(&work, numbered(3)).await.unwrap();
}
