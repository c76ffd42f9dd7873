mod clocks;
mod limits;

use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use tokio::sync::{Semaphore, watch as watch_channel};
use tokio::task::JoinHandle;
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::registry::{CallLimits, HandlerEntry};
use toolyard_core::{
    Backend, BackendPhase, Call, CallOutput, Caller, Catalog, Gateway, Json, Outcome, Registry, Tool,
    ToolError,
};
use toolyard_manifest::{MissedRuns, ScheduleAction, ScheduledCall};

use super::*;
use crate::action::OwnerRefusal;
use crate::schedules::NewTask;
use crate::task::TaskRun;
use crate::testing::{ImmediateStore, ManualClock, ManualOwners, ReportedRuns};

/// A gateway with one tool, which waits for a permit.
struct WaitingTool {
    catalog: watch_channel::Sender<Arc<Catalog>>,
    calls: Mutex<Vec<String>>,
    permits: Semaphore,
}

impl Backend for WaitingTool {
    fn catalog(&self) -> watch_channel::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let arguments = call.arguments().map(|arguments| arguments.as_text().to_owned()).unwrap_or_default();
        let principal = call.caller.principal.clone().unwrap_or_default();
        self.calls.lock().expect("no panic").push(format!("{principal} {arguments}"));
        Box::pin(async move {
            self.permits.acquire().await.expect("open").forget();
            Ok(Outcome::Done(CallOutput::text("done")))
        })
    }
}

/// Gateways on one store, and their clock.
struct ScheduleHarness {
    store: Arc<ImmediateStore>,
    clock: ManualClock,
    owners: Arc<ManualOwners>,
    reported: Arc<ReportedRuns>,
    settings: ScheduleSettings,
    tool: Arc<WaitingTool>,
    gateway: Arc<Gateway>,
}

/// A running scheduler.
struct RunningScheduler {
    schedules: Schedules,
    stopping: watch_channel::Sender<bool>,
    task: JoinHandle<()>,
}

fn owner(key: &str) -> ScheduleOwner {
    let principal = (!key.is_empty()).then(|| key.into());
    ScheduleOwner::of(&Caller { principal, ..Caller::default() })
}

impl ScheduleHarness {
    /// Returns a harness whose clock is at this time, in UTC.
    fn at(time: &str) -> Self {
        let tool = Arc::new(WaitingTool {
            catalog: watch_channel::Sender::default(),
            calls: Mutex::default(),
            permits: Semaphore::new(1_000),
        });
        let catalog = Catalog {
            phase: BackendPhase::Ready,
            tools: vec![Arc::new(Tool::named("work", Default::default()))],
            ..Catalog::default()
        };
        let size = GateSize { running: 100, waiting: 100 };
        let limits = CallLimits { timeout: Duration::from_secs(3600), gate: CallGate::new(size) };
        let handler = HandlerEntry::new("h", tool.clone(), limits);
        let registry = Arc::new(Registry::of(&handler, &catalog));
        let (sender, registry) = watch_channel::channel(registry);
        // The registry does not change any more.
        drop(sender);
        let settings = ScheduleSettings { time_zone: Some("UTC".to_owned()), ..ScheduleSettings::default() };
        Self {
            store: Arc::default(),
            clock: ManualClock::at(time),
            owners: Arc::default(),
            reported: Arc::default(),
            settings,
            tool,
            gateway: Arc::new(Gateway::new(registry, Vec::new())),
        }
    }

