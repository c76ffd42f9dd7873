//! Subscriptions to tasks at other gateways of the cluster.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use http::StatusCode;
use http::request::Parts;
use hyper::body::Body;
use tokio::time::timeout;
use toolyard_core::{Caller, Json, Object};
use toolyard_net::body;
use toolyard_net::client::HttpClient;
use toolyard_net::sse::SseDecoder;

use super::gateway_relay;
use crate::server::interaction::ticket::TicketLocation;
use crate::server::notify::listen::string_list;
use crate::server::{McpFrontend, McpRequest};
use crate::wire::{RpcMessage, message, method};

/// Timeout of opening a subscription at another gateway. The client has to poll tasks that are not granted in time.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// The subscribed tasks at one other gateway.
pub(in crate::server) struct RemoteTasks {
    /// Ids of the granted tasks.
    pub(in crate::server) ids: Vec<Arc<str>>,
    /// The parameters of `notifications/tasks`.
    pub(in crate::server) changes: BoxStream<'static, Object>,
}

impl McpFrontend {
    /// Subscribes to the tasks of a subscription that are at other gateways, as far as these respond. Dropping the
    /// streams ends the subscriptions.
    pub(in crate::server) async fn remote_tasks(
        &self,
        gateways: &HttpClient,
        parts: &Parts,
        request: &McpRequest,
        caller: &Caller,
    ) -> Vec<RemoteTasks> {
        let filter = request.params.get("notifications").and_then(|filter| filter.to_object().ok());
        let mut elsewhere = BTreeMap::<Arc<str>, Vec<Arc<str>>>::new();
        for id in string_list(&filter.unwrap_or_default(), "taskIds") {
            if let Ok(TicketLocation::Gateway(address)) = self.tasks.locate(&id, caller) {
                elsewhere.entry(address).or_default().push(id);
            }
        }
        let subscription = elsewhere.iter().map(async |(address, ids)| {
            let subscription = self.follow_remote(gateways, address, parts, request, ids);
            let followed = timeout(OPEN_TIMEOUT, subscription).await;
            if !matches!(followed, Ok(Some(_))) {
                tracing::warn!(gateway = &**address, "the gateway that holds tasks does not report them");
            }
            followed.ok().flatten()
        });
        join_all(subscription).await.into_iter().flatten().collect()
    }

    /// Subscribes to some tasks of another gateway.
    async fn follow_remote(
        &self,
        gateways: &HttpClient,
        address: &str,
        parts: &Parts,
        request: &McpRequest,
        ids: &[Arc<str>],
    ) -> Option<RemoteTasks> {
        let ids: Vec<_> = ids.iter().map(|id| Json::string(id)).collect();
        let filter = Object::new().with("taskIds", Json::array(&ids));
        let params =
            Object::new().with("_meta", request.meta.to_json()).with("notifications", filter.to_json());
        let message = message::request(&request.id, method::LISTEN, &params);
        let response = gateway_relay::send_to_gateway(gateways, address, parts, message).await.ok()?;
        if response.status() != StatusCode::OK {
            return None;
        }
        let mut notifications =
            GatewayNotifications::new(response.into_body(), self.limits.max_response_bytes);
        let (_, acknowledged) =
            notifications.next().await.filter(|(method, _)| method == method::ACKNOWLEDGED)?;
        let granted = acknowledged.get("notifications").and_then(|granted| granted.to_object().ok())?;
        let ids = string_list(&granted, "taskIds").collect();
        let changes = unfold(notifications, async |mut notifications| {
            let (_, params) =
                notifications.next().await.filter(|(method, _)| method == method::TASK_CHANGED)?;
            Some((params, notifications))
        });
        Some(RemoteTasks { ids, changes: changes.boxed() })
    }
}

/// Maximum size in bytes of a notification without the result that it contains.
const ENVELOPE_BYTES: usize = 16 * 1024;

/// The notifications of another gateway.
struct GatewayNotifications<B> {
    stream: B,
    decoder: SseDecoder,
}

impl<B> GatewayNotifications<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Creates a reader of notifications with results of at most `response_bytes`. Gateways of a cluster may have
    /// different limits.
    fn new(stream: B, response_bytes: usize) -> Self {
        Self { stream, decoder: SseDecoder::new(response_bytes.saturating_add(ENVELOPE_BYTES)) }
    }

    /// Reads the next notification and returns its method and parameters; `None` at the end.
    async fn next(&mut self) -> Option<(String, Object)> {
        loop {
            if let Some(event) = self.decoder.next_event().ok()? {
                return match RpcMessage::parse(event.data) {
                    Ok(RpcMessage::Notification { method, body }) => Some((method, body.params)),
                    _ => None,
                };
            }
            let bytes = body::next_data(&mut self.stream).await.ok()??;
            self.decoder.push(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn notifications_of_other_gateways_are_limited() {
        let tell = async |bytes: usize| {
            let text = "x".repeat(bytes);
            let event = format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks\",\"params\":{{\"a\":\"{text}\"}}}}\n\n"
            );
            GatewayNotifications::new(Full::new(Bytes::from(event)), 1000)
                .next()
                .await
                .map(|(method, _)| method)
        };
        assert_eq!(tell(1000).await.as_deref(), Some("notifications/tasks"));
        assert_eq!(tell(1000 + ENVELOPE_BYTES).await, None);
    }
}
