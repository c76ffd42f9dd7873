//! Scripts over the bus: a manager with a scripted executor, and the runner that sends to it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::watch;
use tokio::task::block_in_place;
use toolyard_bus::message::{ScriptInvokeRequest, ScriptInvokeResponse};
use toolyard_bus::request::Requester;
use toolyard_bus::scripts::{BusScriptRunner, ScriptsManager, ScriptsManagerOptions};
use toolyard_bus::{Envelope, MessageBus, Subscription};
use toolyard_core::script::{PythonScript, ScriptExecutor, ScriptOutcome};
use toolyard_core::{ErrorCode, ToolError};

use crate::support::{BusBody, TestBroker, on_every_body, pattern, topic, within};

/// Interprets the source of a script as an instruction, and records what runs.
#[derive(Default)]
struct ScriptedExecutor {
    runs: Mutex<Vec<PythonScript>>,
    dropped: watch::Sender<usize>,
}

impl ScriptExecutor for ScriptedExecutor {
    fn run(&self, script: PythonScript) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        self.runs.lock().unwrap().push(script.clone());
        let outcome = |output: String, exit_code: i32| ScriptOutcome {
            output,
            stderr: "warned".to_owned(),
            exit_code,
            elapsed: Duration::from_millis(1234),
        };
        let refused = |code, message: &'static str| ready(Err(ToolError::new(code, message))).boxed();
        match &*script.source {
            "slow" => async {
                let _dropped = CountOnDrop(&self.dropped);
                std::future::pending().await
            }
            .boxed(),
            "fail" => ready(Ok(outcome(String::new(), 3))).boxed(),
            "timeout" => ready(Ok(outcome("part".to_owned(), -1))).boxed(),
            "large" => ready(Ok(outcome("x".repeat(4 << 20), 0))).boxed(),
            "packages" => refused(ErrorCode::InvalidArguments, "line 1 of the packages"),
            "full" => refused(ErrorCode::Overloaded, "too many scripts"),
            "panic" => panic!("an executor that panics"),
            _ => {
                let PythonScript { input, timeout, packages, .. } = script;
                let output = format!("{} in {timeout:?} with {packages:?}", input.unwrap_or_default());
                ready(Ok(outcome(output, 0))).boxed()
            }
        }
    }
}

struct CountOnDrop<'a>(&'a watch::Sender<usize>);

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|dropped| *dropped += 1);
    }
}

/// A manager on a bus, and a runner on another connection.
pub(crate) struct ScriptsCase {
    case: TestBroker,
    executor: Arc<ScriptedExecutor>,
    manager: Option<ScriptsManager>,
    bus: Arc<dyn MessageBus>,
    runner: BusScriptRunner,
}

impl ScriptsCase {
    pub(crate) async fn start(case: TestBroker) -> Self {
        let executor = Arc::<ScriptedExecutor>::default();
        let options = ScriptsManagerOptions { concurrent: 8 };
        let manager = ScriptsManager::start(case.bus(), executor.clone(), options, &case.settings);
        assert!(within("the manager", manager.subscribed()).await);
        let bus = case.bus();
        let runner = BusScriptRunner::new(bus.clone(), &case.settings);
        Self { case, executor, manager: Some(manager), bus, runner }
    }

    async fn run(&self, source: &str) -> Result<ScriptOutcome, ToolError> {
        within(source, ScriptExecutor::run(&self.runner, script(source))).await
    }

    fn runs(&self, source: &str) -> usize {
        self.executor.runs.lock().unwrap().iter().filter(|script| script.source == source).count()
    }

