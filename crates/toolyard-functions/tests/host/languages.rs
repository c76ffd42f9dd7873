//! Functions in their languages, in real worker processes.

#![expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use toolyard_core::{Exchange, Json};
use toolyard_functions::code::Language;
use toolyard_functions::host::Deleted;
use toolyard_functions::project::{folder, template};
use toolyard_functions::runtime::{RuntimeOptions, Runtimes};
use toolyard_functions::{
    Bump, FolderExchange, FunctionExchange, Host, HostOptions, Kind, Project, TestCase, Wanted,
};
use toolyard_process::{Processes, Spawner};
use toolyard_sandbox::packages::{PackageOptions, Packages};
use toolyard_sandbox::{Isolation, Sandbox, SandboxOptions};
use toolyard_store::{Location, StoreOptions, open};

const WORKER: &str = env!("CARGO_BIN_EXE_function-worker");

fn processes() -> Processes {
    Processes::new(Spawner::supervised_by(WORKER), 64)
}

async fn host(options: HostOptions) -> Host {
    let mut sandbox = SandboxOptions::new(processes());
    sandbox.binary = WORKER.into();
    // As far as the machine of the tests has walls: those are tested elsewhere.
    sandbox.isolation = Isolation::BestEffort;
    let runtimes = Runtimes::new(RuntimeOptions::new(Sandbox::new(sandbox)));
    let store = open(&StoreOptions::at(Location::Memory)).await.unwrap();
    Host::start(store, Arc::new(runtimes), options)
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

#[tokio::test]
async fn each_template_passes_its_own_tests_and_answers() {
    let host = host(HostOptions::default()).await;
    for kind in [Kind::Mcp, Kind::Function] {
        for language in Language::ALL {
            let folder = TempDir::new().unwrap();
            let id = format!("{}-{}", language.word(), if kind == Kind::Mcp { "mcp" } else { "function" });
            template::write(folder.path(), kind, language, &id).unwrap();
            let project = folder::read(folder.path()).unwrap().project;
            host.save_draft(&id, &project).await.unwrap();
            let published = host.publish(&id, Bump::Patch, None).await;
            let published = published.unwrap_or_else(|error| panic!("{id}: {error:?}"));
            assert_eq!(published.tests.len(), project.tests.len());

            let exchange = FunctionExchange::new(host.clone(), id.clone(), Wanted::Latest);
            let (request, expected) = match kind {
                Kind::Mcp => (
                    r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"absent"}}"#,
                    r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"Unknown tool: absent"}}"#,
                ),
                Kind::Function => {
                    (r#"{"name":"Eve"}"#, r#"{"statusCode":200,"body":{"greeting":"Hello, Eve!"}}"#)
                }
            };
            let answer = exchange.exchange(json(request), None).await.unwrap();
            assert_eq!(answer.to_value(), json(expected).to_value(), "{id}");
        }
    }
}

