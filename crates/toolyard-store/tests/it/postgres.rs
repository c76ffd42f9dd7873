//! What only PostgreSQL can do, or suffer.

use std::time::{Duration, SystemTime};

use toolyard_core::store::{Condition, Put, Space, Store, Trouble};
use toolyard_store::{BackupError, Location, PostgresUrl, StoreOptions, backup, describe, open};

use crate::child::{self, Writing};
use crate::opening::said;
use crate::server::Server;

const SPACE: Space = Space("postgres");

impl Server {
    pub(crate) fn location(&self) -> Location {
        Location::Postgres(PostgresUrl::parse(&self.url()).unwrap())
    }

    /// Has it do what a store would not.
    pub(crate) async fn execute(&self, sql: &str) {
        let (client, connection) = tokio_postgres::connect(&self.url(), tokio_postgres::NoTls).await.unwrap();
        let driving = tokio::spawn(connection);
        client.batch_execute(sql).await.unwrap();
        drop(client);
        driving.await.unwrap().unwrap();
    }
}

/// As many gateways as there are, each with its own pool. They start at once, on an empty database.
async fn gateways<const N: usize>(server: &Server) -> [std::sync::Arc<dyn Store>; N] {
    let options = StoreOptions::at(server.location());
    let opened = futures_util::future::try_join_all((0..N).map(|_| open(&options))).await.unwrap();
    opened.try_into().unwrap_or_else(|_| unreachable!("as many as were asked for"))
}

