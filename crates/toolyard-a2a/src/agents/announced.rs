//! The agents that announce themselves on the message bus.

use futures_util::StreamExt;
use toolyard_manifest::AgentSettings;

use super::Agents;
use crate::bus::AgentAnnouncement;
use crate::directory::DirectoryError;

impl Agents {
    /// Notes announcements until it is dropped. Without a bus no agent is known by an announcement.
    pub(super) async fn follow_bus(&self, settings: &AgentSettings) {
        let directory = &self.0.directory;
        let Some(bus) = self.0.bus.get().filter(|_| settings.bus) else {
            return directory.forget_announced();
        };
        if let Err(error) = directory.load_announced(settings).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "cannot read the agents of the bus from the store");
        }
        let mut announcements = bus.announcements();
        // Announcements are repeated: a full directory is logged once, and a failing store until it works again.
        let (mut is_full, mut is_store_failing) = (false, false);
        while let Some(announcement) = announcements.next().await {
            let name = announcement.card.name.clone();
            if self.is_own(&name) {
                continue;
            }
            match self.note(announcement, settings).await {
                Ok(()) => is_store_failing = false,
                Err(DirectoryError::Full(_)) if is_full => {}
                Err(DirectoryError::Store(_)) if is_store_failing => {}
                Err(error) => {
                    is_full |= matches!(error, DirectoryError::Full(_));
                    is_store_failing |= matches!(error, DirectoryError::Store(_));
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, name, "cannot use the announcement of an agent");
                }
            }
        }
    }

    async fn note(
        &self,
        announcement: AgentAnnouncement,
        settings: &AgentSettings,
    ) -> Result<(), DirectoryError> {
        let AgentAnnouncement { card, is_leaving } = announcement;
        match is_leaving {
            true => self.0.directory.left(&card.name).await,
            false => self.0.directory.announced(card, settings).await,
        }
    }
}
