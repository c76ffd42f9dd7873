//! What is not what it was, seen from one client.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{BoxStream, SelectAll, StreamExt};
use tokio::sync::watch;
use toolyard_core::registry::Kind;
use toolyard_core::{Backend, Caller, Entry, Json, Object, Registry};

use super::peer::Uris;
use super::{Frontend, Offers};

/// Something that a client may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources, or of their templates.
    Resources,
    /// One resource, and what its owner says of that.
    Updated(Object),
}

/// The changes of the lists, and of the resources that the client follows.
pub(super) struct Changes {
    offers: Offers,
    /// Whose client it is: what it may not use does not change for it.
    caller: Caller,
    registry: watch::Receiver<Arc<Registry>>,
    /// Whether nobody can change that any more.
    settled_for_good: bool,
    /// The lists that the client can have seen.
    seen: [Json; 4],
    followed: watch::Receiver<Uris>,
    /// Whether nobody can change any more what is followed.
    fixed: bool,
    /// The resources that are being followed: whose they are, and the end of it.
    following: HashMap<Arc<str>, (Weak<dyn Backend>, AbortHandle)>,
    updates: SelectAll<Abortable<BoxStream<'static, Object>>>,
    found: VecDeque<Change>,
    stopping: watch::Receiver<bool>,
}

impl Frontend {
    /// Changes from now on, those of the `followed` resources among them.
    pub(super) fn changes(&self, followed: watch::Receiver<Uris>, caller: Caller) -> Changes {
        let mut registry = self.gateway.watch();
        let seen = lists(&Registry::seen_by(registry.borrow_and_update().clone(), &caller));
        let mut changes = Changes {
            offers: self.offers,
            caller,
            registry,
            settled_for_good: false,
            seen,
            followed,
            fixed: false,
            following: HashMap::new(),
            updates: SelectAll::new(),
            found: VecDeque::new(),
            stopping: self.stopping.clone(),
        };
        changes.follow();
        changes
    }
}

/// What woke [`Changes::next`].
enum News {
    /// The lists are others; or these are the last ones.
    Lists(bool),
    /// Other resources are followed; whether those are the last ones.
    Followed(bool),
    Updated(Object),
    Stopping,
}

/// What a client is shown: of what it has to find, it is told nothing when that changes.
fn lists(registry: &Registry) -> [Json; 4] {
    Kind::ALL.map(|kind| registry.shown(kind).json().clone())
}

impl Changes {
    /// Waits for a change; `None` once the gateway stops. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Option<Change> {
        loop {
            if let Some(change) = self.found.pop_front() {
                return Some(change);
            }
            let news = tokio::select! {
                changed = self.registry.changed(), if !self.settled_for_good => News::Lists(changed.is_err()),
                _ = self.stopping.wait_for(|stopping| *stopping) => News::Stopping,
                followed = self.followed.changed(), if !self.fixed => News::Followed(followed.is_err()),
                Some(said) = self.updates.next(), if !self.updates.is_empty() => News::Updated(said),
            };
            match news {
                News::Lists(last) => {
                    self.settled_for_good = last;
                    self.compare();
                    // What was not there may be now, or be somebody else's.
                    self.follow();
                }
                News::Followed(fixed) => {
                    self.fixed = fixed;
                    self.follow();
                }
                News::Updated(said) => self.found.push_back(Change::Updated(said)),
                News::Stopping => return None,
            }
        }
    }

    /// Takes everything for changed.
    pub(super) fn suspect_all(&mut self) {
        let Offers { tools, prompts, resources, .. } = self.offers;
        let lists = [(tools, Change::Tools), (prompts, Change::Prompts), (resources, Change::Resources)];
        self.found.extend(lists.into_iter().filter(|(offered, _)| *offered).map(|(_, change)| change));
        let updated = |uri: &Arc<str>| Change::Updated(Object::new().with("uri", Json::string(uri)));
        self.found.extend(self.following.keys().map(updated));
    }

    fn compare(&mut self) {
        let now = lists(&Registry::seen_by(self.registry.borrow_and_update().clone(), &self.caller));
        let changed = |kind: Kind| self.seen[kind as usize] != now[kind as usize];
        let of_resources = changed(Kind::Resources) || changed(Kind::Templates);
        let each = [
            (self.offers.tools && changed(Kind::Tools), Change::Tools),
            (self.offers.prompts && changed(Kind::Prompts), Change::Prompts),
            (self.offers.resources && of_resources, Change::Resources),
        ];
        self.found.extend(each.into_iter().filter(|(changed, _)| *changed).map(|(_, change)| change));
        self.seen = now;
    }

    /// Begins to follow what is new, and ends what is not wanted any more.
    fn follow(&mut self) {
        let followed = self.followed.borrow_and_update().clone();
        let registry = Registry::seen_by(self.registry.borrow().clone(), &self.caller);
        let owner = |uri: &str| registry.resource(uri);
        self.following.retain(|uri, (by, stream)| {
            // An edit of the manifest may have put another backend in the place of the one that was followed.
            let is_same =
                |entry: &Arc<Entry>| std::ptr::addr_eq(Arc::as_ptr(&entry.handler.backend), by.as_ptr());
            let wanted = followed.contains(uri) && owner(uri).is_none_or(is_same);
            if !wanted {
                stream.abort();
            }
            wanted
        });
        for uri in followed {
            let Some(owner) = owner(&uri).filter(|_| !self.following.contains_key(&uri)) else { continue };
            let (handle, registration) = AbortHandle::new_pair();
            self.updates.push(Abortable::new(owner.follow(&uri), registration));
            self.following.insert(uri, (Arc::downgrade(&owner.handler.backend), handle));
        }
    }
}
