//! The agents that announce themselves on the message bus.

use std::sync::Arc;

use toolyard_core::store::{KeySpace, StoreError};
use toolyard_manifest::AgentSettings;

use super::{AgentDirectory, DirectoryError, ReadCard, folded, millis};
use crate::wire::card::AgentCard;

/// Space of the announced cards, by the names of their agents in lower case.
const ANNOUNCED: KeySpace = KeySpace("announced-agents");

impl AgentDirectory {
    /// Reads the agents that the store knows of announcements.
    ///
    /// # Errors
    /// If the store fails.
    pub(crate) async fn load_announced(&self, settings: &AgentSettings) -> Result<(), StoreError> {
        let stored = self.stored(ANNOUNCED, settings.agents, |_| true).await?;
        let mut agents = self.agents();
        for (name, card) in stored {
            if agents.contains_key(&name) || agents.len() < settings.agents {
                agents.entry(name).or_default().announced.get_or_insert(card);
            }
        }
        Ok(())
    }

    /// Forgets all announcements.
    pub(crate) fn forget_announced(&self) {
        let mut agents = self.agents();
        agents.values_mut().for_each(|entry| entry.announced = None);
        agents.retain(|_, entry| entry.has_source());
    }

    /// Adds the agent of an announcement, or renews it.
    ///
    /// # Errors
    /// If the agent is not added, or not stored.
    pub(crate) async fn announced(
        &self,
        card: AgentCard,
        settings: &AgentSettings,
    ) -> Result<(), DirectoryError> {
        let (name, now) = (folded(&card.name), self.now());
        let announced = ReadCard {
            card: Arc::new(card),
            source: String::new(),
            last_seen: millis(now),
            expires: millis(now + settings.ttl),
            problem: None,
        };
        {
            let mut agents = self.agents();
            agents.retain(|_, entry| entry.known(millis(now)).is_some());
            if !agents.contains_key(&name) && agents.len() >= settings.agents {
                return Err(DirectoryError::Full(settings.agents));
            }
            agents.entry(name.clone()).or_default().announced = Some(announced.clone());
        }
        Ok(self.store(ANNOUNCED, &name, &announced).await?)
    }

    /// Forgets the announcement of an agent that stops. One that is known otherwise stays known.
    ///
    /// # Errors
    /// If it stays in the store.
    pub(crate) async fn left(&self, name: &str) -> Result<(), DirectoryError> {
        let name = folded(name);
        {
            let mut agents = self.agents();
            if let Some(entry) = agents.get_mut(&name) {
                entry.announced = None;
            }
            agents.retain(|_, entry| entry.has_source());
        }
        self.0.store.delete(ANNOUNCED, &name).await?;
        Ok(())
    }
}
