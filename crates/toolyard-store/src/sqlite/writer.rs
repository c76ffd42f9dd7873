//! The writer thread. Writes that wait for it share a transaction, and so one `fsync`.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Savepoint, TransactionBehavior};
use tokio::sync::{mpsc, oneshot, watch};
use toolyard_core::store::{StoreError, StoreErrorKind};

use super::{errors, file, kv};

#[cfg(test)]
mod tests;

/// Maximum number of writes in one transaction, as the first of them waits for the last.
const MAX_GROUP_SIZE: usize = 256;

/// Time between two sweeps of expired values.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// A handle to the thread. It ends after the drop, once the queue is empty.
pub(super) struct SqliteWriter {
    queue: mpsc::Sender<Box<dyn WriteJob>>,
    /// Closed once the thread has closed its connection.
    ended: watch::Receiver<()>,
}

/// Work for a transaction, with the caller that waits for it.
trait WriteJob: Send {
    /// Runs the work in a savepoint of its own. The job keeps its error for [`WriteJob::acknowledge`].
    fn run(&mut self, connection: &Connection) -> Result<(), TransactionFailure>;

    /// Reports the result, after the transaction was committed or failed.
    fn acknowledge(self: Box<Self>, committed: &Result<(), TransactionFailure>);

    /// `true` if no job is accepted after this one.
    fn is_last(&self) -> bool {
        false
    }
}

/// The last job, without work.
struct CloseJob;

/// The failure of a transaction, for each of the jobs that shared it.
struct TransactionFailure {
    kind: StoreErrorKind,
    reason: String,
}

struct PendingWrite<F, T> {
    work: Option<F>,
    outcome: Option<rusqlite::Result<T>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl SqliteWriter {
    /// Starts the thread.
    pub(super) fn start(mut connection: Connection, queue: usize) -> io::Result<Self> {
        let (queue, mut jobs) = mpsc::channel(queue);
        let (end, ended) = watch::channel(());
        let work = move || {
            // Dropped last, after the connection.
            let _end = end;
            let mut group: Vec<Box<dyn WriteJob>> = Vec::with_capacity(MAX_GROUP_SIZE);
            let mut last_sweep = None;
            while jobs.blocking_recv_many(&mut group, MAX_GROUP_SIZE) > 0 {
                if group.iter().any(|job| job.is_last()) {
                    jobs.close();
                }
                let committed = commit(&mut connection, &mut group, &mut last_sweep);
                group.drain(..).for_each(|job| job.acknowledge(&committed));
            }
            // The log stays if other processes have the file open.
            if let Err(error) = file::checkpoint(&connection) {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "cannot truncate the write-ahead log"
                );
            }
            drop(connection);
        };
        thread::Builder::new().name("store-writer".to_owned()).spawn(work)?;
        Ok(Self { queue, ended })
    }

    /// Ends the thread once the queue is empty, and closes its connection.
    pub(super) async fn close(&self) {
        // Sending fails if the thread is already ending.
        let _ending = self.queue.send(Box::new(CloseJob)).await;
        let _ended = self.ended.clone().changed().await;
    }

    /// Runs work in a transaction, and waits for the commit.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, done) = oneshot::channel();
        let job = Box::new(PendingWrite { work: Some(work), outcome: None, reply });
        self.queue.try_send(job).map_err(|error| errors::queue_error(&error))?;
        done.await.unwrap_or_else(|_| Err(errors::thread_ended()))
    }
}

fn commit(
    connection: &mut Connection,
    group: &mut [Box<dyn WriteJob>],
    last_sweep: &mut Option<Instant>,
) -> Result<(), TransactionFailure> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for job in group {
        let savepoint = transaction.savepoint()?;
        run(job.as_mut(), savepoint)?;
    }
    if last_sweep.is_none_or(|swept| swept.elapsed() > SWEEP_INTERVAL) {
        kv::sweep(&transaction)?;
        *last_sweep = Some(Instant::now());
    }
    Ok(transaction.commit()?)
}

/// Runs one job of the group, so that it makes all of its changes or none.
fn run(job: &mut dyn WriteJob, savepoint: Savepoint<'_>) -> Result<(), TransactionFailure> {
    match job.run(&savepoint) {
        Ok(()) => Ok(savepoint.commit()?),
        // Some errors, such as a full disk, roll back the whole transaction.
        Err(failure) if savepoint.is_autocommit() => Err(failure),
        Err(_) => Ok(savepoint.finish()?),
    }
}

impl<F, T> WriteJob for PendingWrite<F, T>
where
    F: FnOnce(&Connection) -> rusqlite::Result<T> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), TransactionFailure> {
        // A caller that no longer waits has withdrawn the job.
        let Some(work) = self.work.take().filter(|_| !self.reply.is_closed()) else { return Ok(()) };
        let outcome = self.outcome.insert(work(connection));
        outcome.as_ref().map(drop).map_err(TransactionFailure::from)
    }

    fn acknowledge(self: Box<Self>, committed: &Result<(), TransactionFailure>) {
        let outcome = match (committed, self.outcome) {
            (Ok(()), Some(outcome)) => outcome.map_err(errors::store_error),
            (Err(failure), _) => Err(StoreError::new(failure.kind, failure.reason.clone())),
            (Ok(()), None) => return,
        };
        // The outcome stands even if the caller no longer waits.
        let _gone = self.reply.send(outcome);
    }
}

impl WriteJob for CloseJob {
    fn run(&mut self, _: &Connection) -> Result<(), TransactionFailure> {
        Ok(())
    }

    fn acknowledge(self: Box<Self>, _: &Result<(), TransactionFailure>) {}

    fn is_last(&self) -> bool {
        true
    }
}

impl From<&rusqlite::Error> for TransactionFailure {
    fn from(error: &rusqlite::Error) -> Self {
        Self { kind: errors::error_kind(error), reason: error.to_string() }
    }
}

impl From<rusqlite::Error> for TransactionFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::from(&error)
    }
}
