//! Announces an agent: at the start, regularly, and when it stops.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use toolyard_manifest::BusSettings;

use super::record::AnnouncedCard;
use crate::bus::{BusError, MessageBus};
use crate::envelope::Envelope;
use crate::headers::{self, ContentTrust};
use crate::pump::Backoff;
use crate::topic::{DISCOVERY_ANNOUNCE, Topic};

/// Time between two announcements, so that agents that start later learn about this one.
const INTERVAL: Duration = Duration::from_secs(2 * 60);

/// Maximum time of the announcement that the agent stops.
const FAREWELL_TIME: Duration = Duration::from_secs(5);

/// Announces an agent of this process.
pub(super) struct AgentAnnouncer {
    pub(super) bus: Arc<dyn MessageBus>,
    pub(super) card: AnnouncedCard,
    pub(super) settings: BusSettings,
}

impl AgentAnnouncer {
    /// Announces the agent again and again until it is dropped.
    pub(super) async fn run(&self) {
        let mut backoff = Backoff::new(&self.settings);
        loop {
            let pause = match self.send(&self.card).await {
                Ok(()) => {
                    backoff.reset();
                    INTERVAL
                }
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "cannot announce the agent on the message bus");
                    backoff.next().min(INTERVAL)
                }
            };
            sleep(pause).await;
        }
    }

    /// Announces that the agent stops.
    pub(super) async fn say_farewell(&self) {
        let card = AnnouncedCard { is_deregistering: true, ..self.card.clone() };
        let sent = timeout(FAREWELL_TIME, self.send(&card)).await;
        if let Ok(Err(error)) = sent {
            tracing::debug!(error = &error as &dyn std::error::Error, "cannot announce that the agent stops");
        }
    }

    async fn send(&self, card: &AnnouncedCard) -> Result<(), BusError> {
        let envelope = Envelope::of(card, &self.card.agent_name)?
            .header(headers::CONTENT_TRUST, ContentTrust::System.as_str());
        self.bus.broadcast(&Topic::of(DISCOVERY_ANNOUNCE), envelope).await
    }
}
