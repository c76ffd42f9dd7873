//! Regular checks of a service that is otherwise known by its calls only.

use std::time::Duration;

use super::ProbeSettings;
use crate::{cursor::ValueCursor, formats::FormatError};

/// `probe` of a handler: regular checks of its service. They have the contract's default times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceProbeSettings {
    /// `interval`: time between two checks. Default: 60 s.
    pub interval: Duration,
    /// `timeout`: time limit of a check. Default: 5 s.
    pub timeout: Duration,
    /// `path`: path of a GET request without credentials. Default: only a connection is opened.
    pub path: Option<String>,
}

/// Reads the checks.
pub(super) fn read(cursor: ValueCursor<'_>) -> Option<ServiceProbeSettings> {
    let mut fields = cursor.fields()?;
    let default = ProbeSettings::default();
    let probe = ServiceProbeSettings {
        interval: fields.with_default("interval", ValueCursor::timeout, default.interval),
        timeout: fields.with_default("timeout", ValueCursor::timeout, default.timeout),
        path: fields.optional("path", |cursor| cursor.parse(path)),
    };
    fields.finish();
    Some(probe)
}

fn path(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError = FormatError::new("the path of a URL", "a path such as /healthz");
    let is_valid = text.starts_with('/') && text.parse::<http::uri::PathAndQuery>().is_ok();
    if is_valid { Ok(text.to_owned()) } else { Err(INVALID) }
}
