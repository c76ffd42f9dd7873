//! Batches of clients. Their requests run concurrently.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use toolyard_core::Caller;

use crate::server::interaction::request_client::RequestClient;
use crate::server::notify::notice_queue::NoticeSender;
use crate::server::notify::notification_sink::NotificationSink;
use crate::server::session::legacy_client::LegacyClient;
use crate::server::{McpFrontend, McpRequest, RequestContext};
pub(super) use crate::wire::batch::is_array;
use crate::wire::error::INVALID_REQUEST;
use crate::wire::{ProtocolEra, ProtocolRevision, RequestId, RpcError, RpcMessage, batch, message, method};

/// True if a text is a batch of a client that may send one.
pub(super) fn is_batch(text: &[u8], peer: &LegacyClient) -> bool {
    is_array(text) && peer.revision() == ProtocolRevision::V2025_03_26
}

/// Splits a batch into its messages.
///
/// # Errors
/// When the batch is empty or too large.
pub(super) fn split(text: Bytes) -> Result<Vec<Bytes>, RpcError> {
    batch::split(text).map_err(|fault| RpcError::new(INVALID_REQUEST, format!("Invalid request: {fault}")))
}

/// The sender of a batch.
pub(super) struct BatchContext {
    pub(super) frontend: Arc<McpFrontend>,
    pub(super) peer: Arc<LegacyClient>,
    pub(super) caller: Caller,
    pub(super) origin: Option<Arc<dyn Any + Send + Sync>>,
    /// Queue of notifications and requests to the client, if it accepts a stream.
    pub(super) queue: Option<NoticeSender>,
}

/// Handles the messages of a batch and returns the responses, each in pieces.
pub(super) async fn answer(context: BatchContext, messages: Vec<Bytes>) -> Vec<Vec<Bytes>> {
    let each = messages.into_iter().map(|text| answer_one(&context, text));
    join_all(each).await.into_iter().flatten().collect()
}

/// Joins the responses into one text.
pub(super) fn join(responses: Vec<Vec<Bytes>>) -> Vec<Bytes> {
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

async fn answer_one(context: &BatchContext, text: Bytes) -> Option<Vec<Bytes>> {
    match RpcMessage::parse(text) {
        Ok(RpcMessage::Request { id, method, .. }) if method == method::INITIALIZE => {
            let error =
                RpcError::new(INVALID_REQUEST, "Invalid request: `initialize` is not allowed in a batch");
            Some(message::response(Some(&id), Err(error)))
        }
        Ok(RpcMessage::Request { id, method, params, meta }) => {
            answer_request(context, McpRequest { id, method, params, meta }).await
        }
        Ok(RpcMessage::Notification { method, body }) => {
            context.frontend.handle_notification(&context.peer, &context.caller, &method, &body.params);
            None
        }
        Ok(RpcMessage::Response { id, answer }) => {
            context.peer.outbound_requests.complete(id.as_ref(), answer);
            None
        }
        Err(bad) => Some(message::response(Some(&bad.id.unwrap_or_else(RequestId::null)), Err(bad.error))),
    }
}

async fn answer_request(context: &BatchContext, request: McpRequest) -> Option<Vec<Bytes>> {
    let BatchContext { frontend, peer, caller, origin, queue } = context;
    let queue = NotificationSink::new(&request.meta, queue.clone(), &frontend.budget);
    let sender = RequestContext {
        era: ProtocolEra::Legacy,
        caller: caller.clone(),
        origin: origin.clone(),
        client: RequestClient::legacy(Some(peer), queue, frontend.limits.ask_timeout),
        peer: Some(peer.clone()),
        questions: None,
    };
    let id = request.id.clone();
    let answer = peer.requests.run(&id, frontend.clone().answer(request, sender)).await?;
    Some(message::response(Some(&id), answer))
}
