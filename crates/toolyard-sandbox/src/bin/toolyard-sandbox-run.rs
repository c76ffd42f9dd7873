//! Runs one program in a sandbox and prints the outcome as JSON. The tests of this crate start it as different users,
//! which a test itself cannot become; it also serves to try a sandbox by hand.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use toolyard_process::{ChildPipes, ProcessSpawner, ProcessTable};
use toolyard_sandbox::{
    IsolationRequirement, ReadOnlyMount, Sandbox, SandboxOptions, SandboxProgram, SandboxSpec,
    SandboxedProcess, UidRange,
};

/// Maximum size of the printed output of a program, in bytes.
const MAX_OUTPUT_BYTES: u64 = 64 << 10;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SandboxTestRequest {
    isolation: String,
    cgroup_root: Option<PathBuf>,
    /// First uid and number of uids.
    uids: Option<(u32, u32)>,
    least_available_mib: Option<u64>,
    network: bool,
    loopback: bool,
    memory_mib: u64,
    cpu_millis: u32,
    processes: u32,
    disk_mib: u64,
    readable: Vec<ReadOnlyMount>,
    env: Vec<(String, String)>,
    stdin: String,
    program: Option<SandboxProgram>,
    /// A program in another sandbox, which has started and written a line before the first program starts.
    neighbour: Option<SandboxProgram>,
    /// Time after which the program is killed, in milliseconds.
    deadline_ms: u64,
    /// Number of consecutive runs.
    times: u32,
}

impl Default for SandboxTestRequest {
    fn default() -> Self {
        Self {
            isolation: "required".to_owned(),
            cgroup_root: None,
            uids: None,
            least_available_mib: None,
            network: false,
            loopback: false,
            memory_mib: 256,
            cpu_millis: 500,
            processes: 64,
            disk_mib: 64,
            readable: Vec::new(),
            env: Vec::new(),
            stdin: String::new(),
            program: None,
            neighbour: None,
            deadline_ms: 10_000,
            times: 1,
        }
    }
}

fn main() -> ExitCode {
    toolyard_process::run_supervisor_if_requested();
    toolyard_sandbox::enter_if_asked(&[
        ("echo", echo),
        ("exit_like_helper", exit_like_helper),
        ("list_open_files", list_open_files),
    ]);
    let text = std::env::args().nth(1).unwrap_or_default();
    let result = serde_json::from_str(&text).map_err(|error| error.to_string()).and_then(run);
    let (result, code) = match result {
        Ok(result) => (result, ExitCode::SUCCESS),
        Err(error) => (json!({"error": error}), ExitCode::FAILURE),
    };
    let result_of_write = writeln!(std::io::stdout(), "{result}");
    if result_of_write.is_ok() { code } else { ExitCode::FAILURE }
}

/// Answers a line with a line, as a worker does.
fn echo(args: &[String]) -> u8 {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    let result_of_write = writeln!(std::io::stdout(), "{args:?} {}", line.trim());
    u8::from(read.is_err() || result_of_write.is_err())
}

/// Exits like a helper that could not set up an isolation layer.
fn exit_like_helper(_: &[String]) -> u8 {
    let result = writeln!(std::io::stderr(), "toolyard: cannot set up the sandbox: start the program: No");
    if result.is_ok() { 125 } else { 1 }
}

/// Prints the open file descriptors.
fn list_open_files(_: &[String]) -> u8 {
    let is_open = |number: &u32| std::fs::metadata(format!("/proc/self/fd/{number}")).is_ok();
    let open: Vec<_> = (0..1024).filter(is_open).collect();
    u8::from(writeln!(std::io::stdout(), "{open:?}").is_err())
}

fn run(request: SandboxTestRequest) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(serve(request))
}

