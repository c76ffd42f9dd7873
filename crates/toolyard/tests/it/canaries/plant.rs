//! Strings that stand where secrets stand, and are found again wherever they come out.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The canaries of one test, by where they were put.
#[derive(Default)]
pub(crate) struct Canaries {
    planted: BTreeMap<String, Canary>,
}

struct Canary {
    /// What tells it from all others, in each writing in which it may come out.
    marks: Vec<String>,
}

impl Canaries {
    /// A new secret for a place.
    pub(crate) fn plant(&mut self, place: &str) -> String {
        let random = format!("{:016x}", RandomState::new().hash_one(place));
        self.watch(place, &random);
        format!("canary-{place}-{random}")
    }

    /// A secret that somebody else has made.
    pub(crate) fn watch(&mut self, place: &str, secret: &str) {
        let canary = Canary { marks: marks(secret) };
        assert!(self.planted.insert(place.to_owned(), canary).is_none(), "{place} has one already");
    }

    /// What `output` shows that nobody is to see, by its place.
    pub(crate) fn found_in(&self, output: &[u8]) -> Vec<&str> {
        let text = String::from_utf8_lossy(output);
        let shows = |canary: &Canary| canary.marks.iter().any(|mark| text.contains(mark));
        self.planted.iter().filter(|(_, canary)| shows(canary)).map(|(place, _)| &**place).collect()
    }
}

/// The text itself, which percent-encoding does not change, and what is the same of it in base64 wherever it begins.
fn marks(random: &str) -> Vec<String> {
    let encoded = (0..3).map(|before| {
        let encoded = STANDARD_NO_PAD.encode([&vec![0; before], random.as_bytes()].concat());
        // The first and the last characters are made of its neighbours as well.
        encoded[4..encoded.len() - 4].to_owned()
    });
    [random.to_owned()].into_iter().chain(encoded).collect()
}

#[test]
fn a_canary_is_found_in_whatever_writing() {
    let mut canaries = Canaries::default();
    let canary = canaries.plant("here");
    canaries.plant("elsewhere");
    for before in ["", "x", "yz"] {
        let text = format!("{before}{canary}!");
        for shown in [format!("a {text} b"), format!("a {} b", STANDARD_NO_PAD.encode(text))] {
            assert_eq!(canaries.found_in(shown.as_bytes()), ["here"], "{shown}");
        }
    }
    assert!(canaries.found_in(b"canary-here").is_empty());
}