/// One more, by compare and swap.
async fn count(store: &dyn Store) {
    loop {
        let old = store.get(SPACE, "count").await.unwrap();
        let number = old.as_ref().map_or(0, |old| std::str::from_utf8(&old.bytes).unwrap().parse().unwrap());
        let condition = old.map_or(Condition::Absent, |old| Condition::Version(old.version));
        let put = Put { condition, ..Put::always((number + 1_u32).to_string()) };
        if store.put(SPACE, "count", put).await.unwrap().is_some() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_agree() {
    let server = Server::start();
    let [one, other] = gateways(&server).await;

    // They add up, whoever is first.
    let mut counting = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = if number % 2 == 0 { one.clone() } else { other.clone() };
        counting.spawn(async move {
            for _ in 0..25 {
                count(&*store).await;
            }
        });
    }
    counting.join_all().await;
    for store in [&one, &other] {
        assert_eq!(store.get(SPACE, "count").await.unwrap().unwrap().bytes, "200");
        assert_eq!(store.revision(SPACE).await.unwrap(), 200);
    }

    // What one has changed, the other knows to look for.
    one.put(SPACE, "key", Put::always("value")).await.unwrap();
    assert_eq!(other.revision(SPACE).await.unwrap(), 201);
    assert_eq!(other.get(SPACE, "key").await.unwrap().unwrap().bytes, "value");

    // Only one may.
    let long = Duration::from_secs(3600);
    let (mine, yours) = tokio::join!(one.acquire("work", "one", long), other.acquire("work", "other", long));
    assert_ne!(mine.unwrap().is_some(), yours.unwrap().is_some());
}

#[tokio::test]
async fn a_killed_gateway_or_server_loses_nothing_that_was_acknowledged() {
    let mut server = Server::start();
    let mut kept = Vec::new();
    let mut writing = Writing::start(&server.url());
    writing.wait_for(300, &mut kept);
    writing.kill(&mut kept);
    let [store] = gateways(&server).await;
    child::assert_kept(&*store, &kept).await;

    let mut writing = Writing::start(&server.url());
    writing.wait_for(300, &mut kept);
    server.kill();
    writing.end(&mut kept);
    let error = store.get(SPACE, "key").await.unwrap_err();
    assert_eq!(error.trouble, Trouble::Unavailable, "{error:?}");

    // The store that was open all the time finds its server again.
    server.run(&[]);
    child::assert_kept(&*store, &kept).await;
}

#[tokio::test]
async fn what_cannot_be_opened_says_where_and_what_to_do() {
    let server = Server::start();
    let socket = server.folder().to_str().unwrap();
    drop(gateways::<1>(&server).await);
    server.execute("INSERT INTO toolyard.migration (version) VALUES (99)").await;
    let parse = |url: &str| Location::Postgres(PostgresUrl::parse(url).unwrap());
    let folder = socket.replace('/', "%2F");
    let cases = [
        (
            server.location(),
            Trouble::Unreadable,
            "the store postgres://DIR/postgres is of version 99, and this program knows version 1: use a later \
             Toolyard, or restore the backup that was made before",
        ),
        (
            parse(&format!("postgres://toolyard:hunter2@{folder}/absent")),
            Trouble::Unavailable,
            "cannot open the store postgres://DIR/absent: see that it is there, takes this user, and is not \
             locked by somebody else: the store cannot be reached: db error: FATAL: database \"absent\" does \
             not exist",
        ),
        (
            parse("postgres://toolyard:hunter2@127.0.0.1:1/yard"),
            Trouble::Unavailable,
            "cannot open the store postgres://127.0.0.1:1/yard: see that it is there, takes this user, and is \
             not locked by somebody else: the store cannot be reached: error connecting to server: Connection \
             refused (os error 111)",
        ),
    ];
    for (location, trouble, expected) in cases {
        let error = open(&StoreOptions::at(location)).await.err().unwrap();
        assert_eq!(said(&error).replace(socket, "DIR"), expected);
        assert_eq!(error.trouble(), trouble);
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
    assert_eq!(describe(&server.location()).await.unwrap().version, Some(99));
    let no = backup(&server.location(), &server.folder().join("copy")).await.unwrap_err();
    assert!(matches!(no, BackupError::Postgres), "{no:?}");
}

#[tokio::test]
async fn a_description_changes_nothing() {
    let server = Server::start();
    let described = describe(&server.location()).await.unwrap();
    assert_eq!((described.kind, described.version, described.size), ("postgres", None, 0));
    assert!(!described.location.contains("hunter2"));
    let described = describe(&server.location()).await.unwrap();
    assert_eq!(described.version, None);

    drop(gateways::<1>(&server).await);
    let described = describe(&server.location()).await.unwrap();
    assert_eq!((described.version, described.newest), (Some(1), 1));
    assert!(described.size > 0);
}

#[tokio::test]
async fn expired_values_are_removed_in_time() {
    let server = Server::start();
    let [store] = gateways(&server).await;
    let past = Put { expires: Some(SystemTime::UNIX_EPOCH), ..Put::always("") };
    for key in ["first", "second"] {
        store.put(SPACE, key, past.clone()).await.unwrap();
    }
    // The first was swept by its own write; there is no other within a minute, unless by another gateway.
    server.execute("DO 'BEGIN ASSERT (SELECT count(*) FROM toolyard.kv) = 1; END'").await;
    let [other] = gateways(&server).await;
    other.put(SPACE, "third", Put::always("")).await.unwrap();
    server
        .execute("DO 'BEGIN ASSERT (SELECT string_agg(key, '''') FROM toolyard.kv) = ''third''; END'")
        .await;
}

/// Who has all connections makes others wait, and not for ever; who does not fit into the queue is told at once.
#[tokio::test]
async fn a_pool_has_a_bound() {
    let server = Server::start();
    let options = StoreOptions { connections: 1, queue: 2, ..StoreOptions::at(server.location()) };
    let store = open(&options).await.unwrap();
    store.put(SPACE, "key", Put::always("value")).await.unwrap();
    let all = futures_util::future::join_all((0..10).map(|_| store.get(SPACE, "key"))).await;
    let busy = |got: &Result<_, toolyard_core::store::StoreError>| {
        got.as_ref().is_err_and(|error| error.trouble == Trouble::Busy)
    };
    let refused = all.iter().filter(|got| busy(got)).count();
    assert_eq!(refused, 7, "one has the connection and two wait");
    assert!(all.iter().all(|got| got.is_ok() || busy(got)), "{all:?}");
}
