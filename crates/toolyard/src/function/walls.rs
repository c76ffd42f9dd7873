//! How functions run on the machine of their author: as in a gateway.

use std::sync::Arc;

use clap::ValueEnum;
use toolyard_functions::Host;
use toolyard_manifest::Process;
use toolyard_process::{Processes, Spawner};
use toolyard_server::hosting::Hosting;
use toolyard_store::{Location, StoreOptions};

use crate::store::Manifests;

/// Within which walls functions run here, and what is lent to them.
#[derive(clap::Args)]
pub(super) struct Walls {
    /// What happens where this machine lacks walls, instead of what the manifest says
    #[arg(long, value_enum, value_name = "ISOLATION")]
    isolation: Option<Isolation>,

    /// The manifests whose `sandbox` and `functions` are used: see `toolyard serve`
    #[command(flatten)]
    manifests: Manifests,
}

#[derive(Clone, Copy, ValueEnum)]
enum Isolation {
    /// Nothing runs, and what is missing is said
    Required,
    /// Functions run within the walls that there are
    BestEffort,
    /// Functions run without any: only your own
    None,
}

impl Walls {
    /// A process of which nothing is set but how functions run.
    ///
    /// # Errors
    /// When the manifests have problems.
    pub(super) fn process(&self) -> anyhow::Result<Process> {
        let Process { mut sandbox, functions, .. } = self.manifests.process()?;
        if let Some(isolation) = self.isolation {
            sandbox.isolation = match isolation {
                Isolation::Required => toolyard_manifest::Isolation::Required,
                Isolation::BestEffort => toolyard_manifest::Isolation::BestEffort,
                Isolation::None => toolyard_manifest::Isolation::None,
            };
        }
        Ok(Process { sandbox, functions, ..Process::default() })
    }
}

/// What runs functions here, and keeps nothing.
///
/// # Errors
/// When not even memory is to be had.
pub(super) async fn host(process: &Process) -> anyhow::Result<Host> {
    let store = toolyard_store::open(&StoreOptions::at(Location::Memory)).await?;
    let processes = Processes::new(Spawner::supervised_by_ourselves(), process.limits.processes);
    Ok(Hosting::start(process, &processes, Arc::clone(&store)).host)
}
