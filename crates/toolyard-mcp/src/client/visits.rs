//! Which client was asked to open which URL: when the user is done there, the server says so, to that client only
//! (2025-11-25, client/elicitation, completion notifications).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolyard_core::{Ask, Client, Json, Notice, Object};

use crate::wire::{RpcError, error, method};

/// Visits of one connection that are remembered. A server need not say that one is over, so the oldest make room.
const MOST: usize = 64;

/// The longest id of one, in bytes.
const LONGEST_ID: usize = 256;

/// The visits that may still be going on, by the ids that the server has given them.
#[derive(Default)]
pub(super) struct Visits(Mutex<VecDeque<Visit>>);

/// The id of one, and whose it is.
type Visit = (Box<str>, Arc<dyn Client>);

impl Visits {
    /// Takes what a client is asked; only what names a visit counts.
    pub(super) fn asked(&self, ask: &Ask, client: &Arc<dyn Client>) {
        self.begin(&ask.params, client);
    }

    /// Takes the error of a call, which may say what its client has to visit first.
    pub(super) fn refused(&self, error: &RpcError, client: &Arc<dyn Client>) {
        if error.code != error::URL_REQUIRED {
            return;
        }
        let member = |of: &Json, name: &str| of.to_object().ok()?.get(name).cloned();
        let wanted =
            member(error.body(), "data").and_then(|data| member(&data, "elicitations")?.to_items().ok());
        let wanted = wanted.unwrap_or_default().into_iter().filter_map(|one| one.to_object().ok());
        wanted.take(MOST).for_each(|one| self.begin(&one, client));
    }

    /// Tells whoever it concerns that one is over. One that is unknown is nobody's.
    pub(super) fn over(&self, params: Object) {
        let Some(id) = params.get_str("elicitationId") else { return };
        let mut visits = self.lock();
        let found = visits.iter().position(|(known, _)| **known == *id).and_then(|at| visits.remove(at));
        drop(visits);
        drop(id);
        if let Some((_, client)) = found {
            client.notify(Notice::Other { method: method::ELICIT_COMPLETE.into(), params });
        }
    }

    fn begin(&self, elicitation: &Object, client: &Arc<dyn Client>) {
        let id = elicitation.get_str("elicitationId").filter(|id| id.len() <= LONGEST_ID);
        let Some(id) = id.filter(|_| elicitation.get_str("mode").as_deref() == Some("url")) else { return };
        let mut visits = self.lock();
        visits.retain(|(known, _)| **known != *id);
        if visits.len() >= MOST {
            visits.pop_front();
        }
        visits.push_back((id.as_ref().into(), client.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Visit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
