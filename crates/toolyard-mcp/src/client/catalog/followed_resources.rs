//! The resources of a server that clients follow.

use std::collections::{BTreeSet, HashMap};
use std::future::pending;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::select_all;
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;
use tokio::time::sleep;
use toolyard_core::{Json, Object};

use crate::client::connection::UpstreamConnection;
use crate::client::connection::state::ConnectionState;
use crate::client::pool::open_connections::FollowRegistration;
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
pub(in crate::client) struct ResourceFollower {
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

    /// Follows a resource. If it is subscribed to already, it counts as changed.
    pub(in crate::client) fn follow(self: Arc<Self>, uri: Arc<str>) -> ResourceFollower {
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

impl ResourceFollower {
    /// Waits until the server has confirmed the subscription, and ignores it as a change.
    pub(in crate::client) async fn wait_confirmed(&mut self) {
        if let Some(changes) = &mut self.changes {
            let _gone = changes.wait_for(|state| state.is_subscribed).await.map(drop);
        }
    }

    /// Returns an update, if there is one by now.
    fn take_update(&mut self) -> Option<Object> {
        let changes = self.changes.as_mut().filter(|changes| changes.has_changed().unwrap_or(false))?;
        let update = changes.borrow_and_update().update.clone();
        Some(update.unwrap_or_else(|| Object::new().with("uri", Json::string(&self.uri))))
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

/// Time to wait for the same update on the other connections of a client.
const JOIN_TIME: Duration = Duration::from_millis(50);

/// The connections on which a client follows resources.
pub(in crate::client) struct FollowedConnections {
    /// The shared connection.
    pub(in crate::client) shared: watch::Receiver<ConnectionState>,
    /// The dedicated connections of the client, if it has an identity.
    pub(in crate::client) own: Option<FollowRegistration>,
    /// True if calls of the client may run on the shared connection although it has dedicated ones.
    pub(in crate::client) shares: bool,
}

/// Follows a resource over all successive connections that the calls of a client run on. Changes that may have happened
/// before the subscription on a connection are reported as an update.
pub(in crate::client) fn follow_resource(
    connections: FollowedConnections,
    uri: Arc<str>,
    in_use: Option<UsageGuard>,
) -> BoxStream<'static, Object> {
    let changes = ResourceChanges { connections, uri, followers: Vec::new(), _usage: in_use };
    stream::unfold(changes, async |mut changes| {
        let update = changes.next_update().await?;
        Some((update, changes))
    })
    .boxed()
}

struct ResourceChanges {
    connections: FollowedConnections,
    uri: Arc<str>,
    /// The followers on the current connections.
    followers: Vec<(Weak<UpstreamConnection>, ResourceFollower)>,
    /// Keeps the server in use: a followed server is not stopped as idle.
    _usage: Option<UsageGuard>,
}

impl ResourceChanges {
    /// Waits for an update; `None` once the server is not served any more.
    async fn next_update(&mut self) -> Option<Object> {
        loop {
            self.update_followers();
            let FollowedConnections { shared, own, .. } = &mut self.connections;
            let own_changed = async {
                match own {
                    Some(own) => own.changed().await,
                    None => pending().await,
                }
            };
            tokio::select! {
                update = next_of(&mut self.followers) => return Some(self.joined(update).await),
                changed = shared.changed() => changed.ok()?,
                () = own_changed => {}
            }
        }
    }

    /// Follows on the connections that calls run on, and no longer on others.
    fn update_followers(&mut self) {
        let FollowedConnections { shared, own, shares } = &mut self.connections;
        let mut current = own.as_mut().map(FollowRegistration::connections).unwrap_or_default();
        let is_shared_too = current.is_empty() || *shares;
        let shared = shared.borrow_and_update().connection().filter(|_| is_shared_too).cloned();
        let is_same = |followed: &Weak<UpstreamConnection>, connection: &Arc<UpstreamConnection>| {
            std::ptr::eq(followed.as_ptr(), Arc::as_ptr(connection))
        };
        current.extend(shared.clone());
        self.followers.retain(|(followed, _)| current.iter().any(|connection| is_same(followed, connection)));
        for connection in &current {
            if self.followers.iter().any(|(followed, _)| is_same(followed, connection)) {
                continue;
            }
            let is_shared = shared.as_ref().is_some_and(|shared| Arc::ptr_eq(shared, connection));
            let follower = match own.as_ref().filter(|_| !is_shared) {
                Some(own) => own.follow(connection),
                None => connection.followed_resources().clone().follow(self.uri.clone()),
            };
            self.followers.push((Arc::downgrade(connection), follower));
        }
    }

    /// Joins an update with those of the other connections: a server may announce one change on each.
    async fn joined(&mut self, update: Object) -> Object {
        if self.followers.len() < 2 {
            return update;
        }
        sleep(JOIN_TIME).await;
        let later = self.followers.iter_mut().filter_map(|(_, follower)| follower.take_update());
        later.last().unwrap_or(update)
    }
}

/// Waits for an update on any connection.
async fn next_of(followers: &mut [(Weak<UpstreamConnection>, ResourceFollower)]) -> Object {
    if followers.is_empty() {
        return pending().await;
    }
    let updates = followers.iter_mut().map(|(_, follower)| Box::pin(follower.next_update()));
    select_all(updates).await.0
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
