//! Skills on each kind of store: gateways on one store share skills and the limits of an owner.

use std::sync::Arc;

use futures_util::future::join_all;
use toolyard_agent::memory::MemoryCaller;
use toolyard_agent::skills::{NewSkill, SkillError, SkillName, SkillOwner, SkillStore, StoredSkill};
use toolyard_core::store::Store;
use toolyard_manifest::SkillSettings;
use toolyard_store::{DatabaseLocation, PostgresUrl, StoreOptions};
use toolyard_testing::postgres::PostgresServer;

const LIMITS: SkillSettings = SkillSettings { skills: 20, bytes: 700_000, content_bytes: 200_000 };

async fn open(location: DatabaseLocation) -> Arc<dyn Store> {
    toolyard_store::open(&StoreOptions::at(location)).await.expect("a store")
}

fn owner() -> SkillOwner {
    SkillOwner::of(&MemoryCaller { principal: Some("k7".to_owned()), ..MemoryCaller::default() })
}

fn name(name: &str) -> SkillName {
    SkillName::parse("name", name).expect("a name")
}

async fn save(skills: &SkillStore, named: &str, content: &str) -> Result<StoredSkill, SkillError> {
    let name = name(named);
    skills.save(&owner(), NewSkill { name: &name, content, summary: None, see_also: None }).await
}

async fn content(skills: &SkillStore, named: &str) -> Option<String> {
    skills.get(&owner(), &name(named)).await.expect("a store").map(|skill| skill.content)
}

/// Checks two gateways with separate connections on one store.
async fn two_gateways_share(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let [one, other] = [one, other].map(|store| SkillStore::new(store, LIMITS));
    save(&one, "research/Find", "# Find\n\n\"é\"\0").await.expect("room");
    assert_eq!(content(&other, "Research/find").await.as_deref(), Some("# Find\n\n\"é\"\0"));
    let large = "\n".repeat(100_000) + &"é".repeat(50_000);
    for named in ["a", "b", "c"] {
        save(&other, named, &large).await.expect("room");
    }
    assert!(matches!(save(&one, "d", &large).await, Err(SkillError::TooManyBytes { .. })));
    assert!(content(&one, "c").await == Some(large));
    for named in ["a", "b", "c"] {
        assert!(one.delete(&owner(), &name(named)).await.expect("a store").is_some());
    }
    assert_eq!(content(&other, "a").await, None);

    // Concurrent writes: as many succeed as the limit permits, and the others fail.
    let names: Vec<_> = (0..30).map(|number| format!("skill-{number:02}")).collect();
    let writers = names.iter().zip([&one, &other].into_iter().cycle());
    let saved = join_all(writers.map(|(name, skills)| save(skills, name, name))).await;
    let full = |saved: &Result<StoredSkill, SkillError>| matches!(saved, Err(SkillError::TooMany { .. }));
    assert!(saved.iter().all(|saved| saved.is_ok() || full(saved)), "{saved:?}");
    let names = one.list(&owner()).await.expect("a store");
    let names: Vec<_> = names.iter().map(|skill| &*skill.name).collect();
    let saved_names = saved.iter().flatten().map(|skill| &*skill.name);
    assert_eq!(names, ["research/Find"].into_iter().chain(saved_names).collect::<Vec<_>>());
    assert_eq!(names.len(), LIMITS.skills);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_on_one_postgresql_share_skills() {
    let server = PostgresServer::start();
    let location = || DatabaseLocation::Postgres(PostgresUrl::parse(&server.url()).expect("a URL"));
    two_gateways_share(open(location()).await, open(location()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_share_persistent_skills_in_one_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = || DatabaseLocation::File(folder.path().join("store.db"));
    two_gateways_share(open(location()).await, open(location()).await).await;
    let skills = SkillStore::new(open(location()).await, LIMITS);
    assert_eq!(skills.list(&owner()).await.expect("a store").len(), LIMITS.skills);
}
