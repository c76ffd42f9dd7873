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
use tokio::time::{Instant, sleep, sleep_until};
use toolyard_core::store::{LogRecord, Store, StoreError};

use super::record::{AuditAction, AuditActor, AuditEvent, QueuedRecord, RecordEncoder};
use super::{AUDIT, AuditOptions, AuditQueue, TakenRecords};

/// Delay before a write, so that the records of that time share a block of the store. If the process is killed, these
/// records are lost.
const WRITE_DELAY: Duration = Duration::from_millis(100);

/// Maximum number of records of a write: those of one block.
const BATCH_SIZE: usize = 500;

/// The first and the longest delay after a failed write. Each failure doubles it.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// Interval of removing records beyond their retention.
const TRIM_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Interval of checking the size of the trail.
const SIZE_INTERVAL: Duration = Duration::from_secs(60);

/// Minimum time between two reports of losses.
const LOSS_REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Writes the records of an [`AuditQueue`].
pub struct AuditWriter {
    audit: Arc<AuditQueue>,
    store: Arc<dyn Store>,
    options: AuditOptions,
    /// Records taken from the queue that are not in the store yet, and the bytes that they held in the queue.
    pending: Arc<[LogRecord]>,
    pending_bytes: usize,
    /// True if these are already in the file.
    is_filed: bool,
    /// Number of losses that the trail reports, and those of them that the pending records report.
    reported_losses: u64,
    pending_losses: u64,
    reported_at: Option<Instant>,
    trimmed_at: Option<Instant>,
    measured_at: Option<Instant>,
}

impl AuditWriter {
    /// Creates a writer of the trail.
    #[must_use]
    pub fn new(audit: Arc<AuditQueue>, store: Arc<dyn Store>, options: AuditOptions) -> Self {
        Self {
            audit,
            store,
            options,
            pending: Arc::default(),
            pending_bytes: 0,
            is_filed: false,
            reported_losses: 0,
            pending_losses: 0,
            reported_at: None,
            trimmed_at: None,
            measured_at: None,
        }
    }

