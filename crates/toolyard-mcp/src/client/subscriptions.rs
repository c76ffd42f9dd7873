//! Has a server tell of the resources that are followed: by a subscription for each of them in the legacy era, by one
//! stream for all of them in the modern one.

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

use super::connection::{ARRANGE_TIME, Connection};
use super::follow::follow;
use super::handshake::listen;
use super::http::Http;
use super::stdio::Stdio;
use super::transport::{Transport, cancelled};
use crate::wire::{Era, message, method};

/// How many resources a server is asked about at once.
const AT_ONCE: usize = 16;

impl Connection {
    /// Keeps the server telling of what is followed, for as long as this runs.
    pub(super) async fn keep_subscribed(&self) -> Infallible {
        if !self.capabilities.may_subscribe() {
            return self.hear_what_is_told_unasked().await;
        }
        match (&self.transport, self.revision.era()) {
            (_, Era::Legacy) => self.subscribe_to_each().await,
            (Transport::Http(http), Era::Modern) => self.listen_over_http(http).await,
            (Transport::Stdio(stdio), Era::Modern) => self.listen_on_stdio(stdio).await,
            // Only the legacy era has them.
            (Transport::Sse(_) | Transport::Exchange(_), Era::Modern) => pending().await,
        }
    }

    /// Nothing can be arranged, so that everything is.
    async fn hear_what_is_told_unasked(&self) -> Infallible {
        let mut news = self.followed().watch();
        loop {
            news.mark_unchanged();
            self.followed().uris().iter().for_each(|uri| self.followed().arranged(uri));
            // We hold the sender ourselves.
            let _gone = news.changed().await;
        }
    }

    /// Several at once: a server that does not confirm one is asked for the others all the same.
    async fn subscribe_to_each(&self) -> Infallible {
        let mut news = self.followed().watch();
        let mut subscribed = BTreeSet::new();
        let mut asked = BTreeSet::new();
        let mut asking = FuturesUnordered::new();
        loop {
            news.mark_unchanged();
            let followed = self.followed().uris();
            let room = AT_ONCE - asked.len();
            let differ = subscribed.symmetric_difference(&followed).filter(|uri| !asked.contains(*uri));
            for uri in differ.take(room).cloned().collect::<Vec<_>>() {
                asked.insert(uri.clone());
                asking.push(self.subscribe(followed.contains(&uri), uri));
            }
            tokio::select! {
                // We hold the sender ourselves.
                _gone = news.changed() => {}
                Some((uri, is_wanted)) = asking.next() => {
                    asked.remove(&uri);
                    match is_wanted {
                        // A server that refuses may tell of it all the same.
                        true => drop(subscribed.insert(uri)),
                        false => drop(subscribed.remove(&uri)),
                    }
                }
            }
        }
    }

    /// Has a server tell of a resource from now on, or no more; says which.
    async fn subscribe(&self, is_wanted: bool, uri: Arc<str>) -> (Arc<str>, bool) {
        let method = if is_wanted { method::SUBSCRIBE } else { method::UNSUBSCRIBE };
        self.arrange(method, about(&uri)).await;
        if is_wanted {
            self.followed().arranged(&uri);
        }
        (uri, is_wanted)
    }

    async fn listen_over_http(&self, http: &Http) -> Infallible {
        let mut news = self.followed().watch();
        let mut stream: Option<BoxFuture<'_, ()>> = None;
        loop {
            news.mark_unchanged();
            stream = match self.followed().uris() {
                followed if followed.is_empty() => None,
                followed => self.replaced(stream, http, &followed).await,
            };
            loop {
                tokio::select! {
                    _ = news.changed() => break,
                    () = running(&mut stream) => stream = None,
                }
            }
        }
    }

    /// A stream of these in the place of another one, which is heard until the new one is open.
    async fn replaced<'a>(
        &'a self,
        mut old: Option<BoxFuture<'a, ()>>,
        http: &Http,
        followed: &BTreeSet<Arc<str>>,
    ) -> Option<BoxFuture<'a, ()>> {
        let filter = filter(followed);
        let listen = move || Some(listen(&self.ids, &self.info, &filter));
        let opened = Arc::<Notify>::default();
        let (name, signals) = (self.name.clone(), self.signals.clone());
        let missed = || self.followed().all_updated();
        let mut new = Some(follow(name, http.clone(), signals, opened.clone(), listen, missed).boxed());
        let opening = async {
            loop {
                tokio::select! {
                    () = opened.notified() => return,
                    () = running(&mut new) => return new = None,
                    () = running(&mut old) => old = None,
                }
            }
        };
        let _too_slow = timeout(ARRANGE_TIME, opening).await;
        new
    }

    async fn listen_on_stdio(&self, stdio: &Stdio) -> Infallible {
        let mut news = self.followed().watch();
        let mut before = None;
        loop {
            news.mark_unchanged();
            let followed = self.followed().uris();
            let request = (!followed.is_empty()).then(|| listen(&self.ids, &self.info, &filter(&followed)));
            let ended = std::mem::replace(&mut before, request.as_ref().map(|request| request.id));
            let end = ended.map(|id| message::notification(method::CANCELLED, &cancelled(id)));
            // First the new one, so that nothing is missed.
            for message in request.map(|request| request.message).into_iter().chain(end) {
                stdio.post(vec![message]);
            }
            let _gone = news.changed().await;
        }
    }
}

fn about(uri: &str) -> Object {
    Object::new().with("uri", Json::string(uri))
}

/// What is to be told of these.
fn filter(followed: &BTreeSet<Arc<str>>) -> Object {
    let uris: Vec<_> = followed.iter().map(|uri| Json::string(uri)).collect();
    Object::new().with("resourceSubscriptions", Json::array(&uris))
}

/// Goes on with a stream, if there is one, until it ends.
async fn running(stream: &mut Option<BoxFuture<'_, ()>>) {
    match stream {
        Some(stream) => stream.await,
        None => pending().await,
    }
}
