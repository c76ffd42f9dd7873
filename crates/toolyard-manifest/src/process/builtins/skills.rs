//! The reader of `builtins.skills`.

use crate::cursor::ValueCursor;

/// Limits of learned skills: for each key, or for all callers together if there are no keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillSettings {
    /// `skills`: maximum number of skills. Default: 100.
    pub skills: usize,
    /// `bytes`: maximum size of all skills together. Default: 512 KiB.
    pub bytes: usize,
    /// `contentBytes`: maximum size of one skill. Default: 32 KiB.
    pub content_bytes: usize,
}

impl Default for SkillSettings {
    fn default() -> Self {
        Self { skills: 100, bytes: 512 << 10, content_bytes: 32 << 10 }
    }
}

/// With less not even a few lines fit.
const MIN_BYTES: usize = 1 << 10;

/// Reads the object `skills`; `enabled: false` becomes `None`.
pub(super) fn skills(cursor: ValueCursor<'_>) -> Option<Option<SkillSettings>> {
    let mut fields = cursor.fields()?;
    let default = SkillSettings::default();
    let bytes = |cursor: ValueCursor<'_>| cursor.size(MIN_BYTES);
    let enabled = fields.with_default("enabled", ValueCursor::flag, true);
    let skills = SkillSettings {
        skills: fields.with_default("skills", ValueCursor::count, default.skills),
        bytes: fields.with_default("bytes", bytes, default.bytes),
        content_bytes: fields.with_default("contentBytes", bytes, default.content_bytes),
    };
    fields.finish();
    Some(enabled.then_some(skills))
}
