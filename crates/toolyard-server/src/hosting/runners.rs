//! Who runs scripts: this machine, or a cluster.

use std::sync::Arc;

use toolyard_core::Runner;
use toolyard_manifest::{ScriptRunner, Scripts};
use toolyard_sandbox::script::{LocalRunner, LocalRunnerOptions};

use super::Hosting;

impl Hosting {
    /// What runs scripts as the manifest wants it.
    #[must_use]
    pub fn runner(&self, scripts: &Scripts) -> Arc<dyn Runner> {
        match scripts.runner {
            ScriptRunner::Local => Arc::new(self.local(scripts)),
            ScriptRunner::Kubernetes => super::pods::runner(scripts),
        }
    }

    fn local(&self, scripts: &Scripts) -> LocalRunner {
        let options = LocalRunnerOptions {
            python: self.python.clone(),
            network: scripts.network,
            memory_bytes: scripts.memory_bytes as u64,
            cpu_millis: scripts.cpu_millis,
            processes: u32::try_from(scripts.processes).unwrap_or(u32::MAX),
            disk_bytes: scripts.disk_bytes as u64,
            output_bytes: scripts.output_bytes,
            concurrent: scripts.concurrent,
            ..LocalRunnerOptions::default()
        };
        let packages = scripts.packages.then(|| self.packages.clone());
        LocalRunner::new(self.sandbox.clone(), packages, options)
    }
}
