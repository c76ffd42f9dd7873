//! The one thread that writes. What waits for it shares a transaction, and so the wait for the disk.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Savepoint, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};
use toolyard_core::store::{StoreError, Trouble};

use super::{kv, trouble};

#[cfg(test)]
mod tests;

/// How many writes share a transaction at most: the first of them waits for the last.
const GROUP: usize = 256;

/// How often expired values are looked for.
const SWEEP: Duration = Duration::from_secs(60);

/// The way to the thread. It ends when this is dropped, after what waits for it.
pub(super) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
}

/// What is to be done in a transaction, and who waits for it.
trait Job: Send {
    /// Does it. An error is kept for [`Job::acknowledge`]; its own savepoint is what it may fail in.
    fn run(&mut self, connection: &Connection) -> Result<(), Lost>;

    /// Says what it came to, after the transaction was committed or lost.
    fn acknowledge(self: Box<Self>, committed: &Result<(), Lost>);
}

/// Why a transaction is lost, for each of those that shared it.
struct Lost {
    trouble: Trouble,
    reason: String,
}

struct Write<F, T> {
    work: Option<F>,
    outcome: Option<rusqlite::Result<T>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(mut connection: Connection, queue: usize) -> io::Result<Self> {
        let (queue, mut jobs) = mpsc::channel(queue);
        let work = move || {
            let mut group = Vec::with_capacity(GROUP);
            let mut swept = None;
            while jobs.blocking_recv_many(&mut group, GROUP) > 0 {
                let committed = commit(&mut connection, &mut group, &mut swept);
                group.drain(..).for_each(|job: Box<dyn Job>| job.acknowledge(&committed));
            }
        };
        thread::Builder::new().name("store-writer".to_owned()).spawn(work)?;
        Ok(Self { queue })
    }

    /// Has something done in a transaction, and waits until that is committed.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, done) = oneshot::channel();
        let job = Box::new(Write { work: Some(work), outcome: None, reply });
        self.queue.try_send(job).map_err(|error| trouble::refused(&error))?;
        done.await.unwrap_or_else(|_| Err(trouble::gone()))
    }
}

fn commit(
    connection: &mut Connection,
    group: &mut [Box<dyn Job>],
    swept: &mut Option<Instant>,
) -> Result<(), Lost> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for job in group {
        let savepoint = transaction.savepoint()?;
        run(job.as_mut(), savepoint)?;
    }
    if swept.is_none_or(|swept| swept.elapsed() > SWEEP) {
        kv::sweep(&transaction)?;
        *swept = Some(Instant::now());
    }
    Ok(transaction.commit()?)
}

/// Does one of the group, so that it changes everything that it is to change, or nothing.
fn run(job: &mut dyn Job, savepoint: Savepoint<'_>) -> Result<(), Lost> {
    match job.run(&savepoint) {
        Ok(()) => Ok(savepoint.commit()?),
        // Some errors, such as that of a full disk, have undone the whole transaction.
        Err(lost) if savepoint.is_autocommit() => Err(lost),
        Err(_) => Ok(savepoint.finish()?),
    }
}

impl<F, T> Job for Write<F, T>
where
    F: FnOnce(&Connection) -> rusqlite::Result<T> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), Lost> {
        // Who does not wait any more has withdrawn it.
        let Some(work) = self.work.take().filter(|_| !self.reply.is_closed()) else { return Ok(()) };
        let outcome = self.outcome.insert(work(connection));
        outcome.as_ref().map(drop).map_err(Lost::from)
    }

    fn acknowledge(self: Box<Self>, committed: &Result<(), Lost>) {
        let outcome = match (committed, self.outcome) {
            (Ok(()), Some(outcome)) => outcome.map_err(trouble::error),
            (Err(lost), _) => Err(StoreError::new(lost.trouble, lost.reason.clone())),
            (Ok(()), None) => return,
        };
        // It is kept, or not, also where nobody waits any more.
        let _gone = self.reply.send(outcome);
    }
}

impl From<&rusqlite::Error> for Lost {
    fn from(error: &rusqlite::Error) -> Self {
        Self { trouble: trouble::trouble(error), reason: error.to_string() }
    }
}

impl From<rusqlite::Error> for Lost {
    fn from(error: rusqlite::Error) -> Self {
        Self::from(&error)
    }
}
