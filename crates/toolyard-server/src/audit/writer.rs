//! Writes queued records to the store, and to a file if configured.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use toolyard_core::store::{LogRecord, Store};

use super::record::{AuditAction, AuditActor, AuditEvent, QueuedRecord};
use super::{AUDIT, AuditOptions, AuditQueue};

/// Delay before a write, so that the store is asked only a few times a second.
const WRITE_DELAY: Duration = Duration::from_millis(100);

/// Maximum number of records of a write.
const BATCH_SIZE: usize = 500;

/// The first and the longest delay after a failed write. Each failure doubles it.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// Interval of removing records beyond their retention.
const TRIM_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Minimum time between two reports of losses.
const LOSS_REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Writes the records of an [`AuditQueue`].
pub struct AuditWriter {
    audit: Arc<AuditQueue>,
    store: Arc<dyn Store>,
    options: AuditOptions,
    /// Records taken from the queue that are not in the store yet.
    pending: Vec<LogRecord>,
    /// Number of these that are already in the file.
    filed_count: usize,
    /// Number of losses that the trail reports.
    reported_losses: u64,
    reported_at: Option<Instant>,
    trimmed_at: Option<Instant>,
}

impl AuditWriter {
    /// Creates a writer of the trail.
    #[must_use]
    pub fn new(audit: Arc<AuditQueue>, store: Arc<dyn Store>, options: AuditOptions) -> Self {
        let (reported_at, trimmed_at) = (None, None);
        Self {
            audit,
            store,
            options,
            pending: Vec::new(),
            filed_count: 0,
            reported_losses: 0,
            reported_at,
            trimmed_at,
        }
    }

    /// Writes records until stopped, then the remaining ones if the store accepts them. A running write is not
    /// cancelled by the stop, because it might succeed anyway and then be done twice.
    pub async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let mut wait = BACKOFF.0;
        loop {
            if self.pending.is_empty() {
                tokio::select! {
                    () = self.audit.not_empty.notified() => sleep(WRITE_DELAY).await,
                    () = sleep(TRIM_INTERVAL) => {}
                    _ = &mut stop => break,
                }
            }
            match self.write().await {
                Ok(_) => wait = BACKOFF.0,
                Err(()) => {
                    tokio::select! {
                        () = sleep(wait) => {}
                        _ = &mut stop => break,
                    }
                    wait = (wait * 2).min(BACKOFF.1);
                }
            }
            self.trim().await;
        }
        // Losses since the last report are reported now or never.
        self.reported_at = None;
        // Records may have arrived during the last write.
        while let Ok(true) = self.write().await {}
    }

    /// Writes the queued records. Returns true if there were any. Records that arrive meanwhile wait for the next
    /// write. If the store fails, the records stay here and the queue fills.
    async fn write(&mut self) -> Result<bool, ()> {
        if self.pending.is_empty() {
            let records = self.take();
            if !records.is_empty() {
                self.pending = self.to_records(records).await;
                self.filed_count = 0;
            }
        }
        let has_records = !self.pending.is_empty();
        self.file().await;
        while !self.pending.is_empty() {
            let batch: Vec<_> = self.pending.iter().take(BATCH_SIZE).cloned().collect();
            let count = batch.len();
            if let Err(error) = self.store.append(AUDIT, batch).await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, waiting = self.pending.len(), "cannot write the audit trail");
                return Err(());
            }
            self.pending.drain(..count);
            self.audit.mark_written(count);
            self.filed_count = self.filed_count.saturating_sub(count);
        }
        Ok(has_records)
    }

    /// Takes the queued records and adds a record of losses. That one bypasses the queue, which is full when records
    /// are lost.
    fn take(&mut self) -> Vec<QueuedRecord> {
        let mut records = self.audit.take();
        if let Some(event) = self.loss_event() {
            self.audit.unwritten.fetch_add(1, Ordering::Relaxed);
            records.push(QueuedRecord::Event(event));
        }
        records
    }

    /// Converts records for the store on a blocking thread, because digests of large arguments take time.
    async fn to_records(&self, queued: Vec<QueuedRecord>) -> Vec<LogRecord> {
        let (records, options) = (queued.len(), self.options.clone());
        let converted =
            spawn_blocking(move || queued.iter().map(|record| record.to_record(&options)).collect());
        converted.await.unwrap_or_else(|error| {
            self.audit.mark_lost(records);
            let error = &error as &dyn std::error::Error;
            tracing::error!(error, records, "lost records of the audit trail: they cannot be encoded");
            Vec::new()
        })
    }

    /// Appends the pending records to the file. A failure is logged; the store has the records anyway.
    async fn file(&mut self) {
        let Some(file) = self.options.file.clone().filter(|_| self.filed_count < self.pending.len()) else {
            return;
        };
        let lines: String =
            self.pending[self.filed_count..].iter().flat_map(|record| [record.body.as_str(), "\n"]).collect();
        self.filed_count = self.pending.len();
        let path = file.display().to_string();
        let added = spawn_blocking(move || add(&file, &lines)).await;
        if let Err(error) = added.unwrap_or_else(|_| Err(io::Error::other("the writing task failed"))) {
            tracing::error!(
                file = path,
                error = &error as &dyn std::error::Error,
                "cannot write the file of the audit trail"
            );
        }
    }

    /// Returns the record of new losses, and logs them. `None` if there are none or the last report is recent.
    fn loss_event(&mut self) -> Option<AuditEvent> {
        let lost = self.audit.lost.load(Ordering::Relaxed);
        if lost == self.reported_losses
            || self.reported_at.is_some_and(|at| at.elapsed() < LOSS_REPORT_INTERVAL)
        {
            return None;
        }
        let missing = lost - self.reported_losses;
        (self.reported_losses, self.reported_at) = (lost, Some(Instant::now()));
        tracing::error!(
            missing,
            "the audit trail is incomplete: records arrived faster than they could be written"
        );
        Some(AuditEvent {
            actor: AuditActor::default(),
            action: AuditAction::RecordsLost,
            object: missing.to_string(),
        })
    }

    async fn trim(&mut self) {
        let Some(retention) = self.options.retention else { return };
        if self.trimmed_at.is_some_and(|at| at.elapsed() < TRIM_INTERVAL) {
            return;
        }
        self.trimmed_at = Some(Instant::now());
        let Some(before) = SystemTime::now().checked_sub(retention) else { return };
        match self.store.trim(AUDIT, before).await {
            Ok(0) => {}
            Ok(records) => tracing::info!(records, "removed old records of the audit trail"),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot remove old records of the audit trail"
                );
            }
        }
    }
}

/// Appends lines to a file, which log rotation may have moved since the last write.
fn add(path: &Path, lines: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.write_all(lines.as_bytes())
}
