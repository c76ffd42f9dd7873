//! Life cycle of workers.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use toolyard_core::Json;
use toolyard_functions::code::{CallContext, FunctionCode, SourceLanguage};
use toolyard_functions::run::RunError;
use toolyard_functions::runtime::FunctionRuntime;
use toolyard_testing::wait::until_async;

use crate::setup::{answer, code, context, options_of, processes, run};

const COUNTING: &str =
    "n = 0\ndef cortexone_handler(event, context):\n    global n\n    n += 1\n    return n";

/// Blocks without checks of the deadline by the engine.
const ENDLESS: &str = "function cortexone_handler() while true do end end";

fn counting() -> Arc<FunctionCode> {
    Arc::new(code(SourceLanguage::Python, COUNTING))
}

fn endless(limit: Duration, concurrent: usize) -> Arc<FunctionCode> {
    let mut code = code(SourceLanguage::Lua, ENDLESS);
    code.limits.time_limit = limit;
    code.limits.max_concurrent = concurrent;
    Arc::new(code)
}

/// Returns the worker itself, the innermost of the helper processes.
fn worker_below(pid: u32) -> Pid {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    match children.split_whitespace().next() {
        Some(child) => worker_below(child.parse().unwrap()),
        None => Pid::from_raw(pid.cast_signed()).unwrap(),
    }
}

fn is_dead(pid: Pid) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
    state.is_ok_and(|state| state.contains(") Z ")) || kill_process(pid, Signal::CONT).is_err()
}

#[tokio::test]
async fn worker_is_reused_and_replaced_after_its_last_call() {
    let mut options = options_of(&processes()).await;
    options.calls_per_worker = 3;
    let (runtimes, code) = (FunctionRuntime::new(options), counting());
    let mut answers = Vec::new();
    for _ in 0..7 {
        answers.push(answer(run(&runtimes, &code, "{}").await));
    }
    assert_eq!(answers.join(" "), "1 2 3 1 2 3 1");
}

#[tokio::test]
async fn replacement_is_ready_before_the_last_call() {
    let processes = processes();
    let mut options = options_of(&processes).await;
    options.calls_per_worker = 8;
    let (runtimes, code) = (FunctionRuntime::new(options), counting());
    let mut answers = Vec::new();
    for _ in 0..3 {
        while answers.len() % 8 != 6 {
            answers.push(answer(run(&runtimes, &code, "{}").await));
        }
        until_async("the expected workers", || runtimes.info()[0].idle == 2).await;
        let pids: Vec<_> = processes.list().iter().map(|process| process.pid).collect();
        for _ in 0..4 {
            answers.push(answer(run(&runtimes, &code, "{}").await));
        }
        until_async("the expected workers", || processes.list().len() == 1).await;
        assert!(pids.contains(&processes.list()[0].pid));
    }
    assert_eq!(answers.join(""), "12345678".repeat(3) + "12");
}

#[tokio::test]
async fn at_most_one_spare_worker_is_started() {
    let processes = processes();
    let mut options = options_of(&processes).await;
    options.calls_per_worker = 1;
    let runtimes = FunctionRuntime::new(options);
    let code = Arc::new(code(SourceLanguage::Lua, "function cortexone_handler() return 1 end"));
    for _ in 0..10 {
        assert_eq!(answer(run(&runtimes, &code, "{}").await), "1");
    }
    until_async("the expected workers", || runtimes.info()[0].idle == 1 && processes.list().len() == 1).await;
}

#[tokio::test]
async fn worker_killed_between_calls_is_replaced_transparently() {
    let sources =
        [COUNTING, "function cortexone_handler() { return 1 }", "function cortexone_handler() return 1 end"];
    for (language, source) in SourceLanguage::ALL.into_iter().zip(sources) {
        let processes = processes();
        let runtimes = FunctionRuntime::new(options_of(&processes).await);
        let code = Arc::new(code(language, source));
        for _ in 0..10 {
            assert_eq!(answer(run(&runtimes, &code, "{}").await), "1");
            for process in processes.list() {
                let worker = worker_below(process.pid);
                // The worker of the round before may have been found before it was reaped.
                assert!(matches!(kill_process(worker, Signal::KILL), Ok(()) | Err(Errno::SRCH)));
                // Dead, but the processes above it have not reported that yet.
                until_async("the expected workers", || is_dead(worker)).await;
            }
        }
    }
}

