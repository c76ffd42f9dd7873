//! Calls on a connection: the request of a call, and the conclusions from its answer.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use toolyard_core::registry::EntryKind;
use toolyard_core::{Call, Client, Json, Object};
use toolyard_net::trace;

use super::UpstreamConnection;
use crate::client::catalog::list_invalidation::ListSet;
use crate::client::convert;
use crate::client::server_requests::InteractiveCall;
use crate::client::transport::{ClientTransport, OutgoingRequest, TransportError, UpstreamResult, function};
use crate::server::owner_of;
use crate::wire::headers::{self, RequestHeaders};
use crate::wire::{ProtocolEra, RequestId, error, message, method};

impl UpstreamConnection {
    /// Sends the request of a call and waits for its answer. Notifications and requests of the server meanwhile go to
    /// the call's client. A call that is refused because of its headers is repeated once, with new ones.
    pub(in crate::client) async fn invoke(
        &self,
        method: &'static str,
        call: &Call,
    ) -> Result<UpstreamResult, TransportError> {
        let client = call.client.clone();
        self.raise_log_level(&*client).await;
        let _running = self.server_requests.register_call(&client);
        // A call without headers is never refused because of them.
        let mut may_repeat = self.mirrors_headers();
        loop {
            let (request, interactive) = self.call_request(method, call, &client);
            let unsolicited = self.signals.unsolicited.load(Ordering::Relaxed);
            let mut request = pin!(self.transport.request(request, &client));
            let answer = match interactive {
                Some(interactive) => {
                    interactive.answer_until(|| Box::pin(self.ping()), request.as_mut()).await
                }
                None => request.await,
            };
            let answer = self.record_answer(answer, &client, unsolicited)?;
            let repeats = std::mem::take(&mut may_repeat) && is_header_mismatch(&answer);
            if !repeats || !self.correct_headers().await {
                return Ok(answer);
            }
        }
    }

    /// Builds the request of a call, and registers the call for requests of the server if its client can be asked.
    fn call_request(
        &self,
        method: &'static str,
        call: &Call,
        client: &Arc<dyn Client>,
    ) -> (OutgoingRequest, Option<InteractiveCall<'_>>) {
        let id = self.next_id();
        let (trace, deadline) = (self.trace_headers(&call.meta), call.deadline);
        let owner = Some(owner_of(call)).filter(|owner| !owner.is_empty());
        let (name, mut params) = convert::call_params(call, id, self.revision, &self.info);
        if let ClientTransport::Function(_) = self.transport {
            function::fill_arguments(method, &mut params);
        }
        let mut headers = self.call_headers(method, &name, &params);
        headers.extend(trace.into_iter().flatten());
        let message = message::request(&RequestId::number(id), method, &params);
        // A modern server sends its requests in results; everything else it sends belongs to no client.
        let is_legacy = self.revision.era() == ProtocolEra::Legacy;
        let interactive =
            is_legacy.then(|| self.server_requests.begin_call(id, client, &self.transport)).flatten();
        (OutgoingRequest { id, message, headers, deadline, owner }, interactive)
    }

    /// Records conclusions from the answer to a call. `unsolicited` is the number of unsolicited messages before the
    /// call.
    fn record_answer(
        &self,
        answer: Result<UpstreamResult, TransportError>,
        client: &Arc<dyn Client>,
        unsolicited: u64,
    ) -> Result<UpstreamResult, TransportError> {
        let answer = answer.map_err(|error| match error {
            // The server was already working on this call or on another one.
            TransportError::Broken(error)
                if self.signals.unsolicited.load(Ordering::Relaxed) != unsolicited =>
            {
                TransportError::Interrupted(error)
            }
            error => error,
        });
        if let Ok(Err(error)) = &answer {
            self.server_requests.url_elicitations.record_error(error, client);
        }
        answer.inspect_err(|error| self.record_failure(error))
    }

    /// Fetches the annotations that headers are made of, which have changed since the tools were listed; `false` on
    /// failure.
    async fn correct_headers(&self) -> bool {
        self.signals.list_invalidation.invalidate(ListSet::of(&[EntryKind::Tools]));
        Box::pin(self.refresh_header_params()).await
    }

    /// Raises the log level of a legacy server to that of the client; a modern server receives it with each request.
    /// The level is never lowered: messages that a client does not want are filtered.
    async fn raise_log_level(&self, client: &dyn Client) {
        let Some(level) = client.log_level() else { return };
        let is_enough = || self.log_level.load(Ordering::Relaxed) <= level as usize;
        if self.revision.era() == ProtocolEra::Modern || !self.capabilities.may_log() || is_enough() {
            return;
        }
        let params = Object::new().with("level", Json::string(level.as_str()));
        Box::pin(self.request_best_effort(method::SET_LEVEL, params)).await;
        // A server that refuses is not asked again.
        self.log_level.fetch_min(level as usize, Ordering::Relaxed);
    }

    /// Returns the headers of a call to a modern HTTP server.
    fn call_headers(&self, method: &'static str, name: &Arc<str>, params: &Object) -> RequestHeaders {
        let mut headers = self.method_headers(method);
        if headers.is_empty() || method == method::COMPLETE {
            return headers;
        }
        headers.push((headers::NAME, headers::encode(name)));
        if method != method::TOOLS_CALL {
            return headers;
        }
        let mirrored = self.header_params.read().unwrap_or_else(PoisonError::into_inner);
        let Some(mirrored) = mirrored.get(name) else { return headers };
        let arguments = params.get("arguments").and_then(|arguments| arguments.to_object().ok());
        let arguments = arguments.unwrap_or_default();
        for param in mirrored {
            if let Some(value) = param.value(&arguments) {
                headers.push((param.header.clone(), headers::encode(&value)));
            }
        }
        headers
    }

    /// Returns the trace headers of a call for intermediaries: the server itself reads `_meta`.
    fn trace_headers(&self, meta: &Object) -> Option<trace::ContextHeaders> {
        match &self.transport {
            ClientTransport::Http(_) => Some(trace::context_headers(|name| meta.get_str(name))),
            ClientTransport::Sse(_) | ClientTransport::Stdio(_) | ClientTransport::Function(_) => None,
        }
    }
}

/// True if a server has refused a call because of its headers, without executing it.
fn is_header_mismatch(answer: &UpstreamResult) -> bool {
    answer.as_ref().is_err_and(|error| error.code == error::HEADER_MISMATCH)
}
