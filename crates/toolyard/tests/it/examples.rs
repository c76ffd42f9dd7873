//! Every manifest in `examples` is one, and says the truth about defaults.

use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;
use toolyard_manifest::{Manifest, Process, load_with};

use crate::support::gateway::{Gateway, toolyard};
use crate::support::{eventually, peers};

fn examples() -> Vec<PathBuf> {
    let files = std::fs::read_dir(peers::root().join("examples")).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

/// Whatever an example wants of the environment is a URL.
fn load(example: PathBuf) -> Manifest {
    let environment = |name: &str| name.ends_with("_URL").then(|| "http://127.0.0.1:3001/mcp".to_owned());
    load_with(&[example], &environment).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn every_example_is_a_manifest() {
    let mut examples = examples();
    examples.sort();
    let handlers = examples.into_iter().map(|example| {
        let name = example.file_name().unwrap().to_str().unwrap().to_owned();
        let manifest = load(example);
        let handlers: Vec<_> = manifest.handlers.iter().map(|handler| handler.name.as_str()).collect();
        format!("{name}: {}", handlers.join(", ")).trim_end().to_owned()
    });
    insta::assert_snapshot!(handlers.collect::<Vec<_>>().join("\n"), @"
    http-server.yaml: search
    process.yaml:
    real-servers.yaml: everything, everything-stdio, time
    ");
}

#[test]
fn the_documented_defaults_are_the_defaults() {
    let example = peers::root().join("examples/process.yaml");
    assert_eq!(load(example.clone()).process, Process::default());
    let text = std::fs::read_to_string(example).unwrap();
    // All of them: the fields as the type itself names them.
    for field in fields(&format!("{:#?}", Process::default())) {
        assert!(
            text.lines().any(|line| line.trim_start_matches([' ', '#']).starts_with(&format!("{field}:"))),
            "{field} is not in it"
        );
    }
}

/// The names of fields in the output of `Debug`, as documents write them.
fn fields(debug: &str) -> Vec<String> {
    let names = debug.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name.trim());
    let camel = |name: &str| {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
    };
    names.map(camel).collect()
}

#[test]
fn the_small_ones_serve_together() {
    let folder = TempDir::new().unwrap();
    let server = peers::fixture(folder.path());
    let mut serve = toolyard(folder.path());
    serve.env("SEARCH_URL", &server.url).current_dir(peers::root().join("examples"));
    serve.args(["serve", "-f", "http-server.yaml", "-f", "process.yaml"]);
    let gateway = Gateway::start(folder, &mut serve);
    // A busy machine may connect after the first list.
    eventually("the tools", || gateway.tools().contains(&"test_simple_text".to_owned()).then_some(()));
    assert_eq!(gateway.text("test_simple_text", json!({})), "This is a simple text response for testing.");
}
