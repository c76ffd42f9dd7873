//! Connections that are cut without an end: the packets between broker and clients are lost.
//!
//! Each test starts this binary again in a network of its own, in which nothing but its broker runs, and whose only
//! interface is set down and up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinSet, block_in_place};
use tokio::time::{Instant, sleep, timeout};
use toolyard_bus::caller::{RemoteCall, ToolCaller};
use toolyard_bus::request::Repetition;
use toolyard_bus::worker::BusWorker;
use toolyard_core::ErrorCode;
use toolyard_testing::process::{bound_to_thread, run};

use crate::support::{BusBody, CountingBackend, TestBroker, TestPrincipal, gateway, request, within};

/// The broker of the child.
const BODY: &str = "TOOLYARD_BUS_BODY";

/// Time limit of calls that wait for the end of a cut.
const LONG: Duration = Duration::from_secs(20);

/// Time for which a message waits for its confirmation. A longer cut is a loss of the connection.
const PUBLISH_TIME: Duration = Duration::from_secs(4);

/// Time limit of calls that end during the long cut.
const SHORT: Duration = Duration::from_secs(6);

/// Calls of each kind.
const CALLS: usize = 20;

/// Tolerated delay of the end of a call, on a machine with other work.
const SLACK: Duration = Duration::from_secs(2);

