//! What a host does, over each store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use toolyard_core::Json;
use toolyard_core::store::{Put, Record, Space, Store};
use toolyard_functions::code::Language;
use toolyard_functions::host::Deleted;
use toolyard_functions::{Bump, Edition, FunctionError, Host, HostOptions, LogQuery, Project, Run, Wanted};
use toolyard_store::{Location, StoreOptions, open};

use crate::counting::Counting;
use crate::scripted::{Scripted, host, host_with, project};
use crate::server::Server;

#[tokio::test]
async fn sqlite_in_a_file() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("toolyard.db");
    suite(open(&crate::at(file.to_str().unwrap())).await.unwrap()).await;
}

#[tokio::test]
async fn sqlite_in_memory() {
    suite(open(&StoreOptions::at(Location::Memory)).await.unwrap()).await;
}

#[tokio::test]
async fn postgres() {
    let server = Server::start();
    suite(open(&crate::at(&server.url())).await.unwrap()).await;
}

async fn suite(store: Arc<dyn Store>) {
    versions(&store).await;
    what_is_refused(&store).await;
    a_running_call(&store).await;
    without_the_store(&store).await;
    variables(&store).await;
    the_log(&store).await;
    what_is_damaged(&store).await;
}

/// What the version that is meant says.
async fn said(host: &Host, id: &str, wanted: &str) -> Result<String, String> {
    let edition = host.resolve(id, wanted.parse().unwrap()).await.map_err(|error| error.to_string())?;
    Ok(say(host, &edition).await)
}

async fn say(host: &Host, edition: &Edition) -> String {
    let invoked = host.invoke(edition, &Json::null(), None, None).await.unwrap();
    let reply = invoked.reply.to_json().to_object().unwrap();
    reply.get_str("body").unwrap().into_owned()
}

/// Publishes a source; gives the number that it got.
async fn publish(host: &Host, id: &str, source: &str, bump: Bump) -> String {
    host.save_draft(id, &project(source)).await.unwrap();
    host.publish(id, bump, None).await.unwrap().version.to_string()
}

