//! Queues calls as they end, without blocking them.

use std::time::SystemTime;

use http::header::CONTENT_LENGTH;
use http::request::Parts;
use toolyard_core::layers::{CallEnding, CallObserver, ObservedCall};
use toolyard_core::{Call, CallTarget, ErrorCode, Json, RegistryEntry, ToolError};

use toolyard_net::budget::SMALL_MESSAGE;
use toolyard_net::listener::ClientAddress;

use super::AuditQueue;
use super::record::{
    AuditActor, AuditArguments, MAX_BYTES_WITHOUT_DIGEST, QueuedCall, QueuedRecord, TraceId,
};
use crate::keys::AuthenticatedCaller;

/// Maximum bytes of a request id chosen by a client.
const MAX_REQUEST_ID_BYTES: usize = 128;

impl CallObserver for AuditQueue {
    fn begin<'a>(&'a self, call: &mut Call, entry: &'a RegistryEntry) -> Option<Box<dyn ObservedCall + 'a>> {
        Some(Box::new(AuditedCall { audit: self, entry, call: Box::new(self.queued_call(call)) }))
    }

    fn unknown(&self, call: &Call, error: &ToolError) {
        let queued_call = QueuedCall { outcome: error.code().row().wire, ..self.queued_call(call) };
        self.push(QueuedRecord::Call(Box::new(queued_call)));
    }
}

/// A running call to record.
struct AuditedCall<'a> {
    audit: &'a AuditQueue,
    entry: &'a RegistryEntry,
    call: Box<QueuedCall>,
}

impl ObservedCall for AuditedCall<'_> {
    fn end(self: Box<Self>, ended: CallEnding<'_>) {
        let AuditedCall { audit, entry, mut call } = *self;
        call.outcome = match ended.verdict() {
            Ok(true) => "ok",
            Ok(false) => "tool_error",
            Err(code) => code.row().wire,
        };
        call.handler = Some(entry.handler.name.clone());
        call.took = ended.took;
        audit.push(QueuedRecord::Call(call));
    }
}

impl AuditQueue {
    /// Creates the record of a call at its start.
    pub(super) fn queued_call(&self, call: &Call) -> QueuedCall {
        let head = call.origin.as_deref().and_then(|origin| origin.downcast_ref::<Parts>());
        let requested_id = head.and_then(|head| head.headers.get("x-request-id")?.to_str().ok());
        let requested_id =
            requested_id.filter(|id| (1..=MAX_REQUEST_ID_BYTES).contains(&id.len())).map(str::to_owned);
        let arguments = match (&call.target, call.arguments()) {
            (CallTarget::Tool(_) | CallTarget::Prompt(_), Some(arguments)) => {
                let bytes = arguments.as_bytes().len();
                match self.options.arguments || bytes > MAX_BYTES_WITHOUT_DIGEST {
                    true => AuditArguments::Whole(detached_arguments(arguments, head)),
                    false => AuditArguments::Short(bytes),
                }
            }
            _ => AuditArguments::None,
        };
        QueuedCall {
            time: SystemTime::now(),
            request: requested_id.unwrap_or_else(|| self.next_request_id()),
            trace: call.meta.get_str("traceparent").and_then(|parent| TraceId::of_parent(&parent)),
            parent: call.parent.clone(),
            actor: AuditActor {
                principal: call.caller.principal.clone(),
                session: call.caller.session.clone(),
                ..head.map(actor_of).unwrap_or_default()
            },
            target: call.target.clone(),
            handler: None,
            arguments,
            outcome: ErrorCode::Cancelled.row().wire,
            took: std::time::Duration::ZERO,
        }
    }
}

/// Detaches the arguments from their message, unless they are most of a large one: a queued record would keep the whole
/// message in memory, and the buffer that it was read into.
fn detached_arguments(arguments: &Json, head: Option<&Parts>) -> Json {
    let length = head
        .and_then(|head| head.headers.get(CONTENT_LENGTH))
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    // The length of other messages is unknown.
    let message = length.unwrap_or(usize::MAX);
    let is_most = message > SMALL_MESSAGE && arguments.as_bytes().len() >= message / 2;
    if is_most { arguments.clone() } else { arguments.detach() }
}

/// Returns the sender of a request.
pub(crate) fn actor_of(head: &Parts) -> AuditActor {
    let key = head.extensions.get::<AuthenticatedCaller>().and_then(|caller| caller.key.as_deref());
    AuditActor {
        principal: key.map(|(id, _)| id.clone()),
        key_name: key.map(|(_, name)| name.clone()),
        session: None,
        address: head.extensions.get::<ClientAddress>().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks whether the arguments are kept apart from their message.
    #[track_caller]
    fn check(arguments: usize, message: Option<usize>, expected: bool) {
        let arguments = Json::string(&"x".repeat(arguments));
        let mut request = http::Request::new(());
        if let Some(message) = message {
            request.headers_mut().insert(CONTENT_LENGTH, message.into());
        }
        let arguments_of_record = detached_arguments(&arguments, Some(&request.into_parts().0));
        assert_eq!(arguments_of_record, arguments);
        assert_eq!(arguments_of_record.as_bytes().as_ptr() != arguments.as_bytes().as_ptr(), expected);
    }

    #[test]
    fn record_does_not_hold_a_large_message() {
        check(10, Some(1000), true);
        check(10, Some(1 << 20), true);
        check(900 << 10, Some(1 << 20), false);
        check(10, None, true);
    }
}
