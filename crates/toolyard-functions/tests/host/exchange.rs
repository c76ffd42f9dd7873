//! Functions behind the exchange interface.

use std::fs;
use std::time::Duration;

use tokio::time::timeout;
use toolyard_core::{ErrorCode, Json, MessageExchange};
use toolyard_functions::host::DeletionTarget;
use toolyard_functions::{FolderExchange, FunctionError, FunctionExchange, VersionBump, VersionSelector};
use toolyard_store::{DatabaseLocation, StoreOptions, open};

use crate::scripted::{host, project};

/// Sends a request and returns the reply or error.
async fn reply_of(exchange: &dyn MessageExchange) -> Result<String, (ErrorCode, String)> {
    let answer = exchange.exchange(Json::parse(r#"{"id":1,"method":"ping"}"#).unwrap(), None).await;
    let answer = answer.map_err(|error| (error.code(), error.message().to_owned()))?;
    Ok(answer.to_object().unwrap().get_str("body").unwrap().into_owned())
}

#[tokio::test]
async fn new_version_replaces_a_published_function() {
    let store = open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap();
    let host = host(&store);
    let latest = FunctionExchange::new(host.clone(), "f".into(), VersionSelector::Latest);
    let exact = FunctionExchange::new(host.clone(), "f".into(), "1.0.0".parse().unwrap());
    let unknown = reply_of(&latest).await.unwrap_err();
    assert_eq!(unknown, (ErrorCode::Unavailable, r#"there is no function "f""#.to_owned()));

    let (mut generation, mut exacts) = (latest.generation(), exact.generation());
    for (number, source) in ["a", "b", "c"].into_iter().enumerate() {
        host.save_draft("f", &project(source)).await.unwrap();
        host.publish("f", VersionBump::Patch, None).await.unwrap();
        generation.wait_for(|generation| *generation == number as u64 + 1).await.unwrap();
        assert_eq!(reply_of(&latest).await.as_deref(), Ok(source));
        assert_eq!(reply_of(&exact).await.as_deref(), Ok("a"));
    }
    exacts.wait_for(|generation| *generation == 1).await.unwrap();
    host.delete("f", DeletionTarget::Version("1.0.2".parse().unwrap())).await.unwrap();
    generation.wait_for(|generation| *generation == 4).await.unwrap();
    assert_eq!(reply_of(&latest).await.as_deref(), Ok("b"));
    // The deadline limits the wait for the version.
    let late = exact.exchange(Json::null(), Some(tokio::time::Instant::now() - Duration::from_secs(1))).await;
    assert_eq!(late.unwrap_err().code(), ErrorCode::Timeout);
}

#[tokio::test]
async fn changed_folder_is_reloaded_unless_broken() {
    let store = open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap();
    let host = host(&store);
    let folder = tempfile::tempdir().unwrap();
    // Editors write a temporary file and rename it.
    let write = |name: &str, text: &str| {
        let draft = folder.path().parent().unwrap().join(format!("{name}-{}", std::process::id()));
        fs::write(&draft, text).unwrap();
        fs::rename(&draft, folder.path().join(name)).unwrap();
    };
    write("cortexone_function.lua", "broken");
    let exchange = FolderExchange::new(host.clone(), folder.path().to_owned(), Duration::from_millis(10));
    let broken = reply_of(&exchange).await.unwrap_err();
    assert_eq!(broken, (ErrorCode::Unavailable, "the function cannot be read".to_owned()));
    let why = exchange.problem().borrow().clone().unwrap();
    assert_eq!(why, "the function cannot be loaded: line 1");

    let mut generation = exchange.generation();
    write("cortexone_function.lua", "a");
    generation.changed().await.unwrap();
    assert_eq!(reply_of(&exchange).await.as_deref(), Ok("a"));
    assert_eq!(
        &*exchange.loaded_version().await.unwrap().id,
        folder.path().file_name().unwrap().to_str().unwrap()
    );

    let mut problem = exchange.problem();
    let mut refused = async |expected: &str| {
        let problem =
            problem.wait_for(|problem| problem.as_deref().is_some_and(|problem| problem.contains(expected)));

        problem.await.unwrap();
        assert_eq!(reply_of(&exchange).await.as_deref(), Ok("a"));
    };
    write("function.json", "{");
    refused("function.json: EOF while parsing an object at line 1 column 1").await;
    write("function.json", r#"{ "limits": { "second": 1 } }"#);
    refused("limits.second: unknown field").await;
    fs::remove_file(folder.path().join("function.json")).unwrap();
    write("cortexone_function.lua", "broken");
    refused("cannot be loaded").await;
    fs::remove_file(folder.path().join("cortexone_function.lua")).unwrap();
    refused("must have exactly one of").await;
    write("cortexone_function.lua", "b");
    write("function.json", r#"{ "id": "named" }"#);
    while &*exchange.loaded_version().await.unwrap().id != "named" {
        generation.changed().await.unwrap();
    }
    assert_eq!(reply_of(&exchange).await.as_deref(), Ok("b"));
    assert_eq!(*exchange.problem().borrow(), None);
}

#[tokio::test(start_paused = true)]
async fn edit_that_never_loads_is_not_served() {
    let store = open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap();
    let host = host(&store);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cortexone_function.lua");
    fs::write(&file, "a").unwrap();
    let exchange = FolderExchange::new(host.clone(), folder.path().to_owned(), Duration::from_millis(10));
    assert_eq!(reply_of(&exchange).await.as_deref(), Ok("a"));
    let mut problem = exchange.problem();
    fs::write(&file, "hang").unwrap();
    let refused = timeout(Duration::from_secs(120), problem.wait_for(Option::is_some)).await;
    let refused = refused.expect("the edit is refused").unwrap().clone();
    assert_eq!(refused.as_deref(), Some("the function was not loaded within 30 s"));
    assert_eq!(reply_of(&exchange).await.as_deref(), Ok("a"));
}

#[tokio::test(start_paused = true)]
async fn test_cases_have_a_common_time_limit() {
    let store = open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap();
    let host = host(&store);
    let mut project = project("hang");
    project.limits.time_limit = Duration::from_secs(900);
    project.tests.push(project.tests[0].clone());
    host.save_draft("f", &project).await.unwrap();
    let failed = host.publish("f", VersionBump::Patch, None).await.unwrap_err();
    let FunctionError::TestsFailed { reports, failed: 2, .. } = failed else { panic!("{failed:?}") };
    let problems: Vec<_> = reports.iter().map(|report| report.problem.as_deref().unwrap()).collect();
    assert_eq!(
        problems,
        ["no answer within 600000 ms", "not run: the time limit of 600 s for all test cases was reached"]
    );
}
