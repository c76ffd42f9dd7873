use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::json;
use tokio::task::yield_now;
use toolyard_core::Backend;
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, StoreFuture, StoredValue};
use toolyard_manifest::{MemorySettings, SkillSettings};
use toolyard_sdk::Server;

use super::*;
use crate::memory::MemoryCaller;
use crate::memory::testing::ManualStore;
use crate::testing::{definitions, read, read_all};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct SkillsHarness {
    store: Arc<ManualStore>,
    skills: SkillStore,
    backend: Arc<dyn Backend>,
}

impl SkillsHarness {
    fn new(limits: SkillSettings) -> Self {
        let (store, _) = ManualStore::memory(MemorySettings::default());
        let skills = SkillStore::new(store.clone(), limits).with_clock(store.clock());
        let server = add(Server::new("skills", "1.0.0"), skills.clone()).expect("tools");
        Self { store, skills, backend: server.into_backend() }
    }
}

fn owner(principal: &str) -> SkillOwner {
    SkillOwner::of(&MemoryCaller {
        principal: (!principal.is_empty()).then(|| principal.to_owned()),
        ..MemoryCaller::default()
    })
}

fn name(name: &str) -> SkillName {
    SkillName::parse("name", name).expect("a name")
}

async fn save(skills: &SkillStore, named: &str, content: &str) -> Result<StoredSkill, SkillError> {
    let name = name(named);
    skills.save(&owner(""), NewSkill { name: &name, content, summary: None, see_also: None }).await
}

#[test]
fn tool_definitions() {
    insta::assert_snapshot!(definitions(&SkillsHarness::new(SkillSettings::default()).backend));
}

#[tokio::test]
async fn skill_tool_results() {
    let harness = SkillsHarness::new(SkillSettings::default());
    let first = read_all(
        &harness.backend,
        None,
        &[
            (LIST, json!({})),
            (GET, json!({"name": "plan-meeting"})),
            (SAVE, json!({"name": "plan-meeting", "content": "# Plan a meeting\n\n1. Ask who comes.\n"})),
            (SAVE, json!({"name": "Research/Summarize", "content": "Read it. Say it.", "summary": "Summarize\n a paper", "see_also": "plan-meeting, research/find"})),
        ],
    )
    .await;
    harness.store.pass(2 * DAY);
    let second = read_all(
        &harness.backend,
        None,
        &[
            (LIST, json!({})),
            (GET, json!({"name": " PLAN-meeting "})),
            (GET, json!({"name": "research/summarize"})),
        ],
    )
    .await;
    harness.store.pass(DAY);
    let third = read_all(
        &harness.backend,
        None,
        &[
            (SAVE, json!({"name": "research/summarize", "content": "Read it twice. Say it."})),
            (GET, json!({"name": "research/summarize"})),
            (
                SAVE,
                json!({"name": "research/summarize", "content": "Read it twice. Say it.", "see_also": []}),
            ),
            (GET, json!({"name": "research/summarize"})),
            (LIST, json!({})),
            (DELETE, json!({"name": "Plan-Meeting"})),
            (DELETE, json!({"name": "plan-meeting"})),
            (LIST, json!({})),
        ],
    )
    .await;
    insta::assert_snapshot!([first, second, third].join("\n\n"));
}

