//! The reader of `audit`.

use std::path::PathBuf;
use std::time::Duration;

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    formats,
};

/// `audit` of a `Toolyard` document: the audit trail of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditTrail {
    /// `enabled`: write an audit trail. Default: true.
    pub enabled: bool,
    /// `arguments`: record redacted arguments, or only their digest. Default: the digest, since arguments are as secret
    /// as the data that calls process.
    pub arguments: ArgumentRecording,
    /// `redact`: names of members whose values are redacted, at any depth and regardless of case.
    pub redact: Vec<String>,
    /// `file`: a file to which each record is appended as a line of JSON. Default: none.
    pub file: Option<PathBuf>,
    /// `retention`: lifetime of records in the store; `0` keeps them forever. Default: 90 days: a quarter of a year.
    pub retention: Duration,
}

/// The part of arguments that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentRecording {
    /// `digest`: their SHA-256 and length.
    Digest,
    /// `redacted`: the arguments, with the members of `redact` removed.
    Redacted,
}

const ARGUMENT_RECORDING: KeywordChoice<ArgumentRecording> = KeywordChoice {
    noun: "way to keep arguments",
    words: &[("digest", ArgumentRecording::Digest), ("redacted", ArgumentRecording::Redacted)],
    unsupported: &[],
};

/// Members that commonly contain secrets.
const DEFAULT_REDACTED: [&str; 10] = [
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
            arguments: ArgumentRecording::Digest,
            redact: DEFAULT_REDACTED.map(str::to_owned).to_vec(),
            file: None,
            retention: Duration::from_secs(90 * 24 * 60 * 60),
        }
    }
}

pub(super) fn audit(cursor: ValueCursor<'_>) -> Option<AuditTrail> {
    let mut fields = cursor.fields()?;
    let default = AuditTrail::default();
    let trail = AuditTrail {
        enabled: fields.with_default("enabled", ValueCursor::flag, default.enabled),
        arguments: fields.with_default(
            "arguments",
            |cursor| cursor.choice(&ARGUMENT_RECORDING),
            default.arguments,
        ),
        redact: fields.with_default("redact", |cursor| cursor.list(ValueCursor::text), default.redact),
        file: fields.optional("file", |cursor| {
            let path = cursor.clone().parse(formats::file)?;
            Some(cursor.resolve_path(&path))
        }),
        retention: fields.with_default("retention", ValueCursor::duration, default.retention),
    };
    fields.finish();
    Some(trail)
}