    async fn until_running(&self, source: &str) {
        within("the script", async {
            while self.runs(source) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

fn script(source: &str) -> PythonScript {
    PythonScript {
        call_id: "1".to_owned(),
        source: source.to_owned(),
        input: Some("input".to_owned()),
        timeout: Duration::from_millis(1500),
        packages: vec!["numpy".to_owned()],
        trace_parent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()),
    }
}

fn request(source: &str) -> ScriptInvokeRequest {
    ScriptInvokeRequest {
        tool_call_id: "c1".to_owned(),
        script: source.to_owned(),
        ..ScriptInvokeRequest::default()
    }
}

#[tokio::test]
async fn scripts_are_run_or_classified() {
    on_every_body("scripts", async |case| {
        let scripts = ScriptsCase::start(case).await;
        let check = async |source: &str, expected: &str| {
            let shown = match scripts.run(source).await {
                Ok(ScriptOutcome { output, stderr, exit_code, elapsed }) => {
                    format!("{exit_code} {output:?} {stderr:?} {elapsed:?}")
                }
                Err(error) => format!("{:?} {}", error.code(), error.message()),
            };
            assert!(shown.starts_with(expected), "{source}: {shown}");
        };
        // Whole seconds, no less than the runner was asked for.
        check("run", r#"0 "input in 2s with [\"numpy\"]" "warned" 1.234s"#).await;
        check("fail", r#"3 "" "warned""#).await;
        check("timeout", r#"-1 "part""#).await;
        check("large", "ExecutionFailed the output of the script is too large for the bus").await;
        check("packages", "InvalidArguments line 1 of the packages").await;
        check("full", "Unavailable too many scripts").await;
        check(" ", "InvalidArguments script: is empty").await;
        let manager = scripts.manager.unwrap();
        within("the end", manager.stop(Duration::from_secs(1))).await;
        let runs = scripts.executor.runs.lock().unwrap();
        assert!(runs.iter().all(|run| run.trace_parent == script("").trace_parent), "{runs:?}");
    })
    .await;
}

#[tokio::test]
async fn abandoned_script_is_stopped() {
    on_every_body("abandoned", async |case| {
        let scripts = ScriptsCase::start(case).await;
        let mut dropped = scripts.executor.dropped.subscribe();
        tokio::select! {
            _ = scripts.run("slow") => panic!("it has no result"),
            () = scripts.until_running("slow") => {}
        }
        within("the cancellation", dropped.wait_for(|dropped| *dropped == 1)).await.unwrap();
        assert_eq!(scripts.run("after").await.unwrap().exit_code, 0);
    })
    .await;
}

/// Sends scripts as a client that knows only the documented forms does.
#[tokio::test]
async fn foreign_sender_gets_one_form_of_result() {
    on_every_body("foreign", async |case| {
        let scripts = ScriptsCase::start(case).await;
        let requester = Requester::on(scripts.bus.clone(), topic("script.result.agent"), 10).await.unwrap();
        let check = async |source: &str, timeout_seconds: i64, headers: &[(&str, &str)], expected: &str| {
            let request = ScriptInvokeRequest { timeout_seconds, ..request(source) };
            let mut envelope = Envelope::of(&request, "agent").unwrap();
            for (name, value) in headers {
                envelope = envelope.header(name, *value);
            }
            let limit = Duration::from_secs(20);
            let reply = requester.request(&topic("script.invoke"), envelope, limit).await.unwrap();
            let response: ScriptInvokeResponse = reply.read().unwrap();
            assert_eq!(response.tool_call_id, "c1");
            let code = reply.headers.get("rb-error-code").map(String::as_str).unwrap_or_default();
            let ScriptInvokeResponse { output, stderr, exit_code, is_success, .. } = response;
            let shown = format!(
                "{is_success} {exit_code} {} {} {code}",
                output.unwrap_or_default(),
                stderr.unwrap_or_default()
            );
            assert_eq!(shown, expected, "{source}");
        };
        check("run", 0, &[], "true 0  in 30s with [] warned ").await;
        check("run", 7, &[], "true 0  in 7s with [] warned ").await;
        check("run", i64::MAX, &[], "true 0  in 300s with [] warned ").await;
        check("run", -1, &[], "false 126  timeoutSeconds: is negative invalid_arguments").await;
        check("fail", 0, &[], "false 3  warned ").await;
        let late = "false 126  the sender of the script waits no longer timeout";
        check("slow", 0, &[("rb-timeout-ms", "100")], late).await;
        check("slow", 0, &[("rb-timeout-ms", "0")], late).await;
        assert_eq!(scripts.runs("slow"), 1, "a script whose time has ended is not run");
    })
    .await;
}

#[tokio::test]
async fn script_runs_at_most_once() {
    on_every_body("once", async |case| {
        // A manager has taken the script and has died before it acknowledged it.
        let bus = case.bus();
        let group = case.settings.scripts.group.clone();
        let subscription = Subscription::of_group(&group, topic("script.invoke"));
        let mut first = bus.subscribe(subscription).await.unwrap();
        let requester = Requester::start(bus.clone(), 10).await.unwrap();
        let mut pending = requester
            .send(&topic("script.invoke"), Envelope::of(&request("once"), "agent").unwrap())
            .await
            .unwrap();
        let held = within("a script", first.next()).await.unwrap();
        drop(first);
        let scripts = ScriptsCase::start(case).await;
        held.retry().await.unwrap();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        let reply = pending.reply_before(deadline).await.unwrap();
        let response: ScriptInvokeResponse = reply.read().unwrap();
        assert_eq!((response.exit_code, scripts.runs("once")), (126, 0), "{:?}", response.stderr);
        // Two copies of a message run once.
        let copy = Envelope::of(&request("copy"), "agent").unwrap();
        for _ in 0..2 {
            scripts.bus.publish(&topic("script.invoke"), copy.clone()).await.unwrap();
        }
        scripts.run("after").await.unwrap();
        assert_eq!(scripts.runs("copy"), 1);
    })
    .await;
}

#[tokio::test]
async fn message_that_is_no_script_is_a_dead_letter() {
    let broker = TestBroker::start(BusBody::InProcess);
    let scripts = ScriptsCase::start(broker.case("poison", |_| {})).await;
    let envelope = || Envelope::of(&request("run"), "agent").unwrap();
    for bad in [
        Envelope { body: "{".into(), ..envelope() },
        Envelope { message_type: "Other".to_owned(), ..envelope() },
        envelope().replying_to(&topic("script.invoke")),
    ] {
        scripts.bus.publish(&topic("script.invoke"), bad).await.unwrap();
    }
    scripts.run("after").await.unwrap();
    let group = &scripts.case.settings.scripts.group;
    let dead = scripts.bus.dead_letters(group, &pattern("script.invoke"), 10).await.unwrap();
    let reasons: Vec<_> = dead.iter().map(|letter| letter.reason.as_str()).collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("topic of requests")), "{reasons:?}");
}

#[tokio::test]
async fn script_without_a_manager_is_not_run() {
    let broker = TestBroker::start(BusBody::InProcess);
    let case = broker.case("nobody", |settings| settings.scripts.start_timeout = Duration::from_millis(200));
    let runner = BusScriptRunner::new(case.bus(), &case.settings);
    let refused = ScriptExecutor::run(&runner, script("run")).await.unwrap_err();
    assert_eq!((refused.code(), refused.may_have_run()), (ErrorCode::Unavailable, false), "{refused}");
    // A manager that has subscribed once may come back, within the time limit.
    let group = Subscription::of_group(&case.settings.scripts.group, topic("script.invoke"));
    drop(case.bus().subscribe(group).await.unwrap());
    let late = within("the time limit", ScriptExecutor::run(&runner, script("run"))).await.unwrap_err();
    assert_eq!(late.code(), ErrorCode::Timeout, "{late}");
}

#[tokio::test]
async fn script_of_a_manager_that_dies_ends_in_time() {
    let broker = TestBroker::start(BusBody::InProcess);
    let case = broker.case("dies", |settings| settings.scripts.start_timeout = Duration::from_millis(100));
    let mut scripts = ScriptsCase::start(case).await;
    let manager = scripts.manager.take();
    let mut dropped = scripts.executor.dropped.subscribe();
    let slow = PythonScript { timeout: Duration::from_millis(900), ..script("slow") };
    let (ended, ()) = tokio::join!(ScriptExecutor::run(&scripts.runner, slow), async {
        scripts.until_running("slow").await;
        // Its sender learns nothing: the script was acknowledged, so that no other manager runs it.
        drop(manager);
    });
    assert_eq!(ended.unwrap_err().code(), ErrorCode::Timeout);
    within("the end of the script", dropped.wait_for(|dropped| *dropped == 1)).await.unwrap();
    assert_eq!(scripts.runs("slow"), 1);
}

/// Runs scripts before, during and after a restart of the broker.
async fn scripts_end_while_the_broker_restarts(body: BusBody) {
    let mut broker = TestBroker::start(body);
    broker.settings.scripts.start_timeout = Duration::from_secs(2);
    let mut scripts = ScriptsCase::start(broker).await;
    assert_eq!(scripts.run("before").await.unwrap().exit_code, 0);
    block_in_place(|| scripts.case.server.as_mut().unwrap().kill());
    let refused = scripts.run("down").await.unwrap_err();
    let codes = [ErrorCode::Unavailable, ErrorCode::Timeout];
    assert!(codes.contains(&refused.code()), "{refused}");
    block_in_place(|| scripts.case.server.as_mut().unwrap().run());
    within("the manager", async { while scripts.run("after").await.is_err() {} }).await;
    assert!(scripts.runs("down") <= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_end_while_rabbitmq_restarts() {
    scripts_end_while_the_broker_restarts(BusBody::RabbitMq).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_end_while_nats_restarts() {
    scripts_end_while_the_broker_restarts(BusBody::Nats).await;
}