#[tokio::test]
async fn dropped_call_kills_its_worker() {
    let processes = processes();
    let runtimes = FunctionRuntime::new(options_of(&processes).await);
    let code = endless(Duration::from_secs(50), 4);
    runtimes.load(&code).await.unwrap();
    {
        let call = run(&runtimes, &code, "{}");
        tokio::pin!(call);
        let began = until_async("the expected workers", || runtimes.info()[0].running == 1);
        tokio::select! {
            () = began => {}
            result = &mut call => panic!("{result:?}"),
        }
        assert_eq!(processes.list().len(), 1);
    }
    until_async("the expected workers", || processes.list().is_empty()).await;
    assert_eq!(runtimes.info()[0].idle, 0);
}

#[tokio::test]
async fn calls_above_the_queue_limit_are_refused() {
    let mut options = options_of(&processes()).await;
    options.max_waiting = 1;
    let runtimes = FunctionRuntime::new(options);
    let code = endless(Duration::from_millis(500), 1);
    let event = Json::null();
    // Its deadline passes before its turn.
    let hurried = CallContext { deadline: SystemTime::now() + Duration::from_millis(100), ..context() };
    let calls =
        (run(&runtimes, &code, "{}"), runtimes.run(&code, &event, &hurried), run(&runtimes, &code, "{}"));
    let (first, second, third) = tokio::join!(calls.0, calls.1, calls.2);
    assert_eq!(first.unwrap_err(), RunError::TimedOut);
    assert_eq!(second.unwrap_err(), RunError::Busy);
    assert_eq!(third.unwrap_err(), RunError::Busy);
    until_async("the expected workers", || {
        runtimes.info()[0].running == 0 && runtimes.info()[0].waiting == 0
    })
    .await;
}

#[tokio::test]
async fn concurrent_calls_of_a_version_are_limited() {
    let processes = processes();
    let runtimes = FunctionRuntime::new(options_of(&processes).await);
    let mut slow =
        code(SourceLanguage::Python, "import time\ndef cortexone_handler(e, c): time.sleep(0.05); return e");
    slow.limits.max_concurrent = 2;
    let slow = Arc::new(slow);
    let results = join_all((0..6).map(|_| run(&runtimes, &slow, "[7]"))).await;
    assert!(results.into_iter().all(|result| answer(result) == "[7]"));
    assert_eq!(processes.list().len(), 2);
}

#[tokio::test]
async fn idle_workers_are_stopped_at_the_worker_limit() {
    let processes = processes();
    let mut options = options_of(&processes).await;
    options.workers = 1;
    let runtimes = FunctionRuntime::new(options);
    let codes: Vec<_> = (0..3)
        .map(|number| {
            Arc::new(code(SourceLanguage::Lua, &format!("function cortexone_handler() return {number} end")))
        })
        .collect();
    for _ in 0..2 {
        let calls = codes.iter().flat_map(|code| [run(&runtimes, code, "{}"), run(&runtimes, code, "{}")]);
        let answers: Vec<_> = join_all(calls).await.into_iter().map(answer).collect();
        assert_eq!(answers.join(""), "001122");
    }
    until_async("the expected workers", || processes.list().len() == 1).await;
}

