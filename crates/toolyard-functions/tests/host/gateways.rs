//! Two gateways on one store.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::task::JoinSet;
use toolyard_core::store::Store;
use toolyard_functions::{Bump, FunctionError, Host, Wanted};
use toolyard_store::{Location, StoreOptions, open};

use crate::scripted::{Scripted, host, host_with, project};
use crate::server::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite() {
    let store = open(&StoreOptions::at(Location::Memory)).await.unwrap();
    everything(store.clone(), store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres() {
    let server = Server::start();
    let options = crate::at(&server.url());
    everything(open(&options).await.unwrap(), open(&options).await.unwrap()).await;
}

async fn everything(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    what_one_publishes_the_other_finds(&one, &other).await;
    who_publish_at_once_get_different_numbers(&one, &other).await;
    what_was_not_tested_is_not_published(&one, &other).await;
    who_loads_a_version_at_once_gets_one(&one).await;
}

async fn what_one_publishes_the_other_finds(one: &Arc<dyn Store>, other: &Arc<dyn Store>) {
    let (one, other) = (host(one), host(other));
    assert!(matches!(other.resolve("a", Wanted::Latest).await, Err(FunctionError::UnknownFunction(_))));
    one.save_draft("a", &project("a")).await.unwrap();
    one.publish("a", Bump::Patch, None).await.unwrap();
    // It is not known there, and looked for.
    assert_eq!(&*other.resolve("a", Wanted::Latest).await.unwrap().version, "1.0.0");
}

async fn who_publish_at_once_get_different_numbers(one: &Arc<dyn Store>, other: &Arc<dyn Store>) {
    let hosts = [host(one), host(other)];
    hosts[0].save_draft("b", &project("b")).await.unwrap();
    let mut publishing = JoinSet::new();
    for number in 0..20 {
        let host = hosts[number % 2].clone();
        publishing
            .spawn(async move { host.publish("b", Bump::Patch, None).await.unwrap().version.to_string() });
    }
    let numbers: BTreeSet<_> = publishing.join_all().await.into_iter().collect();
    assert_eq!(numbers, (0..20).map(|number| format!("1.0.{number}")).collect());
    for host in hosts {
        let shown = host.show("b").await.unwrap();
        let kept: BTreeSet<_> = shown.published.iter().map(|version| version.version.to_string()).collect();
        assert_eq!(kept, numbers);
    }
}

async fn what_was_not_tested_is_not_published(one: &Arc<dyn Store>, other: &Arc<dyn Store>) {
    let scripted = Scripted::new();
    let (one, other) = (host_with(one, scripted.clone()), host(other));
    one.save_draft("c", &project("wait")).await.unwrap();
    let change = async {
        scripted.begun.acquire().await.unwrap().forget();
        other.save_draft("c", &project("c")).await.unwrap();
        scripted.may_end.add_permits(1);
    };
    let (published, ()) = tokio::join!(one.publish("c", Bump::Patch, None), change);
    assert!(matches!(published, Err(FunctionError::Changed(_))), "{published:?}");
    assert!(one.show("c").await.unwrap().published.is_empty());
}

async fn who_loads_a_version_at_once_gets_one(store: &Arc<dyn Store>) {
    host(store).save_draft("d", &project("d")).await.unwrap();
    let host: Host = host(store);
    let all = futures_util::future::join_all((0..20).map(|_| host.resolve("d", Wanted::Draft))).await;
    let editions: Vec<_> = all.into_iter().map(Result::unwrap).collect();
    assert!(editions.iter().all(|edition| Arc::ptr_eq(edition, &editions[0])));
}
