//! The streams of a server: of a request until its answer, and of what belongs to no request. In the legacy era those
//! that break off are gone on with (2025-11-25, basic/transports, resumability and redelivery).

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use hyper::body::Incoming;
use tokio::sync::Notify;
use tokio::time::sleep;
use toolyard_core::{Client, Notice, Object};

use super::{Http, Opened, answer_to};
use crate::client::convert::is_transient;
use crate::client::events::{Events, Position};
use crate::client::transport::{Answer, Outgoing, Signals, TransportError};
use crate::wire::{Id, Message, method};

/// How often a stream is asked for that cannot be had, each time after twice the wait.
const ATTEMPTS: usize = 3;

impl Http {
    /// Follows the stream of what belongs to no request: a `GET` of the legacy era, from this position on, or a
    /// `subscriptions/listen` of the modern one. `opened` hears of its beginning, also where there is none. Returns
    /// when it has ended.
    pub(in crate::client) async fn follow(
        &self,
        listen: Option<Outgoing>,
        position: &mut Position,
        signals: &Signals,
        opened: &Notify,
    ) -> Result<(), TransportError> {
        let response = match listen {
            None => self.send(Method::GET, Bytes::new(), &position.headers()).await?,
            Some(listen) => self.send(Method::POST, listen.message.clone(), &listen.headers).await?,
        };
        let (head, response) = response.into_parts();
        opened.notify_one();
        if !head.status.is_success() {
            return Err(TransportError::Status(head.status));
        }
        let stream = self.stream(head.status, &head.headers, response).await?;
        let mut events = Events::new(stream, self.message_bytes);
        let ended = self.hear_changes(&mut events, signals).await;
        position.advance(&events);
        ended
    }

    async fn hear_changes(&self, events: &mut Events, signals: &Signals) -> Result<(), TransportError> {
        while let Some(message) = events.message().await? {
            match message {
                Message::Request { id, method, params, .. } => self.asked(None, id, &method, params).await,
                Message::Notification { method, params } if method == method::CANCELLED => {
                    self.callers.withdrawn(&params);
                }
                Message::Notification { method, params } if method == method::LOG => {
                    self.callers.logged(params);
                }
                Message::Notification { method, params } if method == method::ELICIT_COMPLETE => {
                    self.callers.visits.over(params);
                }
                Message::Notification { method, params } if method == method::PROGRESS => {
                    self.running.progressed(params);
                }
                // The server ends the stream of its own will.
                Message::Response { .. } => return Ok(()),
                Message::Notification { method, params } => signals.noticed(&method, &params),
            }
        }
        Ok(())
    }

    /// Reads the stream of a request until its answer, and goes on with it wherever it breaks off.
    pub(super) async fn read_answer(
        &self,
        id: u64,
        mut stream: Incoming,
        client: &dyn Client,
    ) -> Result<Answer, TransportError> {
        let mut position = Position::default();
        loop {
            let mut events = Events::new(stream, self.message_bytes);
            let end = match self.hear_answer(id, &mut events, client).await {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => TransportError::Interrupted("the stream ended without an answer".into()),
                Err(broken @ TransportError::Interrupted(_)) => broken,
                Err(error) => return Err(error),
            };
            position.advance(&events);
            if !self.may_resume() || !position.is_known() {
                return Err(end);
            }
            stream = Box::pin(self.resume(&position)).await?;
        }
    }

    /// Waits for the answer to a request; `None` where the stream ends without.
    async fn hear_answer(
        &self,
        id: u64,
        events: &mut Events,
        client: &dyn Client,
    ) -> Result<Option<Answer>, TransportError> {
        while let Some(message) = events.message().await? {
            match message {
                Message::Notification { method, params } => self.told(&method, params, client),
                Message::Request { id: asked, method, params, .. } => {
                    self.asked(Some(id), asked, &method, params).await;
                }
                response @ Message::Response { .. } => return answer_to(id, response).map(Some),
            }
        }
        Ok(None)
    }

    /// Takes what a server says on the stream of a request.
    fn told(&self, method: &str, params: Object, client: &dyn Client) {
        match method {
            method::PROGRESS => self.running.progressed(params),
            method::LOG => client.notify(Notice::Log(params)),
            method::CANCELLED => self.callers.withdrawn(&params),
            method::ELICIT_COMPLETE => self.callers.visits.over(params),
            method if method::OWN_NOTIFICATIONS.contains(&method) => {}
            method => client.notify(Notice::Other { method: method.into(), params }),
        }
    }

    /// Asks for the rest of a request's stream, when the server wants to be asked for it.
    async fn resume(&self, position: &Position) -> Result<Incoming, TransportError> {
        let (mut wait, mut left) = (position.wait(), ATTEMPTS);
        loop {
            sleep(wait).await;
            left -= 1;
            match self.stream_from(position).await {
                Ok(stream) => return Ok(stream),
                Err(error) if left > 0 && may_pass(&error) => wait *= 2,
                Err(TransportError::SessionOver) => return Err(TransportError::SessionLost),
                Err(error) => return Err(TransportError::Interrupted(error.into())),
            }
        }
    }

    async fn stream_from(&self, position: &Position) -> Result<Incoming, TransportError> {
        let response = self.send(Method::GET, Bytes::new(), &position.headers()).await?;
        let (head, response) = response.into_parts();
        self.stream(head.status, &head.headers, response).await
    }

    async fn stream(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        response: Incoming,
    ) -> Result<Incoming, TransportError> {
        // There is no request that anything else could answer.
        match self.open(0, status, headers, response).await? {
            Opened::Stream(stream) => Ok(stream),
            Opened::Json(_) => Err(TransportError::Malformed("not a stream".to_owned())),
        }
    }

    async fn asked(&self, of: Option<u64>, id: Id, method: &str, params: Object) {
        if let Some(response) = self.callers.asked(of, id, method, params) {
            Box::pin(self.answer(response)).await;
        }
    }
}

/// Whether a server that answers like this may give the stream a little later. It may also take a while until it notices
/// that the old one is gone, and has a conflict with it until then.
fn may_pass(error: &TransportError) -> bool {
    match error {
        TransportError::Unreachable(_) | TransportError::Broken(_) => true,
        TransportError::Status(status) => {
            *status == StatusCode::CONFLICT || status.is_server_error() || is_transient(*status)
        }
        _ => false,
    }
}
