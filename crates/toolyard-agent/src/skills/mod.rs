//! What a model has learned and keeps for later sessions: skills, each a short document with a name.
//!
//! - [`name`]: what a skill may be called;
//! - [`skill`]: a skill, and the one line that it is found by;
//! - [`limits`]: how much there may be, and what is said where there is no more room;
//! - [`store`]: where skills are kept;
//! - [`tools`]: what a model calls, and what it reads.
//!
//! # Whose they are
//!
//! A skill belongs to the key that its caller has shown: all sessions of a key share its skills, and no other key sees them.
//! Callers without a key, where the gateway asks for none, are one owner together.
//!
//! # How they are kept
//!
//! All skills of an owner are one value in the space `skills`, which is changed by compare-and-swap: so the bounds hold and nothing
//! is half there, by however many gateways on one store. That is why the bounds are low: skills are instructions, not data.

pub mod limits;
pub mod name;
pub mod skill;
pub mod store;
pub mod tools;

#[cfg(test)]
mod tests;

pub use limits::{SkillError, SkillLimits};
pub use name::SkillName;
pub use skill::{NewSkill, Skill};
pub use store::{Owner, Skills};
pub use tools::{DELETE, GET, LIST, NAMES, SAVE, add};

use crate::guides::Guide;

/// How to keep and use skills, for a model.
pub const GUIDE: Guide = Guide::new(
    "skills",
    "Keep what you have learned about doing a kind of task, and find it again in later sessions",
    include_str!("guide.md"),
);
