//! The resources of a server that clients follow.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;
use toolyard_core::{Json, Object};

use crate::client::connection::UpstreamConnection;
use crate::client::connection::state::ConnectionState;
use crate::client::pool::usage::UsageGuard;

/// The followers of resources on one connection. Followers of the same resource share its subscription.
#[derive(Debug, Default)]
pub(in crate::client) struct FollowedResources(
    watch::Sender<HashMap<Arc<str>, watch::Sender<ResourceState>>>,
);

/// The state of a followed resource. Each change wakes its followers.
#[derive(Debug, Default)]
struct ResourceState {
    /// True once the server confirmed the subscription.
    is_subscribed: bool,
    /// The last update; `None` if the resource may have changed without one.
    update: Option<Object>,
}

/// A follower of a resource. Dropping the last one ends the subscription.
struct ResourceFollower {
    followed: Arc<FollowedResources>,
    uri: Arc<str>,
    changes: Option<watch::Receiver<ResourceState>>,
}

impl FollowedResources {
    /// Returns the followed resources.
    pub(super) fn uris(&self) -> BTreeSet<Arc<str>> {
        self.0.borrow().keys().cloned().collect()
    }

    /// Returns a receiver that wakes when the set of followed resources changes.
    pub(super) fn subscribe_to_uris(&self) -> watch::Receiver<impl Sized + use<>> {
        self.0.subscribe()
    }

    /// Handles an update. The resource may be part of one or several followed resources (2025-11-25, server/resources,
    /// subscriptions).
    pub(in crate::client) fn handle_updated(&self, params: &Object) {
        let Some(uri) = params.get_str("uri") else { return };
        // It outlives the message.
        let last_update = params.to_json().detach().to_object().ok();
        let is_about = |followed: &str| {
            let rest = uri.strip_prefix(followed);
            rest.is_some_and(|rest| rest.is_empty() || followed.ends_with('/') || rest.starts_with('/'))
        };
        let followed = self.0.borrow();
        let affected = followed.iter().filter(|(followed, _)| is_about(followed));
        affected.for_each(|(_, followers)| followers.send_modify(|state| state.update = last_update.clone()));
    }

    /// Marks all resources as possibly changed.
    pub(super) fn invalidate_all(&self) {
        self.0.borrow().values().for_each(|followers| followers.send_modify(|state| state.update = None));
    }

    /// Marks a subscription as active. The resource may have changed before.
    pub(in crate::client) fn confirm(&self, uri: &str) {
        if let Some(followers) = self.0.borrow().get(uri) {
            followers.send_if_modified(|state| !std::mem::replace(&mut state.is_subscribed, true));
        }
    }

    fn follow(self: Arc<Self>, uri: Arc<str>) -> ResourceFollower {
        let mut changes = None;
        self.0.send_if_modified(|followed| {
            let is_new = !followed.contains_key(&uri);
            let mut receiver = followed.entry(uri.clone()).or_default().subscribe();
            if receiver.borrow().is_subscribed {
                receiver.mark_changed();
            }
            changes = Some(receiver);
            is_new
        });
        ResourceFollower { followed: self, uri, changes }
    }
}

impl ResourceFollower {
    /// Waits for an update.
    async fn next_update(&mut self) -> Object {
        let mut update = None;
        // The sender lives until this is dropped.
        if let Some(changes) = &mut self.changes {
            let _gone = changes.changed().await;
            update = changes.borrow_and_update().update.clone();
        }
        update.unwrap_or_else(|| Object::new().with("uri", Json::string(&self.uri)))
    }
}

impl Drop for ResourceFollower {
    fn drop(&mut self) {
        let (uri, changes) = (&self.uri, &mut self.changes);
        self.followed.0.send_if_modified(|followed| {
            // Of two followers dropped at once, the second one sees the first one gone.
            drop(changes.take());
            let is_last = followed.get(uri).is_some_and(|followers| followers.receiver_count() == 0);
            is_last && followed.remove(uri).is_some()
        });
    }
}

