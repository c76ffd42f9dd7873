//! The running calls of a connection, and the clients that notifications without a request belong to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolyard_core::Client;

/// The running calls of a connection.
#[derive(Default)]
pub(super) struct RunningCalls(Mutex<CallTable>);

#[derive(Default)]
struct CallTable {
    /// The clients of running calls, in the order of the calls.
    clients: BTreeMap<u64, Arc<dyn Client>>,
    /// Number of the latest call.
    last_number: u64,
    /// The client of the latest call on a dedicated connection.
    last_client: Option<Arc<dyn Client>>,
}

/// The registration of a running call; dropping it ends the registration.
pub(in crate::client) struct RunningCall<'c> {
    calls: &'c RunningCalls,
    number: u64,
}

impl RunningCalls {
    /// Registers a call. The client of the latest call on a dedicated connection is known after its end.
    pub(super) fn register(&self, client: &Arc<dyn Client>, is_dedicated: bool) -> RunningCall<'_> {
        let mut table = self.lock();
        table.last_number += 1;
        let number = table.last_number;
        table.clients.insert(number, client.clone());
        if is_dedicated {
            table.last_client = Some(client.clone());
        }
        RunningCall { calls: self, number }
    }

    /// Returns the client of the latest running call, else that of the latest call on a dedicated connection.
    pub(super) fn latest_client(&self) -> Option<Arc<dyn Client>> {
        let table = self.lock();
        table.clients.values().next_back().or(table.last_client.as_ref()).cloned()
    }

    /// Returns the client of the only running call.
    pub(super) fn only_client(&self) -> Option<Arc<dyn Client>> {
        let table = self.lock();
        let mut clients = table.clients.values();
        let only = clients.next()?;
        clients.next().is_none().then(|| only.clone())
    }

    fn lock(&self) -> MutexGuard<'_, CallTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.calls.lock().clients.remove(&self.number);
    }
}
