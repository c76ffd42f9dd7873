//! The known agents: those whose card was read from a URL, those of a file, and those that announce themselves on the
//! message bus.
//!
//! Cards from URLs and announcements are kept in the store until they expire, so that a restart forgets no agent.

pub mod age;
mod announced;
pub mod refresh;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use toolyard_core::store::{KeySpace, KeyValueStore, PutRequest, StoreError, StoreErrorKind};
use toolyard_manifest::AgentSettings;

use crate::client::endpoint::source_id;
use crate::wire::card::AgentCard;

/// Space of the cards, by the names of their agents in lower case.
const AGENTS: KeySpace = KeySpace("known-agents");

/// Number of cards that are read from the store at a time.
const PAGE: usize = 100;

/// The current time, which tests replace.
pub type AgentClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// The known agents of a gateway. Clones share them.
#[derive(Clone)]
pub struct AgentDirectory(Arc<DirectoryState>);

struct DirectoryState {
    store: Arc<dyn KeyValueStore>,
    clock: AgentClock,
    agents: Mutex<BTreeMap<String, DirectoryEntry>>,
}

/// The sources that know an agent.
#[derive(Debug, Clone, Default)]
struct DirectoryEntry {
    read: Option<ReadCard>,
    filed: Option<Arc<AgentCard>>,
    announced: Option<ReadCard>,
}

/// A card that was read from a URL, or announced, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadCard {
    card: Arc<AgentCard>,
    /// Id of its source in the manifest; empty for an announcement.
    source: String,
    /// Milliseconds since 1970.
    last_seen: u64,
    /// Milliseconds since 1970.
    expires: u64,
    /// Reason why the agent cannot be invoked.
    #[serde(skip)]
    problem: Option<Arc<str>>,
}

/// A known agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAgent {
    /// Its card.
    pub card: Arc<AgentCard>,
    /// Source of the card, which decides about the way to the agent.
    pub source: AgentSource,
    /// True if the file has the agent.
    pub is_well_known: bool,
    /// Time at which the card was last read from its URL, or announced.
    pub last_seen: Option<SystemTime>,
    /// Reason why the agent is not available, such as a card with a wrong signature.
    pub problem: Option<Arc<str>>,
}

/// The source of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentSource {
    /// A URL of the manifest, by the id of its entry.
    Card(String),
    /// The file, with an address.
    File,
    /// An announcement on the message bus, or the file without an address.
    Bus,
}

/// An agent that is not added to the directory.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Another source has an agent of the same name.
    #[error("another agent card has the name {0:?}: give the agents different names")]
    NameTaken(String),
    /// There are too many agents.
    #[error("there are {0} known agents, and there may be no more: raise `builtins.agents.agents`")]
    Full(usize),
    /// The store failed.
    #[error("the agent is not stored, and is forgotten at a restart: {0}")]
    Store(#[from] StoreError),
}

impl AgentDirectory {
    /// Returns a directory without agents.
    #[must_use]
    pub fn new(store: Arc<dyn KeyValueStore>, clock: AgentClock) -> Self {
        Self(Arc::new(DirectoryState { store, clock, agents: Mutex::default() }))
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        (self.0.clock)()
    }

    /// Returns the known agents, in the order of their names.
    #[must_use]
    pub fn all(&self) -> Vec<KnownAgent> {
        let now = millis(self.now());
        self.agents().values().filter_map(|entry| entry.known(now)).collect()
    }

