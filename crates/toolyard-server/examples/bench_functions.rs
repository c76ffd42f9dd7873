//! The calls of `cargo xtask bench --only functions`: the sample functions, called through `Gateway::invoke` in this
//! process and, for comparison, with one process for each call.
//!
//! The argument is the folder of the functions. Each line on standard input is a [`BenchCase`]: the program warms up,
//! prints `ready`, waits for another line, makes the calls and prints a [`CallMeasurement`]. The bench that writes the
//! lines meanwhile measures the resources of the processes. A wrong answer ends the program.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::try_join_all;
use serde::{Deserialize, Deserializer, Serialize};
use toolyard_core::store::Store;
use toolyard_core::{Call, CallTarget, Gateway, Json, Outcome};
use toolyard_functions::code::{CallContext, CodeLimits, FunctionCode, SourceLanguage};
use toolyard_functions::runtime::{ENTRY, FunctionRuntime, RuntimeOptions};
use toolyard_functions::{FunctionHost, FunctionKind, FunctionProject, HostOptions, VersionBump};
use toolyard_process::{ProcessSpawner, ProcessTable};
use toolyard_sandbox::{IsolationRequirement, Sandbox, SandboxOptions};
use toolyard_server::hosting::ANSWER;
use toolyard_server::{GatewayOptions, RunningGateway};
use toolyard_store::{DatabaseLocation, StoreOptions};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// One measurement to make.
#[derive(Clone, Copy, Deserialize)]
struct BenchCase {
    #[serde(deserialize_with = "language")]
    language: SourceLanguage,
    way: CallPath,
    in_flight: usize,
    seconds: f64,
}

fn language<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<SourceLanguage, D::Error> {
    let end = String::deserialize(deserializer)?;
    let matching = SourceLanguage::ALL.into_iter().find(|language| language.extension() == end);
    matching.ok_or_else(|| serde::de::Error::custom(format!("unknown language `{end}`")))
}

/// The way in which a call reaches its function.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallPath {
    /// Through the gateway, in a warm worker.
    Gateway,
    /// In a sandboxed worker that is started for the call and ended after it.
    Worker,
    /// In an interpreter that is started for the call, without a sandbox.
    Interpreter,
}

/// The result of one measurement.
#[derive(Serialize)]
struct CallMeasurement {
    calls: usize,
    seconds: f64,
    min_us: f64,
    p50_us: f64,
    p99_us: f64,
}

const EVENT: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#;

/// The expected answer of every call, in any order of members.
const EXPECTED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}"#;

/// Deadline of a call.
const LONGEST: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    toolyard_process::run_supervisor_if_requested();
    toolyard_sandbox::enter_if_asked(&[ENTRY]);
    let folder = std::env::args_os().nth(1).ok_or("missing argument: folder of the functions")?;
    // The same runtime as in the binary.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(Path::new(&folder)))
}

async fn serve(folder: &Path) -> Result<()> {
    let bench = FunctionBench::start(folder).await?;
    let mut lines = io::stdin().lock().lines();
    while let Some(line) = lines.next() {
        let case: BenchCase = serde_json::from_str(&line?)?;
        bench.measure(case, case.seconds / 5.0).await?;
        say("ready")?;
        lines.next().ok_or("missing line after `ready`")??;
        let measurement = bench.measure(case, case.seconds).await?;
        say(&serde_json::to_string(&measurement)?)?;
    }
    Ok(())
}

fn say(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}

/// A gateway with a function in each language, and the means to run the functions without it.
struct FunctionBench {
    gateway: Arc<Gateway>,
    options: RuntimeOptions,
    folder: PathBuf,
    expected: serde_json::Value,
    _running: RunningGateway,
}

impl FunctionBench {
    async fn start(folder: &Path) -> Result<Self> {
        let store = toolyard_store::open(&StoreOptions::at(DatabaseLocation::Memory)).await?;
        let processes = ProcessTable::new(ProcessSpawner::supervised_by_this_program(), 64);
        // A machine without sandboxing has no sandbox costs; the other figures are still useful.
        let isolation = IsolationRequirement::BestEffort;
        let sandbox = Sandbox::new(SandboxOptions { isolation, ..SandboxOptions::new(processes) });
        let options = RuntimeOptions::new(sandbox);
        publish(folder, store.clone(), FunctionRuntime::new(options.clone())).await?;
        let source = toolyard_manifest::ManifestSource { name: "bench.yaml".into(), text: MANIFEST.into() };
        let manifest = toolyard_manifest::parse(&[source])?;
        let spawner = ProcessSpawner::supervised_by_this_program();
        let store = Some(store);
        let running = toolyard_server::start(
            &manifest,
            &GatewayOptions { spawner, store, ..GatewayOptions::default() },
        )
        .await?;
        let gateway = running.gateway().clone();
        let expected = serde_json::from_str(EXPECTED)?;
        Ok(Self { gateway, options, folder: folder.to_owned(), expected, _running: running })
    }

