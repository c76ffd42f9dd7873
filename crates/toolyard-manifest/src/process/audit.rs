//! The section `audit`.

use std::path::PathBuf;
use std::time::Duration;

use crate::{
    cursor::KeywordChoice,
    field_type::{AnyTextField, DurationField, FileField, FlagField, KeywordField, ListField, SizeField},
    section::section,
};

section! {
    /// `audit` of a `Toolyard` document: the audit trail of calls.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AuditTrail: Default = "audit" {
        /// Write an audit trail.
        pub enabled: bool = "enabled", FlagField, default true;
        /// Recorded part of arguments: their digest, or also the arguments without the members of `redact`.
        ///
        /// Arguments are as secret as the data that calls process.
        pub arguments: ArgumentRecording = "arguments", KeywordField(&ARGUMENT_RECORDING),
            default ArgumentRecording::Digest;
        /// Members of arguments to redact, at any depth and regardless of case. Default: those that commonly contain
        /// secrets, such as `password` and `token`.
        pub redact: Vec<String> = "redact", ListField(AnyTextField),
            described DEFAULT_REDACTED.map(str::to_owned).to_vec();
        /// File to which each record is appended as a line of JSON, in addition to the store.
        pub file: Option<PathBuf> = "file", FileField, optional;
        /// Lifetime of records in the store; `0s` keeps them forever.
        ///
        /// A quarter of a year.
        pub retention: Duration = "retention", DurationField, default Duration::from_secs(90 * 24 * 60 * 60);
        /// Maximum size of the records in the store. Beyond it the oldest are removed, which the log, the trail and the
        /// metric `toolyard.audit.removed` state. Checked once a minute.
        ///
        /// Ten to twenty million calls.
        pub bytes: usize = "bytes", SizeField(1 << 20), default 1 << 30;
    }
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