#[tokio::test]
async fn single_version_cannot_use_all_workers() {
    let mut options = options_of(&processes()).await;
    options.workers = 4;
    let (runtimes, event) = (FunctionRuntime::new(options), Json::null());
    let greedy = endless(Duration::from_secs(50), 16);
    let soon = CallContext { deadline: SystemTime::now() + Duration::from_secs(10), ..context() };
    let modest = Arc::new(code(SourceLanguage::Lua, "function cortexone_handler() return 1 end"));
    let all = join_all((0..8).map(|_| run(&runtimes, &greedy, "{}")));
    tokio::pin!(all);
    let other = async {
        until_async("the expected workers", || {
            runtimes.info().first().is_some_and(|info| info.running >= 2 && info.waiting > 0)
        })
        .await;
        runtimes.run(&modest, &event, &soon).await
    };
    tokio::select! {
        _ = &mut all => panic!("they are endless"),
        answered = other => assert_eq!(answer(answered), "1"),
    }
    assert_eq!(runtimes.info().iter().map(|info| info.running).max(), Some(2));
}

#[tokio::test]
async fn call_does_not_wait_for_a_long_clean_up() {
    let processes = processes();
    let runtimes = FunctionRuntime::new(options_of(&processes).await);
    let source = "function cortexone_handler(event) {
        if (event.full) { globalThis.kept = []; for (let i = 0; i < 2e6; i++) kept.push({ a: i }) }
        return 1
    }";
    let code = Arc::new(code(SourceLanguage::JavaScript, source));
    answer(run(&runtimes, &code, "{}").await);
    let pids = || processes.list().iter().map(|process| process.pid).collect::<Vec<_>>();
    let first = pids();
    answer(run(&runtimes, &code, r#"{"full":true}"#).await);
    assert_eq!(pids(), first);
    answer(run(&runtimes, &code, "{}").await);
    until_async("the expected workers", || processes.list().len() == 1).await;
    assert_ne!(pids(), first);
}

#[tokio::test]
async fn worker_that_ends_between_calls_is_replaced() {
    let processes = processes();
    let (runtimes, code) = (FunctionRuntime::new(options_of(&processes).await), counting());
    assert_eq!(answer(run(&runtimes, &code, "{}").await), "1");
    let pids = || processes.list().iter().map(|process| process.pid).collect::<Vec<_>>();
    let first = pids();
    kill_process(worker_below(first[0]), Signal::KILL).unwrap();
    until_async("the expected workers", || {
        let idle = runtimes.info().iter().map(|info| info.idle).sum::<usize>();
        idle == 1 && pids().len() == 1 && pids() != first
    })
    .await;
    // A worker that ends before its first call is not replaced, because its successor would end, too.
    kill_process(worker_below(pids()[0]), Signal::KILL).unwrap();
    until_async("the expected workers", || runtimes.info().is_empty() && pids().is_empty()).await;
    assert_eq!(answer(run(&runtimes, &code, "{}").await), "1");
}

#[tokio::test]
async fn idle_worker_is_stopped() {
    let processes = processes();
    let mut options = options_of(&processes).await;
    options.idle_time = Duration::from_millis(100);
    let (runtimes, code) = (FunctionRuntime::new(options), counting());
    for _ in 0..2 {
        assert_eq!(answer(run(&runtimes, &code, "{}").await), "1");
        until_async("the expected workers", || processes.list().is_empty() && runtimes.info().is_empty())
            .await;
    }
}

#[tokio::test]
async fn workers_end_with_the_last_runtime_clone() {
    let processes = processes();
    let runtimes = FunctionRuntime::new(options_of(&processes).await);
    run(&runtimes, &counting(), "{}").await.unwrap();
    let other = runtimes.clone();
    drop(runtimes);
    assert_eq!(processes.list().len(), 1);
    drop(other);
    until_async("the expected workers", || processes.list().is_empty()).await;
}

#[tokio::test]
async fn worker_that_cannot_start_is_unavailable() {
    let mut options = options_of(&processes()).await;
    options.python = "no-such-python".into();
    let error = run(&FunctionRuntime::new(options), &counting(), "{}").await.unwrap_err();
    assert!(
        matches!(&error, RunError::Unavailable(why) if why.contains("start the program: No such file")),
        "{error:?}"
    );
}
