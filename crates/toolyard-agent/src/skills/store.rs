//! Where skills are kept.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use toolyard_core::store::{Condition, Kv, Put, Space, StoreError, Trouble};

use super::limits::{SkillError, SkillLimits};
use super::name::SkillName;
use super::skill::{NewSkill, Skill};
use crate::memory::Who;
use crate::memory::record::millis;
use crate::memory::working::Clock;

/// All skills of an owner under one key.
const SKILLS: Space = Space("skills");

/// How often a change is tried while others change the same owner's.
const ATTEMPTS: usize = 64;

/// How much later a skill has to be read again for that to be written down, in milliseconds: it costs a write.
const USE_PRECISION: u64 = 60_000;

/// Whose skills they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner(String);

impl Owner {
    /// The key of a caller; everybody who has none, together.
    #[must_use]
    pub fn of(who: &Who) -> Self {
        Self(who.key_namespace().map_or_else(|| "everybody".to_owned(), |key| key.to_string()))
    }
}

/// The skills of all owners, in a store. Gateways on one store share them.
#[derive(Clone)]
pub struct Skills {
    store: Arc<dyn Kv>,
    limits: SkillLimits,
    clock: Clock,
}

/// All skills of an owner, in the order of their names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Shelf {
    skills: Vec<Skill>,
}

impl Skills {
    /// The skills in a store.
    #[must_use]
    pub fn new(store: Arc<dyn Kv>, limits: SkillLimits) -> Self {
        Self { store, limits, clock: Arc::new(SystemTime::now) }
    }

    /// The same by another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The time, in milliseconds since 1970.
    #[must_use]
    pub fn now(&self) -> u64 {
        millis((self.clock)())
    }

    /// Keeps a skill, in the place of what there was under its name. Gives what is kept.
    ///
    /// # Errors
    /// Where there is no room for it, or the store does not take it.
    pub async fn save(&self, owner: &Owner, new: NewSkill<'_>) -> Result<Skill, SkillError> {
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
            let skill = Skill::saved(&new, before.as_ref(), now);
            shelf.admit(skill.clone(), &self.limits).map(|()| skill)
        })
        .await
    }

    /// A skill, of which it is noted that it is used now.
    ///
    /// # Errors
    /// Where the store does not give it.
    pub async fn get(&self, owner: &Owner, name: &SkillName) -> Result<Option<Skill>, SkillError> {
        let (shelf, version) = self.read(owner).await?;
        let Some(skill) = shelf.skills.iter().find(|skill| name.is(&skill.name)).cloned() else {
            return Ok(None);
        };
        let now = self.now();
        if skill.last_used_at.is_none_or(|last| now >= last.saturating_add(USE_PRECISION)) {
            self.note_use(owner, shelf, version, name, now).await;
        }
        Ok(Some(skill))
    }

    /// All skills, in the order of their names.
    ///
    /// # Errors
    /// Where the store does not give them.
    pub async fn list(&self, owner: &Owner) -> Result<Vec<Skill>, SkillError> {
        Ok(self.read(owner).await?.0.skills)
    }

    /// Removes a skill; gives what it was.
    ///
    /// # Errors
    /// Where the store does not do it.
    pub async fn delete(&self, owner: &Owner, name: &SkillName) -> Result<Option<Skill>, SkillError> {
        if !self.read(owner).await?.0.skills.iter().any(|skill| name.is(&skill.name)) {
            return Ok(None);
        }
        self.change(owner, |shelf| Ok(shelf.take(name))).await
    }

    /// Notes a use, unless somebody changes the skills at the same time: it is not worth a second try, and who reads a skill
    /// gets it all the same.
    async fn note_use(
        &self,
        owner: &Owner,
        mut shelf: Shelf,
        version: Option<u64>,
        name: &SkillName,
        now: u64,
    ) {
        if let Some(skill) = shelf.skills.iter_mut().find(|skill| name.is(&skill.name)) {
            skill.last_used_at = Some(now);
        }
        if let Err(error) = self.write(owner, &shelf, version).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "it is not noted that a skill was used"
            );
        }
    }

    /// Changes the skills of an owner, whoever else does meanwhile.
    async fn change<T>(
        &self,
        owner: &Owner,
        mut change: impl FnMut(&mut Shelf) -> Result<T, SkillError>,
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

    async fn read(&self, owner: &Owner) -> Result<(Shelf, Option<u64>), StoreError> {
        let Some(value) = self.store.get(SKILLS, &owner.0).await? else {
            return Ok((Shelf::default(), None));
        };
        let shelf = serde_json::from_slice(&value.bytes)
            .map_err(|error| StoreError::new(Trouble::Unreadable, error))?;
        Ok((shelf, Some(value.version)))
    }

    /// Whether nobody else has written since `version`.
    async fn write(&self, owner: &Owner, shelf: &Shelf, version: Option<u64>) -> Result<bool, StoreError> {
        let bytes = serde_json::to_vec(shelf).map_err(|error| StoreError::new(Trouble::Unreadable, error))?;
        let condition = version.map_or(Condition::Absent, Condition::Version);
        let put = Put { condition, ..Put::always(bytes) };
        Ok(self.store.put(SKILLS, &owner.0, put).await?.is_some())
    }
}

/// Shows the bounds, and nothing that anybody keeps.
impl fmt::Debug for Skills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Skills").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Shelf {
    fn take(&mut self, name: &SkillName) -> Option<Skill> {
        let at = self.skills.iter().position(|skill| name.is(&skill.name))?;
        Some(self.skills.remove(at))
    }

    /// Puts a skill where it belongs, if there is room.
    fn admit(&mut self, skill: Skill, limits: &SkillLimits) -> Result<(), SkillError> {
        if self.skills.len() >= limits.skills {
            return Err(SkillError::TooMany { limit: limits.skills });
        }
        let held = self.skills.iter().map(Skill::size).sum::<usize>();
        let needed = skill.size();
        if held + needed > limits.bytes {
            return Err(SkillError::TooManyBytes { limit: limits.bytes, held, needed });
        }
        let folded = skill.name.to_ascii_lowercase();
        let at = self.skills.partition_point(|other| other.name.to_ascii_lowercase() < folded);
        self.skills.insert(at, skill);
        Ok(())
    }
}
