//! Results above the limit of messages, which go through a store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use toolyard_bus::caller::{RemoteCall, ToolCaller};
use toolyard_bus::scripts::{BusScriptRunner, ScriptsManager, ScriptsManagerOptions};
use toolyard_bus::stored_results::with_store;
use toolyard_bus::worker::BusWorker;
use toolyard_core::ToolError;
use toolyard_core::script::{PythonScript, ScriptExecutor, ScriptOutcome};
use toolyard_core::store::{
    KeySpace, KeyValueStore, PutRequest, StoreError, StoreErrorKind, StoreFuture, StoredValue,
};
use toolyard_manifest::StoredResultSettings;

use crate::support::{
    BusBody, CountingBackend, TestBroker, TestPrincipal, gateway, on_every_body, request, within,
};

const LIMIT: Duration = Duration::from_secs(20);

/// Size of the result of `large`.
const LARGE: usize = 4 << 20;

/// A store in memory.
#[derive(Default)]
struct MemoryStore {
    values: Mutex<BTreeMap<String, StoredValue>>,
    fault: Option<StoreFault>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StoreFault {
    Unavailable,
    Changed,
}

impl MemoryStore {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn with(fault: StoreFault) -> Arc<Self> {
        Arc::new(Self { fault: Some(fault), ..Self::default() })
    }

    fn answer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut BTreeMap<String, StoredValue>) -> T,
    ) -> StoreFuture<'static, T> {
        if self.fault == Some(StoreFault::Unavailable) {
            return ready(Err(StoreError::new(StoreErrorKind::Unavailable, "it is away"))).boxed();
        }
        ready(Ok(work(&mut self.values.lock().unwrap()))).boxed()
    }

    fn len(&self) -> usize {
        self.values.lock().unwrap().len()
    }
}

impl KeyValueStore for MemoryStore {
    fn get<'a>(&'a self, _: KeySpace, key: &'a str) -> StoreFuture<'a, Option<StoredValue>> {
        let is_changed = self.fault == Some(StoreFault::Changed);
        self.answer(|values| {
            let is_live = |value: &&StoredValue| value.expires.is_none_or(|end| end > SystemTime::now());
            let mut value = values.get(key).filter(is_live).cloned()?;
            if is_changed {
                value.bytes = String::from_utf8_lossy(&value.bytes).replacen('x', "y", 1).into();
            }
            Some(value)
        })
    }

    fn put<'a>(&'a self, _: KeySpace, key: &'a str, put: PutRequest) -> StoreFuture<'a, Option<u64>> {
        self.answer(|values| {
            let value = StoredValue { bytes: put.bytes, version: 1, expires: put.expires };
            values.insert(key.to_owned(), value);
            Some(1)
        })
    }

    fn delete<'a>(&'a self, _: KeySpace, key: &'a str) -> StoreFuture<'a, bool> {
        self.answer(|values| values.remove(key).is_some())
    }

    fn list<'a>(
        &'a self,
        _: KeySpace,
        _: &'a str,
        _: Option<&'a str>,
        _: usize,
    ) -> StoreFuture<'a, Vec<(String, StoredValue)>> {
        self.answer(|_| Vec::new())
    }

    fn size(&self, _: KeySpace) -> StoreFuture<'_, u64> {
        self.answer(|values| values.values().map(|value| value.bytes.len() as u64).sum())
    }

    fn revision(&self, _: KeySpace) -> StoreFuture<'_, u64> {
        self.answer(|_| 1)
    }
}

/// Calls `large`, and returns the size of its text, or its error.
async fn call_large(
    case: &TestBroker,
    worker_store: Option<&Arc<MemoryStore>>,
    caller_store: Option<&Arc<MemoryStore>>,
) -> Result<usize, ToolError> {
    let bus = |store: Option<&Arc<MemoryStore>>| match store {
        Some(store) => with_store(case.bus(), store.clone(), &case.settings),
        None => case.bus(),
    };
    let principal = Arc::new(TestPrincipal("large"));
    let gateway = gateway(CountingBackend::new());
    let worker = BusWorker::start(bus(worker_store), gateway, principal, &case.settings).unwrap();
    assert!(within("the worker", worker.subscribed()).await);
    let caller = ToolCaller::start(bus(caller_store), "agent", 10).await.unwrap();
    let request = request("large", "{}");
    let answer = within("an answer", caller.call(&request, RemoteCall::within(LIMIT))).await?;
    let full = within("an answer", caller.call_in_full(&request, RemoteCall::within(LIMIT))).await?;
    let text = full.body.to_json().as_text().len();
    assert!((LARGE..LARGE + 200).contains(&text), "{text}");
    Ok(answer.content.unwrap_or_default().len())
}

