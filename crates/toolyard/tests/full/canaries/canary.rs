//! CanarySet: unique strings in the place of secrets, which can be found in any output.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The canaries of a test, by their place.
#[derive(Default)]
pub(crate) struct CanarySet {
    planted: BTreeMap<String, SecretCanary>,
}

struct SecretCanary {
    /// Search patterns of the secret, one for each encoding.
    search_patterns: Vec<String>,
}

impl CanarySet {
    /// Creates a secret for a place.
    pub(crate) fn plant(&mut self, place: &str) -> String {
        let random = format!("{:016x}", RandomState::new().hash_one(place));
        self.watch(place, &random);
        format!("canary-{place}-{random}")
    }

    /// Adds a secret that was created elsewhere.
    pub(crate) fn watch(&mut self, place: &str, secret: &str) {
        let canary = SecretCanary { search_patterns: search_patterns(secret) };
        assert!(self.planted.insert(place.to_owned(), canary).is_none(), "{place} has one already");
    }

    /// Returns the places of the secrets that `output` contains.
    pub(crate) fn leaked_in(&self, output: &[u8]) -> Vec<&str> {
        let text = String::from_utf8_lossy(output);
        let shows = |canary: &SecretCanary| canary.search_patterns.iter().any(|mark| text.contains(mark));
        self.planted.iter().filter(|(_, canary)| shows(canary)).map(|(place, _)| &**place).collect()
    }
}

/// Returns the text, which percent-encoding does not change, and the invariant part of its base64 at each offset.
fn search_patterns(random: &str) -> Vec<String> {
    let encoded = (0..3).map(|before| {
        let encoded = STANDARD_NO_PAD.encode([&vec![0; before], random.as_bytes()].concat());
        // The first and last characters also depend on the neighbours.
        encoded[4..encoded.len() - 4].to_owned()
    });
    [random.to_owned()].into_iter().chain(encoded).collect()
}

#[test]
fn canary_is_found_in_every_encoding() {
    let mut canaries = CanarySet::default();
    let canary = canaries.plant("here");
    canaries.plant("elsewhere");
    for before in ["", "x", "yz"] {
        let text = format!("{before}{canary}!");
        for shown in [format!("a {text} b"), format!("a {} b", STANDARD_NO_PAD.encode(text))] {
            assert_eq!(canaries.leaked_in(shown.as_bytes()), ["here"], "{shown}");
        }
    }
    assert!(canaries.leaked_in(b"canary-here").is_empty());
}
