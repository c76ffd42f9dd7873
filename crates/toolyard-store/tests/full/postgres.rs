//! Behaviour of PostgreSQL alone.

use std::time::{Duration, SystemTime};

use toolyard_core::store::{
    KeySpace, LogStore, PutRequest, RecordQuery, Store, StoreErrorKind, WriteCondition,
};
use toolyard_store::{BackupError, DatabaseLocation, PostgresUrl, StoreOptions, backup, describe, open};

use crate::child::{self, WriterProcess};
use crate::opening::error_chain;
use toolyard_testing::postgres::PostgresServer;

const SPACE: KeySpace = KeySpace("postgres");

pub(crate) fn location(server: &PostgresServer) -> DatabaseLocation {
    DatabaseLocation::Postgres(PostgresUrl::parse(&server.url()).unwrap())
}

/// Executes SQL past the store.
pub(crate) async fn execute(server: &PostgresServer, sql: &str) {
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
    let driving = tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
    drop(client);
    driving.await.unwrap().unwrap();
}

/// Gateways, each with its own pool. They start at once, on an empty database.
async fn gateways<const N: usize>(server: &PostgresServer) -> [std::sync::Arc<dyn Store>; N] {
    let options = StoreOptions::at(location(server));
    let opened = futures_util::future::try_join_all((0..N).map(|_| open(&options))).await.unwrap();
    opened.try_into().unwrap_or_else(|_| unreachable!("`N` stores were opened"))
}

/// Increments a counter by compare and swap.
async fn increment(store: &dyn Store) {
    loop {
        let old = store.get(SPACE, "count").await.unwrap();
        let number = old.as_ref().map_or(0, |old| std::str::from_utf8(&old.bytes).unwrap().parse().unwrap());
        let condition = old.map_or(WriteCondition::Absent, |old| WriteCondition::Version(old.version));
        let put = PutRequest { condition, ..PutRequest::always((number + 1_u32).to_string()) };
        if store.put(SPACE, "count", put).await.unwrap().is_some() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_share_values_and_leases() {
    let server = PostgresServer::start();
    let [one, other] = gateways(&server).await;

    // No increment is lost.
    let mut counting = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = if number % 2 == 0 { one.clone() } else { other.clone() };
        counting.spawn(async move {
            for _ in 0..25 {
                increment(&*store).await;
            }
        });
    }
    counting.join_all().await;
    for store in [&one, &other] {
        assert_eq!(store.get(SPACE, "count").await.unwrap().unwrap().bytes, "200");
        assert_eq!(store.revision(SPACE).await.unwrap(), 200);
    }

    // A change by one gateway is visible to the other.
    one.put(SPACE, "key", PutRequest::always("value")).await.unwrap();
    assert_eq!(other.revision(SPACE).await.unwrap(), 201);
    assert_eq!(other.get(SPACE, "key").await.unwrap().unwrap().bytes, "value");

    // Only one gateway gets the lease.
    let long = Duration::from_secs(3600);
    let (mine, yours) = tokio::join!(one.acquire("work", "one", long), other.acquire("work", "other", long));
    assert_ne!(mine.unwrap().is_some(), yours.unwrap().is_some());
}

#[tokio::test]
async fn killed_gateway_or_server_loses_no_acknowledged_write() {
    let mut server = PostgresServer::start();
    let mut keys = Vec::new();
    let mut writer = WriterProcess::start(&server.url());
    writer.wait_for(300, &mut keys);
    writer.kill(&mut keys);
    let [store] = gateways(&server).await;
    child::assert_stored(&*store, &keys).await;

    let mut writer = WriterProcess::start(&server.url());
    writer.wait_for(300, &mut keys);
    server.kill();
    writer.finish(&mut keys);
    let error = store.get(SPACE, "key").await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error:?}");

    // The store, open all the time, reconnects to its server.
    server.run(&[]);
    child::assert_stored(&*store, &keys).await;
}

/// Replaces the server without giving pooled connections a chance to notice.
fn replace(server: &mut PostgresServer) {
    server.kill();
    server.run(&[]);
}

#[tokio::test]
async fn reads_survive_a_replaced_server_and_writes_report_it() {
    let mut server = PostgresServer::start();
    let [store] = gateways(&server).await;
    store.put(SPACE, "key", PutRequest::always("old")).await.unwrap();
    store.put_blob(SPACE, "blob", "large".into()).await.unwrap();
    let query = RecordQuery { tags: Vec::new(), since: None, until: None, before: None, limit: 10 };
    let reads = async || {
        // Several at a time, so that several connections are in the pool afterwards.
        let (value, entries, size, revision, blob, log) = tokio::join!(
            store.get(SPACE, "key"),
            store.list(SPACE, "", None, 10),
            store.size(SPACE),
            store.revision(SPACE),
            store.get_blob(SPACE, "blob"),
            LogStore::read(&*store, SPACE, query.clone()),
        );
        let (value, blob) = (value.unwrap().unwrap().bytes, blob.unwrap().unwrap());
        let counts = (entries.unwrap().len(), size.unwrap(), revision.unwrap(), log.unwrap().len());
        assert_eq!((&*value, &*blob, counts), (&b"old"[..], &b"large"[..], (1, 3, 1, 0)));
    };
    reads().await;
    replace(&mut server);
    reads().await;
    replace(&mut server);
    assert!(store.get(SPACE, "key").await.unwrap().is_some());
    reads().await;

    // The old server may have applied the write, so that only the caller can repeat it.
    replace(&mut server);
    let error = store.put(SPACE, "key", PutRequest::always("new")).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable, "{error:?}");
    reads().await;
}

