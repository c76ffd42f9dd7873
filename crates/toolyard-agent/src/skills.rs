//! Skills: short documents in which a model keeps for later sessions how to do a kind of task.
//!
//! - [`name`]: names of skills;
//! - [`skill`]: a skill and its summary;
//! - [`error`]: the errors of skills;
//! - [`store`]: the skills in a store;
//! - [`tools`]: the tools and their results.
//!
//! # Ownership
//!
//! A skill belongs to the key of its caller: all sessions of a key share its skills, and no other key sees them.
//! Callers without a key, if the gateway requires none, share one owner.
//!
//! # Storage
//!
//! All skills of an owner are one value in the key space `skills`, which is changed by compare-and-swap, so that limits
//! hold and changes are atomic with any number of gateways on one store. The limits are therefore low: skills are
//! instructions, not data.

pub mod error;
pub mod name;
pub mod skill;
pub mod store;
pub mod tools;

#[cfg(test)]
mod tests;

pub use error::SkillError;
pub use name::SkillName;
pub use skill::{NewSkill, StoredSkill};
pub use store::{SkillOwner, SkillStore};
pub use tools::{DELETE, GET, LIST, NAMES, SAVE, add};

use crate::guides::GuideDocument;

/// Guide to saving and using skills.
pub const GUIDE: GuideDocument = GuideDocument::new(
    "skills",
    "Keep what you have learned about doing a kind of task, and find it again in later sessions",
    include_str!("skills/guide.md"),
);
