//! A key as stored, and its secret, which is not stored.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use toolyard_core::access::{AccessScope, CallPrice, ScopePattern};
pub(crate) use toolyard_core::random::hex;

/// Prefix of every key, by which secret scanners recognize it.
const PREFIX: &str = "ty";

/// Bytes of a secret.
const SECRET_BYTES: usize = 32;

/// Bytes of a secret's SHA-256 digest.
const DIGEST_BYTES: usize = 32;

/// Bytes of an id.
const ID_BYTES: usize = 6;

/// A key as stored: everything except its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiKey {
    /// Unique id, which is part of the key's text: 12 hexadecimal digits.
    pub id: String,
    /// Name given by the owner. Not unique.
    pub name: String,
    /// SHA-256 of the secret, in hexadecimal digits.
    pub hash: String,
    /// Scopes of the key.
    pub scopes: Vec<KeyScope>,
    /// Creation time, in milliseconds since 1970.
    pub created: u64,
    /// Expiry time, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// Revocation time, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<u64>,
    /// Rate limit of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<QuotaAmount>,
    /// Quota of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<QuotaAmount>,
    /// Quota of the calls' cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<QuotaAmount>,
    /// Language model of calls that do not name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Number of characters above which a result is large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_threshold: Option<u64>,
}

/// A key to create.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewApiKey {
    /// Name given by the owner.
    pub name: String,
    /// Scopes of the key.
    pub scopes: Vec<KeyScope>,
    /// Lifetime in seconds. `None`: until it is revoked.
    #[serde(default, deserialize_with = "integer")]
    pub expires_in: Option<u64>,
    /// Rate limit of calls: an amount with a period.
    #[serde(default)]
    pub rate: Option<QuotaAmount>,
    /// Quota of calls.
    #[serde(default)]
    pub calls: Option<QuotaAmount>,
    /// Quota of the calls' cost.
    #[serde(default)]
    pub cost: Option<QuotaAmount>,
    /// Language model of calls that do not name one.
    #[serde(default)]
    pub model: Option<String>,
    /// Number of characters above which a result is large.
    #[serde(default, deserialize_with = "integer")]
    pub chunk_threshold: Option<u64>,
}

/// Deserializes an integer. JSON may write it with a fraction of zero, as in `60.0`.
fn integer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    let integer = number.as_u64().or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..1e15).contains(float))?;
        format!("{float:.0}").parse().ok()
    });
    integer.map(Some).ok_or_else(|| de::Error::custom(format_args!("{number} is not an integer")))
}

/// Maximum number of characters of a name.
const MAX_NAME_CHARS: usize = 100;

/// Maximum number of scopes of a key.
const MAX_SCOPES: usize = 100;

/// The reason why a key is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// The name is empty, too long or not printable.
    #[error("a key needs a name of at most 100 characters without control characters")]
    Name,
    /// There are no scopes or too many.
    #[error("a key needs between 1 and 100 scopes")]
    Scopes,
    /// The lifetime is out of range.
    #[error("a key expires after at least a second and less than a thousand years")]
    Expiry,
    /// The rate has no period or is zero.
    #[error("a rate needs a period: `10/s`")]
    Rate,
    /// The model's id or the threshold is out of range.
    #[error(
        "a model id has at most 100 characters, and the threshold of large results is between 1 and 999999999999999 characters"
    )]
    Model,
    /// The system provides no random bytes.
    #[error("the system provides no random bytes")]
    Random,
}

impl NewApiKey {
    /// Creates the key and its secret.
    ///
    /// # Errors
    /// If a field is invalid.
    pub fn create(self, now: SystemTime) -> Result<(ApiKey, KeySecret), InvalidKey> {
        let Self { name, scopes, expires_in, rate, calls, cost, model, chunk_threshold } = self;
        if !is_name(&name) {
            return Err(InvalidKey::Name);
        }
        check_scopes(&scopes)?;
        if expires_in.is_some_and(|seconds| !(1..30_000_000_000).contains(&seconds)) {
            return Err(InvalidKey::Expiry);
        }
        if rate.is_some_and(|rate| rate.per.is_none() || rate.millionths == 0) {
            return Err(InvalidKey::Rate);
        }
        let is_threshold = |threshold| (1..1_000_000_000_000_000).contains(&threshold);
        if model.as_deref().is_some_and(|model| !is_name(model))
            || chunk_threshold.is_some_and(|threshold| !is_threshold(threshold))
        {
            return Err(InvalidKey::Model);
        }
        let secret = KeySecret::new().ok_or(InvalidKey::Random)?;
        let created = millis(now);
        let expires = expires_in.map(|seconds| created + seconds * 1000);
        let (id, hash) = (secret.id.clone(), hex(&secret.digest()));
        let revoked = None;
        let key = ApiKey {
            id,
            name,
            hash,
            scopes,
            created,
            expires,
            revoked,
            rate,
            calls,
            cost,
            model,
            chunk_threshold,
        };
        Ok((key, secret))
    }
}

