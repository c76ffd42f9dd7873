//! Functions in all languages, in real worker processes.

#![expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use toolyard_core::{Json, MessageExchange};
use toolyard_functions::code::SourceLanguage;
use toolyard_functions::host::DeletionTarget;
use toolyard_functions::project::{folder, template};
use toolyard_functions::runtime::{FunctionRuntime, RuntimeOptions};
use toolyard_functions::{
    FolderExchange, FunctionExchange, FunctionHost, FunctionKind, FunctionProject, HostOptions, TestCase,
    VersionBump, VersionSelector,
};
use toolyard_process::{ProcessSpawner, ProcessTable};
use toolyard_sandbox::packages::{PackageInstaller, PackageOptions};
use toolyard_sandbox::{IsolationRequirement, Sandbox, SandboxOptions};
use toolyard_store::{DatabaseLocation, StoreOptions, open};

const WORKER: &str = env!("CARGO_BIN_EXE_function-worker");

fn processes() -> ProcessTable {
    ProcessTable::new(ProcessSpawner::supervised_by(WORKER), 64)
}

fn sandbox() -> Sandbox {
    let mut sandbox = SandboxOptions::new(processes());
    sandbox.binary = WORKER.into();
    // Best effort, because isolation is tested elsewhere.
    sandbox.isolation = IsolationRequirement::BestEffort;
    Sandbox::new(sandbox)
}

async fn host(options: HostOptions) -> FunctionHost {
    let runtimes = FunctionRuntime::new(RuntimeOptions::new(sandbox()));
    let store = open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap();
    FunctionHost::start(store, Arc::new(runtimes), options)
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

#[tokio::test]
async fn templates_pass_their_tests() {
    let host = host(HostOptions::default()).await;
    for kind in [FunctionKind::Mcp, FunctionKind::Function] {
        for language in SourceLanguage::ALL {
            let folder = TempDir::new().unwrap();
            let id =
                format!("{}-{}", language.word(), if kind == FunctionKind::Mcp { "mcp" } else { "function" });
            template::write(folder.path(), kind, language, &id).unwrap();
            let project = folder::read(folder.path()).unwrap().project;
            host.save_draft(&id, &project).await.unwrap();
            let published = host.publish(&id, VersionBump::Patch, None).await;
            let published = published.unwrap_or_else(|error| panic!("{id}: {error:?}"));
            assert_eq!(published.tests.len(), project.tests.len());

            let exchange = FunctionExchange::new(host.clone(), id.clone(), VersionSelector::Latest);
            let (request, expected) = match kind {
                FunctionKind::Mcp => (
                    r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"absent"}}"#,
                    r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"Unknown tool: absent"}}"#,
                ),
                FunctionKind::Function => {
                    (r#"{"name":"Eve"}"#, r#"{"statusCode":200,"body":{"greeting":"Hello, Eve!"}}"#)
                }
            };
            let answer = exchange.exchange(json(request), None).await.unwrap();
            assert_eq!(answer.to_value(), json(expected).to_value(), "{id}");
        }
    }
}

