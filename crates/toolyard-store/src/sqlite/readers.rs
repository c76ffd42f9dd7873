//! The threads that read. They see what was committed, and nobody who writes waits for them.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use toolyard_core::store::StoreError;

use super::trouble;

/// The way to the threads. They end when this is dropped, after what waits for them.
pub(super) struct Readers {
    queue: mpsc::Sender<Read>,
}

type Read = Box<dyn FnOnce(&Connection) + Send>;

impl Readers {
    /// Starts a thread for each connection.
    pub(super) fn start(connections: impl IntoIterator<Item = Connection>, queue: usize) -> io::Result<Self> {
        let (queue, reads) = mpsc::channel::<Read>(queue);
        let reads = Arc::new(Mutex::new(reads));
        for connection in connections {
            let reads = reads.clone();
            let next = move || reads.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
            let work = move || {
                while let Some(read) = next() {
                    read(&connection);
                }
            };
            thread::Builder::new().name("store-reader".to_owned()).spawn(work)?;
        }
        Ok(Self { queue })
    }

    /// Has something read.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, done) = oneshot::channel();
        let read = move |connection: &Connection| {
            if !reply.is_closed() {
                // Nobody may wait any more.
                let _gone = reply.send(work(connection));
            }
        };
        self.queue.try_send(Box::new(read)).map_err(|error| trouble::refused(&error))?;
        done.await.map_err(|_| trouble::gone())?.map_err(trouble::error)
    }
}
