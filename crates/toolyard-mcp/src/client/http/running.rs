//! The requests of an HTTP connection that are not answered: progress is for the one whose id is its token, on
//! whichever stream it comes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolyard_core::{Client, Notice, Object};

use crate::client::transport::request_of;

/// The clients of the requests that run, by the requests' ids.
#[derive(Clone, Default)]
pub(super) struct Running(Arc<Mutex<HashMap<u64, Arc<dyn Client>>>>);

/// One request that runs, until this is dropped.
pub(super) struct Entered<'a> {
    running: &'a Running,
    id: u64,
}

impl Running {
    pub(super) fn enter(&self, id: u64, client: &Arc<dyn Client>) -> Entered<'_> {
        self.lock().insert(id, client.clone());
        Entered { running: self, id }
    }

    /// Takes progress of a request. What belongs to none of them is nobody's.
    pub(super) fn progressed(&self, params: Object) {
        let client = request_of(&params).and_then(|id| self.lock().get(&id).cloned());
        if let Some(client) = client {
            client.notify(Notice::Progress(params));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<dyn Client>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.running.lock().remove(&self.id);
    }
}
