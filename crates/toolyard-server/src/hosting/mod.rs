//! What runs other people's code here: hosted functions and scripts, in the sandbox.
//!
//! - [`Hosting`]: all of it, started with the gateway; no process runs before there is a call;
//! - `doors`: functions that are invoked by themselves, on the way of every call;
//! - `exchanges`: functions that are handlers of a manifest;
//! - `fetching`: how functions reach the network;
//! - `runners`, `pods`: who runs scripts.

mod doors;
mod exchanges;
mod fetching;
mod pods;
mod runners;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolyard_core::store::Store;
use toolyard_functions::runtime::{RuntimeOptions, Runtimes};
use toolyard_functions::{Host, HostOptions};
use toolyard_manifest::{FunctionHosting, Isolation, Process, SandboxPolicy};
use toolyard_process::Processes;
use toolyard_sandbox::packages::{self, PackageOptions, Packages};
use toolyard_sandbox::script::interpreter;
use toolyard_sandbox::{Sandbox, SandboxOptions};

pub use doors::{ANSWER, Doors, Reached};

/// What runs other people's code. Clones are one and the same.
#[derive(Clone)]
pub struct Hosting {
    /// Where it runs.
    pub sandbox: Sandbox,
    /// What Python's packages are installed by.
    packages: Packages,
    /// The hosted functions.
    pub host: Host,
    /// The interpreter of Python.
    python: PathBuf,
    /// How often folders of functions are looked at for edits.
    look_every: Duration,
}

impl Hosting {
    /// Everything that runs functions and scripts, as the manifest wants it.
    #[must_use]
    pub fn start(process: &Process, processes: &Processes, store: Arc<dyn Store>) -> Self {
        let sandbox = sandbox(&process.sandbox, processes);
        let packages = Packages::new(package_options(&process.sandbox, processes));
        let runtimes = Runtimes::new(runtime_options(process, &sandbox));
        let options = host_options(&process.functions, packages.clone());
        let host = Host::start(store, Arc::new(runtimes), options);
        let (python, look_every) = (process.sandbox.python.clone(), process.timeouts.manifest_check);
        Self { sandbox, packages, host, python, look_every }
    }
}

fn sandbox(policy: &SandboxPolicy, processes: &Processes) -> Sandbox {
    let isolation = match policy.isolation {
        Isolation::Required => toolyard_sandbox::Isolation::Required,
        Isolation::BestEffort => toolyard_sandbox::Isolation::BestEffort,
        Isolation::None => toolyard_sandbox::Isolation::None,
    };
    Sandbox::new(SandboxOptions { isolation, ..SandboxOptions::new(processes.clone()) })
}

fn package_options(policy: &SandboxPolicy, processes: &Processes) -> PackageOptions {
    let folder = policy.packages.clone().unwrap_or_else(packages::default_folder);
    PackageOptions {
        python: interpreter(&policy.python).into(),
        cache_bytes: policy.packages_bytes as u64,
        ..PackageOptions::new(processes.clone(), folder)
    }
}

fn runtime_options(process: &Process, sandbox: &Sandbox) -> RuntimeOptions {
    let FunctionHosting { workers, queued_calls, idle, calls_per_worker, host_network, .. } =
        process.functions;
    RuntimeOptions {
        python: process.sandbox.python.clone(),
        fetch: Some(Arc::new(fetching::Fetching::new(process.limits.response_bytes))),
        host_network,
        workers,
        waiting: queued_calls,
        idle_time: idle,
        calls_per_worker: calls_per_worker as u64,
        ..RuntimeOptions::new(sandbox.clone())
    }
}

fn host_options(hosting: &FunctionHosting, packages: Packages) -> HostOptions {
    let lent = hosting.lend.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
    HostOptions {
        packages: Some(packages),
        lent: lent.collect(),
        queued_entries: hosting.queued_logs,
        retention: Some(hosting.log_retention).filter(|time| !time.is_zero()),
        ..HostOptions::default()
    }
}
