//! A running gateway, for the program that runs it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use toolyard_core::Gateway;
use toolyard_functions::FunctionHost;
use toolyard_manifest::{ListenAddress, Manifest};
use toolyard_mcp::server::McpFrontend;
use toolyard_process::ProcessInfo;

use crate::context::GatewayContext;
use crate::counters::CallCounts;
use crate::listeners::{ListeningAddresses, ServerCertificate};
use crate::log::FilterError;
use crate::manifest_edits::{AppliedEdit, ManifestApplier};
use crate::routes::GatewayStage;
use crate::shutdown::{Subsystem, stop_in_order};
use crate::status::LastEdit;

/// A running gateway. Dropping it stops it at once; [`RunningGateway::stop`] lets running calls finish.
pub struct RunningGateway {
    pub(crate) context: GatewayContext,
    /// The subsystems in the order in which they stop.
    pub(crate) subsystems: Vec<Box<dyn Subsystem>>,
    pub(crate) listening: ListeningAddresses,
    pub(crate) certificate: Option<Arc<ServerCertificate>>,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) mcp: Arc<McpFrontend>,
    pub(crate) functions: FunctionHost,
    pub(crate) applier: ManifestApplier,
}

impl RunningGateway {
    /// The bound addresses of MCP and REST, with the ports that the system chose.
    #[must_use]
    pub fn listening(&self) -> &[ListenAddress] {
        &self.listening.http
    }

    /// The bound addresses of the console, if it has addresses of its own, with the ports that the system chose.
    #[must_use]
    pub fn console_listening(&self) -> &[ListenAddress] {
        &self.listening.console
    }

    /// The bound addresses of the gRPC service, with the ports that the system chose.
    #[must_use]
    pub fn grpc_listening(&self) -> &[ListenAddress] {
        &self.listening.grpc
    }

    /// The first bound TCP address.
    ///
    /// # Panics
    /// If the gateway listens on Unix sockets only.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listening.http.iter().find_map(ListenAddress::tcp).expect("the gateway listens on TCP")
    }

    /// The URL of the MCP endpoint on the first TCP address, or the path of the Unix socket if there is no TCP address.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        match self.listening.http.iter().find_map(ListenAddress::tcp) {
            Some(address) => format!("{scheme}://{address}/mcp"),
            None => self.listening.http.first().map(ListenAddress::to_string).unwrap_or_default(),
        }
    }

    /// The URLs of the console on TCP addresses.
    #[must_use]
    pub fn console_urls(&self) -> Vec<String> {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        let settings = &self.context.process.console;
        let addresses =
            if settings.listen.is_empty() { &self.listening.http } else { &self.listening.console };
        let addresses = addresses.iter().filter(|_| settings.enabled).filter_map(ListenAddress::tcp);
        addresses.map(|address| format!("{scheme}://{address}/")).collect()
    }

    /// The MCP frontend, for a client that uses no socket of the gateway.
    #[must_use]
    pub const fn frontend(&self) -> &Arc<McpFrontend> {
        &self.mcp
    }

    /// The gateway that runs all calls.
    #[must_use]
    pub const fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// The hosted functions.
    #[must_use]
    pub const fn functions(&self) -> &FunctionHost {
        &self.functions
    }

    /// The totals of calls so far.
    #[must_use]
    pub fn counts(&self) -> CallCounts {
        self.context.counters.read()
    }

    /// The running programs.
    #[must_use]
    pub fn processes(&self) -> Vec<ProcessInfo> {
        self.context.processes.list()
    }

    /// Applies the handlers of an edited manifest. Unchanged handlers keep running undisturbed. Changes of the process
    /// settings are reported and not applied.
    ///
    /// # Errors
    /// If new handlers need something that this system lacks, or if `secretsDir` has changed, on which handlers depend.
    /// Then nothing is changed.
    pub async fn apply(&self, manifest: &Manifest) -> io::Result<AppliedEdit> {
        self.applier.apply(&self.context, manifest).await
    }

    /// Records a refused edit for the status.
    pub fn refuse(&self, reason: String) {
        self.context.last_edit.send_replace(Some(LastEdit::now(false, reason)));
    }

    /// Reloads the certificate of the listener, if TLS is configured. An unusable certificate is refused, logged and
    /// reported in the status; the current one stays.
    pub async fn reload_certificate(&self) {
        if let Some(certificate) = &self.certificate {
            certificate.reload(&self.context.last_edit).await;
        }
    }

    /// Replaces the log filter until the next change of `logs.filter` in the manifest.
    ///
    /// # Errors
    /// If the filter is invalid or the log is not the gateway's. Then nothing changes.
    pub fn set_log_filter(&self, filter: &str) -> Result<(), FilterError> {
        self.context.log.set_filter(filter)
    }

    /// Stops accepting calls, lets running calls finish within the configured drain time, and stops.
    pub async fn stop(self) -> CallCounts {
        self.context.stage.send_replace(GatewayStage::Draining);
        self.context.stopping.send_replace(true);
        stop_in_order(self.subsystems, self.context.process.timeouts.drain).await;
        self.context.counters.read()
    }
}
