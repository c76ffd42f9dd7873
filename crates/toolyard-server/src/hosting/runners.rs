//! The runners of scripts: this machine, a cluster, or a scripts manager on the message bus.

use std::sync::Arc;

use toolyard_core::ScriptExecutor;
use toolyard_manifest::{ScriptRunner, ScriptSettings};
use toolyard_sandbox::script::{LocalRunner, LocalRunnerOptions};

use super::CodeHosting;

impl CodeHosting {
    /// Returns the configured runner of scripts.
    #[must_use]
    pub fn runner(&self, scripts: &ScriptSettings) -> Arc<dyn ScriptExecutor> {
        match scripts.runner {
            ScriptRunner::Local => Arc::new(self.local(scripts)),
            ScriptRunner::Kubernetes => super::pods::runner(scripts, self.build_from_source),
            ScriptRunner::Bus => crate::bus::scripts::runner(&self.bus, &self.store),
        }
    }

    fn local(&self, scripts: &ScriptSettings) -> LocalRunner {
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