    async fn measure(&self, case: BenchCase, seconds: f64) -> Result<CallMeasurement> {
        let started_at = Instant::now();
        let until = started_at + Duration::from_secs_f64(seconds);
        let done = try_join_all((0..case.in_flight).map(|_| self.calls(case, until))).await?;
        let elapsed = started_at.elapsed();
        let mut times = done.concat();
        times.sort_unstable();
        let share = |of: usize| times[(times.len() - 1) * of / 100].as_secs_f64() * 1e6;
        let (min_us, p50_us, p99_us) = (share(0), share(50), share(99));
        Ok(CallMeasurement { calls: times.len(), seconds: elapsed.as_secs_f64(), min_us, p50_us, p99_us })
    }

    /// Makes one call after the other until `until`, and returns the time of each.
    async fn calls(&self, case: BenchCase, until: Instant) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        while times.is_empty() || Instant::now() < until {
            let started_at = Instant::now();
            let answer = match case.way {
                CallPath::Gateway => self.through_gateway(case.language).await?,
                CallPath::Worker => self.in_fresh_worker(case.language).await?,
                CallPath::Interpreter => run_interpreter(&self.folder)?,
            };
            times.push(started_at.elapsed());
            if serde_json::from_slice::<serde_json::Value>(&answer)? != self.expected {
                return Err(String::from_utf8_lossy(&answer).into());
            }
        }
        Ok(times)
    }

    async fn through_gateway(&self, language: SourceLanguage) -> Result<Vec<u8>> {
        let target = CallTarget::Function(format!("{}@1.0.0", language.extension()).into());
        let event = Json::parse(EVENT.to_owned())?;
        match self.gateway.invoke(Call { target, ..Call::tool("", event) }).await? {
            Outcome::Done(output) => {
                Ok(output.body.get(ANSWER).ok_or("the answer is missing")?.as_bytes().to_vec())
            }
            other => Err(format!("{other:?}").into()),
        }
    }

    async fn in_fresh_worker(&self, language: SourceLanguage) -> Result<Vec<u8>> {
        let runtimes = FunctionRuntime::new(self.options.clone());
        let code = Arc::new(FunctionCode {
            key: language.extension().into(),
            language,
            files: vec![(language.entry_file().to_owned(), source(&self.folder, language)?.into())],
            packages: None,
            environment: Vec::new(),
            network: false,
            tools: false,
            limits: CodeLimits::default(),
        });
        let context = CallContext {
            function_id: "echo".into(),
            version: "1.0.0".into(),
            request_id: "1".into(),
            deadline: SystemTime::now() + LONGEST,
        };
        let output = runtimes.run(&code, &Json::parse(EVENT.to_owned())?, &context).await?;
        Ok(output.answer.as_bytes().to_vec())
    }
}

/// The manifest of the gateway. A registry needs at least one handler. `callsPerWorker` is so high that no worker is
/// replaced during the bench: the system forgets the resources of killed processes.
const MANIFEST: &str = "
apiVersion: toolyard.dev/v1alpha1
kind: Toolyard
spec: {listen: '127.0.0.1:0', sandbox: {isolation: best-effort}, functions: {callsPerWorker: 1000000}}
---
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata: {name: bench}
spec:
  handlers:
  - name: echo
    type: function
    tool: {name: echo, description: Says what it is told, inputSchema: {type: object}}
    functionConfig: {id: lua}
";

/// Publishes version 1.0.0 of a function in each language.
async fn publish(folder: &Path, store: Arc<dyn Store>, runtimes: FunctionRuntime) -> Result<()> {
    let host = FunctionHost::start(store, Arc::new(runtimes), HostOptions::default());
    for language in SourceLanguage::ALL {
        let mut project =
            FunctionProject::from_source(FunctionKind::Mcp, language, source(folder, language)?);
        let (name, event) = ("echo".to_owned(), Json::parse(EVENT.to_owned())?);
        project.tests.push(toolyard_functions::TestCase { name, event, expect: None });
        host.save_draft(language.extension(), &project).await?;
        host.publish(language.extension(), VersionBump::Patch, None).await?;
    }
    Ok(())
}

fn source(folder: &Path, language: SourceLanguage) -> io::Result<Vec<u8>> {
    std::fs::read(folder.join(language.extension()).join(language.entry_file()))
}

/// Runs the event in a Python interpreter of its own.
#[expect(clippy::disallowed_methods, reason = "the baseline runs without a sandbox")]
fn run_interpreter(folder: &Path) -> Result<Vec<u8>> {
    const RUN: &str = "import json, sys\nfrom cortexone_function import cortexone_handler as handler\n\
                       print(json.dumps(handler(json.loads(sys.argv[1]), {})))";
    let program = format!("import sys; sys.path.insert(0, sys.argv[2])\n{RUN}");
    let mut python = std::process::Command::new("python3");
    let output = python.args(["-I", "-S", "-B", "-c", &program, EVENT]).arg(folder.join("py")).output()?;
    Ok(output.stdout)
}
