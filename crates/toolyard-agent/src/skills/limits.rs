//! How much there may be, and what is said where there is no more room.

use toolyard_core::store::StoreError;

/// How much one owner may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillLimits {
    /// Skills.
    pub skills: usize,
    /// Bytes of all skills together: names, summaries and contents.
    pub bytes: usize,
    /// Bytes of the content of one.
    pub content_bytes: usize,
}

impl Default for SkillLimits {
    fn default() -> Self {
        Self { skills: 100, bytes: 512 * 1024, content_bytes: 32 * 1024 }
    }
}

/// Why a skill is not kept, or not found. The texts are for a model.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// That cannot be a name.
    #[error(
        "{0}: is no name of a skill. Names are made of letters, digits, `-` and `_`, with `/` between parts, such as \
         `plan-meeting` or `research/summarize`; 128 characters at most."
    )]
    BadName(&'static str),
    /// There is nothing to keep.
    #[error("content: is empty, where instructions in Markdown are expected")]
    Empty,
    /// One skill is larger than skills may be.
    #[error(
        "The skill has {bytes} bytes, and a skill may have {limit}. Keep what is needed to do the task again, or divide it into \
         several skills."
    )]
    TooLong {
        /// The skill's.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// There would be more skills than there may be.
    #[error(
        "The skill is not kept: there are {limit} skills, and there may be no more. Delete one that is no longer used, or add to \
         one that there is."
    )]
    TooMany {
        /// The bound.
        limit: usize,
    },
    /// There would be more bytes than there may be.
    #[error(
        "The skill is not kept: all skills together may have {limit} bytes, {held} are taken, and this one needs {needed}. \
         Delete or shorten others."
    )]
    TooManyBytes {
        /// The bound.
        limit: usize,
        /// What the other skills take.
        held: usize,
        /// What this one would take.
        needed: usize,
    },
    /// A skill names more others than it may.
    #[error("see_also: names more than {limit} skills")]
    TooManyNames {
        /// The bound.
        limit: usize,
    },
    /// Others write all the time.
    #[error("The skills are being changed by others all the time. Try again.")]
    Contended,
    /// The store does not do its part.
    #[error("Skills cannot be used now: {0}. Try again later.")]
    Store(#[from] StoreError),
}