/// Follows a resource over all successive connections of its server. Changes that may have happened before the
/// subscription on a connection are reported as an update.
pub(in crate::client) fn follow_resource(
    state: watch::Receiver<ConnectionState>,
    uri: Arc<str>,
    in_use: Option<UsageGuard>,
) -> BoxStream<'static, Object> {
    let changes = ResourceChanges { connection_state: state, uri, follower: None, _usage: in_use };
    stream::unfold(changes, async |mut following| {
        let update = following.next_update().await?;
        Some((update, following))
    })
    .boxed()
}

struct ResourceChanges {
    connection_state: watch::Receiver<ConnectionState>,
    uri: Arc<str>,
    /// The current connection and the follower on it.
    follower: Option<(Weak<UpstreamConnection>, ResourceFollower)>,
    /// Keeps the server in use: a followed server is not stopped as idle.
    _usage: Option<UsageGuard>,
}

impl ResourceChanges {
    /// Waits for an update; `None` once the server is not served any more.
    async fn next_update(&mut self) -> Option<Object> {
        loop {
            let Some((connection, follower)) = &mut self.follower else {
                self.start().await?;
                continue;
            };
            let is_left = |connection_state: &ConnectionState| {
                let now = connection_state.connection().map(Arc::as_ptr);
                now.is_none_or(|now| !std::ptr::eq(now, connection.as_ptr()))
            };
            tokio::select! {
                update = follower.next_update() => return Some(update),
                result = self.connection_state.wait_for(is_left) => drop(result.ok()?),
            }
            self.follower = None;
        }
    }

    async fn start(&mut self) -> Option<()> {
        let state = self
            .connection_state
            .wait_for(|connection_state| connection_state.connection().is_some())
            .await
            .ok()?;
        let connection = state.connection()?;
        let follower = connection.followed_resources().clone().follow(self.uri.clone());
        self.follower = Some((Arc::downgrade(connection), follower));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn about(uri: &str) -> Object {
        Object::new().with("uri", Json::string(uri))
    }

    #[test]
    fn update_reaches_followers_of_resource_and_parents() {
        let cases = [
            ("file:///a", "file:///a", true),
            ("file:///a", "file:///a/b", true),
            ("file:///a/", "file:///a/b", true),
            ("file:///a", "file:///ab", false),
            ("file:///a/b", "file:///a", false),
        ];
        for (uri, updated, is_told) in cases {
            let followed = Arc::<FollowedResources>::default();
            let mut follower = followed.clone().follow(uri.into());
            followed.handle_updated(&about(updated));
            assert_eq!(follower.next_update().now_or_never().is_some(), is_told, "{uri} {updated}");
        }
    }

    #[test]
    fn followers_of_part_and_whole_are_notified() {
        let followed = Arc::<FollowedResources>::default();
        let mut followers = ["dir://d", "dir://d/f"].map(|uri| followed.clone().follow(uri.into()));
        followed.handle_updated(&about("dir://d/f"));
        assert!(followers.iter_mut().all(|follower| follower.next_update().now_or_never().is_some()));
    }

    /// Followers before and after the confirmation are each notified once.
    #[test]
    fn confirmation_notifies_each_follower_once() {
        let followed = Arc::<FollowedResources>::default();
        let hears = |follower: &mut ResourceFollower| follower.next_update().now_or_never().is_some();
        let mut first = followed.clone().follow("a".into());
        assert!(!hears(&mut first));
        followed.confirm("a");
        followed.confirm("a");
        let mut second = followed.clone().follow("a".into());
        for follower in [&mut first, &mut second] {
            assert!(hears(follower) && !hears(follower));
        }
        drop((first, second));
        assert!(!hears(&mut followed.follow("a".into())), "nobody has arranged it again");
    }

    #[test]
    fn last_follower_ends_the_subscription() {
        let followed = Arc::<FollowedResources>::default();
        let mut state = followed.subscribe_to_uris();
        let (one, two) = (followed.clone().follow("a".into()), followed.clone().follow("a".into()));
        state.mark_unchanged();
        drop(one);
        assert_eq!((followed.uris().len(), state.has_changed().unwrap()), (1, false));
        drop(two);
        assert_eq!((followed.uris().len(), state.has_changed().unwrap()), (0, true));
    }
}
