//! Batches: several messages in one, which revision 2025-03-26 has, and no other
//! (2025-03-26, basic, batching).

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::mpsc;
use toolyard_core::{Caller, Json};

use super::outlet::Outlet;
use super::peer::Peer;
use super::requester::Requester;
use super::{Frontend, Request, Sender};
use crate::wire::error::INVALID_REQUEST;
use crate::wire::{Era, Message, Revision, RpcError, message, method};

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
    /// Where the client is told and asked what its requests say while they run, if it takes that.
    pub(super) outlet: Option<mpsc::Sender<Bytes>>,
}

/// Takes the messages of a batch; gives the responses to its requests, each in its pieces.
pub(super) async fn answer(from: From, messages: Vec<Bytes>) -> Vec<Vec<Bytes>> {
    let each = messages.into_iter().map(|text| one(&from, text));
    join_all(each).await.into_iter().flatten().collect()
}

/// The responses as one text.
pub(super) fn joined(responses: Vec<Vec<Bytes>>) -> Vec<Bytes> {
    let mut pieces = vec![Bytes::from_static(b"[")];
    for response in responses {
        if pieces.len() > 1 {
            pieces.push(Bytes::from_static(b","));
        }
        pieces.extend(response);
    }
    pieces.push(Bytes::from_static(b"]"));
    pieces
}

async fn one(from: &From, text: Bytes) -> Option<Vec<Bytes>> {
    match Message::parse(text) {
        Ok(Message::Request { id, method, .. }) if method == method::INITIALIZE => {
            let error = RpcError::new(INVALID_REQUEST, "Invalid request: `initialize` stands in no batch");
            Some(message::response(Some(&id), Err(error)))
        }
        Ok(Message::Request { id, method, params, meta }) => {
            request(from, Request { id, method, params, meta }).await
        }
        Ok(Message::Notification { method, params }) => {
            from.frontend.noticed(&from.peer, &from.caller, &method, &params);
            None
        }
        Ok(Message::Response { id, answer }) => {
            from.peer.asks.answered(id.as_ref(), answer);
            None
        }
        Err(bad) => Some(message::response(bad.id.as_ref(), Err(bad.error))),
    }
}

async fn request(from: &From, request: Request) -> Option<Vec<Bytes>> {
    let From { frontend, peer, caller, origin, outlet } = from;
    let outlet = Outlet::new(&request.meta, outlet.clone());
    let sender = Sender {
        era: Era::Legacy,
        caller: caller.clone(),
        origin: origin.clone(),
        client: Requester::legacy(Some(peer), outlet, frontend.limits.ask_time),
        peer: Some(peer.clone()),
        questions: None,
    };
    let id = request.id.clone();
    let answer = peer.running.run(&id, frontend.clone().answer(request, sender)).await?;
    Some(message::response(Some(&id), answer))
}