    /// Returns the agent of a name, without regard to case.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<KnownAgent> {
        let now = millis(self.now());
        self.agents().get(&folded(name)).and_then(|entry| entry.known(now))
    }

    /// Reads the agents that the store knows of the cards of the settings. Agents of other sources are forgotten.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn load(&self, settings: &AgentSettings) -> Result<(), StoreError> {
        let sources: Vec<_> = settings.cards.iter().map(source_id).collect();
        let is_source = |id: &str| sources.iter().any(|source| source == id);
        let stored = self.stored(AGENTS, settings.agents, |read| is_source(&read.source)).await?;
        let mut agents = self.agents();
        for entry in agents.values_mut() {
            entry.read = entry.read.take().filter(|read| is_source(&read.source));
        }
        for (name, read) in stored {
            agents.entry(name).or_default().read.get_or_insert(read);
        }
        agents.retain(|_, entry| entry.has_source());
        Ok(())
    }

    /// Adds the agent of a card that was read from the URL of a source, or renews it.
    ///
    /// # Errors
    /// If the agent is not added, or not stored.
    pub async fn seen(
        &self,
        card: AgentCard,
        source: &str,
        settings: &AgentSettings,
    ) -> Result<(), DirectoryError> {
        let (name, now) = (folded(&card.name), self.now());
        let expires = now + settings.ttl;
        let read = ReadCard {
            card: Arc::new(card),
            source: source.to_owned(),
            last_seen: millis(now),
            expires: millis(expires),
            problem: None,
        };
        {
            let mut agents = self.agents();
            let is_other = |known: &ReadCard| known.source != source && known.expires > millis(now);
            if agents.get(&name).and_then(|entry| entry.read.as_ref()).is_some_and(is_other) {
                return Err(DirectoryError::NameTaken(read.card.name.clone()));
            }
            // An agent that has changed its name.
            for (other, entry) in agents.iter_mut() {
                entry.read = entry.read.take().filter(|read| read.source != source || *other == name);
            }
            agents.retain(|_, entry| entry.known(millis(now)).is_some());
            if !agents.contains_key(&name) && agents.len() >= settings.agents {
                return Err(DirectoryError::Full(settings.agents));
            }
            agents.entry(name.clone()).or_default().read = Some(read.clone());
        }
        self.store(AGENTS, &name, &read).await?;
        Ok(())
    }

    /// Marks the agent of a source as not available for this reason. Nothing that a card without a valid signature says is
    /// used, except for the name of an agent that is not known yet.
    pub(crate) async fn distrusted(
        &self,
        name: Option<String>,
        reason: &str,
        source: &str,
        settings: &AgentSettings,
    ) {
        let now = self.now();
        let of_source = {
            let mut agents = self.agents();
            agents.retain(|_, entry| entry.known(millis(now)).is_some());
            let known = agents.iter().find(|(_, entry)| entry.is_of(source));
            let name = match known.and_then(|(_, entry)| entry.read.as_ref()) {
                Some(read) => read.card.name.clone(),
                None => name.unwrap_or_default(),
            };
            let folded = folded(&name);
            let is_free = agents
                .get(&folded)
                .map_or(agents.len() < settings.agents, |entry| entry.is_of(source) || entry.read.is_none());
            if name.is_empty() || !is_free {
                return;
            }
            let read = ReadCard {
                card: Arc::new(AgentCard { name, ..AgentCard::default() }),
                source: source.to_owned(),
                last_seen: millis(now),
                expires: millis(now + settings.ttl),
                problem: Some(reason.into()),
            };
            agents.entry(folded.clone()).or_default().read = Some(read);
            folded
        };
        // A restart must not bring it back.
        if let Err(error) = self.0.store.delete(AGENTS, &of_source).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot forget an agent card");
        }
    }

    /// Replaces the agents of the file by these cards, at most `limit`. Of two with the same name the first counts.
    pub fn set_filed(&self, cards: Vec<AgentCard>, limit: usize) {
        if cards.len() > limit {
            let left_out: Vec<_> = cards[limit..].iter().map(|card| &*card.name).collect();
            tracing::warn!(limit, ?left_out, "the file has more agents than `builtins.agents.agents`");
        }
        let mut agents = self.agents();
        agents.values_mut().for_each(|entry| entry.filed = None);
        for card in cards.into_iter().take(limit) {
            agents.entry(folded(&card.name)).or_default().filed.get_or_insert(Arc::new(card));
        }
        agents.retain(|_, entry| entry.has_source());
    }

    /// Returns at most `limit` cards of the store that have not expired, by the names of their agents.
    async fn stored(
        &self,
        space: KeySpace,
        limit: usize,
        is_wanted: impl Fn(&ReadCard) -> bool,
    ) -> Result<Vec<(String, ReadCard)>, StoreError> {
        let (now, mut stored, mut after) = (millis(self.now()), Vec::new(), None::<String>);
        loop {
            let page = self.0.store.list(space, "", after.as_deref(), PAGE).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|(name, _)| name.clone());
            let cards = page.into_iter().filter_map(|(name, value)| {
                Some((name, serde_json::from_slice::<ReadCard>(&value.bytes).ok()?))
            });
            stored.extend(cards.filter(|(_, read)| is_wanted(read) && read.expires > now));
            if is_last || stored.len() >= limit {
                break;
            }
        }
        stored.truncate(limit);
        Ok(stored)
    }

    /// Puts a card into the store until it expires.
    async fn store(&self, space: KeySpace, name: &str, card: &ReadCard) -> Result<(), StoreError> {
        let bytes =
            serde_json::to_vec(card).map_err(|error| StoreError::new(StoreErrorKind::Unreadable, error))?;
        let expires = UNIX_EPOCH + Duration::from_millis(card.expires);
        let put = PutRequest { expires: Some(expires), ..PutRequest::always(bytes) };
        self.0.store.put(space, name, put).await?;
        Ok(())
    }

    fn agents(&self) -> MutexGuard<'_, BTreeMap<String, DirectoryEntry>> {
        self.0.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DirectoryEntry {
    /// Returns the agent; `None` if it has expired. What the operator has configured takes precedence over an announcement,
    /// which every sender on the bus can make; but an agent of the file without an address is that of the bus.
    fn known(&self, now: u64) -> Option<KnownAgent> {
        let [read, announced] =
            [&self.read, &self.announced].map(|card| card.as_ref().filter(|card| card.expires > now));
        // A card without a valid signature may have any name: it must not disable an agent of the operator's file.
        let read = read.filter(|read| read.problem.is_none() || self.filed.is_none());
        let (card, source) = match (read, &self.filed, announced) {
            (Some(read), ..) => (&read.card, AgentSource::Card(read.source.clone())),
            (None, Some(filed), _) if filed.json_rpc().is_some() => (filed, AgentSource::File),
            (None, _, Some(announced)) => (&announced.card, AgentSource::Bus),
            (None, filed, None) => (filed.as_ref()?, AgentSource::Bus),
        };
        let last_seen = read.into_iter().chain(announced).map(|card| card.last_seen).max();
        Some(KnownAgent {
            card: card.clone(),
            source,
            is_well_known: self.filed.is_some(),
            last_seen: last_seen.map(|seen| UNIX_EPOCH + Duration::from_millis(seen)),
            problem: read.and_then(|read| read.problem.clone()),
        })
    }

    fn is_of(&self, source: &str) -> bool {
        self.read.as_ref().is_some_and(|read| read.source == source)
    }

    const fn has_source(&self) -> bool {
        self.read.is_some() || self.filed.is_some() || self.announced.is_some()
    }
}

/// Returns a name as it is compared.
pub(crate) fn folded(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Returns milliseconds since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
