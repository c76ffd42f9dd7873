//! Errors of skills.

use toolyard_core::store::StoreError;

/// Error of skills. A model reads the texts.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// The name is invalid.
    #[error(
        "{0}: is not a valid skill name. Names consist of letters, digits, `-` and `_`, with `/` between parts, such as \
         `plan-meeting` or `research/summarize`; 128 characters at most."
    )]
    BadName(&'static str),
    /// The content is empty.
    #[error("content: is empty, where instructions in Markdown are expected")]
    Empty,
    /// The content is too long.
    #[error(
        "The skill has {bytes} bytes, and a skill may have {limit}. Keep what is needed to do the task again, or divide it into \
         several skills."
    )]
    TooLong {
        /// Bytes of the content.
        bytes: usize,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// The owner has too many skills.
    #[error(
        "The skill is not kept: there are {limit} skills, and there may be no more. Delete one that is no longer used, or add to \
         one that there is."
    )]
    TooMany {
        /// Maximum number of skills.
        limit: usize,
    },
    /// The owner's skills have too many bytes.
    #[error(
        "The skill is not kept: all skills together may have {limit} bytes, {used} are taken, and this one needs {needed}. \
         Delete or shorten others."
    )]
    TooManyBytes {
        /// Maximum number of bytes.
        limit: usize,
        /// Bytes of the other skills.
        used: usize,
        /// Bytes of this skill.
        needed: usize,
    },
    /// The skill names too many related skills.
    #[error("see_also: names more than {limit} skills")]
    TooManyNames {
        /// Maximum number of related skills.
        limit: usize,
    },
    /// Concurrent writers change the skills too often.
    #[error("The skills are being changed by others at the same time. Try again.")]
    Contended,
    /// The store failed.
    #[error("Skills cannot be used now: {0}. Try again later.")]
    Store(#[from] StoreError),
}
