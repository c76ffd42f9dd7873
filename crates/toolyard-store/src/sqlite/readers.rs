//! The reader threads. They see committed data, and do not block the writer.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};
use toolyard_core::store::StoreError;

use super::errors;

/// A handle to the threads. They end after the drop, once the queue is empty.
pub(super) struct SqliteReaders {
    queue: mpsc::Sender<ReaderJob>,
    /// Closed once all threads have closed their connections.
    ended: watch::Receiver<()>,
}

enum ReaderJob {
    Read(Box<dyn FnOnce(&Connection) + Send>),
    /// Stops the threads; no job is accepted after this one.
    Close,
}

impl SqliteReaders {
    /// Starts a thread for each connection.
    pub(super) fn start(connections: impl IntoIterator<Item = Connection>, queue: usize) -> io::Result<Self> {
        let (queue, reads) = mpsc::channel(queue);
        let reads = Arc::new(Mutex::new(reads));
        let (end, ended) = watch::channel(());
        let end = Arc::new(end);
        for connection in connections {
            let reads: Arc<Mutex<mpsc::Receiver<ReaderJob>>> = reads.clone();
            let next = move || {
                let mut reads = reads.lock().unwrap_or_else(PoisonError::into_inner);
                let job = reads.blocking_recv();
                if let Some(ReaderJob::Close) = job {
                    reads.close();
                }
                job
            };
            let end = end.clone();
            let work = move || {
                // Dropped last, after the connection.
                let _end = end;
                while let Some(job) = next() {
                    if let ReaderJob::Read(read) = job {
                        read(&connection);
                    }
                }
                drop(connection);
            };
            thread::Builder::new().name("store-reader".to_owned()).spawn(work)?;
        }
        Ok(Self { queue, ended })
    }

    /// Ends the threads once the queue is empty, and closes their connections.
    pub(super) async fn close(&self) {
        // Sending fails if the threads are already ending.
        let _ending = self.queue.send(ReaderJob::Close).await;
        let _ended = self.ended.clone().changed().await;
    }

    /// Runs a query on one of the threads.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, done) = oneshot::channel();
        let read = move |connection: &Connection| {
            if !reply.is_closed() {
                // Fails if the caller no longer waits.
                let _gone = reply.send(work(connection));
            }
        };
        self.queue.try_send(ReaderJob::Read(Box::new(read))).map_err(|error| errors::queue_error(&error))?;
        done.await.map_err(|_| errors::thread_ended())?.map_err(errors::store_error)
    }
}
