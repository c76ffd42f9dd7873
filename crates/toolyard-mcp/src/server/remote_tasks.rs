//! Tasks of other gateways, followed for a client of this one: each of those gateways is asked to tell of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use http::StatusCode;
use http::request::Parts;
use hyper::body::Incoming;
use tokio::time::timeout;
use toolyard_core::{Caller, Json, Object};
use toolyard_net::body;
use toolyard_net::client::Client;
use toolyard_net::sse::Decoder;

use super::listen::texts;
use super::ticket::Place;
use super::{Frontend, Request, forward};
use crate::wire::{Message, message, method};

/// How long another gateway may take to say of which tasks it will tell. What it does not is looked after by the client.
const OPEN_TIME: Duration = Duration::from_secs(5);

/// Tasks at one other gateway.
pub(super) struct RemoteTasks {
    /// Those that will be told of.
    pub(super) ids: Vec<Arc<str>>,
    /// The parameters of `notifications/tasks`.
    pub(super) changes: BoxStream<'static, Object>,
}

impl Frontend {
    /// The tasks of a subscription that are at other gateways, as far as these answer. Dropping them ends the streams there,
    /// too.
    pub(super) async fn remote_tasks(
        &self,
        gateways: &Client,
        parts: &Parts,
        request: &Request,
        caller: &Caller,
    ) -> Vec<RemoteTasks> {
        let filter = request.params.get("notifications").and_then(|filter| filter.to_object().ok());
        let mut elsewhere = BTreeMap::<Arc<str>, Vec<Arc<str>>>::new();
        for id in texts(&filter.unwrap_or_default(), "taskIds") {
            if let Ok(Place::Gateway(address)) = self.tasks.place(&id, caller) {
                elsewhere.entry(address).or_default().push(id);
            }
        }
        let opened = elsewhere.iter().map(async |(address, ids)| {
            let followed = timeout(OPEN_TIME, follow(gateways, address, parts, request, ids)).await;
            if !matches!(followed, Ok(Some(_))) {
                tracing::warn!(gateway = &**address, "the gateway that has tasks does not tell of them");
            }
            followed.ok().flatten()
        });
        join_all(opened).await.into_iter().flatten().collect()
    }
}

/// Asks another gateway to tell of some of its tasks.
async fn follow(
    gateways: &Client,
    address: &str,
    parts: &Parts,
    request: &Request,
    ids: &[Arc<str>],
) -> Option<RemoteTasks> {
    let ids: Vec<_> = ids.iter().map(|id| Json::string(id)).collect();
    let filter = Object::new().with("taskIds", Json::array(&ids));
    let params = Object::new().with("_meta", request.meta.to_json()).with("notifications", filter.to_json());
    let message = message::request(&request.id, method::LISTEN, &params);
    let response = forward::send(gateways, address, parts, message).await.ok()?;
    if response.status() != StatusCode::OK {
        return None;
    }
    // What another gateway sends has the bounds that it has itself.
    let mut told = Told { stream: response.into_body(), decoder: Decoder::new(usize::MAX) };
    let (_, acknowledged) = told.next().await.filter(|(method, _)| method == method::ACKNOWLEDGED)?;
    let granted = acknowledged.get("notifications").and_then(|granted| granted.to_object().ok())?;
    let ids = texts(&granted, "taskIds").collect();
    let changes = unfold(told, async |mut told| {
        let (_, params) = told.next().await.filter(|(method, _)| method == method::TASK_CHANGED)?;
        Some((params, told))
    });
    Some(RemoteTasks { ids, changes: changes.boxed() })
}

/// What another gateway tells.
struct Told {
    stream: Incoming,
    decoder: Decoder,
}

impl Told {
    /// The next notification, by its method; `None` once there are no more.
    async fn next(&mut self) -> Option<(String, Object)> {
        loop {
            if let Some(event) = self.decoder.next_event().ok()? {
                return match Message::parse(event.data) {
                    Ok(Message::Notification { method, params }) => Some((method, params)),
                    _ => None,
                };
            }
            let bytes = body::next_data(&mut self.stream).await.ok()??;
            self.decoder.push(&bytes);
        }
    }
}
