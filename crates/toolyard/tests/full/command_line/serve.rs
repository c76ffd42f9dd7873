//! The output of `toolyard serve`.

use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::gateway::{TestGateway, toolyard};

fn serve(args: &[&str]) -> TestGateway {
    let folder = TempDir::new().unwrap();
    let mut serve = toolyard(folder.path());
    serve.arg("serve").args(args);
    TestGateway::start(folder, &mut serve)
}

#[test]
fn quick_start_output() {
    let gateway = serve(&[]);
    let whole = |text: &str| text.ends_with("}\n\n").then(|| text.to_owned());
    let greeting = gateway.process.stdout.wait_for("the end of the greeting", whole);
    let port = gateway.address.port().to_string();
    let greeting = greeting.replace(&port, "PORT").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    assert_snapshot!(greeting, @r#"
    Toolyard VERSION is serving MCP on http://127.0.0.1:PORT/mcp
      console: http://127.0.0.1:PORT/
      manifest: the embedded demo; `toolyard init` writes a toolyard.yaml

    3 tools of 1 handler
      demo: echo, reverse_string, add

    Add this to the configuration of your MCP client:

    {
      "mcpServers": {
        "toolyard": { "type": "http", "url": "http://127.0.0.1:PORT/mcp" }
      }
    }
    "#);
}

#[test]
fn for_programs() {
    let folder = TempDir::new().unwrap();
    let mut serve = toolyard(folder.path());
    serve.args(["serve", "--output", "json", "--listen", "127.0.0.1:0"]);
    let process = toolyard_testing::process::RunningProgram::start(&mut serve);
    let line = process.stdout.wait_for("a line", |text| text.strip_suffix('\n').map(str::to_owned));
    let started: Value = serde_json::from_str(&line).unwrap();
    let url = started["url"].as_str().unwrap();
    let address = url.strip_prefix("http://").and_then(|url| url.strip_suffix("/mcp"));
    assert_eq!(started, json!({"url": url, "listening": [address.unwrap()]}));
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
}

#[test]
fn unusable_store_is_reported_first() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("yard.db")).unwrap();
    let store = serde_json::json!({"path": folder.path().join("yard.db")});
    let process = toolyard_testing::manifest::process_document(folder.path(), json!({"store": store}));
    let mut serve = toolyard(folder.path());
    serve.arg("serve").arg("-f").arg(process);
    let gateway = TestGateway::start(folder, &mut serve);
    let banner = gateway
        .process
        .stdout
        .wait_for("the banner", |text| text.contains("/mcp\n").then(|| text.to_owned()));
    let banner = banner.replace(gateway.folder.path().to_str().unwrap(), "DIR");
    assert_snapshot!(banner.split("\nToolyard").next().unwrap(), @"
    The store cannot be used: cannot open the store DIR/yard.db for writing: grant this user write access, or choose another file with `store: {path: FILE}` in the Toolyard document: Is a directory (os error 21)
    requests that need it fail until it can be opened
    ");
}
