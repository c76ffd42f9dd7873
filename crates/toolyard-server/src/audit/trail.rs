//! The trail of a gateway that runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use toolyard_core::layers::Observer;
use toolyard_core::store::Store;
use toolyard_manifest::{AuditTrail, KeptArguments, Process};

use super::{Audit, AuditOptions, Writer};

/// An audit, and the task that writes what it notes.
pub struct Trail {
    /// What takes note.
    pub audit: Arc<Audit>,
    /// Whether calls are noted.
    is_wanted: bool,
    stop: oneshot::Sender<()>,
    writing: JoinSet<()>,
}

impl Trail {
    /// Begins the trail that a manifest wants.
    #[must_use]
    pub fn start(process: &Process, store: &Arc<dyn Store>) -> Self {
        let audit = Audit::new(process.limits.queued_records);
        let writer = Writer::new(audit.clone(), store.clone(), options(&process.audit));
        let (stop, stopped) = oneshot::channel();
        let mut writing = JoinSet::new();
        writing.spawn(writer.run(stopped));
        Self { audit, is_wanted: process.audit.enabled, stop, writing }
    }

    /// Who is to be told of calls. What operators do is noted in any case.
    pub fn observer(&self) -> Option<Arc<dyn Observer>> {
        self.is_wanted.then(|| self.audit.clone() as Arc<dyn Observer>)
    }

    /// Writes what is left, within this time. What is not written then is lost, counted and said aloud.
    pub async fn stop(mut self, time: Duration) {
        // A writer that is gone has broken; what it had is lost.
        let _gone = self.stop.send(());
        let _late = timeout(time, self.writing.join_next()).await;
        self.writing.shutdown().await;
        let records = self.audit.give_up();
        if records > 0 {
            tracing::error!(
                records,
                "the last records of the audit trail are lost: the store does not take them"
            );
        }
    }
}

fn options(wanted: &AuditTrail) -> AuditOptions {
    AuditOptions {
        arguments: wanted.arguments == KeptArguments::Redacted,
        redact: wanted.redact.iter().map(|name| name.to_lowercase()).collect(),
        file: wanted.file.clone(),
        retention: (!wanted.retention.is_zero()).then_some(wanted.retention),
    }
}
