//! A key as it is written down, and its secret, which is not.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use toolyard_core::access::{Pattern, Price, Scope};

/// What every key begins with, so that scanners of repositories find one that got lost.
const MARK: &str = "ty";

/// Bytes of a secret.
const SECRET_BYTES: usize = 32;

/// Bytes of what is kept of it: SHA-256.
const DIGEST_BYTES: usize = 32;

/// Bytes of an id.
const ID_BYTES: usize = 6;

/// A key as it is kept: everything but the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Key {
    /// What it is called by, also in its own text: 12 hexadecimal digits.
    pub id: String,
    /// What its owner calls it. Not unique.
    pub name: String,
    /// SHA-256 of the secret, in hexadecimal digits.
    pub hash: String,
    /// What it opens.
    pub scopes: Vec<KeyScope>,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// From when on it opens nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<u64>,
    /// How often it may call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Amount>,
    /// How many calls it may make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Amount>,
    /// What its calls may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Amount>,
    /// The language model that its calls are made for, where they do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// From how many characters on results are large for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_threshold: Option<u64>,
}

/// What somebody wants of a key that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewKey {
    /// What its owner calls it.
    pub name: String,
    /// What it opens.
    pub scopes: Vec<KeyScope>,
    /// For how long, in seconds. `None`: until it is revoked.
    #[serde(default, deserialize_with = "whole")]
    pub expires_in: Option<u64>,
    /// How often it may call: an amount with a period.
    #[serde(default)]
    pub rate: Option<Amount>,
    /// How many calls it may make.
    #[serde(default)]
    pub calls: Option<Amount>,
    /// What its calls may cost.
    #[serde(default)]
    pub cost: Option<Amount>,
    /// The language model that its calls are made for, where they do not say.
    #[serde(default)]
    pub model: Option<String>,
    /// From how many characters on results are large for it.
    #[serde(default, deserialize_with = "whole")]
    pub chunk_threshold: Option<u64>,
}

/// A whole number, which JSON may write as `60.0`, too.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    let whole = number.as_u64().or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..1e15).contains(float))?;
        format!("{float:.0}").parse().ok()
    });
    whole.map(Some).ok_or_else(|| de::Error::custom(format_args!("{number} is no whole number")))
}

/// The longest name, in characters.
const LONGEST_NAME: usize = 100;

/// The most scopes of a key.
const MOST_SCOPES: usize = 100;

/// Why a key is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// It has none, or one that is too long or not printable.
    #[error("a key has a name, of at most 100 characters and without control characters")]
    Name,
    /// It would open nothing, or its list is too long.
    #[error("a key has between 1 and 100 scopes")]
    Scopes,
    /// It would be over before it begins.
    #[error("a key lasts for a second at least, and for less than a thousand years")]
    Expiry,
    /// A rate without a period is a quota.
    #[error("a rate is for a period: `10/s`")]
    Rate,
    /// Nobody has a model of that id, or every result would be large.
    #[error(
        "a model has an id of at most 100 characters, and a result is large from 1 to 999999999999999 characters on"
    )]
    Model,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    Random,
}

impl NewKey {
    /// Makes the key, and its secret.
    ///
    /// # Errors
    /// When it would be of no use.
    pub fn make(self, now: SystemTime) -> Result<(Key, Secret), BadKey> {
        let Self { name, scopes, expires_in, rate, calls, cost, model, chunk_threshold } = self;
        if !is_name(&name) {
            return Err(BadKey::Name);
        }
        if !(1..=MOST_SCOPES).contains(&scopes.len()) {
            return Err(BadKey::Scopes);
        }
        if expires_in.is_some_and(|seconds| !(1..30_000_000_000).contains(&seconds)) {
            return Err(BadKey::Expiry);
        }
        if rate.is_some_and(|rate| rate.per.is_none() || rate.millionths == 0) {
            return Err(BadKey::Rate);
        }
        let is_threshold = |threshold| (1..1_000_000_000_000_000).contains(&threshold);
        if model.as_deref().is_some_and(|model| !is_name(model))
            || chunk_threshold.is_some_and(|threshold| !is_threshold(threshold))
        {
            return Err(BadKey::Model);
        }
        let secret = Secret::new().ok_or(BadKey::Random)?;
        let created = millis(now);
        let expires = expires_in.map(|seconds| created + seconds * 1000);
        let (id, hash) = (secret.id.clone(), hex(&secret.digest()));
        let revoked = None;
        let key = Key {
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

/// Whether people can read it as a name.
fn is_name(text: &str) -> bool {
    let length = text.chars().count();
    let is_blank = text.bytes().all(|byte| byte == b' ');
    (1..=LONGEST_NAME).contains(&length) && !text.contains(char::is_control) && !is_blank
}

impl Key {
    /// Whether it opens anything at this time.
    #[must_use]
    pub fn is_valid(&self, now: SystemTime) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|expires| millis(now) < expires)
    }

    /// Whether this is its secret.
    #[must_use]
    pub fn is_opened_by(&self, secret: &Secret) -> bool {
        // Who can measure how far two hashes agree learns nothing of the secret; this costs nothing either.
        unhex(&self.hash).is_some_and(|hash: [u8; DIGEST_BYTES]| hash.ct_eq(&secret.digest()).into())
    }

    /// What exists for who has it.
    #[must_use]
    pub fn scope(&self) -> Scope {
        let tools = |scope: &KeyScope| match scope {
            KeyScope::Tools(pattern) => Some(pattern.clone()),
            _ => None,
        };
        self.scopes.iter().filter_map(tools).collect()
    }

    /// The namespaces of working memory that who has it reaches beside its own.
    #[must_use]
    pub fn memory(&self) -> Scope {
        let memory = |scope: &KeyScope| match scope {
            KeyScope::Memory(pattern) => Some(pattern.clone()),
            _ => None,
        };
        self.scopes.iter().filter_map(memory).collect()
    }
}

/// Milliseconds since 1970.
pub(super) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Something that a key opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyScope {
    /// `tools:PATTERN`: tools, and by the same pattern prompts and resources; they exist for the key, and it may call
    /// them over MCP.
    Tools(Pattern),
    /// `rest`: to do the same by REST, and to see the status.
    Rest,
    /// `admin`: keys, the audit trail, tests of handlers, the level of the log.
    Admin,
    /// `functions`: to invoke hosted functions.
    Functions,
    /// `metrics`: what Prometheus reads.
    Metrics,
    /// `memory:PATTERN`: namespaces of working memory beside its own.
    Memory(Pattern),
}

/// The text is no scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a scope is `tools:PATTERN` (such as `tools:*` or `tools:github/get_*`), `rest`, `admin`, `functions`, `metrics` or \
     `memory:PATTERN` (such as `memory:session/*`)"
)]
pub struct BadScope;

