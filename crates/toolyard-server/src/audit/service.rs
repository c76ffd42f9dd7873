//! The audit trail of a running gateway.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::layers::CallObserver;
use toolyard_core::store::Store;
use toolyard_manifest::{ArgumentRecording, AuditTrail, ProcessSettings};

use super::{AuditOptions, AuditQueue, AuditWriter};
use crate::shutdown::Subsystem;

/// The audit queue and the task that writes it.
pub struct AuditService {
    audit: Arc<AuditQueue>,
    /// True if calls are recorded.
    records_calls: bool,
    stop: oneshot::Sender<()>,
    writing: JoinSet<()>,
}

impl AuditService {
    /// Starts to write the records of a queue as a manifest configures.
    #[must_use]
    pub fn start(audit: Arc<AuditQueue>, process: &ProcessSettings, store: &Arc<dyn Store>) -> Self {
        let writer = AuditWriter::new(audit.clone(), store.clone(), options(&process.audit));
        let (stop, stopped) = oneshot::channel();
        let mut writing = JoinSet::new();
        writing.spawn(writer.run(stopped));
        Self { audit, records_calls: process.audit.enabled, stop, writing }
    }

    /// Returns the observer of calls, if they are recorded. Operators' actions are always recorded.
    pub fn observer(&self) -> Option<Arc<dyn CallObserver>> {
        self.records_calls.then(|| self.audit.clone() as Arc<dyn CallObserver>)
    }

    /// Writes the remaining records within this time. The rest is counted as lost and logged.
    pub async fn stop(mut self, time: Duration) {
        // A closed channel means that the writer has failed; its records are lost.
        let _gone = self.stop.send(());
        let _result = timeout(time, self.writing.join_next()).await;
        self.writing.shutdown().await;
        let records = self.audit.discard_unwritten();
        if records > 0 {
            tracing::error!(
                records,
                "lost the last records of the audit trail: the store did not accept them in time"
            );
        }
    }
}

impl Subsystem for AuditService {
    fn stop(self: Box<Self>, drain: Duration) -> BoxFuture<'static, ()> {
        Box::pin(Self::stop(*self, drain))
    }
}

fn options(trail: &AuditTrail) -> AuditOptions {
    AuditOptions {
        arguments: trail.arguments == ArgumentRecording::Redacted,
        redact: trail.redact.iter().map(|name| name.to_lowercase()).collect(),
        file: trail.file.clone(),
        retention: (!trail.retention.is_zero()).then_some(trail.retention),
        bytes: trail.bytes as u64,
    }
}
