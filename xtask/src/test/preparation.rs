//! Prepares the machine for suites, once and only as far as they need it.

use std::process::Command;

use xtask_support::peers::PeerSoftware;
use xtask_support::process;

use super::suites::SuiteNeeds;
use crate::peers::{self, KubernetesApiServer};
use crate::system;

/// A machine and what it has been given.
#[derive(Default)]
pub(super) struct PreparedMachine {
    has: Option<SuiteNeeds>,
    peers: Option<PeerSoftware>,
}

impl PreparedMachine {
    /// Adds what is missing.
    pub(super) fn prepare(&mut self, needs: SuiteNeeds) -> anyhow::Result<()> {
        if self.has >= Some(needs) {
            return Ok(());
        }
        if needs >= SuiteNeeds::System && self.has < Some(SuiteNeeds::System) {
            system::install()?;
        }
        if needs >= SuiteNeeds::Peers && self.has < Some(SuiteNeeds::Peers) {
            self.peers = Some(peers::prepare(KubernetesApiServer::Skip)?);
            process::run(self.cargo().args(["build", "--workspace", "--all-targets"]))?;
        }
        if needs >= SuiteNeeds::Kubernetes {
            self.peers = Some(peers::prepare(KubernetesApiServer::Install)?);
        }
        self.has = Some(needs);
        Ok(())
    }

    /// Returns a cargo whose tests find the peers.
    pub(super) fn cargo(&self) -> Command {
        let mut cargo = process::cargo();
        if let Some(peers) = &self.peers {
            cargo.env("TOOLYARD_PEERS", peers.folder());
        }
        cargo
    }

    /// Runs the tests that a filter of nextest selects.
    pub(super) fn nextest(&self, filter: &str) -> anyhow::Result<()> {
        let arguments = ["nextest", "run", "--profile", "full", "--workspace", "--filterset", filter];
        // The output of a failed test ends with its message, not with a backtrace.
        process::run(self.cargo().args(arguments).env("RUST_BACKTRACE", "0"))
    }
}