#[tokio::test]
async fn errors_of_invalid_arguments() {
    let harness = SkillsHarness::new(SkillSettings { skills: 2, bytes: 60, content_bytes: 40 });
    let long = "x".repeat(41);
    let names: Vec<_> = (0..11).map(|number| format!("n{number}")).collect();
    let read = read_all(
        &harness.backend,
        None,
        &[
            (SAVE, json!({"name": "a"})),
            (SAVE, json!({"name": "a", "content": " \n"})),
            (SAVE, json!({"name": "a b", "content": "x"})),
            (SAVE, json!({"name": "a", "content": long})),
            (SAVE, json!({"name": "a", "content": "x", "see_also": "../b"})),
            (SAVE, json!({"name": "a", "content": "x", "see_also": names})),
            (SAVE, json!({"name": "a", "content": "x".repeat(20)})),
            (SAVE, json!({"name": "b", "content": "x".repeat(30)})),
            (SAVE, json!({"name": "b", "content": "x"})),
            (SAVE, json!({"name": "c", "content": "x"})),
            (GET, json!({})),
            (GET, json!({"name": "../a"})),
            (DELETE, json!({"name": ""})),
            (LIST, json!({})),
        ],
    )
    .await;
    insta::assert_snapshot!(read);
    harness.store.go_away();
    let away = read_all(&harness.backend, None, &[(LIST, json!({})), (GET, json!({"name": "a"}))]).await;
    insta::assert_snapshot!(away, @r#"
    > list_skills {}
    error: Skills cannot be used now: the store cannot be reached. Try again later.

    > get_skill {"name":"a"}
    error: Skills cannot be used now: the store cannot be reached. Try again later.
    "#);
}

#[test]
fn name_consists_of_plain_segments() {
    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let parsed = SkillName::parse("name", text).ok();
        assert_eq!(parsed.as_ref().map(SkillName::as_str), expected, "{text:?}");
    }
    for good in ["a", "plan-meeting", "research/summarize", "A_1/b/c-d", &"x".repeat(128)] {
        check(good, Some(good));
    }
    check(" a ", Some("a"));
    for bad in ["", " ", "/", "a/", "/a", "a//b", "..", "../a", "a/../b", "a.b", "a b", "a\\b", "é", "a\nb"]
    {
        check(bad, None);
    }
    check(&"x".repeat(129), None);
}

#[tokio::test]
async fn skills_belong_to_the_callers_key() {
    let harness = SkillsHarness::new(SkillSettings::default());
    for (caller, content) in [(Some("k1"), "of k1"), (Some("k2"), "of k2"), (None, "of everybody")] {
        read(&harness.backend, caller, SAVE, json!({"name": "x", "content": content})).await;
    }
    for (caller, content) in [(Some("k1"), "of k1"), (Some("k2"), "of k2"), (None, "of everybody")] {
        assert_eq!(read(&harness.backend, caller, GET, json!({"name": "x"})).await, content);
    }
    let answer = read(&harness.backend, Some("everybody"), GET, json!({"name": "x"})).await;
    assert_eq!(answer, "Skill 'x' not found. Call list_skills to see available skills.");
    read(&harness.backend, Some("k1"), DELETE, json!({"name": "x"})).await;
    assert_eq!(read(&harness.backend, Some("k2"), GET, json!({"name": "x"})).await, "of k2");
    assert_eq!(read(&harness.backend, Some("k1"), LIST, json!({})).await, "No skills saved yet.");
}

#[tokio::test]
async fn creation_update_and_use_times_are_recorded() {
    let harness = SkillsHarness::new(SkillSettings::default());
    let start = harness.skills.now();
    save(&harness.skills, "x", "one").await.expect("room");
    let times = async || {
        let skill = harness.skills.list(&owner("")).await.expect("a store").remove(0);
        let since = |time: u64| (time - start) / 1000;
        (since(skill.created_at), skill.updated_at.map(since), skill.last_used_at.map(since))
    };
    assert_eq!(times().await, (0, None, None));
    // Uses are recorded once a minute, because each costs a write.
    for (passed, recorded) in [(10, 10), (30, 10), (29, 10), (1, 70), (3600, 3670)] {
        harness.store.pass(Duration::from_secs(passed));
        harness.skills.get(&owner(""), &name("X")).await.expect("a store").expect("a skill");
        assert_eq!(times().await, (0, None, Some(recorded)));
    }
    save(&harness.skills, "X", "two").await.expect("room");
    assert_eq!(times().await, (0, Some(3670), Some(3670)));
}

