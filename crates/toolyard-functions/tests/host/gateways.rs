//! Two gateways on one store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::task::JoinSet;
use toolyard_core::store::Store;
use toolyard_functions::{FunctionError, FunctionHost, VersionBump, VersionSelector};
use toolyard_store::{DatabaseLocation, StoreOptions, open};

use crate::counting::Counting;
use crate::scripted::{Scripted, host, host_with, project};
use toolyard_testing::postgres::PostgresServer;
use toolyard_testing::wait::until_async;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite() {
    let store = open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap();
    everything(store.clone(), store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres() {
    let server = PostgresServer::start();
    let options = crate::at(&server.url());
    everything(open(&options).await.unwrap(), open(&options).await.unwrap()).await;
}

async fn everything(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    version_of_one_gateway_is_found_by_the_other(&one, &other).await;
    concurrent_publications_get_different_numbers(&one, &other).await;
    equal_draft_is_published_once(&one, &other).await;
    untested_draft_is_not_published(&one, &other).await;
    concurrent_loads_share_one_version(&one).await;
}

async fn version_of_one_gateway_is_found_by_the_other(one: &Arc<dyn Store>, other: &Arc<dyn Store>) {
    let (one, other) = (host(one), host(other));
    assert!(matches!(
        other.resolve("a", VersionSelector::Latest).await,
        Err(FunctionError::UnknownFunction(_))
    ));
    one.save_draft("a", &project("a")).await.unwrap();
    one.publish("a", VersionBump::Patch, None).await.unwrap();
    // The other gateway does not know it yet and reads the store.
    assert_eq!(&*other.resolve("a", VersionSelector::Latest).await.unwrap().version, "1.0.0");
}

/// A read that began before the publication does not count as the lookup's own.
#[tokio::test]
async fn publication_during_a_read_is_found() {
    let store = open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap();
    let counting = Counting::new(store.clone());
    let one = host(&store);
    one.save_draft("a", &project("a")).await.unwrap();
    let other = host(&(counting.clone() as Arc<dyn Store>));
    // The second read comes after that of the host's own task.
    for _ in 0..2 {
        other.list().await.unwrap();
    }
    counting.holds_revisions.store(true, Ordering::SeqCst);
    let publish_and_call = async {
        until_async("a read", || counting.held.load(Ordering::SeqCst) > 0).await;
        one.publish("a", VersionBump::Patch, None).await.unwrap();
        let release = async { counting.holds_revisions.store(false, Ordering::SeqCst) };
        tokio::join!(other.resolve("a", VersionSelector::Latest), release).0
    };
    let (listed, found) = tokio::join!(other.list(), publish_and_call);
    assert_eq!(listed.unwrap()[0].versions, 0);
    assert_eq!(&*found.unwrap().version, "1.0.0");
}

async fn concurrent_publications_get_different_numbers(one: &Arc<dyn Store>, other: &Arc<dyn Store>) {
    let hosts = [host(one), host(other)];
    let mut publishing = JoinSet::new();
    for number in 0..4 {
        let host = hosts[number % 2].clone();
        publishing.spawn(async move {
            loop {
                // Another publisher may replace the draft before it is published.
                let saved = host.save_draft("b", &project(&format!("b{number}"))).await;
                let draft = match saved {
                    Ok(saved) => saved.draft.unwrap(),
                    Err(FunctionError::Conflict(_)) => continue,
                    Err(error) => panic!("{error}"),
                };
                match host.publish("b", VersionBump::Patch, Some(&draft.digest)).await {
                    Ok(published) => return published.version.to_string(),
                    Err(FunctionError::Conflict(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
    }
    let numbers: BTreeSet<_> = publishing.join_all().await.into_iter().collect();
    assert_eq!(numbers, (0..4).map(|number| format!("1.0.{number}")).collect());
    for host in hosts {
        let details = host.show("b").await.unwrap();
        let versions: BTreeSet<_> =
            details.published.iter().map(|version| version.version.to_string()).collect();
        assert_eq!(versions, numbers);
    }
}

async fn equal_draft_is_published_once(one: &Arc<dyn Store>, other: &Arc<dyn Store>) {
    let hosts = [host(one), host(other)];
    hosts[0].save_draft("e", &project("e")).await.unwrap();
    let mut publishing = JoinSet::new();
    for number in 0..20 {
        let host = hosts[number % 2].clone();
        publishing.spawn(async move { host.publish("e", VersionBump::Patch, None).await.unwrap() });
    }
    let published = publishing.join_all().await;
    assert!(published.iter().all(|published| published.version.to_string() == "1.0.0"), "{published:?}");
    assert_eq!(published.iter().filter(|published| !published.unchanged).count(), 1, "{published:?}");
}

async fn untested_draft_is_not_published(one: &Arc<dyn Store>, other: &Arc<dyn Store>) {
    let scripted = Scripted::new();
    let (one, other) = (host_with(one, scripted.clone()), host(other));
    one.save_draft("c", &project("wait")).await.unwrap();
    let change = async {
        scripted.begun.acquire().await.unwrap().forget();
        other.save_draft("c", &project("c")).await.unwrap();
        scripted.may_end.add_permits(1);
    };
    let (published, ()) = tokio::join!(one.publish("c", VersionBump::Patch, None), change);
    assert!(matches!(published, Err(FunctionError::Conflict(_))), "{published:?}");
    assert!(one.show("c").await.unwrap().published.is_empty());
}

async fn concurrent_loads_share_one_version(store: &Arc<dyn Store>) {
    host(store).save_draft("d", &project("d")).await.unwrap();
    let host: FunctionHost = host(store);
    let all =
        futures_util::future::join_all((0..20).map(|_| host.resolve("d", VersionSelector::Draft))).await;
    let editions: Vec<_> = all.into_iter().map(Result::unwrap).collect();
    assert!(editions.iter().all(|loaded| Arc::ptr_eq(loaded, &editions[0])));
}
