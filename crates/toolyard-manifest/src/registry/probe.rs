//! The reader of `probe` of a registry.

use crate::{cursor::ValueCursor, handler::ProbeSettings};

/// Reads the liveness checks of a registry; `Some(None)` disables them.
#[expect(clippy::option_option, reason = "the outer one says whether it could be read, as with every reader")]
pub(super) fn probe(cursor: ValueCursor<'_>) -> Option<Option<ProbeSettings>> {
    let mut fields = cursor.fields()?;
    let default = ProbeSettings::default();
    let is_enabled = fields.with_default("enabled", ValueCursor::flag, true);
    let probe = ProbeSettings {
        interval: fields.with_default("interval", ValueCursor::timeout, default.interval),
        timeout: fields.with_default("timeout", ValueCursor::timeout, default.timeout),
    };
    fields.finish();
    Some(is_enabled.then_some(probe))
}