#[tokio::test]
async fn what_a_function_does_wrong_is_an_answer() {
    let host = host(HostOptions::default()).await;
    let request = r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#;
    let check = async |kind, language, source: &str, expected: &str| {
        let project = Project::of_source(kind, language, source.to_owned());
        let edition = host.edition_of("wrong", &project).await.unwrap();
        let invoked = host.invoke(&edition, &json(request), None, None).await.unwrap();
        let answer = invoked.reply.to_json();
        assert!(answer.as_text().contains(expected), "{}", answer.as_text());
    };
    let python = "def cortexone_handler(event, context):\n    raise ValueError('no')";
    let javascript = "function cortexone_handler(event) { throw new TypeError('no'); }";
    let lua = "function cortexone_handler(event) error('no') end";
    let internal = r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"Internal error: "#;
    for (language, source) in
        [(Language::Python, python), (Language::JavaScript, javascript), (Language::Lua, lua)]
    {
        check(Kind::Mcp, language, source, internal).await;
    }
    let failed = r#"{"statusCode":500,"body":{"error":"#;
    check(Kind::Function, Language::Python, python, &format!(r#"{failed}"Runtime error: no"}}}}"#)).await;
    let script = format!(r#"{failed}"Script execution failed","type":"TypeError","details":"no"#);
    check(Kind::Function, Language::JavaScript, javascript, &script).await;
    check(Kind::Function, Language::Lua, lua, &format!(r#"{failed}"Script execution failed","type":"#)).await;
    let unloaded = r#""type":"LoadError","details":"cortexone_function.lua:1: "#;
    check(Kind::Function, Language::Lua, "this is no Lua", unloaded).await;
}

/// A wheel of one module, as build tools make it.
const WHEEL: &str = r#"
import sys, zipfile
info = "yardstick-1.0.dist-info"
with zipfile.ZipFile(sys.argv[1] + "/yardstick-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("yardstick.py", "LENGTH = 36\n")
    wheel.writestr(info + "/METADATA", "Metadata-Version: 2.1\nName: yardstick\nVersion: 1.0\n")
    wheel.writestr(info + "/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "/RECORD", "")
"#;

fn packages(folder: &Path) -> Packages {
    let made = Command::new("python3").args(["-c", WHEEL]).arg(folder).status().unwrap();
    assert!(made.success());
    let mut options = PackageOptions::new(processes(), folder.join("cache"));
    options.env = vec![
        ("PIP_NO_INDEX".into(), "1".into()),
        ("PIP_CONFIG_FILE".into(), "/dev/null".into()),
        ("PIP_FIND_LINKS".into(), folder.into()),
    ];
    Packages::new(options)
}

#[tokio::test]
async fn a_function_finds_its_packages() {
    let folder = TempDir::new().unwrap();
    let options = HostOptions { packages: Some(packages(folder.path())), ..HostOptions::default() };
    let host = host(options).await;
    let source = "import yardstick\n\
                  def cortexone_handler(event, context):\n    \
                      return {'statusCode': 200, 'body': str(yardstick.LENGTH)}";
    let mut project = Project::of_source(Kind::Function, Language::Python, source);
    let expect = Some(json(r#"{"body":"36"}"#));
    project.tests = vec![TestCase { name: "length".into(), event: json("{}"), expect }];
    project.files.push(("requirements.txt".into(), "yardstick==1.0".into()));
    host.save_draft("stick", &project).await.unwrap();
    let published = host.publish("stick", Bump::Patch, None).await;
    published.unwrap_or_else(|error| panic!("{error:?}"));

    project.files[1].1 = "absent".into();
    host.save_draft("stick", &project).await.unwrap();
    let refused = host.publish("stick", Bump::Patch, None).await.unwrap_err().to_string();
    assert!(refused.starts_with("pip cannot install the packages: "), "{refused}");
}

fn answering(number: usize) -> Project {
    let source =
        format!("function cortexone_handler() return {{ statusCode = 200, body = 'v{number}' }} end");
    let mut project = Project::of_source(Kind::Function, Language::Lua, source);
    project.tests = vec![TestCase { name: "any".into(), event: Json::null(), expect: None }];
    project
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_while_versions_come_and_go() {
    let host = host(HostOptions::default()).await;
    host.save_draft("f", &answering(0)).await.unwrap();
    host.publish("f", Bump::Patch, None).await.unwrap();
    let exchange = Arc::new(FunctionExchange::new(host.clone(), "f".into(), Wanted::Latest));
    let is_over = Arc::new(AtomicBool::new(false));
    let mut calling = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (exchange, is_over) = (exchange.clone(), is_over.clone());
        calling.spawn(async move {
            let mut seen = std::collections::BTreeSet::new();
            while !is_over.load(Ordering::SeqCst) {
                let answer = exchange.exchange(json("{}"), None).await.unwrap();
                seen.insert(answer.to_object().unwrap().get_str("body").unwrap().into_owned());
            }
            seen
        });
    }
    for number in 1..=8 {
        host.save_draft("f", &answering(number)).await.unwrap();
        let version = host.publish("f", Bump::Minor, None).await.unwrap().version;
        assert_eq!(
            exchange.exchange(json("{}"), None).await.unwrap().to_object().unwrap().get_str("body").unwrap(),
            format!("v{number}")
        );
        if number % 2 == 0 {
            // Back to the one before.
            host.delete("f", Deleted::Version(version)).await.unwrap();
        }
    }
    is_over.store(true, Ordering::SeqCst);
    let seen = calling.join_all().await.into_iter().flatten().collect::<std::collections::BTreeSet<_>>();
    assert!(seen.len() > 1, "{seen:?}");
}

#[tokio::test]
async fn a_folder_with_a_mistake_says_where_it_is() {
    let host = host(HostOptions::default()).await;
    let folder = TempDir::new().unwrap();
    let write = |text: &str| std::fs::write(folder.path().join("cortexone_function.js"), text).unwrap();
    write("function cortexone_handler(event) { return { jsonrpc: '2.0', id: event.id, result: 1 }; }");
    let exchange = FolderExchange::new(host, folder.path().to_owned(), Duration::from_millis(10));
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":1}"#;
    assert_eq!(exchange.exchange(json(request), None).await.unwrap().as_text(), answer);
    write("function cortexone_handler(event) {\n  return }}");
    let mut problem = exchange.problem();
    let problem = problem.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    assert!(problem.starts_with("the function cannot be loaded: ") && problem.contains('2'), "{problem}");
    assert_eq!(exchange.exchange(json(request), None).await.unwrap().as_text(), answer);
}