/// Checks the number of scopes of a key.
pub(crate) fn check_scopes(scopes: &[KeyScope]) -> Result<(), InvalidKey> {
    if (1..=MAX_SCOPES).contains(&scopes.len()) { Ok(()) } else { Err(InvalidKey::Scopes) }
}

/// True if the text is printable and of valid length.
fn is_name(text: &str) -> bool {
    let length = text.chars().count();
    let is_blank = text.bytes().all(|byte| byte == b' ');
    (1..=MAX_NAME_CHARS).contains(&length) && !text.contains(char::is_control) && !is_blank
}

impl ApiKey {
    /// True if the key is neither revoked nor expired at this time.
    #[must_use]
    pub fn is_valid(&self, now: SystemTime) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|expires| millis(now) < expires)
    }

    /// True if this is the key's secret.
    #[must_use]
    pub fn matches(&self, secret: &KeySecret) -> bool {
        // Timing reveals nothing about the secret, because hashes are compared; the constant-time comparison costs
        // nothing.
        parse_hex(&self.hash).is_some_and(|hash: [u8; DIGEST_BYTES]| hash.ct_eq(&secret.digest()).into())
    }

    /// Tools, prompts and resources that exist for the key.
    #[must_use]
    pub fn scope(&self) -> AccessScope {
        tool_scope(&self.scopes)
    }

    /// Namespaces of working memory that the key may use beside its own.
    #[must_use]
    pub fn memory_scope(&self) -> AccessScope {
        let memory_scope = |scope: &KeyScope| match scope {
            KeyScope::Memory(pattern) => Some(pattern.clone()),
            _ => None,
        };
        self.scopes.iter().filter_map(memory_scope).collect()
    }

    /// Ids of the hosted functions that the key may publish.
    #[must_use]
    pub fn publish_scope(&self) -> AccessScope {
        let publish = |scope: &KeyScope| match scope {
            KeyScope::Publish(pattern) => Some(pattern.clone()),
            _ => None,
        };
        self.scopes.iter().filter_map(publish).collect()
    }
}

/// Returns the tools, prompts and resources that exist for a key with these scopes.
pub(crate) fn tool_scope(scopes: &[KeyScope]) -> AccessScope {
    let tools = |scope: &KeyScope| match scope {
        KeyScope::Tools(pattern) => Some(pattern.clone()),
        _ => None,
    };
    scopes.iter().filter_map(tools).collect()
}

/// Milliseconds since 1970.
pub(super) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A scope of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyScope {
    /// `tools:PATTERN`: tools, and by the same pattern prompts and resources. They exist for the key, and it may call
    /// them over MCP.
    Tools(ScopePattern),
    /// `rest`: the same by REST, and the status.
    Rest,
    /// `admin`: keys, the audit trail, tests of handlers, the log filter.
    Admin,
    /// `functions`: invocation of hosted functions.
    Functions,
    /// `metrics`: the Prometheus metrics.
    Metrics,
    /// `memory:PATTERN`: namespaces of working memory beside the key's own.
    Memory(ScopePattern),
    /// `publish:PATTERN`: saving, testing, publishing and deleting of hosted functions with these ids, and their logs.
    Publish(ScopePattern),
}

/// An invalid scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a scope is `tools:PATTERN` (such as `tools:*` or `tools:github/get_*`), `rest`, `admin`, `functions`, `metrics`, \
     `memory:PATTERN` (such as `memory:session/*`) or `publish:PATTERN` (such as `publish:geo-*`)"
)]
pub struct InvalidScope;

impl FromStr for KeyScope {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        Ok(match text {
            "rest" => Self::Rest,
            "admin" => Self::Admin,
            "functions" => Self::Functions,
            "metrics" => Self::Metrics,
            _ => {
                let (kind, pattern) = text.split_once(':').ok_or(InvalidScope)?;
                let pattern = pattern.parse().map_err(|_| InvalidScope)?;
                match kind {
                    "tools" => Self::Tools(pattern),
                    "memory" => Self::Memory(pattern),
                    "publish" => Self::Publish(pattern),
                    _ => return Err(InvalidScope),
                }
            }
        })
    }
}

impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tools(pattern) => write!(f, "tools:{pattern}"),
            Self::Rest => f.write_str("rest"),
            Self::Admin => f.write_str("admin"),
            Self::Functions => f.write_str("functions"),
            Self::Metrics => f.write_str("metrics"),
            Self::Memory(pattern) => write!(f, "memory:{pattern}"),
            Self::Publish(pattern) => write!(f, "publish:{pattern}"),
        }
    }
}

/// An amount, in total or per period: `10/s`, `1000/day`, `2.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaAmount {
    /// The amount in millionths, so that costs are exact.
    pub millionths: u64,
    /// The period. `None`: in total.
    pub per: Option<QuotaPeriod>,
}

impl QuotaAmount {
    /// One unit.
    pub const ONE: CallPrice = CallPrice(1_000_000);
}

/// A period of the calendar, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaPeriod {
    /// `s`
    Second,
    /// `min`
    Minute,
    /// `h`
    Hour,
    /// `day`
    Day,
    /// `week`
    Week,
}

impl QuotaPeriod {
    const ALL: [Self; 5] = [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Week];

    /// Length of the period.
    #[must_use]
    pub const fn length(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 60 * 60,
            Self::Day => 24 * 60 * 60,
            Self::Week => 7 * 24 * 60 * 60,
        })
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
            Self::Day => "day",
            Self::Week => "week",
        }
    }
}

/// An invalid amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an amount is a number of at most 6 decimals, optionally per period: `NUMBER/s`, `/min`, `/h`, `/day` or `/week`"
)]
pub struct InvalidAmount;

impl FromStr for QuotaAmount {
    type Err = InvalidAmount;

    fn from_str(text: &str) -> Result<Self, InvalidAmount> {
        let (number, per) = match text.split_once('/') {
            None => (text, None),
            Some((number, unit)) => {
                let period = QuotaPeriod::ALL.into_iter().find(|period| period.unit() == unit);
                (number, Some(period.ok_or(InvalidAmount)?))
            }
        };
        Ok(Self {
            millionths: toolyard_core::access::CallPrice::from_str(number).map_err(|_| InvalidAmount)?.0,
            per,
        })
    }
}

impl fmt::Display for QuotaAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        CallPrice(self.millionths).fmt(f)?;
        match self.per {
            Some(period) => write!(f, "/{}", period.unit()),
            None => Ok(()),
        }
    }
}

/// Serializes and deserializes types as text.
macro_rules! as_text {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }
    )*};
}

as_text!(KeyScope, QuotaAmount);

/// The secret of a key, which only its owner has.
pub struct KeySecret {
    id: String,
    bytes: [u8; SECRET_BYTES],
}

impl KeySecret {
    /// Creates a secret with a new id. `None`: the system provides no random bytes.
    fn new() -> Option<Self> {
        let (mut id, mut bytes) = ([0; ID_BYTES], [0; SECRET_BYTES]);
        getrandom::fill(&mut id).ok()?;
        getrandom::fill(&mut bytes).ok()?;
        Some(Self { id: hex(&id), bytes })
    }

    /// Parses the text of a key, `ty_ID_SECRET`. `None`: the text is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_once('_')?;
        let (id, secret) = rest.split_once('_')?;
        let is_id = id.len() == 2 * ID_BYTES && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bytes = parse_hex(secret)?;
        (prefix == PREFIX && is_id).then(|| Self { id: id.to_ascii_lowercase(), bytes })
    }

    /// True if the text has the prefix of a key.
    #[must_use]
    pub fn looks_like_key(text: &str) -> bool {
        text.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with('_'))
    }

    /// Id of the key.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the text of the key for its owner. It cannot be recovered later.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{PREFIX}_{}_{}", self.id, hex(&self.bytes))
    }

    /// A fast hash suffices, because a secret with 256 random bits cannot be guessed.
    fn digest(&self) -> [u8; DIGEST_BYTES] {
        Sha256::digest(self.bytes).into()
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySecret").field("id", &self.id).finish_non_exhaustive()
    }
}

fn parse_hex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = [0; BYTES];
    let pairs = text.as_bytes().chunks(2);
    if text.len() != 2 * BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
