//! The reader of `audit`.

use std::path::PathBuf;
use std::time::Duration;

use crate::{
    cursor::{Choice, Cursor},
    forms,
};

/// `audit` of a `Toolyard` document: what is kept of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditTrail {
    /// `enabled`: whether there is a trail at all. True.
    pub enabled: bool,
    /// `arguments`: whether arguments are kept, redacted, or only their digest. The digest: they are as secret as
    /// what is done with them.
    pub arguments: KeptArguments,
    /// `redact`: members of arguments that nobody is to see, at whatever depth and however capitals are used.
    pub redact: Vec<String>,
    /// `file`: a file that each record is added to as a line of JSON. None.
    pub file: Option<PathBuf>,
    /// `retention`: how long records stay in the store; `0` for ever. 90 days: a quarter of a year.
    pub retention: Duration,
}

/// What is kept of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptArguments {
    /// `digest`: SHA-256, and how long they were.
    Digest,
    /// `redacted`: themselves as well, but for the members that `redact` names.
    Redacted,
}

const KEPT_ARGUMENTS: Choice<KeptArguments> = Choice {
    noun: "way to keep arguments",
    words: &[("digest", KeptArguments::Digest), ("redacted", KeptArguments::Redacted)],
    not_yet: &[],
};

/// What commonly holds a secret.
const REDACTED: [&str; 10] = [
    "password",
    "passwd",
    "secret",
    "token",
    "access_token",
    "refresh_token",
    "authorization",
    "api_key",
    "apikey",
    "private_key",
];

impl Default for AuditTrail {
    fn default() -> Self {
        Self {
            enabled: true,
            arguments: KeptArguments::Digest,
            redact: REDACTED.map(str::to_owned).to_vec(),
            file: None,
            retention: Duration::from_secs(90 * 24 * 60 * 60),
        }
    }
}

pub(super) fn audit(cursor: Cursor<'_>) -> Option<AuditTrail> {
    let mut fields = cursor.fields()?;
    let default = AuditTrail::default();
    let trail = AuditTrail {
        enabled: fields.with_default("enabled", Cursor::flag, default.enabled),
        arguments: fields.with_default(
            "arguments",
            |cursor| cursor.choice(&KEPT_ARGUMENTS),
            default.arguments,
        ),
        redact: fields.with_default("redact", |cursor| cursor.list(Cursor::text), default.redact),
        file: fields.optional("file", |cursor| {
            let path = cursor.clone().parse(forms::file)?;
            Some(cursor.path_from_here(&path))
        }),
        retention: fields.with_default("retention", Cursor::duration, default.retention),
    };
    fields.finish();
    Some(trail)
}