#[track_caller]
fn in_own_network(body: &str) {
    let mut command = bound_to_thread("unshare");
    command.args(["--user", "--map-root-user", "--net", "--kill-child"]);
    command.args(["sh", "-c", r#"/usr/sbin/ip link set lo up && exec "$0" "$@""#]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "cut_network::child", "--ignored", "--nocapture"]).env(BODY, body);
    // It takes most of a minute: nextest's time limit ends it.
    let ended = command.output().unwrap();
    println!("{}", String::from_utf8_lossy(&ended.stdout));
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn calls_survive_a_cut_to_rabbitmq() {
    in_own_network("rabbitmq");
}

#[test]
fn calls_survive_a_cut_to_nats() {
    in_own_network("nats");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the entry point of the processes that other tests start"]
async fn child() {
    match &*std::env::var(BODY).unwrap() {
        "rabbitmq" => calls_end_while_the_network_is_cut(BusBody::RabbitMq).await,
        "nats" => calls_end_while_the_network_is_cut(BusBody::Nats).await,
        other => panic!("{other}?"),
    }
}

fn set_link(state: &str) {
    let mut command = bound_to_thread("/usr/sbin/ip");
    let ended = block_in_place(|| run(command.args(["link", "set", "lo", state])));
    assert_eq!(ended.code, 0, "{ended}");
}

/// The end of a call: its text, the number of milliseconds that it took, and the code of its error.
struct EndedCall {
    text: String,
    took: Duration,
    error: Option<ErrorCode>,
}

/// A worker and a caller, each on a connection of its own.
struct CutCase {
    backend: Arc<CountingBackend>,
    _worker: BusWorker,
    caller: Arc<ToolCaller>,
}

impl CutCase {
    async fn start(broker: &TestBroker) -> Self {
        let backend = CountingBackend::new();
        let (bus, principal) = (broker.bus(), Arc::new(TestPrincipal("*")));
        let worker = BusWorker::start(bus, gateway(backend.clone()), principal, &broker.settings).unwrap();
        assert!(within("the worker", worker.subscribed()).await);
        let caller = Arc::new(ToolCaller::start(broker.bus(), "agent", 1000).await.unwrap());
        Self { backend, _worker: worker, caller }
    }

    fn runs(&self, text: &str) -> usize {
        self.backend.runs.lock().unwrap().get(text).copied().unwrap_or_default()
    }

    fn call(
        &self,
        tool: &str,
        text: &str,
        limit: Duration,
    ) -> impl Future<Output = EndedCall> + Send + use<> {
        let (caller, text) = (self.caller.clone(), format!("{tool} {text}"));
        let request = request(tool, &format!(r#"{{"text": "{text}"}}"#));
        async move {
            let started = Instant::now();
            let repetition = if text.starts_with("read") { Repetition::AfterLoss } else { Repetition::Never };
            let remote = RemoteCall { repetition, ..RemoteCall::within(limit) };
            let answer = caller.call(&request, remote).await;
            EndedCall { text, took: started.elapsed(), error: answer.err().map(|error| error.code()) }
        }
    }

    /// Starts calls of both kinds of tools with this limit.
    fn begin(&self, phase: &str, limit: Duration) -> JoinSet<EndedCall> {
        let tools =
            ["read", "write"].into_iter().flat_map(|tool| (0..CALLS).map(move |number| (tool, number)));
        tools.map(|(tool, number)| self.call(tool, &format!("{phase} {number}"), limit)).collect()
    }
}

/// Cuts the network twice while calls run: for a moment, and for longer than any operation of the bus waits.
async fn calls_end_while_the_network_is_cut(body: BusBody) {
    let mut broker = TestBroker::start(body);
    broker.settings.publish_timeout = PUBLISH_TIME;
    let case = CutCase::start(&broker).await;
    let first = case.call("read", "before", LONG).await;
    assert_eq!(first.error, None);

    let waiting = case.begin("short cut", LONG);
    set_link("down");
    // It ends only by its time limit.
    let late = case.call("read", "late", Duration::from_millis(500)).await;
    assert_eq!(late.error, Some(ErrorCode::Timeout));
    set_link("up");
    let waited = waiting.join_all().await;

    let mut slow = JoinSet::new();
    slow.spawn(case.call("slow", "running", SHORT));
    within("the call", async {
        while case.runs("slow running") == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    // Some of these have been sent, some have not, when the network is cut.
    let around = case.begin("around", LONG);
    set_link("down");
    let during = case.begin("during", SHORT);
    let during = timeout(SHORT + SLACK, during.join_all()).await.expect("every call ends in time");
    let slow = timeout(SLACK, slow.join_all()).await.expect("a running call ends in time");
    set_link("up");
    // The connections work again, or are made again. One that sent a message shortly before the end of the cut is lost when
    // its confirmation is late, and with it the answers to a few more calls.
    let is_answered =
        async || case.begin("again", SHORT).join_all().await.iter().all(|call| call.error.is_none());
    within("an answer to each call", async { while !is_answered().await {} }).await;
    let after = case.begin("after", LONG).join_all().await;
    let around = timeout(LONG + SLACK, around.join_all()).await.expect("every call ends in time");

    println!("{body:?}, the network is cut for 0.5 s and for {SHORT:?}");
    report(&case, "short cut", LONG, &waited);
    report(&case, "around", LONG, &around);
    report(&case, "during", SHORT, &during);
    report(&case, "running", SHORT, &slow);
    report(&case, "after", LONG, &after);
    let is_read = |call: &&EndedCall| call.text.starts_with("read");
    assert!(around.iter().filter(is_read).all(|call| call.error.is_none()), "idempotent calls are repeated");
    assert!(waited.iter().all(|call| call.error.is_none()), "calls wait for the end of a short cut");
    assert!(
        during.iter().chain(&slow).all(|call| call.error.is_some()),
        "nothing is answered without a network"
    );
    let failed =
        after.iter().filter(|call| call.error.is_some()).map(|call| (&call.text, case.runs(&call.text)));
    assert_eq!(failed.collect::<Vec<_>>(), [], "the cut has no consequences; failed calls and their runs");
}

/// Prints the counts of calls, and checks them.
fn report(case: &CutCase, phase: &str, limit: Duration, calls: &[EndedCall]) {
    let mut errors = BTreeMap::<String, usize>::new();
    let (mut answered, mut runs) = (0, 0);
    for EndedCall { text, took, error } in calls {
        assert!(*took <= limit + SLACK, "{text} took {took:?}");
        let ran = case.runs(text);
        runs += ran;
        if !text.starts_with("read") {
            assert!(ran <= 1, "{text} ran {ran} times");
        }
        match error {
            None => {
                answered += 1;
                assert!(ran >= 1, "{text} was answered and has not run");
            }
            Some(code) => *errors.entry(format!("{code:?}")).or_default() += 1,
        }
    }
    let sent = calls.len();
    println!("  {phase:<9} sent {sent:>3} = answered {answered:>3} + classified {errors:?}, runs {runs}");
    assert_eq!(answered + errors.values().sum::<usize>(), sent);
}
