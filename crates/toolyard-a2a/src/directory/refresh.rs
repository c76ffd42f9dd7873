//! Reads the cards of the manifest and the file again and again.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::join_all;
use http::Uri;
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use toolyard_core::file;
use toolyard_manifest::{AgentCardSource, AgentSettings, CardKeys};

use super::AgentDirectory;
use crate::client::endpoint::{AgentHeaders, card_url, source_id};
use crate::client::error::AgentError;
use crate::client::{AgentClient, ClientLimits};
use crate::signature::keys::CardKey;
use crate::signature::{self, SignatureError};
use crate::wire::card::AgentCard;

/// Maximum time until a card that could not be read is requested again.
const RETRY: Duration = Duration::from_secs(30);

/// Maximum size of the file in bytes.
const MAX_FILE_BYTES: usize = 4 << 20;

/// Keeps the agents of these settings up to date until it is dropped.
pub async fn follow(directory: &AgentDirectory, client: &AgentClient, settings: &AgentSettings) {
    if let Err(error) = directory.load(settings).await {
        tracing::warn!(error = &error as &dyn std::error::Error, "cannot read the known agents of the store");
    }
    let cards = settings.cards.iter().map(|source| follow_card(directory, client, settings, source));
    tokio::join!(join_all(cards), follow_file(directory, settings));
}

async fn follow_card(
    directory: &AgentDirectory,
    client: &AgentClient,
    settings: &AgentSettings,
    source: &AgentCardSource,
) {
    let (url, id) = (card_url(source), source_id(source));
    let host = url.host().unwrap_or_default();
    let limits = limits(settings);
    let mut last_problem = None;
    loop {
        let problem = match read_card(client, source, &url, limits).await {
            Ok(card) => directory.seen(card, &id, settings).await.err().map(|error| error.to_string()),
            Err(UnreadCard { error, name }) => {
                let reason = error.to_string();
                // Without keys nothing is known about the card, as without an answer.
                let wrong = matches!(
                    error,
                    AgentError::Signature(SignatureError::Missing | SignatureError::Invalid(_))
                );
                if wrong {
                    directory.distrusted(name, &reason, &id, settings).await;
                }
                Some(reason)
            }
        };
        // Once, instead of at each attempt.
        if let Some(problem) = problem.as_ref().filter(|problem| last_problem.as_ref() != Some(*problem)) {
            tracing::warn!(host, error = problem, "cannot use an agent card");
        }
        let pause = if problem.is_some() { settings.refresh.min(RETRY) } else { settings.refresh };
        last_problem = problem;
        sleep(pause).await;
    }
}

/// A card that is not used, and the name in it, if it is one.
struct UnreadCard {
    error: AgentError,
    name: Option<String>,
}

impl<E: Into<AgentError>> From<E> for UnreadCard {
    fn from(error: E) -> Self {
        Self { error: error.into(), name: None }
    }
}

/// Reads a card, and checks its signature if the manifest has keys for it.
async fn read_card(
    client: &AgentClient,
    source: &AgentCardSource,
    url: &Uri,
    limits: ClientLimits,
) -> Result<AgentCard, UnreadCard> {
    let text = client.document(url, &AgentHeaders::new(&source.headers), limits).await?;
    let card = AgentCard::parse(&text)?;
    let Some(keys) = &source.signature else { return Ok(card) };
    let verified = async {
        let keys = card_keys(client, keys, limits).await?;
        let value = serde_json::from_slice(&text).unwrap_or_default();
        signature::verified(&value, &keys)
    };
    let verified = verified.await;
    let verified = verified.map_err(|error| UnreadCard { error: error.into(), name: Some(card.name) })?;
    Ok(AgentCard::of_value(verified)?)
}