    /// Lets tasks call the tool.
    fn with_tool(mut self) -> Self {
        let arguments = Json::parse(r#"{"of":"{name} {time}"}"#).expect("JSON").to_value();
        let arguments = arguments.as_object().expect("an object").clone();
        let tool = ScheduledCall { name: "work".to_owned(), arguments };
        self.settings.action = Some(ScheduleAction::Tool(tool));
        self
    }

    fn calls(&self) -> Vec<String> {
        self.tool.calls.lock().expect("no panic").clone()
    }

    fn start(&self) -> RunningScheduler {
        let schedules = Schedules::with_clock(self.store.clone(), self.store.clone(), self.clock.clock());
        schedules.enable(Some(Arc::new(self.settings.clone())));
        let actions = TaskActions::new(Arc::downgrade(&self.gateway), self.owners.clone());
        let scheduler =
            Scheduler::new(schedules.clone(), actions, self.reported.clone()).expect("random bytes");
        let (stopping, stopped) = watch_channel::channel(false);
        let task = tokio::spawn(scheduler.run(stopped, Duration::from_secs(10)));
        RunningScheduler { schedules, stopping, task }
    }
}

impl RunningScheduler {
    async fn schedule(&self, key: &str, name: &str, cron: &str, run_once: bool) {
        let new = NewTask {
            name: name.to_owned(),
            cron: cron.parse().expect(cron),
            description: format!("do {name}"),
            run_once,
        };
        self.schedules.schedule(&owner(key), new).await.expect("a task");
    }

    async fn tasks(&self, key: &str) -> Vec<ScheduledTask> {
        self.schedules.list(&owner(key)).await.expect("a store").0
    }

    /// Returns the runs of an owner, oldest first, as lines.
    async fn runs(&self, key: &str) -> Vec<String> {
        let (_, mut runs) = self.schedules.list(&owner(key)).await.expect("a store");
        runs.reverse();
        runs.iter().map(line).collect()
    }

    /// Ends the scheduler as a kill does.
    async fn kill(self) {
        self.task.abort();
        let _aborted = self.task.await;
    }

