//! The calls of `cargo xtask bench --only functions`: the sample functions, called through `Gateway::invoke` in this process
//! and, beside it, with a process for each call.
//!
//! Its argument is the folder of the functions. Each line that it reads is a [`Cell`]: it warms up, says `ready`, waits for
//! one more line, makes the calls, and says what it has [`Seen`]. Whoever writes the lines reads meanwhile what the processes
//! use. A wrong answer ends it.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use futures_util::future::try_join_all;
use serde::{Deserialize, Deserializer, Serialize};
use toolyard_core::store::Store;
use toolyard_core::{Call, Gateway, Json, Outcome, Target};
use toolyard_functions::code::{Code, CodeLimits, Context, Language};
use toolyard_functions::runtime::{ENTRY, RuntimeOptions, Runtimes};
use toolyard_functions::{Bump, Host, HostOptions, Kind, Project};
use toolyard_process::{Processes, Spawner};
use toolyard_sandbox::{Isolation, Sandbox, SandboxOptions};
use toolyard_server::hosting::ANSWER;
use toolyard_server::{Options, Running};
use toolyard_store::{Location, StoreOptions};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What is measured.
#[derive(Clone, Copy, Deserialize)]
struct Cell {
    #[serde(deserialize_with = "language")]
    language: Language,
    way: Way,
    in_flight: usize,
    seconds: f64,
}

fn language<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Language, D::Error> {
    let end = String::deserialize(deserializer)?;
    let known = Language::ALL.into_iter().find(|language| language.extension() == end);
    known.ok_or_else(|| serde::de::Error::custom(format!("{end} is no language")))
}

/// How a call is made.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// Through the gateway, in a worker that is warm.
    Gateway,
    /// In a worker that is started for it, in its cell, and ended.
    Worker,
    /// In an interpreter that is started for it, without any walls.
    Interpreter,
}

/// What came of it.
#[derive(Serialize)]
struct Seen {
    calls: usize,
    seconds: f64,
    min_us: f64,
    p50_us: f64,
    p99_us: f64,
}

const EVENT: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#;

/// What every call has to be answered with, in some order of members.
const EXPECTED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}"#;

/// No call of the bench takes longer.
const LONGEST: Duration = Duration::from_secs(30);

fn main() -> Result<()> {
    toolyard_process::supervise_if_asked();
    toolyard_sandbox::enter_if_asked(&[ENTRY]);
    let folder = std::env::args_os().nth(1).ok_or("the folder of the functions is missing")?;
    // As the binary has it.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(Path::new(&folder)))
}

async fn serve(folder: &Path) -> Result<()> {
    let yard = Yard::start(folder).await?;
    let mut lines = io::stdin().lock().lines();
    while let Some(line) = lines.next() {
        let cell: Cell = serde_json::from_str(&line?)?;
        yard.measure(cell, cell.seconds / 5.0).await?;
        say("ready")?;
        lines.next().ok_or("nobody waits for what is measured")??;
        let seen = yard.measure(cell, cell.seconds).await?;
        say(&serde_json::to_string(&seen)?)?;
    }
    Ok(())
}

fn say(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}

/// A gateway with a function in each language, and what runs them without it.
struct Yard {
    gateway: Arc<Gateway>,
    options: RuntimeOptions,
    folder: PathBuf,
    expected: serde_json::Value,
    _running: Running,
}

impl Yard {
    async fn start(folder: &Path) -> Result<Self> {
        let store = toolyard_store::open(&StoreOptions::at(Location::Memory)).await?;
        let processes = Processes::new(Spawner::supervised_by_ourselves(), 64);
        // Where a machine has no walls they cost nothing, and the rest is worth knowing.
        let isolation = Isolation::BestEffort;
        let sandbox = Sandbox::new(SandboxOptions { isolation, ..SandboxOptions::new(processes) });
        let options = RuntimeOptions::new(sandbox);
        publish(folder, store.clone(), Runtimes::new(options.clone())).await?;
        let source = toolyard_manifest::Source { name: "bench.yaml".into(), text: MANIFEST.into() };
        let manifest = toolyard_manifest::parse(&[source])?;
        let spawner = Spawner::supervised_by_ourselves();
        let store = Some(store);
        let running =
            toolyard_server::start(&manifest, &Options { spawner, store, ..Options::default() }).await?;
        let gateway = running.gateway().clone();
        let expected = serde_json::from_str(EXPECTED)?;
        Ok(Self { gateway, options, folder: folder.to_owned(), expected, _running: running })
    }

