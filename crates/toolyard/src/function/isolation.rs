//! The local sandbox, in which functions run as in a gateway.

use std::sync::Arc;

use clap::ValueEnum;
use toolyard_functions::FunctionHost;
use toolyard_manifest::ProcessSettings;
use toolyard_process::{ProcessSpawner, ProcessTable};
use toolyard_server::hosting::CodeHosting;
use toolyard_store::{DatabaseLocation, StoreOptions};

use crate::output::note;
use crate::store::ManifestArgs;

/// The isolation of local functions, and the secrets and settings they use.
#[derive(clap::Args)]
pub(super) struct IsolationArgs {
    /// Isolation of functions (default: that of the manifest)
    #[arg(long, value_enum, value_name = "ISOLATION")]
    isolation: Option<IsolationArg>,

    /// Manifests whose `sandbox` and `functions` settings apply.
    #[command(flatten)]
    manifests: ManifestArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum IsolationArg {
    /// Fail if this machine does not support all isolation layers
    Required,
    /// Use the isolation layers that this machine supports
    BestEffort,
    /// Run without isolation; use only for your own functions
    None,
}

impl IsolationArgs {
    /// Returns process settings in which only the sandbox and the functions differ from the defaults.
    ///
    /// # Errors
    /// Fails if the manifests are invalid.
    pub(super) fn process(&self) -> anyhow::Result<ProcessSettings> {
        let ProcessSettings { mut sandbox, functions, .. } = self.manifests.process()?;
        if let Some(isolation) = self.isolation {
            sandbox.isolation = match isolation {
                IsolationArg::Required => toolyard_manifest::IsolationPolicy::Required,
                IsolationArg::BestEffort => toolyard_manifest::IsolationPolicy::BestEffort,
                IsolationArg::None => toolyard_manifest::IsolationPolicy::None,
            };
        }
        Ok(ProcessSettings { sandbox, functions, ..ProcessSettings::default() })
    }
}

/// Starts a host for local functions with a store in memory. A note says why functions cannot run.
///
/// # Errors
/// Fails if the store cannot be opened.
pub(super) async fn start_host(process: &ProcessSettings) -> anyhow::Result<FunctionHost> {
    let store = toolyard_store::open(&StoreOptions::at(DatabaseLocation::Memory)).await?;
    let processes = ProcessTable::new(ProcessSpawner::supervised_by_this_program(), process.limits.processes);
    let hosting = CodeHosting::start(process, &processes, Arc::clone(&store));
    if let Err(problem) = hosting.sandbox.ready().await {
        note(&format!("{problem}; for functions of your own, `--isolation best-effort` is enough"));
    }
    Ok(hosting.host)
}
