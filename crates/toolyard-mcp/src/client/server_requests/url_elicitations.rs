//! The URL elicitations of a connection and their clients: the completion notification goes only to the client that was
//! asked to open the URL (2025-11-25, client/elicitation, completion notifications).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolyard_core::{Client, ClientNotification, InputRequest, Json, NotificationBody, Object};

use crate::wire::{RpcError, error, method};

/// Maximum number of remembered elicitations. Servers need not report completion, so that the oldest are dropped.
const MAX_ELICITATIONS: usize = 64;

/// Maximum length of an elicitation id in bytes.
const MAX_ID_BYTES: usize = 256;

/// The elicitations that are not complete, oldest first.
#[derive(Default)]
pub(in crate::client) struct UrlElicitations(Mutex<VecDeque<UrlElicitation>>);

/// The id of an elicitation and its client.
type UrlElicitation = (Box<str>, Arc<dyn Client>);

impl UrlElicitations {
    /// Records a request to a client, if it is a URL elicitation.
    pub(super) fn record_request(&self, ask: &InputRequest, client: &Arc<dyn Client>) {
        self.insert(&ask.params, client);
    }

    /// Records the URL elicitations that an error requires.
    pub(in crate::client) fn record_error(&self, error: &RpcError, client: &Arc<dyn Client>) {
        if error.code != error::URL_REQUIRED {
            return;
        }
        let member = |of: &Json, name: &str| of.to_object().ok()?.get(name).cloned();
        let elicitations =
            member(error.body(), "data").and_then(|data| member(&data, "elicitations")?.to_items().ok());
        let elicitations =
            elicitations.unwrap_or_default().into_iter().filter_map(|one| one.to_object().ok());
        elicitations.take(MAX_ELICITATIONS).for_each(|one| self.insert(&one, client));
    }

    /// Forwards a completion notification to the client of the elicitation. An unknown one is dropped.
    pub(in crate::client) fn complete(&self, body: NotificationBody) {
        let Some(id) = body.params.get_str("elicitationId") else { return };
        let mut visits = self.lock();
        let elicitation =
            visits.iter().position(|(other, _)| **other == *id).and_then(|at| visits.remove(at));
        drop(visits);
        drop(id);
        if let Some((_, client)) = elicitation {
            client.notify(ClientNotification::Other { method: method::ELICIT_COMPLETE.into(), body });
        }
    }

    fn insert(&self, elicitation: &Object, client: &Arc<dyn Client>) {
        let id = elicitation.get_str("elicitationId").filter(|id| id.len() <= MAX_ID_BYTES);
        let Some(id) = id.filter(|_| elicitation.get_str("mode").as_deref() == Some("url")) else { return };
        let mut visits = self.lock();
        visits.retain(|(other, _)| **other != *id);
        if visits.len() >= MAX_ELICITATIONS {
            visits.pop_front();
        }
        visits.push_back((id.as_ref().into(), client.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<UrlElicitation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
