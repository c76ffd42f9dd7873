//! Functions as exchanges.

use std::fs;
use std::time::Duration;

use tokio::time::timeout;
use toolyard_core::{Code, Exchange, Json};
use toolyard_functions::host::Deleted;
use toolyard_functions::{Bump, FolderExchange, FunctionError, FunctionExchange, Wanted};
use toolyard_store::{Location, StoreOptions, open};

use crate::scripted::{host, project};

/// What an exchange says to a request.
async fn said(exchange: &dyn Exchange) -> Result<String, (Code, String)> {
    let answer = exchange.exchange(Json::parse(r#"{"id":1,"method":"ping"}"#).unwrap(), None).await;
    let answer = answer.map_err(|error| (error.code(), error.message().to_owned()))?;
    Ok(answer.to_object().unwrap().get_str("body").unwrap().into_owned())
}

#[tokio::test]
async fn a_published_function_is_another_one_when_there_is_a_later_version() {
    let store = open(&StoreOptions::at(Location::Memory)).await.unwrap();
    let host = host(&store);
    let latest = FunctionExchange::new(host.clone(), "f".into(), Wanted::Latest);
    let exact = FunctionExchange::new(host.clone(), "f".into(), "1.0.0".parse().unwrap());
    let unknown = said(&latest).await.unwrap_err();
    assert_eq!(unknown, (Code::Unavailable, r#"there is no function "f""#.to_owned()));

    let (mut generation, mut exacts) = (latest.generation(), exact.generation());
    for (number, source) in ["a", "b", "c"].into_iter().enumerate() {
        host.save_draft("f", &project(source)).await.unwrap();
        host.publish("f", Bump::Patch, None).await.unwrap();
        generation.wait_for(|generation| *generation == number as u64 + 1).await.unwrap();
        assert_eq!(said(&latest).await.as_deref(), Ok(source));
        assert_eq!(said(&exact).await.as_deref(), Ok("a"));
    }
    exacts.wait_for(|generation| *generation == 1).await.unwrap();
    host.delete("f", Deleted::Version("1.0.2".parse().unwrap())).await.unwrap();
    generation.wait_for(|generation| *generation == 4).await.unwrap();
    assert_eq!(said(&latest).await.as_deref(), Ok("b"));
    // What is not ready in time is not waited for.
    let late = exact.exchange(Json::null(), Some(tokio::time::Instant::now() - Duration::from_secs(1))).await;
    assert_eq!(late.unwrap_err().code(), Code::Timeout);
}

#[tokio::test]
async fn a_folder_is_read_again_and_a_broken_edit_is_not_served() {
    let store = open(&StoreOptions::at(Location::Memory)).await.unwrap();
    let host = host(&store);
    let folder = tempfile::tempdir().unwrap();
    // Editors write beside, and rename.
    let write = |name: &str, text: &str| {
        let draft = folder.path().parent().unwrap().join(format!("{name}-{}", std::process::id()));
        fs::write(&draft, text).unwrap();
        fs::rename(&draft, folder.path().join(name)).unwrap();
    };
    write("cortexone_function.lua", "broken");
    let exchange = FolderExchange::new(host.clone(), folder.path().to_owned(), Duration::from_millis(10));
    let broken = said(&exchange).await.unwrap_err();
    assert_eq!(broken, (Code::Unavailable, "the function cannot be read".to_owned()));
    let why = exchange.problem().borrow().clone().unwrap();
    assert_eq!(why, "the function cannot be loaded: line 1");

    let mut generation = exchange.generation();
    write("cortexone_function.lua", "a");
    generation.changed().await.unwrap();
    assert_eq!(said(&exchange).await.as_deref(), Ok("a"));
    assert_eq!(&*exchange.edition().await.unwrap().id, folder.path().file_name().unwrap().to_str().unwrap());

    let mut problem = exchange.problem();
    let mut refused = async |expected: &str| {
        let problem =
            problem.wait_for(|problem| problem.as_deref().is_some_and(|problem| problem.contains(expected)));

        problem.await.unwrap();
        assert_eq!(said(&exchange).await.as_deref(), Ok("a"));
    };
    write("function.json", "{");
    refused("function.json: EOF while parsing an object at line 1 column 1").await;
    write("function.json", r#"{ "limits": { "second": 1 } }"#);
    refused("limits.second: unknown field").await;
    fs::remove_file(folder.path().join("function.json")).unwrap();
    write("cortexone_function.lua", "broken");
    refused("cannot be loaded").await;
    fs::remove_file(folder.path().join("cortexone_function.lua")).unwrap();
    refused("has no single handler").await;
    write("cortexone_function.lua", "b");
    write("function.json", r#"{ "id": "named" }"#);
    while &*exchange.edition().await.unwrap().id != "named" {
        generation.changed().await.unwrap();
    }
    assert_eq!(said(&exchange).await.as_deref(), Ok("b"));
    assert_eq!(*exchange.problem().borrow(), None);
}

#[tokio::test(start_paused = true)]
async fn an_edit_that_is_never_loaded_is_not_served() {
    let store = open(&StoreOptions::at(Location::Memory)).await.unwrap();
    let host = host(&store);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cortexone_function.lua");
    fs::write(&file, "a").unwrap();
    let exchange = FolderExchange::new(host.clone(), folder.path().to_owned(), Duration::from_millis(10));
    assert_eq!(said(&exchange).await.as_deref(), Ok("a"));
    let mut problem = exchange.problem();
    fs::write(&file, "hang").unwrap();
    let refused = timeout(Duration::from_secs(120), problem.wait_for(Option::is_some)).await;
    let refused = refused.expect("the edit is refused").unwrap().clone();
    assert_eq!(refused.as_deref(), Some("the function is not loaded within 30 s"));
    assert_eq!(said(&exchange).await.as_deref(), Ok("a"));
}

#[tokio::test(start_paused = true)]
async fn test_cases_have_a_bound_together() {
    let store = open(&StoreOptions::at(Location::Memory)).await.unwrap();
    let host = host(&store);
    let mut project = project("hang");
    project.limits.wall = Duration::from_secs(900);
    project.tests.push(project.tests[0].clone());
    host.save_draft("f", &project).await.unwrap();
    let failed = host.publish("f", Bump::Patch, None).await.unwrap_err();
    let FunctionError::TestsFailed { reports, failed: 2, .. } = failed else { panic!("{failed:?}") };
    let problems: Vec<_> = reports.iter().map(|report| report.problem.as_deref().unwrap()).collect();
    assert_eq!(
        problems,
        ["no answer within 600000 ms", "not run: all test cases together have 600 s, which were over"]
    );
}