    /// Writes records until stopped, then the remaining ones if the store accepts them. A running write is not
    /// cancelled by the stop, because it might succeed anyway and then be done twice.
    pub async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let mut wait = BACKOFF.0;
        // The record of a call after a pause is written at once, so that the trail can be read right after the call.
        let mut next_write = Instant::now();
        if self.audit.lost() > 0 {
            // Records of a killed process are reported at once. A failure is repeated in the loop.
            let _reported = self.write().await;
        }
        loop {
            if self.pending.is_empty() {
                tokio::select! {
                    () = self.audit.wait_for_records() => sleep_until(next_write).await,
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
            next_write = Instant::now() + WRITE_DELAY;
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
        let mut rest = self.audit.queue_length();
        let mut has_records = false;
        loop {
            if self.pending.is_empty() {
                let taken = self.take(rest.min(BATCH_SIZE));
                rest = rest.saturating_sub(BATCH_SIZE);
                if taken.records.is_empty() {
                    return Ok(has_records);
                }
                self.convert(taken).await;
            }
            has_records = true;
            self.file().await;
            self.append().await?;
        }
    }

    /// Appends the pending records to the store.
    async fn append(&mut self) -> Result<(), ()> {
        if let Err(error) = self.store.append(AUDIT, self.pending.clone()).await {
            let error = &error as &dyn std::error::Error;
            let waiting = self.pending.len() + self.audit.queue_length();
            tracing::error!(error, waiting, "cannot write the audit trail");
            return Err(());
        }
        self.audit.mark_written(
            self.pending.len(),
            self.pending_bytes,
            std::mem::take(&mut self.pending_losses),
        );
        self.audit.announce(&self.pending);
        self.pending = Arc::default();
        self.pending_bytes = 0;
        Ok(())
    }

    /// Takes queued records and adds a record of losses. That one bypasses the queue, which is full when records are
    /// lost.
    fn take(&mut self, limit: usize) -> TakenRecords {
        let mut taken = self.audit.take(limit);
        if let Some(event) = self.loss_event() {
            self.audit.unwritten.fetch_add(1, Ordering::Relaxed);
            self.audit.unrecorded.count().fetch_add(1, Ordering::Relaxed);
            taken.records.push(QueuedRecord::Event(event));
        }
        taken
    }

    /// Makes queued records pending, converted for the store on a blocking thread, because digests of large arguments
    /// take time.
    async fn convert(&mut self, taken: TakenRecords) {
        let TakenRecords { records, bytes } = taken;
        let (count, options) = (records.len(), self.options.clone());
        let encode = move || {
            let mut encoder = RecordEncoder::default();
            records.iter().map(|record| record.to_record(&mut encoder, &options)).collect()
        };
        let converted = spawn_blocking(encode);
        self.is_filed = false;
        match converted.await {
            Ok(records) => (self.pending, self.pending_bytes) = (records, bytes),
            Err(error) => {
                self.audit.mark_lost(count, bytes);
                self.pending_losses = 0;
                let error = &error as &dyn std::error::Error;
                tracing::error!(
                    error,
                    records = count,
                    "lost records of the audit trail: they cannot be encoded"
                );
            }
        }
    }

    /// Appends the pending records to the file. A failure is logged; the store has the records anyway.
    async fn file(&mut self) {
        let Some(file) = self.options.file.clone().filter(|_| !self.is_filed) else { return };
        self.is_filed = true;
        let lines: String = self.pending.iter().flat_map(|record| [record.body.as_str(), "\n"]).collect();
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
        self.pending_losses += missing;
        tracing::error!(
            missing,
            "the audit trail is incomplete: records arrived faster than they could be written, or the gateway was killed"
        );
        Some(AuditEvent {
            actor: AuditActor::default(),
            action: AuditAction::RecordsLost,
            object: missing.to_string(),
        })
    }

    /// Removes records beyond their retention, and the oldest ones of a trail that is too large.
    async fn trim(&mut self) {
        let is_due = |last: Option<Instant>, interval| last.is_none_or(|last| last.elapsed() >= interval);
        if is_due(self.trimmed_at, TRIM_INTERVAL) {
            self.trimmed_at = Some(Instant::now());
            self.trim_to_retention().await;
        }
        if is_due(self.measured_at, SIZE_INTERVAL) {
            self.measured_at = Some(Instant::now());
            self.trim_to_size().await;
        }
    }

    async fn trim_to_retention(&self) {
        let before = self.options.retention.and_then(|retention| SystemTime::now().checked_sub(retention));
        let Some(before) = before else { return };
        match self.store.trim(AUDIT, before).await {
            Ok(0) => {}
            Ok(records) => tracing::info!(records, "removed old records of the audit trail"),
            Err(error) => log_trim_error(&error),
        }
    }

    async fn trim_to_size(&self) {
        match self.store.trim_to_size(AUDIT, self.options.bytes).await {
            Ok(0) => {}
            Ok(records) => {
                self.audit.removed.fetch_add(records, Ordering::Relaxed);
                self.audit.record_event(AuditEvent {
                    actor: AuditActor::default(),
                    action: AuditAction::RecordsRemoved,
                    object: records.to_string(),
                });
                tracing::warn!(
                    records,
                    bytes = self.options.bytes,
                    "removed the oldest records of the audit trail, which had reached `audit.bytes`"
                );
            }
            Err(error) => log_trim_error(&error),
        }
    }
}

fn log_trim_error(error: &StoreError) {
    let error = error as &dyn std::error::Error;
    tracing::warn!(error, "cannot remove old records of the audit trail");
}

/// Appends lines to a file, which log rotation may have moved since the last write.
fn add(path: &Path, lines: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.write_all(lines.as_bytes())
}
