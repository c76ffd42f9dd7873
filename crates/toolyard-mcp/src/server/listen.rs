//! Telling clients that the list of tools is not what it was.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;
use toolyard_core::{Json, Object, Registry};

use super::Frontend;
use crate::wire::{Id, message, meta, method};

/// The changes of the list of tools, seen from one client.
pub(super) struct Changes {
    registry: watch::Receiver<Arc<Registry>>,
    /// The list that the client can have seen.
    seen: Json,
    stopping: watch::Receiver<bool>,
}

impl Frontend {
    /// Changes from now on.
    pub(super) fn changes(&self) -> Changes {
        let mut registry = self.gateway.watch();
        let seen = registry.borrow_and_update().list().clone();
        Changes { registry, seen, stopping: self.stopping.clone() }
    }
}

impl Changes {
    /// Waits until the list differs; `None` once the gateway stops.
    pub(super) async fn next(&mut self) -> Option<()> {
        loop {
            tokio::select! {
                changed = self.registry.changed() => changed.ok()?,
                _ = self.stopping.wait_for(|stopping| *stopping) => return None,
            }
            let list = self.registry.borrow_and_update().list().clone();
            if list != self.seen {
                self.seen = list;
                return Some(());
            }
        }
    }
}

/// What a client asked to be told of, in `subscriptions/listen`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subscription {
    pub(super) id: Id,
    /// Whether it is told of tools. No other change is announced yet.
    pub(super) tools: bool,
}

impl Subscription {
    /// Reads the parameters. What is not offered here is left out of the acknowledgement.
    pub(super) fn new(id: Id, params: &Object) -> Self {
        let filter =
            params.get("notifications").and_then(|filter| filter.to_object().ok()).unwrap_or_default();
        let tools = filter.get("toolsListChanged").and_then(Json::to_bool) == Some(true);
        Self { id, tools }
    }

    /// The first message: what the client will be told of.
    pub(super) fn acknowledgement(&self) -> Bytes {
        let granted = if self.tools {
            Object::new().with("toolsListChanged", Json::from_value(&true.into()))
        } else {
            Object::new()
        };
        let params = self.marked().with("notifications", granted.to_json());
        message::notification(method::ACKNOWLEDGED, &params)
    }

    /// The list of tools is not what it was.
    pub(super) fn tools_changed(&self) -> Bytes {
        message::notification(method::TOOLS_CHANGED, &self.marked())
    }

    /// The last message, when the gateway ends the stream.
    pub(super) fn end(&self) -> Vec<Bytes> {
        let result = Object::new().with("resultType", Json::string("complete")).with("_meta", self.meta());
        message::response(Some(&self.id), Ok(vec![result.to_json().bytes()]))
    }

    fn marked(&self) -> Object {
        Object::new().with("_meta", self.meta())
    }

    fn meta(&self) -> Json {
        Object::new().with(meta::SUBSCRIPTION_ID, self.id.to_json()).to_json()
    }
}

/// The list of tools is not what it was, as legacy clients are told.
pub(super) fn tools_changed() -> Bytes {
    message::notification(method::TOOLS_CHANGED, &Object::new())
}