async fn serve(request: SandboxTestRequest) -> Result<Value, String> {
    let processes = ProcessTable::new(ProcessSpawner::supervised_by_this_program(), 8);
    let mut options = SandboxOptions::new(processes);
    options.cgroup_root.clone_from(&request.cgroup_root);
    if let Some((first, count)) = request.uids {
        options.uids = UidRange { first, count };
    }
    if let Some(mib) = request.least_available_mib {
        options.least_available_bytes = mib << 20;
    }
    options.isolation = match &*request.isolation {
        "best-effort" => IsolationRequirement::BestEffort,
        "none" => IsolationRequirement::None,
        _ => IsolationRequirement::Required,
    };
    let sandbox = Sandbox::new(options);
    let report: Vec<String> = sandbox.report().await.iter().map(ToString::to_string).collect();
    let level = sandbox.level().await.name();
    let Some(program) = &request.program else { return Ok(json!({"report": report, "level": level})) };
    let neighbour = match &request.neighbour {
        Some(neighbour) => Some(start_neighbour(&sandbox, &request, neighbour).await?),
        None => None,
    };
    let mut runs = Vec::new();
    for _ in 0..request.times {
        runs.push(run_once(&sandbox, &request, program).await?);
    }
    let mut last = runs.pop().unwrap_or_default();
    last["report"] = json!(report);
    last["level"] = json!(level);
    last["neighbour"] = json!(neighbour.map(|(_, line, _)| line));
    last["before"] = json!(runs.iter().map(|run| run["took_ms"].clone()).collect::<Vec<_>>());
    Ok(last)
}

/// Starts a neighbour. It runs until the result is dropped.
async fn start_neighbour(
    sandbox: &Sandbox,
    request: &SandboxTestRequest,
    program: &SandboxProgram,
) -> Result<(SandboxedProcess, String, ChildPipes), String> {
    let name: Arc<str> = "neighbour".into();
    let started = sandbox.start(&name, &sandbox_spec(request), program).await;
    let (process, mut pipes) = started.map_err(|error| error.to_string())?;
    let mut line = String::new();
    let read = BufReader::new(&mut pipes.stdout).read_line(&mut line).await;
    read.map_err(|error| error.to_string())?;
    Ok((process, line, pipes))
}

fn sandbox_spec(request: &SandboxTestRequest) -> SandboxSpec {
    SandboxSpec {
        network: request.network,
        loopback: request.loopback,
        memory_bytes: request.memory_mib << 20,
        cpu_millis: request.cpu_millis,
        processes: request.processes,
        disk_bytes: request.disk_mib << 20,
        readable: request.readable.clone(),
        env: request.env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        ..SandboxSpec::default()
    }
}

async fn run_once(
    sandbox: &Sandbox,
    request: &SandboxTestRequest,
    program: &SandboxProgram,
) -> Result<Value, String> {
    let spec = sandbox_spec(request);
    let began = Instant::now();
    let name: Arc<str> = "cell".into();
    let (process, mut pipes) =
        sandbox.start(&name, &spec, program).await.map_err(|error| error.to_string())?;
    // A program need not read its input.
    let _unread = pipes.stdin.write_all(request.stdin.as_bytes()).await;
    drop(pipes.stdin);
    let outputs = async { tokio::join!(read(pipes.stdout), read(pipes.stderr), process.outcome()) };
    tokio::pin!(outputs);
    let deadline = Duration::from_millis(request.deadline_ms);
    let mut killed = None;
    let (out, log, outcome) = match tokio::time::timeout(deadline, &mut outputs).await {
        Ok(outputs) => outputs,
        Err(_) => {
            let began = Instant::now();
            process.kill();
            let ended = outputs.await;
            killed = Some(began.elapsed().as_secs_f64() * 1000.0);
            ended
        }
    };
    Ok(json!({
        "out": out.0, "log": log.0, "out_bytes": out.1, "outcome": format!("{outcome:?}"),
        "took_ms": began.elapsed().as_secs_f64() * 1000.0, "kill_ms": killed,
    }))
}

/// Returns the beginning of a program's output, and its total length.
async fn read(pipe: impl AsyncRead + Unpin) -> (String, u64) {
    let mut pipe = pipe;
    let mut text = Vec::new();
    let beginning = (&mut pipe).take(MAX_OUTPUT_BYTES).read_to_end(&mut text).await;
    let rest = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    let bytes = beginning.unwrap_or_default() as u64 + rest.unwrap_or_default();
    (String::from_utf8_lossy(&text).into_owned(), bytes)
}
