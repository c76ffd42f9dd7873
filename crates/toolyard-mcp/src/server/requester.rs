//! The client of one request, as its call sees it.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use toolyard_core::{Client, Json, Notice, Object};

use crate::wire::{message, meta, method};

/// Who sent a request: what it can be asked, and where it is told of progress.
#[derive(Debug)]
pub(super) struct Requester {
    capabilities: Option<Json>,
    /// Where messages go, and what the client calls the progress of this request.
    progress: Option<(mpsc::Sender<Bytes>, Json)>,
}

impl Requester {
    /// A client with these capabilities, which said `meta` about its request. It is told of progress where
    /// it gave a token to call it by, and takes messages at all.
    pub(super) fn new(
        capabilities: Option<Json>,
        meta: &Object,
        messages: Option<&mpsc::Sender<Bytes>>,
    ) -> Arc<Self> {
        let progress = messages.cloned().zip(meta.get(meta::PROGRESS_TOKEN).cloned());
        Arc::new(Self { capabilities, progress })
    }
}

impl Client for Requester {
    fn capabilities(&self) -> Option<&Json> {
        self.capabilities.as_ref()
    }

    fn listens(&self) -> bool {
        self.progress.is_some()
    }

    fn notify(&self, notice: Notice) {
        let Some((messages, token)) = &self.progress else { return };
        let Notice::Progress(mut params) = notice;
        params.set(meta::PROGRESS_TOKEN, token.clone());
        // A full queue drops the notice: whoever reads slowly learns of later progress.
        let _full = messages.try_send(message::notification(method::PROGRESS, &params));
    }
}

#[cfg(test)]
mod tests;
