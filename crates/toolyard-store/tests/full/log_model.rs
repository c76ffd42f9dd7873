//! Log records, compared with a list.

use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence};
use toolyard_core::store::{KeySpace, LogRecord, RecordQuery, Store};
use toolyard_store::{DatabaseLocation, StoreOptions, open};

const SPACE: KeySpace = KeySpace("log model");

/// Times of records are few, so that records of one write are trimmed apart.
const TIMES: std::ops::Range<u64> = 0..20;

#[derive(Debug, Clone)]
enum ModelStep {
    Append(Vec<(u64, u8)>),
    Trim(u64),
    TrimToNothing,
    Read { tag: Option<u8>, since: Option<u64>, until: Option<u64>, skip: usize, limit: usize },
}

fn step() -> impl Strategy<Value = ModelStep> {
    let many = prop_oneof![8 => 0..6_usize, 1 => 480..520_usize, 1 => 1001..1003_usize];
    let records = many.prop_flat_map(|count| prop::collection::vec((TIMES, 0..3_u8), count));
    let time = || prop::option::of(TIMES);
    prop_oneof![
        6 => records.prop_map(ModelStep::Append),
        1 => TIMES.prop_map(ModelStep::Trim),
        1 => Just(ModelStep::TrimToNothing),
        4 => (prop::option::of(0..3_u8), time(), time(), 0..8_usize, 0..600_usize)
            .prop_map(|(tag, since, until, skip, limit)| ModelStep::Read { tag, since, until, skip, limit }),
    ]
}

fn time(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// The expected records, oldest first, with their time, tag and body, and the number once it is known.
#[derive(Default)]
struct LogModel {
    records: Vec<(u64, u8, String, Option<u64>)>,
    appended: usize,
}

impl LogModel {
    async fn apply(&mut self, store: &dyn Store, step: ModelStep) {
        match step {
            ModelStep::Append(records) => {
                let new: Vec<_> = records
                    .into_iter()
                    .map(|(time, tag)| {
                        self.appended += 1;
                        (time, tag, format!("{{\"n\":{}}}", self.appended), None)
                    })
                    .collect();
                let records = new.iter().map(|(seconds, tag, body, _)| LogRecord {
                    time: time(*seconds),
                    tags: vec![("tag", tag.to_string().into()), ("body", body.clone().into())],
                    body: body.clone(),
                });
                store.append(SPACE, records.collect()).await.unwrap();
                self.records.extend(new);
            }
            ModelStep::Trim(before) => {
                let count = self.records.len();
                self.records.retain(|(seconds, ..)| *seconds >= before);
                let removed = store.trim(SPACE, time(before)).await.unwrap();
                assert_eq!(removed, (count - self.records.len()) as u64);
            }
            ModelStep::TrimToNothing => {
                let removed = store.trim_to_size(SPACE, 0).await.unwrap();
                assert_eq!(removed, self.records.len() as u64);
                self.records.clear();
            }
            ModelStep::Read { tag, since, until, skip, limit } => {
                self.read(store, tag, since, until, skip, limit).await;
            }
        }
        self.check_numbers(store).await;
    }

    /// Reads a page behind the first `skip` of all records.
    async fn read(
        &self,
        store: &dyn Store,
        tag: Option<u8>,
        since: Option<u64>,
        until: Option<u64>,
        skip: usize,
        limit: usize,
    ) {
        let newest_first: Vec<_> = self.records.iter().rev().collect();
        let before = skip.checked_sub(1).and_then(|last| newest_first.get(last)).and_then(|record| record.3);
        let skipped = if before.is_some() { skip } else { 0 };
        let matches = newest_first[skipped..].iter().filter(|(seconds, this, ..)| {
            tag.is_none_or(|tag| *this == tag)
                && since.is_none_or(|since| *seconds >= since)
                && until.is_none_or(|until| *seconds < until)
        });
        let expected: Vec<_> = matches.take(limit).map(|record| record.2.clone()).collect();
        let tags = tag.map(|tag| ("tag", tag.to_string())).into_iter().collect();
        let query = RecordQuery { tags, since: since.map(time), until: until.map(time), before, limit };
        let records = store.read(SPACE, query).await.unwrap();
        assert_eq!(records.into_iter().map(|record| record.body).collect::<Vec<_>>(), expected);
    }

    /// Compares all records, and that each keeps the number that it had.
    async fn check_numbers(&mut self, store: &dyn Store) {
        let query =
            RecordQuery { tags: Vec::new(), since: None, until: None, before: None, limit: usize::MAX };
        let stored = store.read(SPACE, query).await.unwrap();
        assert!(stored.is_sorted_by(|newer, older| newer.number > older.number));
        assert_eq!(stored.len(), self.records.len());
        for (record, expected) in stored.iter().rev().zip(&mut self.records) {
            let number = *expected.3.get_or_insert(record.number);
            let expected = (time(expected.0), &expected.2, number);
            assert_eq!((record.time, &record.body, record.number), expected);
        }
    }
}

proptest! {
    #![proptest_config(Config {
        cases: 32,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..Config::default()
    })]

    #[test]
    fn log_behaves_like_a_list(steps in prop::collection::vec(step(), 1..30)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = open(&StoreOptions::at(DatabaseLocation::Memory)).await.unwrap();
            let mut model = LogModel::default();
            for step in steps {
                model.apply(&*store, step).await;
            }
        });
    }
}
