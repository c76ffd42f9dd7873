//! Tests of the host for all stores.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use toolyard_core::Json;
use toolyard_core::store::{KeySpace, LogRecord, PutRequest, Store};
use toolyard_functions::code::SourceLanguage;
use toolyard_functions::host::DeletionTarget;
use toolyard_functions::{
    CodeRunner, FunctionError, FunctionHost, FunctionProject, HostOptions, LentVariable, LoadedVersion,
    LogQuery, VersionBump, VersionSelector,
};
use toolyard_store::{DatabaseLocation, StoreOptions, open};

use crate::counting::Counting;
use crate::scripted::{NEVER, Scripted, host, host_with, project};
use toolyard_testing::postgres::PostgresServer;

/// Declares a test of each section for each store in SQLite, and one for PostgreSQL, whose sections share a server.
macro_rules! sections {
    ($($section:ident,)*) => {
        mod sqlite_in_memory {
            $(#[tokio::test]
            async fn $section() {
                super::$section(&super::memory().await).await;
            })*
        }

        mod sqlite_in_a_file {
            $(#[tokio::test]
            async fn $section() {
                let folder = tempfile::TempDir::new().unwrap();
                let file = folder.path().join("toolyard.db");
                super::$section(&super::stored_at(file.to_str().unwrap()).await).await;
            })*
        }

        #[tokio::test]
        async fn postgres() {
            let server = PostgresServer::start();
            let store = stored_at(&server.url()).await;
            $(eprintln!("section {}", stringify!($section));
            $section(&store).await;)*
        }
    };
}

sections! {
    versions,
    invalid_operations_are_refused,
    running_call_survives_deletion,
    loaded_versions_need_no_store,
    variables_are_lent_and_redacted,
    calls_are_logged,
    expired_entries_are_removed,
    entries_beyond_the_queue_are_counted,
    damaged_functions_are_reported,
}

async fn memory() -> Arc<dyn Store> {
    open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap()
}

async fn stored_at(place: &str) -> Arc<dyn Store> {
    open(&crate::at(place)).await.unwrap()
}

/// Calls the selected version and returns its reply.
async fn call_version(host: &FunctionHost, id: &str, wanted: &str) -> Result<String, String> {
    let loaded = host.resolve(id, wanted.parse().unwrap()).await.map_err(|error| error.to_string())?;
    Ok(call_loaded(host, &loaded).await)
}

async fn call_loaded(host: &FunctionHost, loaded: &LoadedVersion) -> String {
    let invoked = host.invoke(loaded, &Json::null(), None, None).await.unwrap();
    let reply = invoked.reply.to_json().to_object().unwrap();
    reply.get_str("body").unwrap().into_owned()
}

/// Publishes a source and returns the version number.
async fn publish(host: &FunctionHost, id: &str, source: &str, bump: VersionBump) -> String {
    host.save_draft(id, &project(source)).await.unwrap();
    host.publish(id, bump, None).await.unwrap().version.to_string()
}

