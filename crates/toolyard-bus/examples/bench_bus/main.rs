//! The calls of `cargo xtask bench --only bus`: a tool that echoes, called in this process, over a broker, and for
//! comparison a bare request and its reply on the same broker, as durable and as confirmed.
//!
//! The argument is the URL of the broker. Each line on standard input is a [`BenchCase`]: the program warms up, prints
//! `ready`, waits for another line, makes the calls and prints a [`CallMeasurement`]. The bench that writes the lines
//! meanwhile measures the CPU time of the process, which has both ends of a call.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt, ready, try_join_all};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;
use toolyard_bus::caller::{RemoteCall, ToolCaller};
use toolyard_bus::record::ToolInvokeRequest;
use toolyard_bus::worker::{BusWorker, WorkerPrincipal};
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::layers::{AccessPolicy, ArgumentValidation, DeadlineLayer};
use toolyard_core::names::NameRegistry;
use toolyard_core::registry::{CallLimits, HandlerEntry, Registry};
use toolyard_core::{
    Backend, BackendPhase, Call, CallOutput, Caller, Catalog, Gateway, Json, Outcome, Tool, ToolError,
};
use toolyard_manifest::{BrokerKind, BrokerUrl, BusSettings};

mod bare;

use self::bare::BareRequests;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Time limit of a call.
const LIMIT: Duration = Duration::from_secs(20);

/// Maximum number of calls that are worked on at a time, more than are in flight.
const CONCURRENT: usize = 128;

/// One measurement to make.
#[derive(Clone, Copy, Deserialize)]
struct BenchCase {
    way: CallPath,
    in_flight: usize,
    seconds: f64,
}

/// The way of a call.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallPath {
    /// `Gateway::invoke` in this process.
    InProcess,
    /// A request and its reply by the client of the broker.
    Bare,
    /// A call over the bus, from a caller to a worker.
    Bus,
}

/// The result of one measurement.
#[derive(Serialize)]
struct CallMeasurement {
    calls: usize,
    seconds: f64,
    p50_us: f64,
    p99_us: f64,
}

/// Everything that calls need.
struct BenchBus {
    gateway: Arc<Gateway>,
    bare: BareRequests,
    caller: ToolCaller,
    _worker: BusWorker,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1).ok_or("the argument is the URL of a broker")?;
    let bench = BenchBus::start(&url).await?;
    let mut lines = io::stdin().lock().lines();
    while let Some(line) = lines.next() {
        let case: BenchCase = serde_json::from_str(&line?)?;
        bench.run(case, case.seconds / 5.0).await?;
        writeln!(io::stdout(), "ready")?;
        lines.next().ok_or("no line to begin")??;
        let measured = bench.run(case, case.seconds).await?;
        writeln!(io::stdout(), "{}", serde_json::to_string(&measured)?)?;
    }
    Ok(())
}

impl BenchBus {
    async fn start(url: &str) -> Result<Self> {
        let url: BrokerUrl = url.parse().map_err(|error| format!("{error}"))?;
        let mut settings = BusSettings { url: Some(url.clone()), ..BusSettings::default() };
        settings.worker.concurrent_calls = CONCURRENT;
        let gateway = gateway();
        let worker = BusWorker::start(
            toolyard_bus::connect(&settings)?,
            gateway.clone(),
            Arc::new(AnyTool),
            &settings,
        )?;
        if !worker.subscribed().await {
            return Err("the broker refuses the worker".into());
        }
        let caller = ToolCaller::start(toolyard_bus::connect(&settings)?, "bench", 1000).await?;
        let bare = match url.kind() {
            BrokerKind::RabbitMq => BareRequests::on_rabbitmq(url.expose()).await?,
            BrokerKind::Nats => BareRequests::on_nats(url.expose()).await?,
        };
        Ok(Self { gateway, bare, caller, _worker: worker })
    }

