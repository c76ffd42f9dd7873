//! The announcements of agents.

use std::sync::Arc;

use toolyard_manifest::BusSettings;

use super::record::AnnouncedCard;
use crate::bus::{Deliveries, MessageBus, Subscription};
use crate::pump::{Backoff, subscribe_when_reachable};
use crate::topic::{DISCOVERY_ANNOUNCE, Topic};

/// Listens to the announcements of agents. It subscribes once the broker can be reached.
pub struct AgentListener {
    bus: Arc<dyn MessageBus>,
    backoff: Backoff,
    deliveries: Option<Deliveries>,
}

impl AgentListener {
    /// Returns a listener on a bus.
    #[must_use]
    pub fn new(bus: Arc<dyn MessageBus>, settings: &BusSettings) -> Self {
        Self { bus, backoff: Backoff::new(settings), deliveries: None }
    }

    /// Returns once it has subscribed; `false` if the broker refuses that.
    pub async fn subscribed(&mut self) -> bool {
        self.deliveries().await.is_some()
    }

    /// Returns the next announcement; `None` if the broker refuses the subscription, or the bus has ended.
    pub async fn next(&mut self) -> Option<AnnouncedCard> {
        let deliveries = self.deliveries().await?;
        loop {
            let delivery = deliveries.next().await?;
            let card = delivery.envelope.read();
            // Subscriptions without a group do not deliver again.
            delivery.finish();
            match card {
                Ok(card) => return Some(card),
                Err(problem) => tracing::debug!(%problem, "dropped a message on {DISCOVERY_ANNOUNCE}"),
            }
        }
    }

    async fn deliveries(&mut self) -> Option<&mut Deliveries> {
        if self.deliveries.is_none() {
            let subscription = Subscription::alone(Topic::of(DISCOVERY_ANNOUNCE));
            match subscribe_when_reachable(&*self.bus, &subscription, &mut self.backoff).await {
                Ok(deliveries) => self.deliveries = Some(deliveries),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(error, "the broker refuses the announcements of agents");
                }
            }
        }
        self.deliveries.as_mut()
    }
}
