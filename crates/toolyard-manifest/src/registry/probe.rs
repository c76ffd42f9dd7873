//! `probe` of a registry.

use crate::{cursor::Cursor, handler::Probe};

/// How the servers of a registry are asked whether they are there; `Some(None)` where they are not.
#[expect(clippy::option_option, reason = "the outer one says whether it could be read, as with every reader")]
pub(super) fn probe(cursor: Cursor<'_>) -> Option<Option<Probe>> {
    let mut fields = cursor.fields()?;
    let default = Probe::default();
    let is_enabled = fields.with_default("enabled", Cursor::flag, true);
    let probe = Probe {
        interval: fields.with_default("interval", Cursor::timeout, default.interval),
        timeout: fields.with_default("timeout", Cursor::timeout, default.timeout),
    };
    fields.finish();
    Some(is_enabled.then_some(probe))
}
