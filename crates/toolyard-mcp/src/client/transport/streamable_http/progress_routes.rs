//! The running requests of an HTTP connection. Progress belongs to the request whose id is the token, whatever stream
//! it comes on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolyard_core::{Client, ClientNotification, NotificationBody};

use crate::client::transport::progress_request;

/// The clients of running requests by request id.
#[derive(Clone, Default)]
pub(super) struct ProgressRoutes(Arc<Mutex<HashMap<u64, Arc<dyn Client>>>>);

/// The registration of a running request; dropping it ends the registration.
pub(super) struct ProgressRoute<'a> {
    routes: &'a ProgressRoutes,
    id: u64,
}

impl ProgressRoutes {
    pub(super) fn register(&self, id: u64, client: &Arc<dyn Client>) -> ProgressRoute<'_> {
        self.lock().insert(id, client.clone());
        ProgressRoute { routes: self, id }
    }

    /// Forwards progress to the client of its request. Progress of an unknown request is dropped.
    pub(super) fn forward_progress(&self, body: NotificationBody) {
        let client = progress_request(&body.params).and_then(|id| self.lock().get(&id).cloned());
        if let Some(client) = client {
            client.notify(ClientNotification::Progress(body));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<dyn Client>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ProgressRoute<'_> {
    fn drop(&mut self) {
        self.routes.lock().remove(&self.id);
    }
}
