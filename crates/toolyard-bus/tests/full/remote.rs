//! Tools of workers as a gateway publishes them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinHandle;
use toolyard_bus::MessageBus;
use toolyard_bus::remote::{RemoteBackend, RemoteOptions};
use toolyard_bus::worker::BusWorker;
use toolyard_core::{
    Backend, BackendPhase, Call, CallOutput, Catalog, CauseCode, ErrorCode, Json, Outcome, ToolError,
};
use toolyard_manifest::{BusHandler, BusSettings};

use crate::support::{
    CountingBackend, ListeningClient, TestBroker, TestPrincipal, gateway, on_every_body, within,
};

/// Announcements follow each other quickly, and two missed ones are enough.
fn quick(mut settings: BusSettings, group: &str) -> BusSettings {
    settings.worker.group = group.to_owned();
    settings.worker.announce_interval = Duration::from_millis(200);
    settings
}

/// Starts a worker with these tools, and waits until it has subscribed.
async fn worker(case: &TestBroker, group: &str, tools: &'static str) -> (BusWorker, Arc<CountingBackend>) {
    let backend = CountingBackend::new();
    let settings = quick(case.settings.clone(), group);
    let principal = Arc::new(TestPrincipal(tools));
    let worker = BusWorker::start(case.bus(), gateway(backend.clone()), principal, &settings).unwrap();
    assert!(within("the worker", worker.subscribed()).await);
    (worker, backend)
}

pub(crate) fn remote(bus: Arc<dyn MessageBus>, settings: &BusSettings) -> RemoteBackend {
    RemoteBackend::start(
        bus,
        RemoteOptions {
            name: "workers".into(),
            handler: BusHandler::default(),
            settings: settings.clone(),
            max_tools: 100,
            max_definition_bytes: 1 << 20,
        },
    )
}

/// Waits until the names of the tools are these.
pub(crate) async fn published(backend: &RemoteBackend, expected: &str) -> Arc<Catalog> {
    let mut catalog = backend.catalog();
    let names = |catalog: &Arc<Catalog>| {
        let names: Vec<_> = catalog.tools.iter().map(|tool| &*tool.name).collect();
        names.join(" ")
    };
    let is_it = |catalog: &Arc<Catalog>| {
        eprintln!("{:?} {}", catalog.phase, names(catalog));
        catalog.phase != BackendPhase::Connecting && names(catalog) == expected
    };
    within("the tools", catalog.wait_for(is_it)).await.unwrap().clone()
}

fn call_of(tool: &str, text: &str) -> Call {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let arguments = Json::from_value(&json!({"text": text}));
    Call { deadline: Some(deadline), ..Call::tool(tool, arguments) }
}

pub(crate) async fn call(backend: &RemoteBackend, tool: &str, text: &str) -> Result<String, ToolError> {
    let outcome = backend.call(call_of(tool, text)).await?;
    let Outcome::Done(CallOutput { body, is_error }) = outcome else { panic!("{outcome:?}") };
    Ok(format!("{is_error} {}", body.to_json().as_text()))
}

fn runs(backend: &CountingBackend, text: &str) -> usize {
    backend.runs.lock().unwrap().get(text).copied().unwrap_or_default()
}

