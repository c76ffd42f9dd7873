//! Files and folders, in `fixtures/`.

use std::path::{Path, PathBuf};

use insta::assert_snapshot;

use super::environment;
use crate::{load, load_with};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn handlers(names: &[&str]) -> Vec<String> {
    let paths: Vec<_> = names.iter().map(|name| fixture(name)).collect();
    let manifest = load(&paths).unwrap_or_else(|problems| panic!("{problems}"));
    manifest.handlers.iter().map(|handler| handler.name.to_string()).collect()
}

/// Problems without the path of the fixtures, which differs between machines.
fn problems(names: &[&str]) -> String {
    let paths: Vec<_> = names.iter().map(|name| fixture(name)).collect();
    let problems = load_with(&paths, &environment).unwrap_err().to_string();
    problems.replace(&fixture("").display().to_string(), "")
}

#[test]
fn folder_is_read_in_the_order_of_names() {
    assert_eq!(handlers(&["folder"]), ["first", "second", "third"]);
}

#[test]
fn paths_are_read_in_the_given_order() {
    assert_eq!(handlers(&["folder/c.json", "folder/a.yaml"]), ["third", "first"]);
}

#[test]
fn unreadable_files_are_problems() {
    assert_snapshot!(problems(&["absent.yaml", "broken.yaml", "not-utf8.yaml", "no-manifests"]), @"
    absent.yaml: this cannot be read: No such file or directory (os error 2)
    broken.yaml:2:1: kind[0]: invalid YAML or JSON: while parsing a node, did not find expected node content
    no-manifests: this folder contains no manifest
      expected a file whose name ends in .yaml, .yml or .json
    not-utf8.yaml:2:21: this file is not valid text
      expected UTF-8
    ");
}
