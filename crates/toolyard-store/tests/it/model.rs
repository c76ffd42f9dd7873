//! Values by key, against a map that does the same.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};
use toolyard_core::store::{Condition, Put, Space, Store};
use toolyard_store::{Location, StoreOptions, open};

const SPACE: Space = Space("model");

#[derive(Debug, Clone)]
enum Step {
    Put(String, u8, When),
    Delete(String),
    Get(String),
    List(String, Option<String>, usize),
}

#[derive(Debug, Clone, Copy)]
enum When {
    Always,
    Absent,
    /// The version that is there now.
    Current,
    /// A version that was there once, or never.
    Stale,
}

/// Few keys, so that steps meet; some at the ends of what there is.
fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "a\0", "aa", "ab", "b", "ä", "\u{D7FF}", "\u{E000}", "\u{10FFFF}"])
        .prop_map(str::to_owned)
}

fn step() -> impl Strategy<Value = Step> {
    let when = prop::sample::select(vec![When::Always, When::Absent, When::Current, When::Stale]);
    prop_oneof![
        4 => (key(), any::<u8>(), when).prop_map(|(key, value, when)| Step::Put(key, value, when)),
        2 => key().prop_map(Step::Delete),
        1 => key().prop_map(Step::Get),
        2 => (key(), prop::option::of(key()), 0..5_usize).prop_map(|(prefix, after, limit)| Step::List(prefix, after, limit)),
    ]
}

/// What the map says beside the store.
#[derive(Default)]
struct Model {
    values: BTreeMap<String, (u8, u64)>,
    versions: Vec<u64>,
}

impl Model {
    async fn take(&mut self, store: &dyn Store, step: Step) {
        let before = store.revision(SPACE).await.unwrap();
        let changed = match step {
            Step::Put(key, value, when) => self.put(store, key, value, when).await,
            Step::Delete(key) => {
                let was = self.values.remove(&key).is_some();
                assert_eq!(store.delete(SPACE, &key).await.unwrap(), was);
                was
            }
            Step::Get(key) => {
                let kept = store.get(SPACE, &key).await.unwrap();
                let kept = kept.map(|value| (value.bytes[0], value.version));
                assert_eq!(kept.as_ref(), self.values.get(&key));
                false
            }
            Step::List(prefix, after, limit) => {
                self.list(store, &prefix, after.as_deref(), limit).await;
                false
            }
        };
        assert_eq!(store.revision(SPACE).await.unwrap() > before, changed);
    }

    async fn put(&mut self, store: &dyn Store, key: String, value: u8, when: When) -> bool {
        let current = self.values.get(&key).map(|(_, version)| *version);
        let stale = self.versions.iter().rev().find(|version| Some(**version) != current).copied();
        let (condition, holds) = match when {
            When::Always => (Condition::Always, true),
            When::Absent => (Condition::Absent, current.is_none()),
            When::Current => (Condition::Version(current.unwrap_or(1 << 40)), current.is_some()),
            When::Stale => (Condition::Version(stale.unwrap_or(1 << 40)), false),
        };
        let put = Put { condition, ..Put::always(vec![value]) };
        let version = store.put(SPACE, &key, put).await.unwrap();
        assert_eq!(version.is_some(), holds);
        if let Some(version) = version {
            assert!(!self.versions.contains(&version), "no two have the same version");
            self.versions.push(version);
            self.values.insert(key, (value, version));
        }
        holds
    }

    async fn list(&self, store: &dyn Store, prefix: &str, after: Option<&str>, limit: usize) {
        let kept = store.list(SPACE, prefix, after, limit).await.unwrap();
        let kept: Vec<_> =
            kept.into_iter().map(|(key, value)| (key, (value.bytes[0], value.version))).collect();
        let fits = |key: &str| key.starts_with(prefix) && after.is_none_or(|after| key > after);
        let expected: Vec<_> = self
            .values
            .iter()
            .filter(|(key, _)| fits(key))
            .take(limit)
            .map(|(k, v)| (k.clone(), *v))
            .collect();
        assert_eq!(kept, expected);
    }
}

proptest! {
    #![proptest_config(Config {
        cases: 64,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    })]

    #[test]
    fn values_are_those_of_a_map(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = open(&StoreOptions::at(Location::Memory)).await.unwrap();
            let mut model = Model::default();
            for step in steps {
                model.take(&*store, step).await;
            }
        });
    }
}