    async fn stop(self) {
        self.stopping.send_replace(true);
        self.task.await.expect("no panic");
    }
}

fn line(run: &TaskRun) -> String {
    let time = |millis| timestamp(millis).strftime("%H:%M:%S").to_string();
    format!("{} {} {} at {}: {}", run.task, time(run.due), run.outcome.word(), time(run.ended_at), run.result)
}

/// Lets time pass.
async fn pass(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

#[tokio::test(start_paused = true)]
async fn task_fires_at_its_times_only() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    let running = harness.start();
    running.schedule("k1", "Report", "0 9,10 * * *", false).await;
    running.schedule("k2", "report", "30 9 * * *", false).await;
    pass(24 * HOUR).await;
    assert_eq!(
        harness.calls(),
        [
            r#"k1 {"of":"Report 2026-11-25T09:00:00+00:00"}"#,
            r#"k2 {"of":"report 2026-11-25T09:30:00+00:00"}"#,
            r#"k1 {"of":"Report 2026-11-25T10:00:00+00:00"}"#,
        ]
    );
    assert_eq!(
        running.runs("k1").await,
        ["Report 09:00:00 succeeded at 09:00:00: done", "Report 10:00:00 succeeded at 10:00:00: done"]
    );
    assert_eq!(running.runs("").await, Vec::<String>::new());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn store_keeps_nothing_of_owners_without_tasks_for_good() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    let running = harness.start();
    running.schedule("k1", "often", "* * * * *", false).await;
    running.schedule("k2", "once", "0 9 * * *", true).await;
    pass(10 * MINUTE).await;
    assert_eq!(harness.store.lasting(), ["schedules/key/k1"]);
    running.schedules.cancel(&owner("k1"), "often").await.expect("a store");
    assert_eq!(harness.store.lasting(), [""; 0]);
    assert_eq!(running.runs("k1").await.len(), 10);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn task_with_seconds_fires_in_its_second() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30.250Z");
    let running = harness.start();
    running.schedule("", "tick", "45 * * * * *", false).await;
    pass(2 * MINUTE).await;
    assert_eq!(
        running.runs("").await,
        ["tick 08:59:45 succeeded at 08:59:45: do tick", "tick 09:00:45 succeeded at 09:00:45: do tick"]
    );
}

#[tokio::test(start_paused = true)]
async fn task_that_runs_once_is_removed_even_if_it_fails() {
    let mut harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    let running = harness.start();
    running.schedule("", "once", "0 9 25 11 *", true).await;
    pass(MINUTE).await;
    assert_eq!(harness.calls().len(), 1);
    assert_eq!(running.tasks("").await, []);
    running.stop().await;
    if let Some(ScheduleAction::Tool(tool)) = &mut harness.settings.action {
        tool.name = "unknown".to_owned();
    }
    let running = harness.start();
    running.schedule("", "again", "0 10 25 11 *", true).await;
    pass(2 * HOUR).await;
    assert_eq!(running.tasks("").await, []);
    assert_eq!(
        running.runs("").await,
        [
            "once 09:00:00 succeeded at 09:00:00: done",
            "again 10:00:00 failed at 10:00:00: Unknown tool: unknown"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn missed_runs_are_skipped_or_made_up_for_once() {
    for (missed, expected) in [
        (
            MissedRuns::Skip,
            vec![
                "often 09:00:00 missed at 12:30:00: no gateway fired it in time: none was running, the store was unavailable, or the clock was changed",
            ],
        ),
        (MissedRuns::Once, vec!["often 09:00:00 succeeded at 12:30:00: do often"]),
    ] {
        let mut harness = ScheduleHarness::at("2026-11-25T08:30:00Z");
        harness.settings.missed = missed;
        let running = harness.start();
        running.schedule("", "often", "0 * * * *", false).await;
        running.stop().await;
        pass(4 * HOUR).await;
        let running = harness.start();
        pass(MINUTE).await;
        assert_eq!(running.runs("").await, expected);
        pass(HOUR).await;
        assert_eq!(running.runs("").await[1..], ["often 13:00:00 succeeded at 13:00:00: do often"]);
    }
}

#[tokio::test(start_paused = true)]
async fn missed_task_that_runs_once_fires_at_the_start() {
    let harness = ScheduleHarness::at("2026-11-25T08:30:00Z");
    let running = harness.start();
    running.schedule("", "once", "0 9 25 11 *", true).await;
    running.stop().await;
    pass(48 * HOUR).await;
    let running = harness.start();
    pass(MINUTE).await;
    assert_eq!(running.runs("").await, ["once 09:00:00 succeeded at 08:30:00: do once"]);
    assert_eq!(running.tasks("").await, []);
    pass(2 * 24 * HOUR).await;
    assert_eq!(running.runs("").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn short_delay_is_no_missed_run() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z");
    let running = harness.start();
    running.schedule("", "a", "0 9 * * *", false).await;
    running.stop().await;
    pass(MINUTE).await;
    let running = harness.start();
    pass(1).await;
    assert_eq!(running.runs("").await, ["a 09:00:00 succeeded at 09:00:30: do a"]);
}

#[tokio::test(start_paused = true)]
async fn run_of_a_killed_gateway_is_interrupted_and_not_repeated() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    harness.tool.permits.forget_permits(1_000);
    let running = harness.start();
    running.schedule("", "a", "0 * * * *", false).await;
    running.schedule("", "once", "0 9 25 11 *", true).await;
    pass(5 * MINUTE).await;
    assert_eq!(harness.calls().len(), 2);
    running.kill().await;
    harness.tool.permits.add_permits(1_000);
    let running = harness.start();
    pass(10).await;
    // The lease of the killed gateway lasts.
    assert_eq!(running.runs("").await, Vec::<String>::new());
    pass(MINUTE).await;
    let interrupted = "the gateway ended during the run, which may have had its effect and is not repeated";
    let runs: Vec<_> = running.runs("").await;
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(runs.iter().all(|run| run.contains(interrupted)), "{runs:?}");
    let names: Vec<_> = running.tasks("").await.into_iter().map(|task| task.name).collect();
    assert_eq!(names, ["a"]);
    pass(HOUR).await;
    assert_eq!(running.runs("").await[2..], ["a 10:00:00 succeeded at 10:00:00: done"]);
    assert_eq!(harness.calls().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn long_run_keeps_its_lease_and_skips_the_next_time() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    harness.tool.permits.forget_permits(1_000);
    let (one, other) = (harness.start(), harness.start());
    one.schedule("", "slow", "*/5 * * * *", false).await;
    pass(7 * MINUTE).await;
    assert_eq!(other.runs("").await, ["slow 09:05:00 skipped at 09:05:00: the run before was still running"]);
    harness.tool.permits.add_permits(1_000);
    pass(4 * MINUTE).await;
    assert_eq!(
        one.runs("").await[1..],
        ["slow 09:00:00 succeeded at 09:06:30: done", "slow 09:10:00 succeeded at 09:10:00: done"]
    );
    assert_eq!(harness.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn many_gateways_fire_each_time_once() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    let gateways: Vec<_> = (0..5).map(|_| harness.start()).collect();
    for number in 0..20 {
        gateways[number % 5]
            .schedule(&format!("k{}", number % 3), &format!("t{number}"), "*/10 * * * *", false)
            .await;
    }
    pass(HOUR).await;
    let mut calls = harness.calls();
    assert_eq!(calls.len(), 20 * 6);
    calls.sort();
    calls.dedup();
    assert_eq!(calls.len(), 20 * 6);
}

#[tokio::test(start_paused = true)]
async fn tasks_of_a_revoked_key_end() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    let running = harness.start();
    running.schedule("k1", "a", "0 * * * *", false).await;
    running.schedule("k1", "b", "30 * * * *", false).await;
    running.schedule("k2", "a", "0 * * * *", false).await;
    harness.owners.refusals.lock().unwrap().insert("k1".to_owned(), OwnerRefusal::Ended("was revoked"));
    pass(2 * HOUR).await;
    assert_eq!(running.tasks("k1").await, []);
    assert!(harness.calls().iter().all(|call| call.starts_with("k2 ")), "{:?}", harness.calls());
    assert_eq!(harness.calls().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn refused_run_is_in_the_history() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    let running = harness.start();
    running.schedule("k1", "a", "0 * * * *", false).await;
    harness
        .owners
        .refusals
        .lock()
        .unwrap()
        .insert("k1".to_owned(), OwnerRefusal::Refused("quota of 1 exhausted".to_owned()));
    pass(MINUTE).await;
    assert_eq!(running.runs("k1").await, ["a 09:00:00 failed at 09:00:00: quota of 1 exhausted"]);
    assert_eq!(running.tasks("k1").await.len(), 1);
    assert!(harness.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn run_is_recorded_once_the_store_is_back() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z").with_tool();
    harness.tool.permits.forget_permits(1_000);
    let running = harness.start();
    running.schedule("", "a", "0 * * * *", false).await;
    pass(MINUTE).await;
    harness.store.is_unavailable.store(true, Ordering::Relaxed);
    harness.tool.permits.add_permits(1_000);
    pass(5).await;
    harness.store.is_unavailable.store(false, Ordering::Relaxed);
    pass(10).await;
    assert_eq!(running.runs("").await, ["a 09:00:00 succeeded at 09:00:30: done"]);
    // Nothing else was lost.
    pass(HOUR).await;
    assert_eq!(running.runs("").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn replaced_and_cancelled_tasks_do_not_fire() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z");
    let running = harness.start();
    running.schedule("", "Report", "0 9 * * *", false).await;
    running.schedule("", "report", "30 9 * * *", false).await;
    running.schedule("", "other", "0 9 * * *", false).await;
    assert!(running.schedules.cancel(&owner(""), " OTHER ").await.unwrap().is_some());
    assert!(running.schedules.cancel(&owner("k1"), "report").await.unwrap().is_none());
    pass(HOUR).await;
    assert_eq!(running.runs("").await, ["report 09:30:00 succeeded at 09:30:00: do report"]);
}

#[tokio::test(start_paused = true)]
async fn switched_off_schedules_do_not_fire() {
    let harness = ScheduleHarness::at("2026-11-25T08:59:30Z");
    let running = harness.start();
    running.schedule("", "a", "0 * * * *", false).await;
    running.schedules.enable(None);
    pass(2 * HOUR).await;
    assert_eq!(running.runs("").await, Vec::<String>::new());
    running.schedules.enable(Some(Arc::new(harness.settings.clone())));
    pass(HOUR).await;
    assert_eq!(running.runs("").await.last().unwrap(), "a 11:00:00 succeeded at 11:00:00: do a");
}
