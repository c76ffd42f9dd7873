//! Values by key, compared with a map.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};
use toolyard_core::store::{KeySpace, PutRequest, Store, WriteCondition};
use toolyard_store::{DatabaseLocation, StoreOptions, open};

const SPACE: KeySpace = KeySpace("model");

#[derive(Debug, Clone)]
enum ModelStep {
    Put(String, u8, PutCondition),
    Delete(String),
    Get(String),
    List(String, Option<String>, usize),
}

#[derive(Debug, Clone, Copy)]
enum PutCondition {
    Always,
    Absent,
    /// The current version of the key.
    Current,
    /// A former version, or one that never existed.
    Stale,
}

/// Few keys, so that steps collide; some at the limits of the order.
fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "a\0", "aa", "ab", "b", "ä", "\u{D7FF}", "\u{E000}", "\u{10FFFF}"])
        .prop_map(str::to_owned)
}

fn step() -> impl Strategy<Value = ModelStep> {
    let when = prop::sample::select(vec![
        PutCondition::Always,
        PutCondition::Absent,
        PutCondition::Current,
        PutCondition::Stale,
    ]);
    prop_oneof![
        4 => (key(), any::<u8>(), when).prop_map(|(key, value, when)| ModelStep::Put(key, value, when)),
        2 => key().prop_map(ModelStep::Delete),
        1 => key().prop_map(ModelStep::Get),
        2 => (key(), prop::option::of(key()), 0..5_usize).prop_map(|(prefix, after, limit)| ModelStep::List(prefix, after, limit)),
    ]
}

/// The expected content of the store.
#[derive(Default)]
struct StoreModel {
    values: BTreeMap<String, (u8, u64)>,
    versions: Vec<u64>,
}

impl StoreModel {
    async fn apply(&mut self, store: &dyn Store, step: ModelStep) {
        let before = store.revision(SPACE).await.unwrap();
        let changed = match step {
            ModelStep::Put(key, value, when) => self.put(store, key, value, when).await,
            ModelStep::Delete(key) => {
                let existed = self.values.remove(&key).is_some();
                assert_eq!(store.delete(SPACE, &key).await.unwrap(), existed);
                existed
            }
            ModelStep::Get(key) => {
                let actual = store.get(SPACE, &key).await.unwrap();
                let actual = actual.map(|value| (value.bytes[0], value.version));
                assert_eq!(actual.as_ref(), self.values.get(&key));
                false
            }
            ModelStep::List(prefix, after, limit) => {
                self.list(store, &prefix, after.as_deref(), limit).await;
                false
            }
        };
        assert_eq!(store.revision(SPACE).await.unwrap() > before, changed);
    }

    async fn put(&mut self, store: &dyn Store, key: String, value: u8, when: PutCondition) -> bool {
        let current = self.values.get(&key).map(|(_, version)| *version);
        let stale = self.versions.iter().rev().find(|version| Some(**version) != current).copied();
        let (condition, is_accepted) = match when {
            PutCondition::Always => (WriteCondition::Always, true),
            PutCondition::Absent => (WriteCondition::Absent, current.is_none()),
            PutCondition::Current => (WriteCondition::Version(current.unwrap_or(1 << 40)), current.is_some()),
            PutCondition::Stale => (WriteCondition::Version(stale.unwrap_or(1 << 40)), false),
        };
        let put = PutRequest { condition, ..PutRequest::always(vec![value]) };
        let version = store.put(SPACE, &key, put).await.unwrap();
        assert_eq!(version.is_some(), is_accepted);
        if let Some(version) = version {
            assert!(!self.versions.contains(&version), "no two have the same version");
            self.versions.push(version);
            self.values.insert(key, (value, version));
        }
        is_accepted
    }

    async fn list(&self, store: &dyn Store, prefix: &str, after: Option<&str>, limit: usize) {
        let actual = store.list(SPACE, prefix, after, limit).await.unwrap();
        let actual: Vec<_> =
            actual.into_iter().map(|(key, value)| (key, (value.bytes[0], value.version))).collect();
        let fits = |key: &str| key.starts_with(prefix) && after.is_none_or(|after| key > after);
        let expected: Vec<_> = self
            .values
            .iter()
            .filter(|(key, _)| fits(key))
            .take(limit)
            .map(|(k, v)| (k.clone(), *v))
            .collect();
        assert_eq!(actual, expected);
    }
}

proptest! {
    #![proptest_config(Config {
        cases: 64,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    })]

    #[test]
    fn store_behaves_like_a_map(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap();
            let mut model = StoreModel::default();
            for step in steps {
                model.apply(&*store, step).await;
            }
        });
    }
}