fn case_of(broker: &TestBroker, change: impl FnOnce(&mut StoredResultSettings)) -> TestBroker {
    broker.case("stored", |settings| {
        let mut stored = StoredResultSettings::default();
        change(&mut stored);
        settings.stored_results = Some(stored);
    })
}

#[tokio::test]
async fn large_results_go_through_a_shared_store() {
    on_every_body("shared-store", async |mut case| {
        case.settings.stored_results = Some(StoredResultSettings::default());
        let store = MemoryStore::new();
        assert_eq!(call_large(&case, Some(&store), Some(&store)).await.unwrap(), LARGE);
        assert_eq!(store.len(), 0, "a result that was read is removed");
    })
    .await;
}

#[tokio::test]
async fn large_results_without_a_shared_store_are_errors() {
    let broker = TestBroker::start(BusBody::InProcess);
    let check = async |case: TestBroker, stores: [Option<&Arc<MemoryStore>>; 2], expected: &str| {
        let error = call_large(&case, stores[0], stores[1]).await.unwrap_err();
        let shown = format!("{:?} {}", error.code(), error.message());
        assert!(shown.contains(expected), "{shown}");
        assert!(shown.starts_with("ExecutionFailed The result "), "{shown}");
    };
    let (store, other) = (MemoryStore::new(), MemoryStore::new());
    let any = || case_of(&broker, |_| {});
    let remedy = "bus: the message has 4194";
    check(any(), [None, None], remedy).await;
    check(any(), [None, Some(&store)], "set `bus.storedResults` of both").await;
    // The worker stores nothing for a caller that does not read it.
    check(any(), [Some(&store), None], "set `bus.storedResults` of both").await;
    assert_eq!(store.len(), 0);
    check(any(), [Some(&store), Some(&other)], "is not in the store of this process").await;
    assert_eq!((store.len(), other.len()), (1, 0));
    let small = case_of(&broker, |stored| stored.bytes = 1 << 20);
    check(small, [Some(&other), Some(&other)], "`bus.storedResults.bytes` is 1048576").await;
    let full = case_of(&broker, |stored| stored.total_bytes = 5 << 20);
    check(full, [Some(&store), Some(&store)], "Too many results wait in the store").await;
    let expired = case_of(&broker, |stored| stored.ttl = Duration::ZERO);
    check(expired, [Some(&other), Some(&other)], "it has expired").await;
    let changed = MemoryStore::with(StoreFault::Changed);
    check(any(), [Some(&changed), Some(&changed)], "is not the one that was sent").await;
    let away = MemoryStore::with(StoreFault::Unavailable);
    check(any(), [Some(&away), Some(&away)], "the store cannot be reached").await;
}

/// Prints more than a message has room for.
struct LargeScript;

impl ScriptExecutor for LargeScript {
    fn run(&self, _: PythonScript) -> BoxFuture<'_, Result<ScriptOutcome, ToolError>> {
        let outcome = ScriptOutcome {
            output: "x".repeat(LARGE),
            stderr: String::new(),
            exit_code: 3,
            elapsed: Duration::from_millis(1),
        };
        ready(Ok(outcome)).boxed()
    }
}

#[tokio::test]
async fn large_outputs_of_scripts_go_through_the_store() {
    let broker = TestBroker::start(BusBody::InProcess);
    let case = case_of(&broker, |_| {});
    let store = MemoryStore::new();
    let bus = || with_store(case.bus(), store.clone(), &case.settings);
    let options = ScriptsManagerOptions { concurrent: 1 };
    let manager = ScriptsManager::start(bus(), Arc::new(LargeScript), options, &case.settings);
    assert!(within("the manager", manager.subscribed()).await);
    let run = async |runner: BusScriptRunner| {
        let script = PythonScript {
            call_id: "1".to_owned(),
            source: "large".to_owned(),
            input: None,
            timeout: LIMIT,
            packages: Vec::new(),
            trace_parent: None,
        };
        within("the script", ScriptExecutor::run(&runner, script)).await
    };
    let outcome = run(BusScriptRunner::new(bus(), &case.settings)).await.unwrap();
    assert_eq!((outcome.output.len(), outcome.exit_code, store.len()), (LARGE, 3, 0));
    let error = run(BusScriptRunner::new(case.bus(), &case.settings)).await.unwrap_err();
    assert!(error.message().contains("set `bus.storedResults` of both"), "{}", error.message());
}
