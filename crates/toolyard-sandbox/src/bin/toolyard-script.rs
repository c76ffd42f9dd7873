//! Runs scripts one after the other and prints their results as JSON. The request is JSON on standard input. The tests
//! of this crate start it as different users, which a test itself cannot become.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_core::script::{PythonScript, ScriptExecutor};
use toolyard_process::{ProcessSpawner, ProcessTable};
use toolyard_sandbox::packages::{PackageInstaller, PackageOptions};
use toolyard_sandbox::script::{LocalRunner, LocalRunnerOptions, interpreter};
use toolyard_sandbox::{IsolationRequirement, Sandbox, SandboxOptions};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptTestRequest {
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
    /// Folder of packages; without it none are installed.
    #[serde(default)]
    packages: Option<PathBuf>,
    /// True if packages may be built from source.
    #[serde(default)]
    build: bool,
    /// The program uv, which installs packages instead of pip.
    #[serde(default)]
    uv: Option<PathBuf>,
    /// Environment of pip.
    #[serde(default)]
    pip: Vec<(String, String)>,
    scripts: Vec<ScriptTestCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptTestCase {
    source: String,
    #[serde(default)]
    input: Option<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    packages: Vec<String>,
}

fn main() -> ExitCode {
    toolyard_process::run_supervisor_if_requested();
    toolyard_sandbox::enter_if_asked(&[]);
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string());
    let request = read.and_then(|_| serde_json::from_str(&text).map_err(|error| error.to_string()));
    let (result, code) = match request.and_then(run) {
        Ok(result) => (result, ExitCode::SUCCESS),
        Err(error) => (json!({"error": error}), ExitCode::FAILURE),
    };
    let output = writeln!(std::io::stdout(), "{result}");
    if output.is_ok() { code } else { ExitCode::FAILURE }
}

fn run(request: ScriptTestRequest) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| error.to_string())?.block_on(serve(request)))
}

async fn serve(request: ScriptTestRequest) -> Value {
    let processes = ProcessTable::new(ProcessSpawner::supervised_by_this_program(), 8);
    let mut options = SandboxOptions::new(processes);
    options.isolation = match &*request.isolation {
        "best-effort" => IsolationRequirement::BestEffort,
        "none" => IsolationRequirement::None,
        _ => IsolationRequirement::Required,
    };
    let sandbox = Sandbox::new(options);
    let runner = LocalRunner::new(sandbox.clone(), packages(sandbox, &request), runner_options(&request));
    let mut results = Vec::new();
    for (number, test_case) in request.scripts.into_iter().enumerate() {
        results.push(run_once(&runner, number, test_case).await);
    }
    json!(results)
}

fn packages(sandbox: Sandbox, request: &ScriptTestRequest) -> Option<PackageInstaller> {
    let mut options = PackageOptions::new(sandbox, request.packages.clone()?);
    options.python = python(request).into();
    options.build_from_source = request.build;
    options.uv.clone_from(&request.uv);
    options.env = request.pip.iter().map(|(name, value)| (name.into(), value.into())).collect();
    Some(PackageInstaller::new(options))
}

fn python(request: &ScriptTestRequest) -> PathBuf {
    interpreter(&request.python.clone().unwrap_or_else(|| "python3".into()))
}

fn runner_options(request: &ScriptTestRequest) -> LocalRunnerOptions {
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

async fn run_once(runner: &LocalRunner, number: usize, test_case: ScriptTestCase) -> Value {
    let script = PythonScript {
        call_id: number.to_string(),
        source: test_case.source,
        input: test_case.input,
        timeout: Duration::from_millis(test_case.timeout_ms.unwrap_or(30_000)),
        packages: test_case.packages,
        trace_parent: None,
    };
    match ScriptExecutor::run(runner, script).await {
        Ok(output) => json!({
            "output": output.output, "stderr": output.stderr, "exit_code": output.exit_code,
            "elapsed_ms": output.elapsed.as_secs_f64() * 1000.0,
        }),
        Err(error) => json!({"code": error.code().row().wire, "message": error.message()}),
    }
}
