//! Watches of the controllers: the API of the watched namespaces, and stores of objects with their changes.

use std::fmt::Debug;
use std::future;

use futures_util::{Stream, StreamExt};
use kube::api::{ApiResource, DynamicObject};
use kube::core::NamespaceResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, DefaultBackoff, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::Context;

/// Number of objects in a page of a list.
const PAGE: u32 = 500;

/// A kind of objects in namespaces that controllers watch.
pub(crate) trait WatchedKind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> WatchedKind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Returns the API of a kind in the namespaces that the operator watches.
pub(crate) fn watched_api<K: WatchedKind>(context: &Context) -> Api<K> {
    let client = context.client.clone();
    match &context.config.namespace {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    }
}

/// Returns the API of a resource, as [`watched_api`] does.
pub(crate) fn watched_dynamic_api(context: &Context, resource: &ApiResource) -> Api<DynamicObject> {
    let client = context.client.clone();
    match &context.config.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    }
}

/// Selects objects with these labels.
pub(crate) fn with_labels(labels: &[(&str, &str)]) -> watcher::Config {
    let labels: Vec<_> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    watcher::Config::default().labels(&labels.join(","))
}

/// Watches the objects of an API. `reduce` removes what is not needed of an object, so that stores stay small. A failed
/// request is repeated with growing delays.
pub(crate) fn watch<K>(
    api: Api<K>,
    config: watcher::Config,
    reduce: impl FnMut(&mut K) + Send + 'static,
) -> impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + 'static
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher(api, config.page_size(PAGE)).backoff(DefaultBackoff::default()).modify(reduce)
}

/// Watches the objects of a kind. Returns a store of them, and their changes.
pub(crate) fn watched<K, F>(
    context: &Context,
    config: watcher::Config,
    reduce: F,
) -> (Store<K>, impl Stream<Item = Result<K, watcher::Error>> + Send + 'static + use<K, F>)
where
    K: WatchedKind,
    F: FnMut(&mut K) + Send + 'static,
{
    let (store, writer) = reflector::store();
    let changes = watch(watched_api(context), config, reduce).reflect(writer).touched_objects();
    (store, without_errors(changes))
}

/// Removes the bookkeeping of field managers, which is often most of an object.
pub(crate) fn without_managed_fields<K: Resource>(object: &mut K) {
    object.meta_mut().managed_fields = None;
}

/// Logs the errors of a watch, which repeats its request itself, and passes the changes.
///
/// A `Controller` waits after each error of any of its streams, in addition to the delay of the watch itself, and would see
/// no change for minutes after a restart of the API server.
pub(crate) fn without_errors<T: Send + 'static>(
    changes: impl Stream<Item = Result<T, watcher::Error>> + Send + 'static,
) -> impl Stream<Item = Result<T, watcher::Error>> + Send + 'static {
    changes.filter_map(|change| future::ready(change.inspect_err(log_watch_error).ok().map(Ok)))
}

/// Logs an error of a watch.
fn log_watch_error(error: &watcher::Error) {
    tracing::warn!(%error, "a watch failed and is repeated");
}
