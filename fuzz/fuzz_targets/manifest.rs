//! No text makes the reader of manifests panic or hang.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_manifest::{Source, parse_with};

fuzz_target!(|text: &str| {
    let source = Source { name: "fuzz.yaml".to_owned(), text: text.to_owned() };
    if let Err(problems) = parse_with(&[source], &|_| None) {
        assert!(!problems.to_string().is_empty());
    }
});
