//! Runs scripts one after the other, and says in JSON what came of each. What is to be run stands in JSON on standard
//! input. The tests of this crate start it as the users whom they are about, which a test itself cannot become.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_core::script::{Runner, Script};
use toolyard_process::{Processes, Spawner};
use toolyard_sandbox::packages::{PackageOptions, Packages};
use toolyard_sandbox::script::{LocalRunner, LocalRunnerOptions, interpreter};
use toolyard_sandbox::{Isolation, Sandbox, SandboxOptions};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    isolation: String,
    #[serde(default)]
    python: Option<PathBuf>,
    #[serde(default)]
    network: bool,
    #[serde(default)]
    memory_mib: Option<u64>,
    #[serde(default)]
    processes: Option<u32>,
    #[serde(default)]
    disk_kib: Option<u64>,
    #[serde(default)]
    output_bytes: Option<usize>,
    #[serde(default)]
    concurrent: Option<usize>,
    /// The folder of packages; none are installed without.
    #[serde(default)]
    packages: Option<PathBuf>,
    /// What pip is configured by.
    #[serde(default)]
    pip: Vec<(String, String)>,
    scripts: Vec<Asked>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    source: String,
    #[serde(default)]
    input: Option<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    packages: Vec<String>,
}

fn main() -> ExitCode {
    toolyard_process::supervise_if_asked();
    toolyard_sandbox::enter_if_asked(&[]);
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string());
    let request = read.and_then(|_| serde_json::from_str(&text).map_err(|error| error.to_string()));
    let (said, code) = match request.and_then(run) {
        Ok(said) => (said, ExitCode::SUCCESS),
        Err(error) => (json!({"error": error}), ExitCode::FAILURE),
    };
    let written = writeln!(std::io::stdout(), "{said}");
    if written.is_ok() { code } else { ExitCode::FAILURE }
}

fn run(request: Request) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| error.to_string())?.block_on(serve(request)))
}

async fn serve(request: Request) -> Value {
    let processes = Processes::new(Spawner::supervised_by_ourselves(), 8);
    let mut options = SandboxOptions::new(processes.clone());
    options.isolation = match &*request.isolation {
        "best-effort" => Isolation::BestEffort,
        "none" => Isolation::None,
        _ => Isolation::Required,
    };
    let runner = LocalRunner::new(Sandbox::new(options), packages(processes, &request), limits(&request));
    let mut said = Vec::new();
    for (number, asked) in request.scripts.into_iter().enumerate() {
        said.push(once(&runner, number, asked).await);
    }
    json!(said)
}

fn packages(processes: Processes, request: &Request) -> Option<Packages> {
    let mut options = PackageOptions::new(processes, request.packages.clone()?);
    options.python = python(request).into();
    options.env = request.pip.iter().map(|(name, value)| (name.into(), value.into())).collect();
    Some(Packages::new(options))
}

fn python(request: &Request) -> PathBuf {
    interpreter(&request.python.clone().unwrap_or_else(|| "python3".into()))
}

fn limits(request: &Request) -> LocalRunnerOptions {
    let default = LocalRunnerOptions::default();
    LocalRunnerOptions {
        python: python(request),
        network: request.network,
        memory_bytes: request.memory_mib.map_or(default.memory_bytes, |mib| mib << 20),
        processes: request.processes.unwrap_or(default.processes),
        disk_bytes: request.disk_kib.map_or(default.disk_bytes, |kib| kib << 10),
        output_bytes: request.output_bytes.unwrap_or(default.output_bytes),
        concurrent: request.concurrent.unwrap_or(default.concurrent),
        ..default
    }
}

async fn once(runner: &LocalRunner, number: usize, asked: Asked) -> Value {
    let script = Script {
        call_id: number.to_string(),
        source: asked.source,
        input: asked.input,
        timeout: Duration::from_millis(asked.timeout_ms.unwrap_or(30_000)),
        packages: asked.packages,
    };
    match Runner::run(runner, script).await {
        Ok(ended) => json!({
            "output": ended.output, "stderr": ended.stderr, "exit_code": ended.exit_code,
            "elapsed_ms": ended.elapsed.as_secs_f64() * 1000.0,
        }),
        Err(error) => json!({"code": error.code().row().wire, "message": error.message()}),
    }
}
