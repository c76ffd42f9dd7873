//! The section `builtins.skills`.

use crate::{
    field_type::{CountField, SizeField},
    section::section,
};

/// With less not even a few lines fit.
const MIN_BYTES: usize = 1 << 10;

section! {
    /// Limits of learned skills: for each key, or for all callers together if there are no keys.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SkillSettings: Default = "skills" {
        /// Maximum number of skills; more are refused.
        pub skills: usize = "skills", CountField, default 100;
        /// Maximum size of all skills together, at least 1 KiB.
        pub bytes: usize = "bytes", SizeField(MIN_BYTES), default 512 << 10;
        /// Maximum size of one skill, at least 1 KiB.
        pub content_bytes: usize = "contentBytes", SizeField(MIN_BYTES), default 32 << 10;
    }
}
