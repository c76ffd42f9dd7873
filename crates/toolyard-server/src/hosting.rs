//! Hosting of hosted functions and scripts in the sandbox.
//!
//! - [`CodeHosting`]: all parts together. No process runs before the first call;
//! - `hosted_functions`: functions that are invoked directly;
//! - `exchanges`: functions as handlers of a manifest;
//! - `public_fetcher`: network access of functions;
//! - `runners`, `pods`: the runners of scripts;
//! - `chromium`: the browser that renders pages.

mod chromium;
mod exchanges;
mod hosted_functions;
mod pods;
mod public_fetcher;
mod runners;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use toolyard_core::store::Store;
use toolyard_functions::runtime::{FunctionRuntime, RuntimeOptions};
use toolyard_functions::{FunctionHost, HostOptions, LentVariable};
use toolyard_manifest::{BusSettings, FunctionHosting, IsolationPolicy, ProcessSettings, SandboxPolicy};
use toolyard_process::ProcessTable;
use toolyard_sandbox::packages::{self, PackageInstaller, PackageOptions};
use toolyard_sandbox::{Sandbox, SandboxOptions, UidRange};

use crate::shutdown::Subsystem;

pub use hosted_functions::{ANSWER, HostedFunctions, ReachedFunction};

/// The host of functions and scripts. Clones share the same parts.
#[derive(Clone)]
pub struct CodeHosting {
    /// The sandbox.
    pub sandbox: Sandbox,
    /// Installs Python packages.
    packages: PackageInstaller,
    /// The hosted functions.
    pub host: FunctionHost,
    /// The interpreter of Python.
    python: PathBuf,
    /// Interval of checks for edits of function folders.
    check_interval: Duration,
    /// True if packages without a wheel may be compiled.
    build_from_source: bool,
    /// The message bus, for scripts that others run.
    bus: BusSettings,
    /// The store, for large results of such scripts.
    store: Arc<dyn Store>,
}

impl CodeHosting {
    /// Starts the parts that the manifest configures.
    #[must_use]
    pub fn start(process: &ProcessSettings, processes: &ProcessTable, store: Arc<dyn Store>) -> Self {
        let sandbox = sandbox(&process.sandbox, processes);
        let packages = PackageInstaller::new(package_options(&process.sandbox, &sandbox));
        let runtimes = FunctionRuntime::new(runtime_options(process, &sandbox));
        let options = host_options(&process.functions, packages.clone());
        let host = FunctionHost::start(store.clone(), Arc::new(runtimes), options);
        Self {
            sandbox,
            packages,
            host,
            python: process.sandbox.python.clone(),
            check_interval: process.timeouts.manifest_check,
            build_from_source: process.sandbox.build_from_source,
            bus: process.bus.clone(),
            store,
        }
    }
}

impl Subsystem for CodeHosting {
    fn stop(self: Box<Self>, drain: Duration) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.host.stop(drain).await })
    }
}

fn sandbox(policy: &SandboxPolicy, processes: &ProcessTable) -> Sandbox {
    let isolation = match policy.isolation {
        IsolationPolicy::Required => toolyard_sandbox::IsolationRequirement::Required,
        IsolationPolicy::BestEffort => toolyard_sandbox::IsolationRequirement::BestEffort,
        IsolationPolicy::None => toolyard_sandbox::IsolationRequirement::None,
    };
    let uids = UidRange { first: policy.uids.first, count: policy.uids.count };
    Sandbox::new(SandboxOptions { isolation, uids, ..SandboxOptions::new(processes.clone()) })
}

fn package_options(policy: &SandboxPolicy, sandbox: &Sandbox) -> PackageOptions {
    let folder = policy.packages.clone().unwrap_or_else(packages::default_folder);
    PackageOptions {
        python: policy.python.clone().into(),
        env: pip_env(std::env::vars_os()),
        hosts: policy.package_hosts.clone(),
        build_from_source: policy.build_from_source,
        cache_bytes: policy.packages_bytes as u64,
        ..PackageOptions::new(sandbox.clone(), folder)
    }
}

/// Returns the variables of the environment that configure pip.
fn pip_env(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    variables.filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PIP_")).collect()
}

fn runtime_options(process: &ProcessSettings, sandbox: &Sandbox) -> RuntimeOptions {
    let FunctionHosting { workers, queued_calls, idle, calls_per_worker, host_network, .. } =
        process.functions;
    RuntimeOptions {
        python: process.sandbox.python.clone(),
        fetch: Some(Arc::new(public_fetcher::PublicFetcher::new(process.limits.response_bytes))),
        host_network,
        workers,
        max_waiting: queued_calls,
        idle_time: idle,
        calls_per_worker: calls_per_worker as u64,
        ..RuntimeOptions::new(sandbox.clone())
    }
}

fn host_options(hosting: &FunctionHosting, packages: PackageInstaller) -> HostOptions {
    let grants = hosting.lend.iter().map(|(name, grant)| {
        let toolyard_manifest::VariableGrant { value, functions } = grant;
        (name.clone(), LentVariable { value: value.expose().to_owned(), functions: functions.clone() })
    });
    HostOptions {
        packages: Some(packages),
        host_variables: grants.collect(),
        queued_entries: hosting.queued_logs,
        retention: Some(hosting.log_retention).filter(|time| !time.is_zero()),
        log_bytes: hosting.log_bytes as u64,
        ..HostOptions::default()
    }
}