#[tokio::test]
async fn failures_of_a_function_are_replies() {
    let host = host(HostOptions::default()).await;
    let request = r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#;
    let check = async |kind, language, source: &str, expected: &str| {
        let project = FunctionProject::from_source(kind, language, source.to_owned());
        let loaded = host.load_project("wrong", &project).await.unwrap();
        let invoked = host.invoke(&loaded, &json(request), None, None).await.unwrap();
        let answer = invoked.reply.to_json();
        assert!(answer.as_text().contains(expected), "{}", answer.as_text());
    };
    let python = "def cortexone_handler(event, context):\n    raise ValueError('no')";
    let javascript = "function cortexone_handler(event) { throw new TypeError('no'); }";
    let lua = "function cortexone_handler(event) error('no') end";
    let internal = r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"Internal error: "#;
    for (language, source) in [
        (SourceLanguage::Python, python),
        (SourceLanguage::JavaScript, javascript),
        (SourceLanguage::Lua, lua),
    ] {
        check(FunctionKind::Mcp, language, source, internal).await;
    }
    let failed = r#"{"statusCode":500,"body":{"error":"#;
    check(
        FunctionKind::Function,
        SourceLanguage::Python,
        python,
        &format!(r#"{failed}"Runtime error: no"}}}}"#),
    )
    .await;
    let script = format!(r#"{failed}"Script execution failed","type":"TypeError","details":"no"#);
    check(FunctionKind::Function, SourceLanguage::JavaScript, javascript, &script).await;
    check(
        FunctionKind::Function,
        SourceLanguage::Lua,
        lua,
        &format!(r#"{failed}"Script execution failed","type":"#),
    )
    .await;
    let unloaded = r#""type":"LoadError","details":"cortexone_function.lua:1: "#;
    check(FunctionKind::Function, SourceLanguage::Lua, "this is no Lua", unloaded).await;
}

/// Builds a wheel with one module, as build tools do.
const WHEEL: &str = r#"
import base64, hashlib, sys, zipfile
info = "yardstick-1.0.dist-info"
record = f"{info}/RECORD,,\n"
with zipfile.ZipFile(sys.argv[1] + "/yardstick-1.0-py3-none-any.whl", "w") as wheel:
    for path, text in [
        ("yardstick.py", "LENGTH = 36\n"),
        (info + "/METADATA", "Metadata-Version: 2.1\nName: yardstick\nVersion: 1.0\n"),
        (info + "/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
    ]:
        wheel.writestr(path, text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        record += f"{path},sha256={digest},{len(text)}\n"
    wheel.writestr(info + "/RECORD", record)
"#;

fn packages(folder: &Path) -> PackageInstaller {
    let made = Command::new("python3").args(["-c", WHEEL]).arg(folder).status().unwrap();
    assert!(made.success());
    // Sandboxes run as other users and read the folder.
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut options = PackageOptions::new(sandbox(), folder.join("cache"));
    options.env = vec![
        ("PIP_NO_INDEX".into(), "1".into()),
        ("PIP_CONFIG_FILE".into(), "/dev/null".into()),
        ("PIP_FIND_LINKS".into(), folder.into()),
    ];
    PackageInstaller::new(options)
}

#[tokio::test]
async fn function_imports_its_packages() {
    let folder = TempDir::new().unwrap();
    let options = HostOptions { packages: Some(packages(folder.path())), ..HostOptions::default() };
    let host = host(options).await;
    let source = "import yardstick\n\
                  def cortexone_handler(event, context):\n    \
                      return {'statusCode': 200, 'body': str(yardstick.LENGTH)}";
    let mut project = FunctionProject::from_source(FunctionKind::Function, SourceLanguage::Python, source);
    let expect = Some(json(r#"{"body":"36"}"#));
    project.tests = vec![TestCase { name: "length".into(), event: json("{}"), expect }];
    project.files.push(("requirements.txt".into(), "yardstick==1.0".into()));
    host.save_draft("stick", &project).await.unwrap();
    let published = host.publish("stick", VersionBump::Patch, None).await;
    published.unwrap_or_else(|error| panic!("{error:?}"));

    project.files[1].1 = "absent".into();
    host.save_draft("stick", &project).await.unwrap();
    let refused = host.publish("stick", VersionBump::Patch, None).await.unwrap_err().to_string();
    assert!(refused.starts_with("pip cannot install the packages: "), "{refused}");

    project.files[1].1 = "yardstick==1.0 --no-binary=yardstick".into();
    host.save_draft("stick", &project).await.unwrap();
    let refused = host.publish("stick", VersionBump::Patch, None).await.unwrap_err().to_string();
    assert!(refused.contains("options are set in pip's own configuration"), "{refused}");
}

fn answering(number: usize) -> FunctionProject {
    let source =
        format!("function cortexone_handler() return {{ statusCode = 200, body = 'v{number}' }} end");
    let mut project = FunctionProject::from_source(FunctionKind::Function, SourceLanguage::Lua, source);
    project.tests = vec![TestCase { name: "any".into(), event: Json::null(), expect: None }];
    project
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_succeed_while_versions_change() {
    let host = host(HostOptions::default()).await;
    host.save_draft("f", &answering(0)).await.unwrap();
    host.publish("f", VersionBump::Patch, None).await.unwrap();
    let exchange = Arc::new(FunctionExchange::new(host.clone(), "f".into(), VersionSelector::Latest));
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
        let version = host.publish("f", VersionBump::Minor, None).await.unwrap().version;
        assert_eq!(
            exchange.exchange(json("{}"), None).await.unwrap().to_object().unwrap().get_str("body").unwrap(),
            format!("v{number}")
        );
        if number % 2 == 0 {
            // Reverts to the previous version.
            host.delete("f", DeletionTarget::Version(version)).await.unwrap();
        }
    }
    is_over.store(true, Ordering::SeqCst);
    let seen = calling.join_all().await.into_iter().flatten().collect::<std::collections::BTreeSet<_>>();
    assert!(seen.len() > 1, "{seen:?}");
}

#[tokio::test]
async fn faulty_folder_reports_the_position() {
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
