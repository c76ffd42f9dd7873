//! The outcome of the last edit of the manifest.

use std::time::SystemTime;

use serde::Serialize;
use toolyard_core::timestamp::iso_8601;

/// Outcome of an edit of the manifest.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastEdit {
    /// Time of the edit.
    pub time: String,
    /// True if it was applied. Otherwise nothing has changed.
    pub applied: bool,
    /// The changes, or the reason for the refusal.
    pub message: String,
}

impl LastEdit {
    /// Creates the outcome of an edit that has just been applied or refused.
    #[must_use]
    pub fn now(applied: bool, message: String) -> Self {
        Self { time: iso_8601(SystemTime::now()), applied, message }
    }
}
