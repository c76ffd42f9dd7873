//! No text makes the manifest parser panic or hang.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolyard_manifest::{ManifestSource, parse_with};

fuzz_target!(|text: &str| {
    let source = ManifestSource { name: "fuzz.yaml".to_owned(), text: text.to_owned() };
    if let Err(problems) = parse_with(&[source], &|_| None) {
        assert!(!problems.to_string().is_empty());
    }
});
