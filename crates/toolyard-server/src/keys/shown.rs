//! A key as people and programs are shown it.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use toolyard_core::timestamp::iso_8601;

use super::key::{Amount, Key, KeyScope, Secret};

/// A key as it is shown: everything but what it is proven by.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownKey {
    id: String,
    name: String,
    scopes: Vec<KeyScope>,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk_threshold: Option<u64>,
    /// Whether it opens anything now.
    valid: bool,
    /// The text of the key, in the answer that it is made by and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

impl From<Key> for ShownKey {
    fn from(key: Key) -> Self {
        let valid = key.is_valid(SystemTime::now());
        let time = |millis| iso_8601(SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
        let Key {
            id,
            name,
            hash: _,
            scopes,
            created,
            expires,
            revoked,
            rate,
            calls,
            cost,
            model,
            chunk_threshold,
        } = key;
        Self {
            id,
            name,
            scopes,
            created: time(created),
            expires: expires.map(time),
            revoked: revoked.map(time),
            rate,
            calls,
            cost,
            model,
            chunk_threshold,
            valid,
            key: None,
        }
    }
}

impl ShownKey {
    /// A key that was just made, with what its owner has to keep.
    #[must_use]
    pub fn new(key: Key, secret: &Secret) -> Self {
        Self { key: Some(secret.reveal()), ..key.into() }
    }

    /// What it is, in one line for people.
    #[must_use]
    pub fn line(&self) -> String {
        let scopes = self.scopes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let amounts = [("rate", self.rate), ("calls", self.calls), ("cost", self.cost)];
        let amounts = amounts.iter().filter_map(|(word, amount)| Some(format!(", {word} {}", (*amount)?)));
        let model = self.model.iter().map(|model| format!(", model {model}"));
        let threshold = self.chunk_threshold.iter().map(|chars| format!(", large from {chars}"));
        let bounds: String = amounts.chain(model).chain(threshold).collect();
        let state = match (&self.revoked, &self.expires) {
            (Some(time), _) => format!("revoked {time}"),
            (None, Some(time)) if self.valid => format!("until {time}"),
            (None, Some(time)) => format!("expired {time}"),
            (None, None) => format!("since {}", self.created),
        };
        format!("{}  {}  {scopes}{bounds}, {state}", self.id, self.name)
    }
}