impl FromStr for KeyScope {
    type Err = BadScope;

    fn from_str(text: &str) -> Result<Self, BadScope> {
        Ok(match text {
            "rest" => Self::Rest,
            "admin" => Self::Admin,
            "functions" => Self::Functions,
            "metrics" => Self::Metrics,
            _ => {
                let (kind, pattern) = text.split_once(':').ok_or(BadScope)?;
                let pattern = pattern.parse().map_err(|_| BadScope)?;
                match kind {
                    "tools" => Self::Tools(pattern),
                    "memory" => Self::Memory(pattern),
                    _ => return Err(BadScope),
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
        }
    }
}

/// So much, in all or in a period: `10/s`, `1000/day`, `2.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// In millionths, so that costs are exact.
    pub millionths: u64,
    /// In which time. `None`: ever.
    pub per: Option<Period>,
}

impl Amount {
    /// One of whatever is counted.
    pub const ONE: Price = Price(1_000_000);
}

/// A period of the calendar, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
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

impl Period {
    const ALL: [Self; 5] = [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Week];

    /// How long it is.
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

/// The text is no amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an amount is a number of at most 6 decimals, and with a period `NUMBER/s`, `/min`, `/h`, `/day` or `/week`"
)]
pub struct BadAmount;

impl FromStr for Amount {
    type Err = BadAmount;

    fn from_str(text: &str) -> Result<Self, BadAmount> {
        let (number, per) = match text.split_once('/') {
            None => (text, None),
            Some((number, unit)) => {
                let period = Period::ALL.into_iter().find(|period| period.unit() == unit);
                (number, Some(period.ok_or(BadAmount)?))
            }
        };
        Ok(Self { millionths: toolyard_core::access::Price::from_str(number).map_err(|_| BadAmount)?.0, per })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Price(self.millionths).fmt(f)?;
        match self.per {
            Some(period) => write!(f, "/{}", period.unit()),
            None => Ok(()),
        }
    }
}

/// Written and read as text in JSON.
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

as_text!(KeyScope, Amount);

/// What opens: the text of a key, which only its owner has.
pub struct Secret {
    id: String,
    bytes: [u8; SECRET_BYTES],
}

impl Secret {
    /// A new one, of an id that is new as well; `None` where the system gives no random bytes.
    fn new() -> Option<Self> {
        let (mut id, mut bytes) = ([0; ID_BYTES], [0; SECRET_BYTES]);
        getrandom::fill(&mut id).ok()?;
        getrandom::fill(&mut bytes).ok()?;
        Some(Self { id: hex(&id), bytes })
    }

    /// Reads the text of a key, `ty_ID_SECRET`; `None` where it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (mark, rest) = text.split_once('_')?;
        let (id, secret) = rest.split_once('_')?;
        let is_id = id.len() == 2 * ID_BYTES && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bytes = unhex(secret)?;
        (mark == MARK && is_id).then(|| Self { id: id.to_ascii_lowercase(), bytes })
    }

    /// Whether a text is, or was to be, the text of a key.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.strip_prefix(MARK).is_some_and(|rest| rest.starts_with('_'))
    }

    /// The id of its key.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The text of the key, for its owner. It is not to be had again.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{MARK}_{}_{}", self.id, hex(&self.bytes))
    }

    /// The secret has 256 random bits: nobody guesses it, so that a hash that is slow to compute would only be slow.
    fn digest(&self) -> [u8; DIGEST_BYTES] {
        Sha256::digest(self.bytes).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digit = |number: u8| char::from(DIGITS[usize::from(number)]);
    let mut text = String::with_capacity(2 * bytes.len());
    bytes.iter().for_each(|byte| text.extend([digit(byte >> 4), digit(byte & 15)]));
    text
}

fn unhex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
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