    /// Makes calls for so many seconds, at least one on each of the tasks in flight.
    async fn run(&self, case: BenchCase, seconds: f64) -> Result<CallMeasurement> {
        let started = Instant::now();
        let until = started + Duration::from_secs_f64(seconds);
        let callers = (0..case.in_flight).map(|number| async move {
            let mut latencies = Vec::new();
            loop {
                let (text, sent) = (format!("{number}-{}", latencies.len()), Instant::now());
                let answer = self.call(case.way, &text).await?;
                latencies.push(sent.elapsed());
                if !answer.contains(&text) {
                    return Err(format!("the answer to {text} is {answer}").into());
                }
                if Instant::now() >= until {
                    return Ok::<_, Box<dyn Error + Send + Sync>>(latencies);
                }
            }
        });
        let mut latencies = try_join_all(callers).await?.concat();
        let seconds = started.elapsed().as_secs_f64();
        latencies.sort_unstable();
        let share = |share: f64| {
            let rank = (latencies.len() as f64 * share).ceil() as usize;
            latencies[rank.saturating_sub(1)].as_secs_f64() * 1e6
        };
        Ok(CallMeasurement { calls: latencies.len(), seconds, p50_us: share(0.5), p99_us: share(0.99) })
    }

    async fn call(&self, way: CallPath, text: &str) -> Result<String> {
        let arguments = json!({"text": text});
        match way {
            CallPath::InProcess => {
                let call = Call::tool("echo", Json::from_value(&arguments));
                match self.gateway.invoke(call).await? {
                    Outcome::Done(output) => Ok(output.body.to_json().as_text().to_owned()),
                    other => Err(format!("{other:?}").into()),
                }
            }
            CallPath::Bare => self.bare.request(arguments.to_string()).await,
            CallPath::Bus => {
                let request = ToolInvokeRequest {
                    tool_call_id: toolyard_bus::envelope::new_id()?,
                    tool_name: "echo".to_owned(),
                    arguments: Some(arguments.to_string()),
                    session_id: None,
                };
                let answer = self.caller.call(&request, RemoteCall::within(LIMIT)).await?;
                Ok(answer.content.unwrap_or_default())
            }
        }
    }
}

/// Returns a gateway with one tool, which is read-only: its calls are acknowledged after the work.
fn gateway() -> Arc<Gateway> {
    let backend: Arc<dyn Backend> = Arc::new(EchoBackend::new());
    let catalog = backend.catalog().borrow().clone();
    let gate = CallGate::new(GateSize { running: 1000, waiting: 1000 });
    let handler = HandlerEntry::new("echo", backend, CallLimits { timeout: LIMIT, gate });
    let registry = Registry::assemble(&[(handler, catalog)], &mut NameRegistry::default());
    Arc::new(Gateway::new(
        watch::Sender::new(Arc::new(registry)).subscribe(),
        vec![Box::new(AccessPolicy), Box::new(ArgumentValidation::new(None)), Box::new(DeadlineLayer)],
    ))
}

/// A backend whose tool answers with its arguments.
struct EchoBackend(watch::Sender<Arc<Catalog>>);

impl EchoBackend {
    fn new() -> Self {
        let definition = json!({
            "name": "echo",
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
            "annotations": {"readOnlyHint": true},
        });
        let tool = Tool::from_definition(&Json::from_value(&definition)).map(Arc::new);
        let tools = tool.into_iter().collect();
        let catalog = Catalog { phase: BackendPhase::Ready, tools, ..Catalog::default() };
        Self(watch::Sender::new(Arc::new(catalog)))
    }
}

impl Backend for EchoBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, std::result::Result<Outcome, ToolError>> {
        let text = call.arguments().map_or("", Json::as_text).to_owned();
        ready(Ok(Outcome::Done(CallOutput::text(&text)))).boxed()
    }
}

/// A caller with all rights.
struct AnyTool;

impl WorkerPrincipal for AnyTool {
    fn caller(&self) -> BoxFuture<'_, std::result::Result<Caller, ToolError>> {
        ready(Ok(Caller::default())).boxed()
    }
}
