//! Subscriptions for the followed resources: one each in the legacy era, one stream for all in the modern era.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::sync::Notify;
use tokio::time::timeout;
use toolyard_core::{Json, Object};

use super::change_stream::follow_changes;
use crate::client::connection::handshake::listen_request;
use crate::client::connection::{SIDE_REQUEST_TIMEOUT, UpstreamConnection};
use crate::client::transport::stdio::StdioTransport;
use crate::client::transport::streamable_http::HttpTransport;
use crate::client::transport::{ClientTransport, cancel_params};
use crate::wire::{ProtocolEra, message, method};

/// Maximum number of concurrent subscription requests.
const MAX_CONCURRENT: usize = 16;

impl UpstreamConnection {
    /// Keeps the subscriptions equal to the followed resources. Never returns.
    pub(in crate::client) async fn keep_subscribed(&self) -> Infallible {
        if !self.capabilities.may_subscribe() {
            return self.confirm_all_followed().await;
        }
        match (&self.transport, self.revision.era()) {
            (_, ProtocolEra::Legacy) => self.subscribe_individually().await,
            (ClientTransport::Http(http), ProtocolEra::Modern) => self.listen_over_http(http).await,
            (ClientTransport::Stdio(stdio), ProtocolEra::Modern) => self.listen_on_stdio(stdio).await,
            // These transports exist in the legacy era only.
            (ClientTransport::Sse(_) | ClientTransport::Function(_), ProtocolEra::Modern) => pending().await,
        }
    }

    /// Confirms all followed resources: the server supports no subscriptions.
    async fn confirm_all_followed(&self) -> Infallible {
        let mut changes = self.followed_resources().subscribe_to_uris();
        loop {
            changes.mark_unchanged();
            self.followed_resources().uris().iter().for_each(|uri| self.followed_resources().confirm(uri));
            // Cannot fail: the sender lives in `self`.
            let _gone = changes.changed().await;
        }
    }

    /// Subscribes concurrently: a server that does not answer one request still gets the others.
    async fn subscribe_individually(&self) -> Infallible {
        let mut changes = self.followed_resources().subscribe_to_uris();
        let mut subscribed = BTreeSet::new();
        let mut in_progress = BTreeSet::new();
        let mut requests = FuturesUnordered::new();
        loop {
            changes.mark_unchanged();
            let followed = self.followed_resources().uris();
            let room = MAX_CONCURRENT - in_progress.len();
            let differ = subscribed.symmetric_difference(&followed).filter(|uri| !in_progress.contains(*uri));
            for uri in differ.take(room).cloned().collect::<Vec<_>>() {
                in_progress.insert(uri.clone());
                requests.push(self.subscribe(followed.contains(&uri), uri));
            }
            tokio::select! {
                // Cannot fail: the sender lives in `self`.
                _gone = changes.changed() => {}
                Some((uri, is_wanted)) = requests.next() => {
                    in_progress.remove(&uri);
                    match is_wanted {
                        // A server that refuses may send updates nevertheless.
                        true => drop(subscribed.insert(uri)),
                        false => drop(subscribed.remove(&uri)),
                    }
                }
            }
        }
    }

    /// Subscribes to a resource or unsubscribes from it; returns which of the two.
    async fn subscribe(&self, is_followed: bool, uri: Arc<str>) -> (Arc<str>, bool) {
        let method = if is_followed { method::SUBSCRIBE } else { method::UNSUBSCRIBE };
        self.request_best_effort(method, uri_params(&uri)).await;
        if is_followed {
            self.followed_resources().confirm(&uri);
        }
        (uri, is_followed)
    }

    async fn listen_over_http(&self, http: &HttpTransport) -> Infallible {
        let mut changes = self.followed_resources().subscribe_to_uris();
        let mut stream: Option<BoxFuture<'_, ()>> = None;
        loop {
            changes.mark_unchanged();
            stream = match self.followed_resources().uris() {
                followed if followed.is_empty() => None,
                followed => self.replace_stream(stream, http, &followed).await,
            };
            loop {
                tokio::select! {
                    _ = changes.changed() => break,
                    () = wait_for_end(&mut stream) => stream = None,
                }
            }
        }
    }

    /// Opens a new stream for these resources, and keeps the old one until the new one is open.
    async fn replace_stream<'a>(
        &'a self,
        mut old: Option<BoxFuture<'a, ()>>,
        http: &HttpTransport,
        followed: &BTreeSet<Arc<str>>,
    ) -> Option<BoxFuture<'a, ()>> {
        let filter = resource_filter(followed);
        let listen = move || Some(listen_request(&self.ids, &self.info, &filter));
        let opened = Arc::<Notify>::default();
        let (name, signals) = (self.name.clone(), self.signals.clone());
        let missed = || self.followed_resources().invalidate_all();
        let mut new =
            Some(follow_changes(name, http.clone(), signals, opened.clone(), listen, missed).boxed());
        let opening = async {
            loop {
                tokio::select! {
                    () = opened.notified() => return,
                    () = wait_for_end(&mut new) => return new = None,
                    () = wait_for_end(&mut old) => old = None,
                }
            }
        };
        let _too_slow = timeout(SIDE_REQUEST_TIMEOUT, opening).await;
        new
    }

    async fn listen_on_stdio(&self, stdio: &StdioTransport) -> Infallible {
        let mut changes = self.followed_resources().subscribe_to_uris();
        let mut before = None;
        loop {
            changes.mark_unchanged();
            let followed = self.followed_resources().uris();
            let request = (!followed.is_empty())
                .then(|| listen_request(&self.ids, &self.info, &resource_filter(&followed)));
            let ended = std::mem::replace(&mut before, request.as_ref().map(|request| request.id));
            let end = ended.map(|id| message::notification(method::CANCELLED, &cancel_params(id)));
            // The new stream first, so that no update is missed.
            for message in request.map(|request| request.message).into_iter().chain(end) {
                stdio.enqueue(vec![message]);
            }
            let _gone = changes.changed().await;
        }
    }
}

fn uri_params(uri: &str) -> Object {
    Object::new().with("uri", Json::string(uri))
}

/// Returns the filter for these resources.
fn resource_filter(followed: &BTreeSet<Arc<str>>) -> Object {
    let uris: Vec<_> = followed.iter().map(|uri| Json::string(uri)).collect();
    Object::new().with("resourceSubscriptions", Json::array(&uris))
}

/// Drives a stream, if there is one, until it ends.
async fn wait_for_end(stream: &mut Option<BoxFuture<'_, ()>>) {
    match stream {
        Some(stream) => stream.await,
        None => pending().await,
    }
}
