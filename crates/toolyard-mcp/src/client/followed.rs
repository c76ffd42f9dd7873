//! The resources of a server that somebody follows.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;
use toolyard_core::{Json, Object};

use super::connection::Connection;
use super::link::Link;
use super::usage::Running;

/// Who is told of changes, on one connection. All who follow a resource share what is asked of the server for it.
#[derive(Debug, Default)]
pub(super) struct Followed(watch::Sender<HashMap<Arc<str>, watch::Sender<News>>>);

/// What is known of a resource that is followed. Each change of it wakes up who follows.
#[derive(Debug, Default)]
struct News {
    /// Whether it is arranged with the server that it tells of the resource.
    is_arranged: bool,
    /// What the server said last; `None` where the resource may have changed without a word.
    said: Option<Object>,
}

/// Who follows a resource. The last one that is dropped ends the interest in it.
struct Follower {
    followed: Arc<Followed>,
    uri: Arc<str>,
    changes: Option<watch::Receiver<News>>,
}

impl Followed {
    /// The resources that are followed.
    pub(super) fn uris(&self) -> BTreeSet<Arc<str>> {
        self.0.borrow().keys().cloned().collect()
    }

    /// Wakes up whenever there are others.
    pub(super) fn watch(&self) -> watch::Receiver<impl Sized + use<>> {
        self.0.subscribe()
    }

    /// Takes what a server says of a resource that has changed. It may be a part of one that is followed, or of several
    /// (2025-11-25, server/resources, subscriptions).
    pub(super) fn updated(&self, params: &Object) {
        let Some(uri) = params.get_str("uri") else { return };
        // It is kept for longer than the message that it came with.
        let said = params.to_json().detach().to_object().ok();
        let is_about = |followed: &str| {
            let rest = uri.strip_prefix(followed);
            rest.is_some_and(|rest| rest.is_empty() || followed.ends_with('/') || rest.starts_with('/'))
        };
        let followed = self.0.borrow();
        let told = followed.iter().filter(|(followed, _)| is_about(followed));
        told.for_each(|(_, followers)| followers.send_modify(|news| news.said = said.clone()));
    }

    /// Any of them may have changed.
    pub(super) fn all_updated(&self) {
        self.0.borrow().values().for_each(|followers| followers.send_modify(|news| news.said = None));
    }

    /// From now on the server tells of this one. It may have changed before that.
    pub(super) fn arranged(&self, uri: &str) {
        if let Some(followers) = self.0.borrow().get(uri) {
            followers.send_if_modified(|news| !std::mem::replace(&mut news.is_arranged, true));
        }
    }

    fn follow(self: Arc<Self>, uri: Arc<str>) -> Follower {
        let mut changes = None;
        self.0.send_if_modified(|followed| {
            let is_new = !followed.contains_key(&uri);
            let mut from_now_on = followed.entry(uri.clone()).or_default().subscribe();
            if from_now_on.borrow().is_arranged {
                from_now_on.mark_changed();
            }
            changes = Some(from_now_on);
            is_new
        });
        Follower { followed: self, uri, changes }
    }
}

impl Follower {
    /// Waits for a change; gives what is said of it.
    async fn changed(&mut self) -> Object {
        let mut said = None;
        // It is there until this is dropped, and so is who tells it.
        if let Some(changes) = &mut self.changes {
            let _gone = changes.changed().await;
            said = changes.borrow_and_update().said.clone();
        }
        said.unwrap_or_else(|| Object::new().with("uri", Json::string(&self.uri)))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let (uri, changes) = (&self.uri, &mut self.changes);
        self.followed.0.send_if_modified(|followed| {
            // Of two that leave at once, the second one sees that the first one has.
            drop(changes.take());
            let is_last = followed.get(uri).is_some_and(|followers| followers.receiver_count() == 0);
            is_last && followed.remove(uri).is_some()
        });
    }
}