async fn versions(store: &Arc<dyn Store>) {
    let host = host(store);
    assert_eq!(publish(&host, "one", "a", VersionBump::Major).await, "1.0.0");
    assert_eq!(publish(&host, "one", "b", VersionBump::Patch).await, "1.0.1");
    assert_eq!(publish(&host, "one", "c", VersionBump::Minor).await, "1.1.0");
    assert_eq!(publish(&host, "one", "d", VersionBump::Major).await, "2.0.0");
    host.save_draft("one", &project("e")).await.unwrap();
    let expected = [
        ("1.0.0", "a"),
        ("v1.0", "b"),
        ("1", "c"),
        ("2", "d"),
        ("latest", "d"),
        ("draft", "e"),
        ("Draft", "e"),
    ];
    for (wanted, source) in expected {
        assert_eq!(call_version(&host, "one", wanted).await.as_deref(), Ok(source), "{wanted}");
    }

    host.delete("one", DeletionTarget::Version("1.1.0".parse().unwrap())).await.unwrap();
    host.delete("one", DeletionTarget::Version("2.0.0".parse().unwrap())).await.unwrap();
    assert_eq!(call_version(&host, "one", "1").await.as_deref(), Ok("b"));
    assert_eq!(call_version(&host, "one", "latest").await.as_deref(), Ok("b"));
    let gone = call_version(&host, "one", "2.0.0").await.unwrap_err();
    assert_eq!(gone, r#"the function "one" has no version 2.0.0: the latest is 1.0.1"#);
    // Numbers are not reused.
    assert_eq!(host.publish("one", VersionBump::Patch, None).await.unwrap().version.to_string(), "2.0.1");

    let details = host.show("one").await.unwrap();
    let numbers: Vec<_> = details.published.iter().map(|version| version.version.to_string()).collect();
    assert_eq!(numbers, ["2.0.1", "1.0.1", "1.0.0"]);
    let [one] = &host.list().await.unwrap()[..] else { panic!("there is one function") };
    assert_eq!(*one, details.summary);
    assert_eq!((one.versions, one.language), (3, Some("lua")));
    let version = host.show_version("one", VersionSelector::Latest).await.unwrap();
    assert_eq!((&*version.version, &*version.files[0].path), ("2.0.1", "cortexone_function.lua"));
    let first = "1.0.0".parse().unwrap();
    let file = host.show_file("one", first, "cortexone_function.lua").await.unwrap();
    assert_eq!((file.text.as_deref(), file.file.bytes), (Some("a"), 1));
    let missing = host.show_file("one", first, "other.lua").await.unwrap_err().to_string();
    assert_eq!(missing, r#"the function "one" has no file "other.lua" in this version"#);

    host.delete("one", DeletionTarget::Draft).await.unwrap();
    assert!(host.delete("one", DeletionTarget::Draft).await.is_err());
    assert!(call_version(&host, "one", "draft").await.is_err());
    host.delete("one", DeletionTarget::Function).await.unwrap();
    assert_eq!(call_version(&host, "one", "latest").await.unwrap_err(), r#"there is no function "one""#);
    assert!(matches!(
        host.delete("one", DeletionTarget::Function).await,
        Err(FunctionError::UnknownFunction(_))
    ));
    assert!(host.list().await.unwrap().is_empty());
    // Numbers are not reused after the deletion of a function, either.
    assert_eq!(publish(&host, "one", "f", VersionBump::Patch).await, "2.0.2");
    host.delete("one", DeletionTarget::Function).await.unwrap();
    host.stop(Duration::from_secs(10)).await;
}

async fn invalid_operations_are_refused(store: &Arc<dyn Store>) {
    let host = host(store);
    for id in ["", "-a", "a/b", "a b", "../a", "ä", &"a".repeat(101)] {
        let refused = host.save_draft(id, &project("a")).await;
        assert!(matches!(refused, Err(FunctionError::InvalidId(_))), "{id:?}: {refused:?}");
    }
    let save = async |project: FunctionProject| {
        host.save_draft("two", &project).await.map_err(|error| error.to_string())
    };
    let publish = async |of: Option<&str>| {
        let published = host.publish("two", VersionBump::Patch, of).await;
        published.map(|published| published.version.to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(publish(None).await.unwrap_err(), r#"there is no function "two""#);
    save(FunctionProject { tests: Vec::new(), ..project("a") }).await.unwrap();
    assert_eq!(publish(None).await.unwrap_err(), "publication requires at least one test case");
    save(FunctionProject { tests: project("other").tests, ..project("a") }).await.unwrap();
    let failed = host.publish("two", VersionBump::Patch, None).await.unwrap_err();
    assert_eq!(failed.to_string(), "1 of 1 test cases failed: nothing was published");
    let FunctionError::TestsFailed { reports, .. } = failed else { panic!("{failed:?}") };
    assert_eq!(reports[0].problem.as_deref(), Some(r#"body: expected "other", found "a""#));
    for source in ["throw", "broken"] {
        save(project(source)).await.unwrap();
        assert_eq!(publish(None).await.unwrap_err(), "1 of 1 test cases failed: nothing was published");
    }
    assert_eq!(
        call_version(&host, "two", "latest").await.unwrap_err(),
        r#"the function "two" has no version latest: none is published"#
    );

    let draft = save(project("a")).await.unwrap().draft.unwrap();
    save(project("b")).await.unwrap();
    let changed = r#"the draft of "two" was changed concurrently: check it and try again"#;
    assert_eq!(publish(Some(&draft.digest)).await.unwrap_err(), changed);
    save(project("a")).await.unwrap();
    assert_eq!(publish(Some(&draft.digest)).await.as_deref(), Ok("1.0.0"));

    let python = FunctionProject {
        language: SourceLanguage::Python,
        files: vec![("cortexone_function.py".into(), "a".into()), ("requirements.txt".into(), "six".into())],
        ..project("a")
    };
    assert_eq!(
        save(python.clone()).await.unwrap_err(),
        r#"the function "two" is of kind function in lua, which cannot change: use another id, or delete the function first"#
    );
    host.save_draft("three", &python).await.unwrap();
    assert_eq!(
        call_version(&host, "three", "draft").await.unwrap_err(),
        r#"the stored function "three" is unusable: it is damaged: packages are required, but this host does not install any"#
    );
    for id in ["two", "three"] {
        host.delete(id, DeletionTarget::Function).await.unwrap();
    }
    host.stop(Duration::from_secs(10)).await;
}

/// Deletion and replacement do not affect running calls.
async fn running_call_survives_deletion(store: &Arc<dyn Store>) {
    let scripted = Scripted::new();
    let host = host_with(store, scripted.clone());
    host.save_draft("four", &project("wait")).await.unwrap();
    let loaded = host.resolve("four", VersionSelector::Draft).await.unwrap();
    let event = Json::null();
    let call = host.invoke(&loaded, &event, None, None);
    let delete = async {
        scripted.begun.acquire().await.unwrap().forget();
        host.delete("four", DeletionTarget::Function).await.unwrap();
        assert!(host.resolve("four", VersionSelector::Draft).await.is_err());
        scripted.may_end.add_permits(1);
    };
    let (invoked, ()) = tokio::join!(call, delete);
    assert!(!invoked.unwrap().reply.is_failure());
    host.stop(Duration::from_secs(10)).await;
}

async fn loaded_versions_need_no_store(store: &Arc<dyn Store>) {
    let counting = Counting::new(store.clone());
    let host = host(&(counting.clone() as Arc<dyn Store>));
    publish(&host, "five", "a", VersionBump::Patch).await;
    assert_eq!(call_version(&host, "five", "latest").await.as_deref(), Ok("a"));
    counting.is_broken.store(true, Ordering::SeqCst);
    for _ in 0..10 {
        assert_eq!(call_version(&host, "five", "1").await.as_deref(), Ok("a"));
    }
    assert_eq!(call_version(&host, "six", "1").await.unwrap_err(), "the store cannot be reached");
    counting.is_broken.store(false, Ordering::SeqCst);
    host.delete("five", DeletionTarget::Function).await.unwrap();
    host.stop(Duration::from_secs(10)).await;
}

async fn variables_are_lent_and_redacted(store: &Arc<dyn Store>) {
    let scripted = Scripted::new();
    let token = LentVariable { value: "hunter2".to_owned(), functions: vec!["seven".parse().unwrap()] };
    let host_variables = [("TOKEN".to_owned(), token)].into();
    let run: Arc<dyn CodeRunner> = scripted.clone();
    let options = HostOptions { host_variables, poll_interval: NEVER, ..HostOptions::default() };
    let host = FunctionHost::start(store.clone(), run, options);
    let mut project = project("a");
    project.environment =
        [("KEY".to_owned(), "${TOKEN}".to_owned()), ("PLAIN".to_owned(), "s3cret".to_owned())].into();
    host.save_draft("seven", &project).await.unwrap();
    call_version(&host, "seven", "draft").await.unwrap();
    let environment =
        [("KEY", "hunter2"), ("PLAIN", "s3cret")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(*scripted.environment.lock().unwrap(), environment);
    let details =
        serde_json::to_string(&host.show_version("seven", VersionSelector::Draft).await.unwrap()).unwrap();
    assert!(details.contains(r#""environment":["KEY","PLAIN"]"#) && !details.contains("s3cret"), "{details}");

    // Another function cannot use it in a draft, test or version.
    host.save_draft("eight", &project).await.unwrap();
    for refused in [
        host.resolve("eight", VersionSelector::Draft).await.unwrap_err(),
        host.publish("eight", VersionBump::Patch, None).await.unwrap_err(),
        host.load_project("eight", &project).await.unwrap_err(),
    ] {
        assert!(refused.to_string().contains("does not provide to the function \"eight\""), "{refused}");
    }
    host.delete("eight", DeletionTarget::Function).await.unwrap();

    // Errors and output of a handler may contain it.
    let files = vec![("cortexone_function.lua".to_owned(), "leak".into())];
    host.save_draft("seven", &FunctionProject { files, ..project }).await.unwrap();
    let loaded = host.resolve("seven", VersionSelector::Draft).await.unwrap();
    let invoked = host.invoke(&loaded, &Json::null(), None, None).await.unwrap();
    let reply = invoked.reply.to_json();
    assert!(reply.as_text().contains("thrown [REDACTED]\\nat [REDACTED]"), "{}", reply.as_text());
    let unkept = format!("{invoked:?}");
    assert!(!unkept.contains("hunter2"), "{unkept}");
    host.stop(Duration::from_secs(10)).await;
    let entries = host.logs("seven", LogQuery::default()).await.unwrap().entries;
    assert_eq!(entries[0].error.as_deref(), Some("Error: thrown [REDACTED]"));
    assert_eq!(entries[1].output, "[REDACTED]");
    host.delete("seven", DeletionTarget::Function).await.unwrap();
}

const CALLS: KeySpace = KeySpace("function-calls");

async fn calls_are_logged(store: &Arc<dyn Store>) {
    let host = host(store);
    for source in ["throw", "fine"] {
        let mut project = project(source);
        project.price = "0.5".parse().unwrap();
        host.save_draft("log", &project).await.unwrap();
        let loaded = host.resolve("log", VersionSelector::Draft).await.unwrap();
        host.invoke(&loaded, &Json::null(), Some(format!("my-{source}").into()), None).await.unwrap();
    }
    host.save_draft("log", &project("wait")).await.unwrap();
    let loaded = host.resolve("log", VersionSelector::Draft).await.unwrap();
    // The call is cancelled.
    drop(tokio::time::timeout(Duration::ZERO, host.invoke(&loaded, &Json::null(), None, None)).await);
    // Queued entries are written when the host stops.
    host.stop(Duration::from_secs(10)).await;
    assert_eq!(host.lost_entries(), 0);

    let logs = async |query: LogQuery| host.logs("log", query).await.unwrap();
    let all = logs(LogQuery::default()).await;
    let lines = all.entries.iter().map(|entry| {
        (
            entry.outcome.as_str(),
            &*entry.cost,
            entry.bytes,
            &*entry.output,
            entry.error.as_deref().unwrap_or_default(),
        )
    });
    let lines: Vec<_> = lines.collect();
    assert_eq!(
        lines,
        [
            ("cancelled", "0", 0, "", ""),
            ("ok", "0.5", 32, "log@draft 4", ""),
            ("failed", "0.5", 95, "", "Error: thrown"),
        ]
    );
    assert!(all.next.is_none() && all.entries.iter().all(|entry| entry.duration_ms >= 0.0));
    let fine =
        logs(LogQuery { outcome: Some("ok".into()), version: Some("draft".into()), ..LogQuery::default() });
    assert_eq!(fine.await.entries, [all.entries[1].clone()]);
    let mine = logs(LogQuery { request_id: Some("my-throw".into()), ..LogQuery::default() }).await;
    assert_eq!(mine.entries, [all.entries[2].clone()]);
    let first = logs(LogQuery { limit: Some(1), ..LogQuery::default() }).await;
    let next = logs(LogQuery { before: first.next, ..LogQuery::default() }).await;
    assert_eq!((first.entries.len(), next.entries.len()), (1, 2));
    assert_eq!(host.logs("other", LogQuery::default()).await.unwrap().entries, []);
    host.delete("log", DeletionTarget::Function).await.unwrap();
}

async fn expired_entries_are_removed(store: &Arc<dyn Store>) {
    let ancient =
        LogRecord { time: SystemTime::UNIX_EPOCH, tags: vec![("function", "old".into())], body: "{}".into() };
    store.append(CALLS, [ancient].into()).await.unwrap();
    let host = host(store);
    host.save_draft("old", &project("fine")).await.unwrap();
    call_version(&host, "old", "draft").await.unwrap();
    host.stop(Duration::from_secs(10)).await;
    let left = store.trim(CALLS, SystemTime::UNIX_EPOCH + Duration::from_secs(1)).await.unwrap();
    assert_eq!((left, host.logs("old", LogQuery::default()).await.unwrap().entries.len()), (0, 1));
    host.delete("old", DeletionTarget::Function).await.unwrap();
}

async fn entries_beyond_the_queue_are_counted(store: &Arc<dyn Store>) {
    let options = HostOptions { queued_entries: 0, poll_interval: NEVER, ..HostOptions::default() };
    let host = FunctionHost::start(store.clone(), Scripted::new(), options);
    host.save_draft("full", &project("fine")).await.unwrap();
    call_version(&host, "full", "draft").await.unwrap();
    assert_eq!(host.lost_entries(), 1);
    host.delete("full", DeletionTarget::Function).await.unwrap();
    host.stop(Duration::from_secs(10)).await;
}

const FUNCTIONS: KeySpace = KeySpace("functions");
const PARTS: KeySpace = KeySpace("function-parts");

async fn damaged_functions_are_reported(store: &Arc<dyn Store>) {
    let host = host(store);
    publish(&host, "good", "a", VersionBump::Patch).await;
    publish(&host, "torn", "b", VersionBump::Patch).await;
    store.put(FUNCTIONS, "garbage", PutRequest::always("{")).await.unwrap();
    store.put(FUNCTIONS, "later", PutRequest::always(r#"{"format":2,"new":true}"#)).await.unwrap();
    let version = host.show_version("torn", VersionSelector::Latest).await.unwrap();
    store.put_blob(PARTS, &version.files[0].digest, "evil".into()).await.unwrap();

    let other = crate::scripted::host(store);
    let problems: Vec<_> =
        other.list().await.unwrap().into_iter().map(|summary| (summary.id, summary.problem)).collect();
    let garbage = "it is damaged: EOF while parsing an object at line 1 column 1".to_owned();
    let later = "written by a later version of Toolyard, in format 2".to_owned();
    let expected = [("garbage", Some(garbage)), ("good", None), ("later", Some(later)), ("torn", None)];
    assert_eq!(problems, expected.map(|(id, problem)| (id.to_owned(), problem)));
    assert_eq!(call_version(&other, "good", "1").await.as_deref(), Ok("a"));
    assert_eq!(
        call_version(&other, "torn", "1").await.unwrap_err(),
        r#"the stored function "torn" is unusable: it is damaged: a part does not match its digest"#
    );
    store.delete_blob(PARTS, &version.digest).await.unwrap();
    let missing = r#"the stored function "torn" is unusable: a part of it is missing"#;
    assert_eq!(call_version(&other, "torn", "1").await.unwrap_err(), missing);
    for id in ["garbage", "later"] {
        let unusable = call_version(&other, id, "1").await.unwrap_err();
        assert!(unusable.starts_with("the stored function"), "{unusable}");
        assert!(matches!(other.save_draft(id, &project("a")).await, Err(FunctionError::Unreadable { .. })));
        // A record in a later format cannot be changed, but deleted.
        other.delete(id, DeletionTarget::Function).await.unwrap();
    }
    // Saving the same content again repairs it.
    other.save_draft("torn", &project("b")).await.unwrap();
    assert_eq!(call_version(&other, "torn", "1").await.as_deref(), Ok("b"));
    for id in ["good", "torn"] {
        other.delete(id, DeletionTarget::Function).await.unwrap();
    }
    host.stop(Duration::from_secs(10)).await;
    other.stop(Duration::from_secs(10)).await;
}
