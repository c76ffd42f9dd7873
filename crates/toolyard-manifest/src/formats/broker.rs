//! URLs of message brokers, and names on a bus.

use std::{fmt, str::FromStr};

use http::{Uri, uri::Authority};

use super::FormatError;
use crate::handler::SecretString;

/// The URL of a message broker, or for NATS those of several servers of a cluster with commas between them. It may
/// contain a password.
///
/// `Debug` and `Display` show schemes and hosts only.
#[derive(Clone, PartialEq, Eq)]
pub struct BrokerUrl {
    kind: BrokerKind,
    text: SecretString,
}

/// The kind of a message broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerKind {
    /// RabbitMQ, by AMQP 0-9-1.
    RabbitMq,
    /// NATS with JetStream.
    Nats,
}

const INVALID: FormatError = FormatError::new(
    "the URL of a message broker",
    "a URL such as amqp://broker.example.com:5672 (RabbitMQ) or nats://broker.example.com:4222 (NATS)",
);

impl BrokerUrl {
    /// Parses a URL: `amqp` or `amqps` for RabbitMQ, `nats` or `tls` for NATS.
    ///
    /// # Errors
    /// If the scheme is another one, or if the host is missing.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let mut kinds = text.split(',').map(|url| kind_of(url.trim()));
        let kind = kinds.next().unwrap_or(Err(INVALID))?;
        for other in kinds {
            if kind == BrokerKind::RabbitMq || other? != kind {
                return Err(INVALID.hint("only NATS has several servers in one URL"));
            }
        }
        Ok(Self { kind, text: SecretString::new(text) })
    }

    /// Returns the kind of the broker.
    #[must_use]
    pub const fn kind(&self) -> BrokerKind {
        self.kind
    }

    /// Returns the URL with its password.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.text.expose()
    }
}

fn kind_of(url: &str) -> Result<BrokerKind, FormatError> {
    let Some((scheme, _)) = url.split_once("://") else {
        return Err(INVALID.hint("the scheme is missing: put `amqp://` or `nats://` in front"));
    };
    let kind = match scheme {
        "amqp" | "amqps" => BrokerKind::RabbitMq,
        "nats" | "tls" => BrokerKind::Nats,
        _ => return Err(INVALID.hint("the scheme is one of amqp, amqps, nats, tls")),
    };
    let uri: Uri = url.parse().map_err(|_| INVALID)?;
    let has_host = uri.authority().is_some_and(|authority| !authority.host().is_empty());
    if has_host { Ok(kind) } else { Err(INVALID) }
}

impl FromStr for BrokerUrl {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        Self::parse(text)
    }
}

impl fmt::Display for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, url) in self.expose().split(',').enumerate() {
            let uri: Uri = url.trim().parse().unwrap_or_default();
            let address = |authority: &Authority| {
                let authority = authority.as_str();
                authority.rsplit_once('@').map_or(authority, |(_, host)| host).to_owned()
            };
            let separator = if number > 0 { "," } else { "" };
            let host = uri.authority().map(address).unwrap_or_default();
            write!(f, "{separator}{}://{host}", uri.scheme_str().unwrap_or_default())?;
        }
        Ok(())
    }
}

impl fmt::Debug for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BrokerUrl({self})")
    }
}

/// A name that is part of names of exchanges, queues and streams.
pub(crate) fn bus_name(text: &str) -> Result<String, FormatError> {
    let invalid = FormatError::new(
        "a name on a message bus",
        "at most 64 letters, digits, `-` and `_`, such as rockbot",
    );
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let valid = (1..=64).contains(&text.len()) && text.bytes().all(inner);
    if valid { Ok(text.to_owned()) } else { Err(invalid) }
}

/// A topic on a bus.
pub(crate) fn bus_topic(text: &str) -> Result<String, FormatError> {
    let invalid = FormatError::new(
        "a topic",
        "segments of printable ASCII characters with dots between them, such as agent.task.planner",
    );
    let is_inner = |byte: u8| byte.is_ascii_graphic() && !b"*#>.".contains(&byte);
    // Subjects of NATS that begin with `$` administer the server.
    let is_segment =
        |segment: &str| !segment.is_empty() && !segment.starts_with('$') && segment.bytes().all(is_inner);
    let valid = text.len() <= 255 && text.split('.').all(is_segment);
    if valid { Ok(text.to_owned()) } else { Err(invalid) }
}

/// The type of a message on a bus.
pub(crate) fn message_type(text: &str) -> Result<String, FormatError> {
    let invalid = FormatError::new(
        "the type of a message",
        "at most 255 printable ASCII characters without blanks, such as Toolyard.ScheduledTask",
    );
    let valid = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if valid { Ok(text.to_owned()) } else { Err(invalid) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_brokers_and_their_display() {
        let check = |text: &str, expected: &str| {
            let url = BrokerUrl::parse(text);
            let shown = url.map_or_else(|invalid| invalid.to_string(), |url| format!("{:?} {url}", url.kind));
            assert_eq!(shown, expected, "{text}");
        };
        check("amqp://guest:hunter2@a:5672/%2f", "RabbitMq amqp://a:5672");
        check("amqps://a", "RabbitMq amqps://a");
        check("nats://token@a:4222", "Nats nats://a:4222");
        check("nats://u:hunter2@a:1, tls://b", "Nats nats://a:1,tls://b");
        let invalid = INVALID.to_string();
        for text in
            ["", "a:5672", "http://a", "amqp://", "amqp://a,amqp://b", "nats://a,amqp://b", "nats://a,"]
        {
            check(text, &invalid);
        }
    }
}
