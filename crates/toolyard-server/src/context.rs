//! The shared parts of a gateway, which are created before its subsystems.

use std::io;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use toolyard_agent::search::ToolEmbeddings;
use toolyard_core::LongWork;
use toolyard_core::long_work::BackgroundSpawner;
use toolyard_core::store::Store;
use toolyard_manifest::{ArgumentRecording, Manifest, ProcessSettings};
use toolyard_mcp::server::owner_of;
use toolyard_net::budget::ByteBudget;
use toolyard_process::ProcessTable;
use toolyard_store::{DatabaseLocation, DurableCount, StoreOptions};

use crate::audit::{AuditQueue, AuditQueueOptions};
use crate::cluster_members::ClusterGateway;
use crate::counters::CallCounters;
use crate::embeddings;
use crate::fleet::{FleetHandle, UnstartedFleet};
use crate::log::LogControl;
use crate::manifest_edits::ServedManifest;
use crate::routes::GatewayStage;
use crate::start::{GatewayOptions, StartError};
use crate::status::LastEdit;

/// The parts of a gateway that any subsystem may need.
pub(crate) struct GatewayContext {
    /// The process settings at startup. An edit of the manifest changes handlers only.
    pub(crate) process: ProcessSettings,
    /// Data that outlives the process.
    pub(crate) store: Arc<dyn Store>,
    /// Starts and lists child processes.
    pub(crate) processes: ProcessTable,
    /// Budget from which large bodies take their bytes.
    pub(crate) budget: ByteBudget,
    /// Slots for slow checks and mappings, shared fairly among the owners of the calls.
    pub(crate) long_work: LongWork,
    /// Totals of calls.
    pub(crate) counters: Arc<CallCounters>,
    /// Records calls and operators' actions.
    pub(crate) audit: Arc<AuditQueue>,
    /// Embeddings of tools for the search, if an endpoint is configured.
    pub(crate) embeddings: Option<Arc<ToolEmbeddings>>,
    /// The log filter.
    pub(crate) log: LogControl,
    /// The offer and the status of the handlers, and commands to the fleet.
    pub(crate) fleet: FleetHandle,
    /// The manifest that is served.
    pub(crate) manifest: watch::Sender<ServedManifest>,
    /// The running gateways of the cluster.
    pub(crate) cluster_members: watch::Sender<Arc<[ClusterGateway]>>,
    /// Location of the store, without its password.
    pub(crate) store_location: Option<Arc<str>>,
    /// Outcome of the last edit of the manifest or of the certificate.
    pub(crate) last_edit: watch::Sender<Option<LastEdit>>,
    /// Lifecycle stage of the gateway.
    pub(crate) stage: watch::Sender<GatewayStage>,
    /// True once the gateway stops. A dropped sender also means stop.
    pub(crate) stopping: watch::Sender<bool>,
}

impl GatewayContext {
    /// Creates the context of a gateway, and the fleet to start in it.
    ///
    /// # Errors
    /// If the in-memory store cannot be opened, or the certificates for the embedding endpoint cannot be read.
    pub(crate) async fn create(
        manifest: &Manifest,
        options: &GatewayOptions,
    ) -> Result<(Self, UnstartedFleet), StartError> {
        let process = &manifest.process;
        let (unstarted, fleet) = UnstartedFleet::new();
        let background: BackgroundSpawner = Arc::new(|work| drop(spawn_blocking(work)));
        let context = Self {
            process: process.clone(),
            store: store(options).await?,
            processes: ProcessTable::new(options.spawner.clone(), process.limits.processes),
            budget: ByteBudget::new(process.limits.bytes_in_flight),
            long_work: LongWork::new(background).owned_by(owner_of),
            counters: Arc::default(),
            audit: AuditQueue::new(audit_queue_options(process), unrecorded(options).await),
            embeddings: embeddings::create(process)?,
            log: options.log.clone(),
            fleet,
            manifest: watch::Sender::new(ServedManifest::of(manifest)),
            cluster_members: watch::Sender::new(Arc::from([])),
            store_location: options.store_location.as_deref().map(Arc::from),
            last_edit: watch::Sender::new(None),
            stage: watch::Sender::new(GatewayStage::Starting),
            stopping: watch::Sender::new(false),
        };
        Ok((context, unstarted))
    }
}

fn audit_queue_options(process: &ProcessSettings) -> AuditQueueOptions {
    AuditQueueOptions {
        records: process.limits.queued_records,
        bytes: process.limits.queued_record_bytes,
        arguments: process.audit.arguments == ArgumentRecording::Redacted,
    }
}

/// Opens the count of records that are missing in the audit trail. Without it, they are not known after a kill.
async fn unrecorded(options: &GatewayOptions) -> Option<DurableCount> {
    let path = options.unrecorded_count.clone()?;
    let shown = path.display().to_string();
    let opened = spawn_blocking(move || DurableCount::open(&path)).await;
    match opened.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(count) => Some(count),
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                path = shown,
                error,
                "records of the audit trail that a kill loses are not counted"
            );
            None
        }
    }
}

/// Returns the configured store, or an in-memory store that lasts as long as the gateway.
async fn store(options: &GatewayOptions) -> Result<Arc<dyn Store>, StartError> {
    match &options.store {
        Some(store) => Ok(store.clone()),
        None => {
            toolyard_store::open(&StoreOptions::at(DatabaseLocation::Memory)).await.map_err(StartError::Store)
        }
    }
}
