//! Skills on the stores that there are: what one gateway keeps, another one on the same store finds, and together they keep no
//! more than an owner may.

use std::sync::Arc;

use futures_util::future::join_all;
use toolyard_agent::memory::Who;
use toolyard_agent::skills::{NewSkill, Owner, Skill, SkillError, SkillLimits, SkillName, Skills};
use toolyard_core::store::Store;
use toolyard_store::{Location, PostgresUrl, StoreOptions};

use crate::support::postgres::Server;

const LIMITS: SkillLimits = SkillLimits { skills: 20, bytes: 700_000, content_bytes: 200_000 };

async fn open(location: Location) -> Arc<dyn Store> {
    toolyard_store::open(&StoreOptions::at(location)).await.expect("a store")
}

fn owner() -> Owner {
    Owner::of(&Who { principal: Some("k7".to_owned()), ..Who::default() })
}

fn name(name: &str) -> SkillName {
    SkillName::parse("name", name).expect("a name")
}

async fn save(skills: &Skills, named: &str, content: &str) -> Result<Skill, SkillError> {
    let name = name(named);
    skills.save(&owner(), NewSkill { name: &name, content, summary: None, see_also: None }).await
}

async fn content(skills: &Skills, named: &str) -> Option<String> {
    skills.get(&owner(), &name(named)).await.expect("a store").map(|skill| skill.content)
}

/// What holds for two gateways, each with its own connections, on one store.
async fn two_gateways_share(one: Arc<dyn Store>, other: Arc<dyn Store>) {
    let [one, other] = [one, other].map(|store| Skills::new(store, LIMITS));
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

    // Both write at once: as many get in as there is room for, and the others are told.
    let names: Vec<_> = (0..30).map(|number| format!("skill-{number:02}")).collect();
    let writers = names.iter().zip([&one, &other].into_iter().cycle());
    let saved = join_all(writers.map(|(name, skills)| save(skills, name, name))).await;
    let full = |saved: &Result<Skill, SkillError>| matches!(saved, Err(SkillError::TooMany { .. }));
    assert!(saved.iter().all(|saved| saved.is_ok() || full(saved)), "{saved:?}");
    let kept = one.list(&owner()).await.expect("a store");
    let kept: Vec<_> = kept.iter().map(|skill| &*skill.name).collect();
    let said = saved.iter().flatten().map(|skill| &*skill.name);
    assert_eq!(kept, ["research/Find"].into_iter().chain(said).collect::<Vec<_>>());
    assert_eq!(kept.len(), LIMITS.skills);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_on_one_postgresql_share_skills() {
    let server = Server::start();
    let location = || Location::Postgres(PostgresUrl::parse(&server.url()).expect("a URL"));
    two_gateways_share(open(location()).await, open(location()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_on_one_file_share_skills_which_outlive_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = || Location::File(folder.path().join("store.db"));
    two_gateways_share(open(location()).await, open(location()).await).await;
    let skills = Skills::new(open(location()).await, LIMITS);
    assert_eq!(skills.list(&owner()).await.expect("a store").len(), LIMITS.skills);
}