/// Follows a resource on whatever connection its server has, one after the other. What may have changed before it was
/// arranged on one of them is told as a change.
pub(super) fn changes(
    link: watch::Receiver<Link>,
    uri: Arc<str>,
    in_use: Option<Running>,
) -> BoxStream<'static, Object> {
    let following = Following { link, uri, on: None, _in_use: in_use };
    stream::unfold(following, async |mut following| {
        let said = following.changed().await?;
        Some((said, following))
    })
    .boxed()
}

struct Following {
    link: watch::Receiver<Link>,
    uri: Arc<str>,
    /// The connection that it is followed on.
    on: Option<(Weak<Connection>, Follower)>,
    /// A server that is ended when it is not used is, as long as it is followed.
    _in_use: Option<Running>,
}

impl Following {
    /// Waits for a change, and what is said of it; `None` once the server is not served any more.
    async fn changed(&mut self) -> Option<Object> {
        loop {
            let Some((connection, follower)) = &mut self.on else {
                self.begin().await?;
                continue;
            };
            let is_left = |link: &Link| {
                let now = link.connection().map(Arc::as_ptr);
                now.is_none_or(|now| !std::ptr::eq(now, connection.as_ptr()))
            };
            tokio::select! {
                said = follower.changed() => return Some(said),
                left = self.link.wait_for(is_left) => drop(left.ok()?),
            }
            self.on = None;
        }
    }

    async fn begin(&mut self) -> Option<()> {
        let link = self.link.wait_for(|link| link.connection().is_some()).await.ok()?;
        let connection = link.connection()?;
        let follower = connection.followed().clone().follow(self.uri.clone());
        self.on = Some((Arc::downgrade(connection), follower));
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
    fn a_change_reaches_who_follows_it_or_what_it_is_a_part_of() {
        let cases = [
            ("file:///a", "file:///a", true),
            ("file:///a", "file:///a/b", true),
            ("file:///a/", "file:///a/b", true),
            ("file:///a", "file:///ab", false),
            ("file:///a/b", "file:///a", false),
        ];
        for (uri, updated, is_told) in cases {
            let followed = Arc::<Followed>::default();
            let mut follower = followed.clone().follow(uri.into());
            followed.updated(&about(updated));
            assert_eq!(follower.changed().now_or_never().is_some(), is_told, "{uri} {updated}");
        }
    }

    #[test]
    fn who_follows_a_part_takes_nothing_from_who_follows_the_whole() {
        let followed = Arc::<Followed>::default();
        let mut followers = ["dir://d", "dir://d/f"].map(|uri| followed.clone().follow(uri.into()));
        followed.updated(&about("dir://d/f"));
        assert!(followers.iter_mut().all(|follower| follower.changed().now_or_never().is_some()));
    }

    /// Who comes first hears that it is arranged, and so does who comes later: once.
    #[test]
    fn what_changed_before_it_was_arranged() {
        let followed = Arc::<Followed>::default();
        let hears = |follower: &mut Follower| follower.changed().now_or_never().is_some();
        let mut first = followed.clone().follow("a".into());
        assert!(!hears(&mut first));
        followed.arranged("a");
        followed.arranged("a");
        let mut second = followed.clone().follow("a".into());
        for follower in [&mut first, &mut second] {
            assert!(hears(follower) && !hears(follower));
        }
        drop((first, second));
        assert!(!hears(&mut followed.follow("a".into())), "nobody has arranged it again");
    }

    #[test]
    fn the_last_one_ends_the_interest() {
        let followed = Arc::<Followed>::default();
        let mut news = followed.watch();
        let (one, two) = (followed.clone().follow("a".into()), followed.clone().follow("a".into()));
        news.mark_unchanged();
        drop(one);
        assert_eq!((followed.uris().len(), news.has_changed().unwrap()), (1, false));
        drop(two);
        assert_eq!((followed.uris().len(), news.has_changed().unwrap()), (0, true));
    }
}
