//! A key as shown to users and programs.

use std::time::{Duration, SystemTime};

use serde::Serialize;
use toolyard_core::access::CallPrice;
use toolyard_core::store::{Store, StoreError};
use toolyard_core::timestamp::iso_8601;

use super::key::{ApiKey, KeyScope, KeySecret, QuotaAmount};
use super::quota::{self, CALLS_QUOTA, COST_QUOTA};

/// A key as shown: everything except the hash of its secret.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeySummary {
    id: String,
    name: String,
    scopes: Vec<KeyScope>,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<QuotaAmount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<QuotaAmount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<QuotaAmount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk_threshold: Option<u64>,
    /// Used parts of the quotas.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<UsedQuotas>,
    /// True if the key is neither revoked nor expired.
    valid: bool,
    /// The text of the key, in the response to its creation only.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

/// The used parts of a key's quotas in the current period, in units.
#[derive(Serialize)]
struct UsedQuotas {
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
}

impl From<ApiKey> for KeySummary {
    fn from(key: ApiKey) -> Self {
        let valid = key.is_valid(SystemTime::now());
        let time = |millis| iso_8601(SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
        let ApiKey {
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
            used: None,
            valid,
            key: None,
        }
    }
}

impl KeySummary {
    /// Creates the summary of a new key with its secret.
    #[must_use]
    pub fn new(key: ApiKey, secret: &KeySecret) -> Self {
        Self { key: Some(secret.reveal()), ..key.into() }
    }

    /// Creates the summary of a key, with the used parts of its quotas if it is valid.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn with_usage(key: ApiKey, store: &dyn Store) -> Result<Self, StoreError> {
        let summary = Self::from(key);
        if !summary.valid || summary.calls.is_none() && summary.cost.is_none() {
            return Ok(summary);
        }
        let used = async |name: &str, limit: Option<QuotaAmount>| match limit {
            Some(limit) => {
                let CallPrice(millionths) = quota::used_of(store, &summary.id, name, limit).await?;
                Ok::<_, StoreError>(Some(millionths as f64 / QuotaAmount::ONE.0 as f64))
            }
            None => Ok(None),
        };
        let used = UsedQuotas {
            calls: used(CALLS_QUOTA, summary.calls).await?,
            cost: used(COST_QUOTA, summary.cost).await?,
        };
        Ok(Self { used: Some(used), ..summary })
    }

    /// Formats the key in one line.
    #[must_use]
    pub fn summary_line(&self) -> String {
        let scopes = self.scopes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let amounts = [("rate", self.rate), ("calls", self.calls), ("cost", self.cost)];
        let amounts = amounts.iter().filter_map(|(word, amount)| Some(format!(", {word} {}", (*amount)?)));
        let model = self.model.iter().map(|model| format!(", model {model}"));
        let threshold = self.chunk_threshold.iter().map(|chars| format!(", large above {chars}"));
        let limits: String = amounts.chain(model).chain(threshold).collect();
        let state = match (&self.revoked, &self.expires) {
            (Some(time), _) => format!("revoked {time}"),
            (None, Some(time)) if self.valid => format!("until {time}"),
            (None, Some(time)) => format!("expired {time}"),
            (None, None) => format!("since {}", self.created),
        };
        format!("{}  {}  {scopes}{limits}, {state}", self.id, self.name)
    }
}