#[tokio::test]
async fn tools_of_workers_are_published_and_called() {
    on_every_body("published", async |case| {
        // The gateway comes first: it hears of the worker by its announcement.
        let backend = remote(case.bus(), &case.settings);
        let mut catalog = backend.catalog();
        let has_no_worker = |catalog: &Arc<Catalog>| {
            matches!(&catalog.phase, BackendPhase::Unavailable { reason } if reason.code == CauseCode::NoWorker)
        };
        drop(within("no worker", catalog.wait_for(has_no_worker)).await.unwrap());
        let (_worker, _) = worker(&case, "east", "read write fail image").await;
        let catalog = published(&backend, "fail image read write").await;
        assert_eq!(catalog.phase, BackendPhase::Ready);
        let shown = call(&backend, "read", "x").await.unwrap();
        assert_eq!(shown, r#"false {"content":[{"type":"text","text":"read x by bus "}]}"#);
        let shown = call(&backend, "image", "x").await.unwrap();
        assert!(shown.contains(r#""mimeType":"image/png""#) && shown.contains(r#""width":1"#), "{shown}");
        let shown = call(&backend, "fail", "x").await.unwrap();
        assert_eq!(shown, r#"true {"content":[{"type":"text","text":"no such city"}],"isError":true}"#);
        let refused = call(&backend, "slow", "x").await.unwrap_err();
        assert_eq!((refused.code(), refused.may_have_run()), (ErrorCode::ToolNotFound, false));
        // A gateway that comes later asks for announcements, and need not wait for the next one.
        published(&remote(case.bus(), &case.settings), "fail image read write").await;
    })
    .await;
}

#[tokio::test]
async fn workers_of_a_group_share_the_calls() {
    on_every_body("shared", async |case| {
        let (_one, first) = worker(&case, "east", "*").await;
        let (_other, second) = worker(&case, "east", "*").await;
        let backend = Arc::new(remote(case.bus(), &case.settings));
        published(&backend, "fail image large panic progress read slow write").await;
        let calls = (0..40).map(|number| {
            let backend = backend.clone();
            async move { call(&backend, "read", &number.to_string()).await.unwrap() }
        });
        futures_util::future::join_all(calls).await;
        let count = |backend: &CountingBackend| backend.runs.lock().unwrap().values().sum::<usize>();
        assert_eq!(count(&first) + count(&second), 40);
        assert!(count(&first) > 0 && count(&second) > 0, "{} {}", count(&first), count(&second));
    })
    .await;
}

#[tokio::test]
async fn calls_reach_the_group_that_has_the_tool() {
    on_every_body("groups", async |case| {
        let (_east, east) = worker(&case, "east", "read").await;
        let (_west, west) = worker(&case, "west", "write").await;
        let backend = remote(case.bus(), &case.settings);
        published(&backend, "read write").await;
        for number in 0..10 {
            let text = number.to_string();
            call(&backend, "read", &text).await.unwrap();
            call(&backend, "write", &text).await.unwrap();
            assert_eq!((runs(&east, &text), runs(&west, &text)), (1, 1));
        }
        // A worker of the group without the tool: it is published no longer, because that worker could get the call.
        let (more, _) = worker(&case, "east", "fail").await;
        let catalog = published(&backend, "write").await;
        let left_out: Vec<_> =
            catalog.left_out[0].iter().map(|item| format!("{}: {}", item.name, item.reason)).collect();
        assert_eq!(
            left_out,
            ["fail", "read"].map(|tool| format!("{tool}: 1 of 2 workers of the group east do not have it"))
        );
        more.stop(Duration::ZERO).await;
        published(&backend, "read write").await;
    })
    .await;
}

/// Starts a call that does not end, and returns once a worker runs it.
async fn running_call(
    backend: &Arc<RemoteBackend>,
    counted: &CountingBackend,
) -> JoinHandle<Result<String, ToolError>> {
    let running = tokio::spawn({
        let backend = backend.clone();
        async move { call(&backend, "slow", "running").await }
    });
    within("the call", async {
        while runs(counted, "running") == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    running
}

#[tokio::test]
async fn tools_of_a_vanished_worker_end_with_their_calls() {
    on_every_body("vanished", async |case| {
        let (doomed, counted) = worker(&case, "east", "slow write").await;
        let backend = Arc::new(remote(case.bus(), &case.settings));
        published(&backend, "slow write").await;
        let running = running_call(&backend, &counted).await;
        // As if it was killed: it withdraws nothing.
        drop(doomed);
        let ended = within("the end of the call", running).await.unwrap().unwrap_err();
        assert_eq!((ended.code(), ended.may_have_run()), (ErrorCode::ExecutionFailed, true), "{ended:?}");
        let catalog = published(&backend, "").await;
        let BackendPhase::Unavailable { reason } = &catalog.phase else { panic!("{:?}", catalog.phase) };
        let expected = (CauseCode::NoWorker, "no worker announces itself on the message bus");
        assert_eq!((reason.code, &*reason.message), expected);
        let refused = call(&backend, "write", "later").await.unwrap_err();
        assert_eq!((refused.code(), refused.may_have_run()), (ErrorCode::Unavailable, false));
        // The next worker brings the tools back.
        let (_worker, _) = worker(&case, "east", "slow write").await;
        published(&backend, "slow write").await;
        call(&backend, "write", "again").await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn stopped_worker_withdraws_its_tools_and_waits_for_its_calls() {
    on_every_body("stopped", async |case| {
        let (stopped, counted) = worker(&case, "east", "slow").await;
        let backend = Arc::new(remote(case.bus(), &case.settings));
        published(&backend, "slow").await;
        let running = running_call(&backend, &counted).await;
        let stopping = tokio::spawn(stopped.stop(Duration::from_secs(20)));
        published(&backend, "").await;
        assert!(!running.is_finished() && !stopping.is_finished());
        // The caller gives up, so that the worker has no call any more.
        running.abort();
        within("the end of the worker", stopping).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn progress_traces_cancellation_and_deadlines_cross_the_bus() {
    on_every_body("crossing", async |case| {
        let (_worker, counted) = worker(&case, "east", "*").await;
        let backend = remote(case.bus(), &case.settings);
        published(&backend, "fail image large panic progress read slow write").await;
        let client = Arc::new(ListeningClient::default());
        let listening = Call { client: client.clone(), ..call_of("progress", "") };
        backend.call(listening).await.unwrap();
        assert_eq!(*client.0.lock().unwrap(), [r#"{"progress":1}"#, r#"{"progress":2}"#]);
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let mut traced = call_of("read", "x");
        traced.meta.set("traceparent", Json::string(parent));
        let Outcome::Done(output) = backend.call(traced).await.unwrap() else { panic!() };
        assert!(output.body.to_json().as_text().contains(parent), "{output:?}");
        let mut dropped = counted.dropped.subscribe();
        let deadline = tokio::time::Instant::now() + Duration::from_millis(400);
        let late =
            backend.call(Call { deadline: Some(deadline), ..call_of("slow", "late") }).await.unwrap_err();
        assert_eq!(late.code(), ErrorCode::Timeout);
        within("the end of the call", dropped.wait_for(|dropped| *dropped == 1)).await.unwrap();
        tokio::select! {
            _ = backend.call(call_of("slow", "abandoned")) => panic!("it has no answer"),
            () = async {
                while runs(&counted, "abandoned") == 0 { tokio::time::sleep(Duration::from_millis(5)).await }
            } => {}
        }
        within("the cancellation", dropped.wait_for(|dropped| *dropped == 2)).await.unwrap();
    })
    .await;
}
