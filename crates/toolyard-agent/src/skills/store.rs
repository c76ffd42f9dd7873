//! The skills in a store.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, StoreError, StoreErrorKind, WriteCondition};
use toolyard_manifest::SkillSettings;

use super::error::SkillError;
use super::name::SkillName;
use super::skill::{NewSkill, StoredSkill};
use crate::memory::MemoryCaller;
use crate::memory::record::millis;
use crate::memory::working_memory::WallClock;

/// Key space in which each owner has one key.
const SKILLS: KeySpace = KeySpace("skills");

/// Maximum number of attempts to change skills that others change concurrently.
const ATTEMPTS: usize = 64;

/// Minimum time in milliseconds between two recorded uses of a skill. Each costs a write.
const USE_INTERVAL: u64 = 60_000;

/// Owner of skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillOwner(String);

impl SkillOwner {
    /// Returns the owner for a caller: its key, or one owner for all callers without a key.
    #[must_use]
    pub fn of(caller: &MemoryCaller) -> Self {
        Self(caller.key_namespace().map_or_else(|| "everybody".to_owned(), |key| key.to_string()))
    }
}

/// The skills of all owners, in a store. Gateways on one store share them.
#[derive(Clone)]
pub struct SkillStore {
    store: Arc<dyn KeyValueStore>,
    limits: SkillSettings,
    clock: WallClock,
}

/// All skills of an owner, in the order of their names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct SkillShelf {
    skills: Vec<StoredSkill>,
}

impl SkillStore {
    /// Returns the skills of a store.
    #[must_use]
    pub fn new(store: Arc<dyn KeyValueStore>, limits: SkillSettings) -> Self {
        Self { store, limits, clock: Arc::new(SystemTime::now) }
    }

    /// Replaces the clock.
    #[must_use]
    pub fn with_clock(self, clock: WallClock) -> Self {
        Self { clock, ..self }
    }

    /// Returns the current time in milliseconds since 1970.
    #[must_use]
    pub fn now(&self) -> u64 {
        millis((self.clock)())
    }

    /// Saves a skill, replacing one of the same name, and returns it.
    ///
    /// # Errors
    /// Returns an error if a limit would be exceeded or the store fails.
    pub async fn save(&self, owner: &SkillOwner, new: NewSkill<'_>) -> Result<StoredSkill, SkillError> {
        let (bytes, limit) = (new.content.len(), self.limits.content_bytes);
        if new.content.trim().is_empty() {
            return Err(SkillError::Empty);
        }
        if bytes > limit {
            return Err(SkillError::TooLong { bytes, limit });
        }
        let now = self.now();
        self.change(owner, |shelf| {
            let before = shelf.take(new.name);
            let skill = StoredSkill::saved(&new, before.as_ref(), now);
            shelf.admit(skill.clone(), &self.limits).map(|()| skill)
        })
        .await
    }

    /// Returns a skill and records its use.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn get(&self, owner: &SkillOwner, name: &SkillName) -> Result<Option<StoredSkill>, SkillError> {
        let (shelf, version) = self.read(owner).await?;
        let Some(skill) = shelf.skills.iter().find(|skill| name.is(&skill.name)).cloned() else {
            return Ok(None);
        };
        let now = self.now();
        if skill.last_used_at.is_none_or(|last| now >= last.saturating_add(USE_INTERVAL)) {
            self.note_use(owner, shelf, version, name, now).await;
        }
        Ok(Some(skill))
    }

    /// Returns all skills in the order of their names.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn list(&self, owner: &SkillOwner) -> Result<Vec<StoredSkill>, SkillError> {
        Ok(self.read(owner).await?.0.skills)
    }

    /// Deletes a skill and returns it.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn delete(
        &self,
        owner: &SkillOwner,
        name: &SkillName,
    ) -> Result<Option<StoredSkill>, SkillError> {
        if !self.read(owner).await?.0.skills.iter().any(|skill| name.is(&skill.name)) {
            return Ok(None);
        }
        self.change(owner, |shelf| Ok(shelf.take(name))).await
    }

    /// Records a use. Does not try again if others change the skills concurrently: the record is not worth it, and the
    /// skill is returned in any case.
    async fn note_use(
        &self,
        owner: &SkillOwner,
        mut shelf: SkillShelf,
        version: Option<u64>,
        name: &SkillName,
        now: u64,
    ) {
        if let Some(skill) = shelf.skills.iter_mut().find(|skill| name.is(&skill.name)) {
            skill.last_used_at = Some(now);
        }
        if let Err(error) = self.write(owner, &shelf, version).await {
            tracing::debug!(error = &error as &dyn std::error::Error, "failed to record the use of a skill");
        }
    }

    /// Changes the skills of an owner, and tries again if others change them concurrently.
    async fn change<T>(
        &self,
        owner: &SkillOwner,
        mut change: impl FnMut(&mut SkillShelf) -> Result<T, SkillError>,
    ) -> Result<T, SkillError> {
        for _ in 0..ATTEMPTS {
            let (mut shelf, version) = self.read(owner).await?;
            let changed = change(&mut shelf)?;
            if self.write(owner, &shelf, version).await? {
                return Ok(changed);
            }
        }
        Err(SkillError::Contended)
    }

    async fn read(&self, owner: &SkillOwner) -> Result<(SkillShelf, Option<u64>), StoreError> {
        let Some(value) = self.store.get(SKILLS, &owner.0).await? else {
            return Ok((SkillShelf::default(), None));
        };
        let shelf = serde_json::from_slice(&value.bytes)
            .map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error))?;
        Ok((shelf, Some(value.version)))
    }

    /// Writes the skills. Returns `false` if they have changed since `version`.
    async fn write(
        &self,
        owner: &SkillOwner,
        shelf: &SkillShelf,
        version: Option<u64>,
    ) -> Result<bool, StoreError> {
        let bytes =
            serde_json::to_vec(shelf).map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error))?;
        let condition = version.map_or(WriteCondition::Absent, WriteCondition::Version);
        let put = PutRequest { condition, ..PutRequest::always(bytes) };
        Ok(self.store.put(SKILLS, &owner.0, put).await?.is_some())
    }
}

/// Shows the limits, without any skills.
impl fmt::Debug for SkillStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillStore").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl SkillShelf {
    fn take(&mut self, name: &SkillName) -> Option<StoredSkill> {
        let at = self.skills.iter().position(|skill| name.is(&skill.name))?;
        Some(self.skills.remove(at))
    }

    /// Inserts a skill in order, if the limits permit.
    fn admit(&mut self, skill: StoredSkill, limits: &SkillSettings) -> Result<(), SkillError> {
        if self.skills.len() >= limits.skills {
            return Err(SkillError::TooMany { limit: limits.skills });
        }
        let used = self.skills.iter().map(StoredSkill::size).sum::<usize>();
        let needed = skill.size();
        if used + needed > limits.bytes {
            return Err(SkillError::TooManyBytes { limit: limits.bytes, used, needed });
        }
        let folded = skill.name.to_ascii_lowercase();
        let at = self.skills.partition_point(|other| other.name.to_ascii_lowercase() < folded);
        self.skills.insert(at, skill);
        Ok(())
    }
}
