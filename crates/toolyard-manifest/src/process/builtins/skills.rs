//! The reader of `builtins.skills`.

use crate::cursor::Cursor;

/// How much agents may keep of what they have learned: of each key, or of all callers together where none has a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillSettings {
    /// `skills`. 100.
    pub skills: usize,
    /// `bytes`: of all skills together. 512 KiB.
    pub bytes: usize,
    /// `contentBytes`: of one. 32 KiB.
    pub content_bytes: usize,
}

impl Default for SkillSettings {
    fn default() -> Self {
        Self { skills: 100, bytes: 512 << 10, content_bytes: 32 << 10 }
    }
}

/// With less not even a few lines fit.
const LEAST_BYTES: usize = 1 << 10;

/// Reads the object `skills`; one that is switched off is none.
pub(super) fn skills(cursor: Cursor<'_>) -> Option<Option<SkillSettings>> {
    let mut fields = cursor.fields()?;
    let default = SkillSettings::default();
    let bytes = |cursor: Cursor<'_>| cursor.size(LEAST_BYTES);
    let enabled = fields.with_default("enabled", Cursor::flag, true);
    let skills = SkillSettings {
        skills: fields.with_default("skills", Cursor::count, default.skills),
        bytes: fields.with_default("bytes", bytes, default.bytes),
        content_bytes: fields.with_default("contentBytes", bytes, default.content_bytes),
    };
    fields.finish();
    Some(enabled.then_some(skills))
}
