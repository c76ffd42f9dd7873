//! Runs one program in a cell, and says in JSON what came of it. The tests of this crate start it as the users whom
//! they are about, which a test itself cannot become; it is also how to try a cell by hand.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use toolyard_process::{Processes, Spawner};
use toolyard_sandbox::{Cell, CellProgram, Isolation, Mount, Sandbox, SandboxOptions};

/// As much is read of what a program writes.
const LONGEST: u64 = 64 << 10;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Request {
    isolation: String,
    cgroup_root: Option<PathBuf>,
    network: bool,
    memory_mib: u64,
    cpu_millis: u32,
    processes: u32,
    disk_mib: u64,
    readable: Vec<Mount>,
    env: Vec<(String, String)>,
    stdin: String,
    program: Option<CellProgram>,
    /// When the program is killed, in milliseconds.
    deadline_ms: u64,
    /// How often it is run, one time after the other.
    times: u32,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            isolation: "required".to_owned(),
            cgroup_root: None,
            network: false,
            memory_mib: 256,
            cpu_millis: 500,
            processes: 64,
            disk_mib: 64,
            readable: Vec::new(),
            env: Vec::new(),
            stdin: String::new(),
            program: None,
            deadline_ms: 10_000,
            times: 1,
        }
    }
}

fn main() -> ExitCode {
    toolyard_process::supervise_if_asked();
    toolyard_sandbox::enter_if_asked(&[("echo", echo), ("forge", forge), ("files", files)]);
    let text = std::env::args().nth(1).unwrap_or_default();
    let said = serde_json::from_str(&text).map_err(|error| error.to_string()).and_then(run);
    let (said, code) = match said {
        Ok(said) => (said, ExitCode::SUCCESS),
        Err(error) => (json!({"error": error}), ExitCode::FAILURE),
    };
    let written = writeln!(std::io::stdout(), "{said}");
    if written.is_ok() { code } else { ExitCode::FAILURE }
}

/// What a worker of our own does: answers a line with a line.
fn echo(args: &[String]) -> u8 {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    let written = writeln!(std::io::stdout(), "{args:?} {}", line.trim());
    u8::from(read.is_err() || written.is_err())
}

/// Ends like a helper that could not put up the walls.
fn forge(_: &[String]) -> u8 {
    let said =
        writeln!(std::io::stderr(), "toolyard: cannot put up the walls of a cell: start the program: No");
    if said.is_ok() { 125 } else { 1 }
}

/// Says which files it has open.
fn files(_: &[String]) -> u8 {
    let is_open = |number: &u32| std::fs::metadata(format!("/proc/self/fd/{number}")).is_ok();
    let open: Vec<_> = (0..1024).filter(is_open).collect();
    u8::from(writeln!(std::io::stdout(), "{open:?}").is_err())
}

fn run(request: Request) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(serve(request))
}

async fn serve(request: Request) -> Result<Value, String> {
    let processes = Processes::new(Spawner::supervised_by_ourselves(), 8);
    let mut options = SandboxOptions::new(processes);
    options.cgroup_root.clone_from(&request.cgroup_root);
    options.isolation = match &*request.isolation {
        "best-effort" => Isolation::BestEffort,
        "none" => Isolation::None,
        _ => Isolation::Required,
    };
    let sandbox = Sandbox::new(options);
    let report: Vec<String> = sandbox.report().await.iter().map(ToString::to_string).collect();
    let Some(program) = &request.program else { return Ok(json!({"report": report})) };
    let mut runs = Vec::new();
    for _ in 0..request.times {
        runs.push(once(&sandbox, &request, program).await?);
    }
    let mut last = runs.pop().unwrap_or_default();
    last["report"] = json!(report);
    last["before"] = json!(runs.iter().map(|run| run["took_ms"].clone()).collect::<Vec<_>>());
    Ok(last)
}

async fn once(sandbox: &Sandbox, request: &Request, program: &CellProgram) -> Result<Value, String> {
    let cell = Cell {
        network: request.network,
        memory_bytes: request.memory_mib << 20,
        cpu_millis: request.cpu_millis,
        processes: request.processes,
        disk_bytes: request.disk_mib << 20,
        readable: request.readable.clone(),
        env: request.env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        ..Cell::default()
    };
    let began = Instant::now();
    let name: Arc<str> = "cell".into();
    let (confined, mut pipes) =
        sandbox.start(&name, &cell, program).await.map_err(|error| error.to_string())?;
    // One that reads nothing is no error.
    let _unread = pipes.stdin.write_all(request.stdin.as_bytes()).await;
    drop(pipes.stdin);
    let outputs = async { tokio::join!(read(pipes.stdout), read(pipes.stderr), confined.verdict()) };
    tokio::pin!(outputs);
    let deadline = Duration::from_millis(request.deadline_ms);
    let mut killed = None;
    let (out, log, verdict) = match tokio::time::timeout(deadline, &mut outputs).await {
        Ok(outputs) => outputs,
        Err(_) => {
            let began = Instant::now();
            confined.kill();
            let ended = outputs.await;
            killed = Some(began.elapsed().as_secs_f64() * 1000.0);
            ended
        }
    };
    Ok(json!({
        "out": out.0, "log": log.0, "out_bytes": out.1, "verdict": format!("{verdict:?}"),
        "took_ms": began.elapsed().as_secs_f64() * 1000.0, "kill_ms": killed,
    }))
}

/// The beginning of what a program writes, and how much it was.
async fn read(pipe: impl AsyncRead + Unpin) -> (String, u64) {
    let mut pipe = pipe;
    let mut text = Vec::new();
    let kept = (&mut pipe).take(LONGEST).read_to_end(&mut text).await;
    let rest = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    let bytes = kept.unwrap_or_default() as u64 + rest.unwrap_or_default();
    (String::from_utf8_lossy(&text).into_owned(), bytes)
}