/// Returns the keys of a card: those of the manifest, and those at its URL.
async fn card_keys(
    client: &AgentClient,
    settings: &CardKeys,
    limits: ClientLimits,
) -> Result<Vec<CardKey>, SignatureError> {
    let mut keys: Vec<_> = settings.keys.iter().filter_map(CardKey::parse).collect();
    if let Some(url) = &settings.url {
        let no_keys = |reason: String| SignatureError::NoKeys(reason);
        let set = client.document(url.uri(), &AgentHeaders::default(), limits).await;
        let set = set.map_err(|error| no_keys(format!("`signature.url` cannot be read: {error}")))?;
        let set = CardKey::of_set(&set);
        keys.extend(set.ok_or_else(|| no_keys("`signature.url` has no JSON Web Key Set".to_owned()))?);
    }
    match keys.is_empty() {
        true => Err(SignatureError::NoKeys("`signature` of the manifest has none that is usable".to_owned())),
        false => Ok(keys),
    }
}

/// Returns the limits of requests.
#[must_use]
pub const fn limits(settings: &AgentSettings) -> ClientLimits {
    /// A response may repeat its result, and has the messages of its task besides.
    const RESPONSE_FACTOR: usize = 4;
    ClientLimits {
        timeout: settings.timeout,
        card_bytes: settings.card_bytes,
        response_bytes: settings.result_bytes.saturating_mul(RESPONSE_FACTOR),
    }
}

async fn follow_file(directory: &AgentDirectory, settings: &AgentSettings) {
    let Some(path) = &settings.file else {
        directory.set_filed(Vec::new(), settings.agents);
        return;
    };
    let mut last = None;
    loop {
        let text = read_file(path.clone()).await;
        if last.as_ref() != Some(&text) {
            let shown = path.display();
            match text.as_ref().map(|text| parsed(text)) {
                Ok(Ok(cards)) => directory.set_filed(cards, settings.agents),
                // It may be half written, and is read again when it changes.
                Ok(Err(error)) => tracing::warn!(file = %shown, error, "cannot use the file of agents"),
                Err(io::ErrorKind::NotFound) => directory.set_filed(Vec::new(), settings.agents),
                Err(kind) => tracing::warn!(file = %shown, error = %kind, "cannot read the file of agents"),
            }
            last = Some(text);
        }
        sleep(settings.check).await;
    }
}

async fn read_file(path: PathBuf) -> Result<Vec<u8>, io::ErrorKind> {
    let read = move || file::read(&path, MAX_FILE_BYTES);
    let text = spawn_blocking(read).await.unwrap_or_else(|error| Err(io::Error::other(error)));
    text.map_err(|error| error.kind())
}

/// Returns the cards of the file: a list, or an object whose only member is one.
fn parsed(text: &[u8]) -> Result<Vec<AgentCard>, String> {
    let value: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let cards = match value {
        Value::Array(cards) => cards,
        Value::Object(object) if object.len() == 1 => {
            let only = object.into_iter().next();
            only.and_then(|(_, value)| value.as_array().cloned()).ok_or("expected a list of agent cards")?
        }
        _ => return Err("expected a list of agent cards".to_owned()),
    };
    let numbered = cards.into_iter().enumerate();
    let card = |(at, card)| AgentCard::of_value(card).map_err(|error| format!("item {at}: {error}"));
    numbered.map(card).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_of_agents() {
        let check = |text: &str, expected: &str| {
            let names = match parsed(text.as_bytes()) {
                Ok(cards) => cards.into_iter().map(|card| card.name).collect::<Vec<_>>().join(", "),
                Err(error) => error,
            };
            assert_eq!(names, expected);
        };
        check("[]", "");
        check(r#"[{"agentName": "A", "skills": [{"id": "x"}]}, {"name": "B"}]"#, "A, B");
        check(r#"{"agents": [{"name": "B"}]}"#, "B");
        check(r#"{"a": [], "b": []}"#, "expected a list of agent cards");
        check(r#"{"a": 1}"#, "expected a list of agent cards");
        check("1", "expected a list of agent cards");
        check(
            r#"[{"name": "A"}, {}]"#,
            "item 1: the agent card is not valid JSON of a card: missing field `name`",
        );
        check("[", "EOF while parsing a list at line 1 column 1");
    }
}