#[tokio::test]
async fn postgres_open_errors_name_location_and_remedy() {
    let server = PostgresServer::start();
    let socket = server.folder().to_str().unwrap();
    drop(gateways::<1>(&server).await);
    execute(&server, "INSERT INTO toolyard.migration (version) VALUES (99)").await;
    let parse = |url: &str| DatabaseLocation::Postgres(PostgresUrl::parse(url).unwrap());
    let folder = socket.replace('/', "%2F");
    let cases = [
        (
            location(&server),
            StoreErrorKind::Unreadable,
            "the store postgres://DIR/postgres has version 99, but this program supports version 2 at most: use a newer \
             Toolyard, or restore a backup from before the upgrade",
        ),
        (
            parse(&format!("postgres://toolyard:hunter2@{folder}/absent")),
            StoreErrorKind::Unavailable,
            "cannot open the store postgres://DIR/absent: check that it is running, admits this user, and is not \
             locked by another process: the store cannot be reached: db error: FATAL: database \"absent\" does \
             not exist",
        ),
        (
            parse("postgres://toolyard:hunter2@127.0.0.1:1/yard"),
            StoreErrorKind::Unavailable,
            "cannot open the store postgres://127.0.0.1:1/yard: check that it is running, admits this user, and is \
             not locked by another process: the store cannot be reached: error connecting to server: Connection \
             refused (os error 111)",
        ),
    ];
    for (location, kind, expected) in cases {
        let error = open(&StoreOptions::at(location)).await.err().unwrap();
        assert_eq!(error_chain(&error).replace(socket, "DIR"), expected);
        assert_eq!(error.kind(), kind);
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
    assert_eq!(describe(&location(&server)).await.unwrap().version, Some(99));
    let no = backup(&location(&server), &server.folder().join("copy")).await.unwrap_err();
    assert!(matches!(no, BackupError::Postgres), "{no:?}");
}

#[tokio::test]
async fn a_description_changes_nothing() {
    let server = PostgresServer::start();
    let described = describe(&location(&server)).await.unwrap();
    assert_eq!((described.kind, described.version, described.size), ("postgres", None, 0));
    assert!(!described.location.contains("hunter2"));
    let described = describe(&location(&server)).await.unwrap();
    assert_eq!(described.version, None);

    drop(gateways::<1>(&server).await);
    let described = describe(&location(&server)).await.unwrap();
    assert_eq!((described.version, described.supported_version), (Some(2), 2));
    assert!(described.size > 0);
}

#[tokio::test]
async fn expired_values_are_removed_in_time() {
    let server = PostgresServer::start();
    let [store] = gateways(&server).await;
    let past = PutRequest { expires: Some(SystemTime::UNIX_EPOCH), ..PutRequest::always("") };
    for key in ["first", "second"] {
        store.put(SPACE, key, past.clone()).await.unwrap();
    }
    // The first value was removed by the sweep of its own write; the next sweep is a minute later, unless by another
    // gateway.
    execute(&server, "DO 'BEGIN ASSERT (SELECT count(*) FROM toolyard.kv) = 1; END'").await;
    let [other] = gateways(&server).await;
    other.put(SPACE, "third", PutRequest::always("")).await.unwrap();
    execute(&server, "DO 'BEGIN ASSERT (SELECT string_agg(key, '''') FROM toolyard.kv) = ''third''; END'")
        .await;
}

/// Callers wait for a connection for a limited time; callers beyond the queue are refused at once.
#[tokio::test]
async fn full_pool_refuses_callers() {
    let server = PostgresServer::start();
    let options = StoreOptions { connections: 1, queue: 2, ..StoreOptions::at(location(&server)) };
    let store = open(&options).await.unwrap();
    store.put(SPACE, "key", PutRequest::always("value")).await.unwrap();
    let all = futures_util::future::join_all((0..10).map(|_| store.get(SPACE, "key"))).await;
    let busy = |got: &Result<_, toolyard_core::store::StoreError>| {
        got.as_ref().is_err_and(|error| error.kind == StoreErrorKind::Busy)
    };
    let refused = all.iter().filter(|got| busy(got)).count();
    assert_eq!(refused, 7, "one has the connection and two wait");
    assert!(all.iter().all(|got| got.is_ok() || busy(got)), "{all:?}");
}