    async fn measure(&self, cell: Cell, seconds: f64) -> Result<Seen> {
        let begun = Instant::now();
        let until = begun + Duration::from_secs_f64(seconds);
        let done = try_join_all((0..cell.in_flight).map(|_| self.calls(cell, until))).await?;
        let elapsed = begun.elapsed();
        let mut times = done.concat();
        times.sort_unstable();
        let share = |of: usize| times[(times.len() - 1) * of / 100].as_secs_f64() * 1e6;
        let (min_us, p50_us, p99_us) = (share(0), share(50), share(99));
        Ok(Seen { calls: times.len(), seconds: elapsed.as_secs_f64(), min_us, p50_us, p99_us })
    }

    /// One call after the other.
    async fn calls(&self, cell: Cell, until: Instant) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        while times.is_empty() || Instant::now() < until {
            let begun = Instant::now();
            let answer = match cell.way {
                Way::Gateway => self.through_the_gateway(cell.language).await?,
                Way::Worker => self.in_a_worker_of_its_own(cell.language).await?,
                Way::Interpreter => interpreted(&self.folder)?,
            };
            times.push(begun.elapsed());
            if serde_json::from_slice::<serde_json::Value>(&answer)? != self.expected {
                return Err(String::from_utf8_lossy(&answer).into());
            }
        }
        Ok(times)
    }

    async fn through_the_gateway(&self, language: Language) -> Result<Vec<u8>> {
        let target = Target::Function(format!("{}@1.0.0", language.extension()).into());
        let event = Json::parse(EVENT.to_owned())?;
        match self.gateway.invoke(Call { target, ..Call::tool("", event) }).await? {
            Outcome::Done(output) => {
                Ok(output.body.get(ANSWER).ok_or("there is no answer")?.as_bytes().to_vec())
            }
            other => Err(format!("{other:?}").into()),
        }
    }

    async fn in_a_worker_of_its_own(&self, language: Language) -> Result<Vec<u8>> {
        let runtimes = Runtimes::new(self.options.clone());
        let code = Arc::new(Code {
            key: language.extension().into(),
            language,
            files: vec![(language.entry_file().to_owned(), source(&self.folder, language)?.into())],
            packages: None,
            environment: Vec::new(),
            network: false,
            limits: CodeLimits::default(),
        });
        let context = Context {
            function_id: "echo".into(),
            version: "1.0.0".into(),
            request_id: "1".into(),
            deadline: SystemTime::now() + LONGEST,
        };
        let ran = runtimes.run(&code, &Json::parse(EVENT.to_owned())?, &context).await?;
        Ok(ran.answer.as_bytes().to_vec())
    }
}

/// A registry has a handler at least. No worker is replaced meanwhile: the system forgets what those have used that are killed.
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

/// Version 1.0.0 of a function in each language.
async fn publish(folder: &Path, store: Arc<dyn Store>, runtimes: Runtimes) -> Result<()> {
    let host = Host::start(store, Arc::new(runtimes), HostOptions::default());
    for language in Language::ALL {
        let mut project = Project::of_source(Kind::Mcp, language, source(folder, language)?);
        let (name, event) = ("echo".to_owned(), Json::parse(EVENT.to_owned())?);
        project.tests.push(toolyard_functions::TestCase { name, event, expect: None });
        host.save_draft(language.extension(), &project).await?;
        host.publish(language.extension(), Bump::Patch, None).await?;
    }
    Ok(())
}

fn source(folder: &Path, language: Language) -> io::Result<Vec<u8>> {
    std::fs::read(folder.join(language.extension()).join(language.entry_file()))
}

/// The event in an interpreter of Python of its own.
#[expect(clippy::disallowed_methods, reason = "what the sandbox is compared with has none")]
fn interpreted(folder: &Path) -> Result<Vec<u8>> {
    const RUN: &str = "import json, sys\nfrom cortexone_function import cortexone_handler as handler\n\
                       print(json.dumps(handler(json.loads(sys.argv[1]), {})))";
    let program = format!("import sys; sys.path.insert(0, sys.argv[2])\n{RUN}");
    let mut python = std::process::Command::new("python3");
    let output = python.args(["-I", "-S", "-B", "-c", &program, EVENT]).arg(folder.join("py")).output()?;
    Ok(output.stdout)
}