#[tokio::test]
async fn existing_skill_can_be_changed_at_the_limit() {
    let harness = SkillsHarness::new(SkillSettings { skills: 2, bytes: 1000, content_bytes: 1000 });
    for named in ["a", "b", "A"] {
        save(&harness.skills, named, "x").await.expect("room");
    }
    assert!(matches!(save(&harness.skills, "c", "x").await, Err(SkillError::TooMany { limit: 2 })));
    let large = "x".repeat(700);
    save(&harness.skills, "a", &large).await.expect("room");
    save(&harness.skills, "a", &large).await.expect("room, as it takes its own place");
    assert!(matches!(save(&harness.skills, "b", &large).await, Err(SkillError::TooManyBytes { .. })));
    let skill = harness.skills.get(&owner(""), &name("b")).await.expect("a store").expect("a skill");
    assert_eq!(skill.content, "x");
}

/// A store that yields before each operation, so that others run in between.
struct SlowStore(Arc<ManualStore>);

impl KeyValueStore for SlowStore {
    fn get<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, Option<StoredValue>> {
        yield_now().then(move |()| self.0.get(space, key)).boxed()
    }

    fn put<'a>(&'a self, space: KeySpace, key: &'a str, put: PutRequest) -> StoreFuture<'a, Option<u64>> {
        yield_now().then(move |()| self.0.put(space, key, put)).boxed()
    }

    fn delete<'a>(&'a self, space: KeySpace, key: &'a str) -> StoreFuture<'a, bool> {
        self.0.delete(space, key)
    }

    fn list<'a>(
        &'a self,
        space: KeySpace,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, StoredValue)>> {
        self.0.list(space, prefix, after, limit)
    }

    fn size(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        self.0.size(space)
    }

    fn revision(&self, space: KeySpace) -> StoreFuture<'_, u64> {
        self.0.revision(space)
    }
}

#[tokio::test]
async fn concurrent_writers_lose_nothing_and_respect_the_limit() {
    let (store, _) = ManualStore::memory(MemorySettings::default());
    let limits = SkillSettings { skills: 20, ..SkillSettings::default() };
    let gateways = [(); 2].map(|()| SkillStore::new(Arc::new(SlowStore(store.clone())), limits));
    let names: Vec<_> = (0..30).map(|number| format!("skill-{number:02}")).collect();
    let writers = names.iter().zip(gateways.iter().cycle());
    let saved = join_all(writers.map(|(name, skills)| save(skills, name, name))).await;
    let full =
        |saved: &Result<StoredSkill, SkillError>| matches!(saved, Err(SkillError::TooMany { limit: 20 }));
    assert!(saved.iter().all(|saved| saved.is_ok() || full(saved)), "{saved:?}");
    let names: Vec<_> = saved.iter().flatten().map(|skill| &*skill.name).collect();
    let skills = gateways[1].list(&owner("")).await.expect("a store");
    assert_eq!(skills.iter().map(|skill| &*skill.name).collect::<Vec<_>>(), names);
    assert_eq!(names.len(), 20);

    // A concurrent reader gets one version or the other, and recording a use reverts no write.
    let (first, last) = (name("skill-00"), name(names[19]));
    let rewriting = join_all((0..10).map(|number| {
        let content = if number % 2 == 0 { "even" } else { "odd" };
        save(&gateways[number % 2], first.as_str(), content)
    }));
    let owner = owner("");
    let using = join_all(gateways.iter().map(|skills| skills.get(&owner, &last)));
    let (rewritten, used) = tokio::join!(rewriting, using);
    assert!(rewritten.iter().all(Result::is_ok), "{rewritten:?}");
    assert!(used.iter().all(|used| matches!(used, Ok(Some(_)))), "{used:?}");
    let content = gateways[0].get(&owner, &first).await.expect("a store").expect("a skill").content;
    assert!(content == "even" || content == "odd", "{content}");
}