async fn versions(store: &Arc<dyn Store>) {
    let host = host(store);
    assert_eq!(publish(&host, "one", "a", Bump::Major).await, "1.0.0");
    assert_eq!(publish(&host, "one", "b", Bump::Patch).await, "1.0.1");
    assert_eq!(publish(&host, "one", "c", Bump::Minor).await, "1.1.0");
    assert_eq!(publish(&host, "one", "d", Bump::Major).await, "2.0.0");
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
        assert_eq!(said(&host, "one", wanted).await.as_deref(), Ok(source), "{wanted}");
    }

    host.delete("one", Deleted::Version("1.1.0".parse().unwrap())).await.unwrap();
    host.delete("one", Deleted::Version("2.0.0".parse().unwrap())).await.unwrap();
    assert_eq!(said(&host, "one", "1").await.as_deref(), Ok("b"));
    assert_eq!(said(&host, "one", "latest").await.as_deref(), Ok("b"));
    let gone = said(&host, "one", "2.0.0").await.unwrap_err();
    assert_eq!(gone, r#"the function "one" has no version 2.0.0: the latest is 1.0.1"#);
    // No number is given twice.
    assert_eq!(host.publish("one", Bump::Patch, None).await.unwrap().version.to_string(), "2.0.1");

    let shown = host.show("one").await.unwrap();
    let numbers: Vec<_> = shown.published.iter().map(|version| version.version.to_string()).collect();
    assert_eq!(numbers, ["2.0.1", "1.0.1", "1.0.0"]);
    let [one] = &host.list().await.unwrap()[..] else { panic!("there is one function") };
    assert_eq!(*one, shown.summary);
    assert_eq!((one.versions, one.language), (3, Some("lua")));
    let version = host.show_version("one", Wanted::Latest).await.unwrap();
    assert_eq!((&*version.version, &*version.files[0].path), ("2.0.1", "cortexone_function.lua"));

    host.delete("one", Deleted::Draft).await.unwrap();
    assert!(host.delete("one", Deleted::Draft).await.is_err());
    assert!(said(&host, "one", "draft").await.is_err());
    host.delete("one", Deleted::Function).await.unwrap();
    assert_eq!(said(&host, "one", "latest").await.unwrap_err(), r#"there is no function "one""#);
    assert!(matches!(host.delete("one", Deleted::Function).await, Err(FunctionError::UnknownFunction(_))));
    assert!(host.list().await.unwrap().is_empty());
    // Nor is one given again when a function comes back that was deleted.
    assert_eq!(publish(&host, "one", "f", Bump::Patch).await, "2.0.2");
    host.delete("one", Deleted::Function).await.unwrap();
    host.stop(Duration::from_secs(10)).await;
}

async fn what_is_refused(store: &Arc<dyn Store>) {
    let host = host(store);
    for id in ["", "-a", "a/b", "a b", "../a", "ä", &"a".repeat(101)] {
        let refused = host.save_draft(id, &project("a")).await;
        assert!(matches!(refused, Err(FunctionError::BadId(_))), "{id:?}: {refused:?}");
    }
    let save =
        async |project: Project| host.save_draft("two", &project).await.map_err(|error| error.to_string());
    let publish = async |of: Option<&str>| {
        let published = host.publish("two", Bump::Patch, of).await;
        published.map(|published| published.version.to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(publish(None).await.unwrap_err(), r#"there is no function "two""#);
    save(Project { tests: Vec::new(), ..project("a") }).await.unwrap();
    assert_eq!(publish(None).await.unwrap_err(), "a function needs at least one test case to be published");
    save(Project { tests: project("other").tests, ..project("a") }).await.unwrap();
    let failed = host.publish("two", Bump::Patch, None).await.unwrap_err();
    assert_eq!(failed.to_string(), "1 of 1 test cases failed: nothing was published");
    let FunctionError::TestsFailed { reports, .. } = failed else { panic!("{failed:?}") };
    assert_eq!(reports[0].problem.as_deref(), Some("the reply does not contain what is expected"));
    for source in ["throw", "broken"] {
        save(project(source)).await.unwrap();
        assert_eq!(publish(None).await.unwrap_err(), "1 of 1 test cases failed: nothing was published");
    }
    assert_eq!(
        said(&host, "two", "latest").await.unwrap_err(),
        r#"the function "two" has no version latest: none is published"#
    );

    let draft = save(project("a")).await.unwrap().draft.unwrap();
    save(project("b")).await.unwrap();
    let changed = r#"the draft of "two" was changed by somebody else meanwhile: look at it, and try again"#;
    assert_eq!(publish(Some(&draft.digest)).await.unwrap_err(), changed);
    save(project("a")).await.unwrap();
    assert_eq!(publish(Some(&draft.digest)).await.as_deref(), Ok("1.0.0"));

    let python = Project {
        language: Language::Python,
        files: vec![("cortexone_function.py".into(), "a".into()), ("requirements.txt".into(), "six".into())],
        ..project("a")
    };
    assert_eq!(
        save(python.clone()).await.unwrap_err(),
        r#"the function "two" is of kind function in lua, which stays so: save this one under another id, or delete that one first"#
    );
    host.save_draft("three", &python).await.unwrap();
    assert_eq!(
        said(&host, "three", "draft").await.unwrap_err(),
        r#"what is kept of the function "three" cannot be used: it is damaged: it needs packages, which this host does not install"#
    );
    for id in ["two", "three"] {
        host.delete(id, Deleted::Function).await.unwrap();
    }
    host.stop(Duration::from_secs(10)).await;
}

/// What is deleted, or replaced, ends no call.
async fn a_running_call(store: &Arc<dyn Store>) {
    let scripted = Scripted::new();
    let host = host_with(store, scripted.clone());
    host.save_draft("four", &project("wait")).await.unwrap();
    let edition = host.resolve("four", Wanted::Draft).await.unwrap();
    let event = Json::null();
    let call = host.invoke(&edition, &event, None, None);
    let delete = async {
        scripted.begun.acquire().await.unwrap().forget();
        host.delete("four", Deleted::Function).await.unwrap();
        assert!(host.resolve("four", Wanted::Draft).await.is_err());
        scripted.may_end.add_permits(1);
    };
    let (invoked, ()) = tokio::join!(call, delete);
    assert!(!invoked.unwrap().reply.is_failure());
    host.stop(Duration::from_secs(10)).await;
}

async fn without_the_store(store: &Arc<dyn Store>) {
    let counting = Counting::new(store.clone());
    let host = host(&(counting.clone() as Arc<dyn Store>));
    publish(&host, "five", "a", Bump::Patch).await;
    assert_eq!(said(&host, "five", "latest").await.as_deref(), Ok("a"));
    counting.is_broken.store(true, Ordering::SeqCst);
    for _ in 0..10 {
        assert_eq!(said(&host, "five", "1").await.as_deref(), Ok("a"));
    }
    assert_eq!(said(&host, "six", "1").await.unwrap_err(), "the store cannot be reached");
    counting.is_broken.store(false, Ordering::SeqCst);
    host.delete("five", Deleted::Function).await.unwrap();
    host.stop(Duration::from_secs(10)).await;
}

async fn variables(store: &Arc<dyn Store>) {
    let scripted = Scripted::new();
    let lent = [("TOKEN".to_owned(), "hunter2".to_owned())].into();
    let run: Arc<dyn Run> = scripted.clone();
    let host = Host::start(store.clone(), run, HostOptions { lent, ..HostOptions::default() });
    let mut project = project("a");
    project.environment =
        [("KEY".to_owned(), "${TOKEN}".to_owned()), ("PLAIN".to_owned(), "s3cret".to_owned())].into();
    host.save_draft("seven", &project).await.unwrap();
    said(&host, "seven", "draft").await.unwrap();
    let environment =
        [("KEY", "hunter2"), ("PLAIN", "s3cret")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(*scripted.environment.lock().unwrap(), environment);
    let shown = serde_json::to_string(&host.show_version("seven", Wanted::Draft).await.unwrap()).unwrap();
    assert!(shown.contains(r#""environment":["KEY","PLAIN"]"#) && !shown.contains("s3cret"), "{shown}");

    // What a handler throws or prints may have it.
    let files = vec![("cortexone_function.lua".to_owned(), "leak".into())];
    host.save_draft("seven", &Project { files, ..project }).await.unwrap();
    let edition = host.resolve("seven", Wanted::Draft).await.unwrap();
    let invoked = host.invoke(&edition, &Json::null(), None, None).await.unwrap();
    let reply = invoked.reply.to_json();
    assert!(reply.as_text().contains("thrown [REDACTED]\\nat [REDACTED]"), "{}", reply.as_text());
    let unkept = format!("{invoked:?}");
    assert!(!unkept.contains("hunter2"), "{unkept}");
    host.stop(Duration::from_secs(10)).await;
    let entries = host.logs("seven", LogQuery::default()).await.unwrap().entries;
    assert_eq!(entries[0].error.as_deref(), Some("Error: thrown [REDACTED]"));
    assert_eq!(entries[1].output, "[REDACTED]");
    host.delete("seven", Deleted::Function).await.unwrap();
    host.stop(Duration::from_secs(10)).await;
}

const CALLS: Space = Space("function-calls");

async fn the_log(store: &Arc<dyn Store>) {
    let ancient =
        Record { time: SystemTime::UNIX_EPOCH, tags: vec![("function", "log".into())], body: "{}".into() };
    store.append(CALLS, vec![ancient]).await.unwrap();
    let host = host(store);
    for source in ["throw", "fine"] {
        let mut project = project(source);
        project.price = "0.5".parse().unwrap();
        host.save_draft("log", &project).await.unwrap();
        let edition = host.resolve("log", Wanted::Draft).await.unwrap();
        host.invoke(&edition, &Json::null(), Some(format!("my-{source}").into()), None).await.unwrap();
    }
    host.save_draft("log", &project("wait")).await.unwrap();
    let edition = host.resolve("log", Wanted::Draft).await.unwrap();
    // Nobody waits for its answer.
    drop(tokio::time::timeout(Duration::ZERO, host.invoke(&edition, &Json::null(), None, None)).await);
    // What is noted when the host stops is written.
    host.stop(Duration::from_secs(10)).await;
    assert_eq!(host.lost_entries(), 0);

    let logs = async |query: LogQuery| host.logs("log", query).await.unwrap();
    let all = logs(LogQuery::default()).await;
    let lines = all.entries.iter().map(|entry| {
        (
            &*entry.outcome,
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
    let kept = store.trim(CALLS, SystemTime::UNIX_EPOCH + Duration::from_secs(1)).await.unwrap();
    assert_eq!(kept, 0, "what is too old was removed");

    let options = HostOptions { queued_entries: 0, ..HostOptions::default() };
    let host = Host::start(store.clone(), Scripted::new(), options);
    host.save_draft("log", &project("fine")).await.unwrap();
    said(&host, "log", "draft").await.unwrap();
    assert_eq!(host.lost_entries(), 1);
    host.delete("log", Deleted::Function).await.unwrap();
    host.stop(Duration::from_secs(10)).await;
}

const FUNCTIONS: Space = Space("functions");
const PARTS: Space = Space("function-parts");

async fn what_is_damaged(store: &Arc<dyn Store>) {
    let host = host(store);
    publish(&host, "good", "a", Bump::Patch).await;
    publish(&host, "torn", "b", Bump::Patch).await;
    store.put(FUNCTIONS, "garbage", Put::always("{")).await.unwrap();
    store.put(FUNCTIONS, "later", Put::always(r#"{"format":2,"new":true}"#)).await.unwrap();
    let version = host.show_version("torn", Wanted::Latest).await.unwrap();
    store.put_blob(PARTS, &version.files[0].digest, "evil".into()).await.unwrap();

    let other = crate::scripted::host(store);
    let problems: Vec<_> =
        other.list().await.unwrap().into_iter().map(|summary| (summary.id, summary.problem)).collect();
    let garbage = "it is damaged: EOF while parsing an object at line 1 column 1".to_owned();
    let later = "it was written by a later Toolyard, in format 2".to_owned();
    let expected = [("garbage", Some(garbage)), ("good", None), ("later", Some(later)), ("torn", None)];
    assert_eq!(problems, expected.map(|(id, problem)| (id.to_owned(), problem)));
    assert_eq!(said(&other, "good", "1").await.as_deref(), Ok("a"));
    assert_eq!(
        said(&other, "torn", "1").await.unwrap_err(),
        r#"what is kept of the function "torn" cannot be used: it is damaged: a part is not what its digest says"#
    );
    store.delete_blob(PARTS, &version.digest).await.unwrap();
    let missing = r#"what is kept of the function "torn" cannot be used: a part of it is missing"#;
    assert_eq!(said(&other, "torn", "1").await.unwrap_err(), missing);
    for id in ["garbage", "later"] {
        let unusable = said(&other, id, "1").await.unwrap_err();
        assert!(unusable.starts_with("what is kept of the function"), "{unusable}");
        assert!(matches!(other.save_draft(id, &project("a")).await, Err(FunctionError::Unreadable { .. })));
        // What a later program has made is not changed, but it can be deleted.
        other.delete(id, Deleted::Function).await.unwrap();
    }
    // To save the same again is to mend it.
    other.save_draft("torn", &project("b")).await.unwrap();
    assert_eq!(said(&other, "torn", "1").await.as_deref(), Ok("b"));
    for id in ["good", "torn"] {
        other.delete(id, Deleted::Function).await.unwrap();
    }
    host.stop(Duration::from_secs(10)).await;
    other.stop(Duration::from_secs(10)).await;
}
