//! The changes that concern one client.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{BoxStream, SelectAll, StreamExt};
use tokio::sync::watch;
use toolyard_core::registry::EntryKind;
use toolyard_core::{Backend, Caller, Json, Object, Registry, RegistryEntry};

use crate::server::session::legacy_client::UriSet;
use crate::server::{McpFrontend, OfferedFeatures};

/// A change that a client may be notified of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangeEvent {
    /// The list of tools has changed.
    Tools,
    /// The list of prompts has changed.
    Prompts,
    /// The list of resources, or of their templates, has changed.
    Resources,
    /// A resource has changed, with the parameters of its update.
    Updated(Object),
}

/// The changes of lists and of followed resources, for one client.
pub(super) struct ChangeFeed {
    offers: OfferedFeatures,
    /// The caller: changes of entries that it may not use are not reported.
    caller: Caller,
    registry: watch::Receiver<Arc<Registry>>,
    /// True once the registry cannot change any more.
    is_registry_final: bool,
    /// The lists that the client may have fetched.
    last_lists: [Json; 4],
    followed: watch::Receiver<UriSet>,
    /// True once the set of followed resources cannot change any more.
    are_uris_final: bool,
    /// The followed resources, each with its backend and the handle that ends following it.
    following: HashMap<Arc<str>, (Weak<dyn Backend>, AbortHandle)>,
    updates: SelectAll<Abortable<BoxStream<'static, Object>>>,
    pending: VecDeque<ChangeEvent>,
    stopping: watch::Receiver<bool>,
}

impl McpFrontend {
    /// Returns the changes from now on, including updates of the `followed` resources.
    pub(super) fn change_feed(&self, followed: watch::Receiver<UriSet>, caller: Caller) -> ChangeFeed {
        let mut registry = self.gateway.watch();
        let last_lists = advertised_lists(&Registry::view_for(registry.borrow_and_update().clone(), &caller));
        let mut changes = ChangeFeed {
            offers: self.offers,
            caller,
            registry,
            is_registry_final: false,
            last_lists,
            followed,
            are_uris_final: false,
            following: HashMap::new(),
            updates: SelectAll::new(),
            pending: VecDeque::new(),
            stopping: self.stopping.clone(),
        };
        changes.update_followed();
        changes
    }
}

/// An event that wakes [`ChangeFeed::next`].
enum ChangeWakeup {
    /// The registry has changed; `true` if it cannot change again.
    Lists(bool),
    /// The set of followed resources has changed; `true` if it cannot change again.
    Followed(bool),
    Updated(Object),
    Stopping,
}

/// Returns the lists that the client can fetch. Entries that can only be searched are not part of them.
fn advertised_lists(registry: &Registry) -> [Json; 4] {
    EntryKind::ALL.map(|kind| registry.advertised(kind).json().clone())
}

impl ChangeFeed {
    /// Waits for a change; `None` once the gateway stops. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<ChangeEvent> {
        loop {
            if let Some(change) = self.pending.pop_front() {
                return Some(change);
            }
            let wakeup = tokio::select! {
                changed = self.registry.changed(), if !self.is_registry_final => ChangeWakeup::Lists(changed.is_err()),
                _ = self.stopping.wait_for(|stopping| *stopping) => ChangeWakeup::Stopping,
                followed = self.followed.changed(), if !self.are_uris_final => ChangeWakeup::Followed(followed.is_err()),
                Some(update) = self.updates.next(), if !self.updates.is_empty() => ChangeWakeup::Updated(update),
            };
            match wakeup {
                ChangeWakeup::Lists(last) => {
                    self.is_registry_final = last;
                    self.compare_lists();
                    // A resource may have appeared, or moved to another backend.
                    self.update_followed();
                }
                ChangeWakeup::Followed(fixed) => {
                    self.are_uris_final = fixed;
                    self.update_followed();
                }
                ChangeWakeup::Updated(update) => self.pending.push_back(ChangeEvent::Updated(update)),
                ChangeWakeup::Stopping => return None,
            }
        }
    }

    /// Reports all lists and all followed resources as changed.
    pub(super) fn report_all(&mut self) {
        let OfferedFeatures { tools, prompts, resources, .. } = self.offers;
        let lists = [
            (tools, ChangeEvent::Tools),
            (prompts, ChangeEvent::Prompts),
            (resources, ChangeEvent::Resources),
        ];
        self.pending.extend(lists.into_iter().filter(|(offered, _)| *offered).map(|(_, change)| change));
        let updated = |uri: &Arc<str>| ChangeEvent::Updated(Object::new().with("uri", Json::string(uri)));
        self.pending.extend(self.following.keys().map(updated));
    }

    fn compare_lists(&mut self) {
        let now =
            advertised_lists(&Registry::view_for(self.registry.borrow_and_update().clone(), &self.caller));
        let changed = |kind: EntryKind| self.last_lists[kind as usize] != now[kind as usize];
        let of_resources = changed(EntryKind::Resources) || changed(EntryKind::Templates);
        let each = [
            (self.offers.tools && changed(EntryKind::Tools), ChangeEvent::Tools),
            (self.offers.prompts && changed(EntryKind::Prompts), ChangeEvent::Prompts),
            (self.offers.resources && of_resources, ChangeEvent::Resources),
        ];
        self.pending.extend(each.into_iter().filter(|(changed, _)| *changed).map(|(_, change)| change));
        self.last_lists = now;
    }

    /// Starts to follow new resources, and ends following the others.
    fn update_followed(&mut self) {
        let followed = self.followed.borrow_and_update().clone();
        let registry = Registry::view_for(self.registry.borrow().clone(), &self.caller);
        let owner = |uri: &str| registry.resource(uri);
        self.following.retain(|uri, (by, stream)| {
            // A change of the manifest may have replaced the backend.
            let is_same = |entry: &Arc<RegistryEntry>| {
                std::ptr::addr_eq(Arc::as_ptr(&entry.handler.backend), by.as_ptr())
            };
            let is_wanted = followed.contains(uri) && owner(uri).is_none_or(is_same);
            if !is_wanted {
                stream.abort();
            }
            is_wanted
        });
        for uri in followed {
            let Some(owner) = owner(&uri).filter(|_| !self.following.contains_key(&uri)) else { continue };
            let (handle, registration) = AbortHandle::new_pair();
            self.updates.push(Abortable::new(owner.follow(&uri, &self.caller), registration));
            self.following.insert(uri, (Arc::downgrade(&owner.handler.backend), handle));
        }
    }
}
