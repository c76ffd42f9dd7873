//! Batches: several messages in one, which revision 2025-03-26 has, and no other
//! (2025-03-26, basic, batching).

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use toolyard_core::{Caller, Json};

use super::peer::Peer;
use super::requester::{Outlet, Requester};
use super::{Frontend, Request, Sender};
use crate::wire::error::INVALID_REQUEST;
use crate::wire::{Era, Id, Message, Revision, RpcError, message, method};

/// Messages of one batch. All of its requests run at once.
const MOST: usize = 100;

/// Whether a text looks like a batch. Only some clients may send one: see [`is_batch`].
pub(super) fn is_array(text: &[u8]) -> bool {
    text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// Whether a text is a batch, and comes from a client that may send one.
pub(super) fn is_batch(text: &[u8], peer: &Peer) -> bool {
    is_array(text) && peer.revision() == Revision::V2025_03_26
}

/// The messages of a batch.
///
/// # Errors
/// When there are none, or too many.
pub(super) fn read(text: Bytes) -> Result<Vec<Bytes>, RpcError> {
    let refuse = |problem: &'static str| RpcError::new(INVALID_REQUEST, problem);
    let items = Json::parse(text).and_then(|batch| batch.to_items());
    let items = items.map_err(|_| refuse("Invalid request: the batch is no JSON array"))?;
    match items.len() {
        1..=MOST => Ok(items.iter().map(Json::bytes).collect()),
        0 => Err(refuse("Invalid request: the batch is empty")),
        _ => Err(refuse("Invalid request: the batch has more than 100 messages")),
    }
}

/// Who sent a batch.
pub(super) struct From {
    pub(super) frontend: Arc<Frontend>,
    pub(super) peer: Arc<Peer>,
    pub(super) caller: Caller,
    pub(super) origin: Option<Arc<dyn Any + Send + Sync>>,
}

/// Takes the messages of a batch; gives the responses to its requests as one text, or nothing where there are
/// none. Its requests are told of nothing while they run: there is no place to say it.
pub(super) async fn answer(from: &From, messages: Vec<Bytes>) -> Option<Vec<Bytes>> {
    let each = messages.into_iter().map(|text| one(from, text));
    let mut pieces = vec![Bytes::from_static(b"[")];
    for response in join_all(each).await.into_iter().flatten() {
        if pieces.len() > 1 {
            pieces.push(Bytes::from_static(b","));
        }
        pieces.extend(response);
    }
    pieces.push(Bytes::from_static(b"]"));
    (pieces.len() > 2).then_some(pieces)
}

async fn one(from: &From, text: Bytes) -> Option<Vec<Bytes>> {
    let From { frontend, peer, caller, origin } = from;
    match Message::parse(text) {
        Ok(Message::Request { id, method, .. }) if method == method::INITIALIZE => {
            let error = RpcError::new(INVALID_REQUEST, "Invalid request: `initialize` stands in no batch");
            Some(message::response(Some(&id), Err(error)))
        }
        Ok(Message::Request { id, method, params, meta }) => {
            let outlet = Outlet::new(&meta, None);
            let client = Requester::legacy(Some(peer), outlet, frontend.limits.ask_time);
            let (caller, origin, peer) = (caller.clone(), origin.clone(), peer.clone());
            let running = peer.clone();
            let sender =
                Sender { era: Era::Legacy, caller, origin, client, peer: Some(peer), questions: None };
            let request = Request { id: id.clone(), method, params, meta };
            let answer = running.running.run(&id, frontend.clone().answer(request, sender)).await?;
            Some(message::response(Some(&id), answer))
        }
        Ok(Message::Notification { method, params }) => {
            if method == method::CANCELLED
                && let Some(id) = params.get("requestId").and_then(Id::parse)
            {
                peer.running.cancel(&id);
            }
            None
        }
        Ok(Message::Response { id, answer }) => {
            peer.asks.answered(id.as_ref(), answer);
            None
        }
        Err(bad) => Some(message::response(bad.id.as_ref(), Err(bad.error))),
    }
}
