//! The connection, and its renewal.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use lapin::options::ConfirmSelectOptions;
use lapin::uri::AMQPUri;
use lapin::{Channel, Connection, ConnectionProperties, Event};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at};
use toolyard_manifest::{BrokerUrl, BusSettings};

use super::{topology, transport};
use crate::bus::BusError;
use crate::pump::Backoff;

/// Time limit of connecting.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Interval of heartbeats in seconds, unless the URL sets it. The connection counts as lost after two of them.
const HEARTBEAT_SECS: u16 = 10;

/// Interval at which confirmations are collected whose publisher does not wait any more.
const CONFIRMS_INTERVAL: Duration = Duration::from_secs(30);

/// A connection with the channel for publishing.
pub(super) struct Link {
    pub(super) connection: Connection,
    pub(super) publisher: Channel,
    lost: Notify,
}

impl Link {
    /// Has the connection renewed. An operation failed in a way that leaves it unusable.
    pub(super) fn report_loss(&self) {
        self.lost.notify_one();
    }
}

/// The current connection, which a task renews.
pub(super) struct LinkKeeper {
    current: watch::Receiver<Option<Arc<Link>>>,
}

impl LinkKeeper {
    /// Returns the keeper, and its task.
    ///
    /// # Errors
    /// If the URL is no AMQP URL.
    pub(super) fn new(
        url: &BrokerUrl,
        settings: &BusSettings,
    ) -> Result<(Self, impl Future<Output = ()> + Send + 'static), BusError> {
        // The error may quote the URL.
        let mut uri: AMQPUri = url
            .expose()
            .parse()
            .map_err(|_| BusError::invalid("the URL of the bus is no URL of RabbitMQ"))?;
        uri.query.heartbeat.get_or_insert(HEARTBEAT_SECS);
        let (links, current) = watch::channel(None);
        let shown = url.to_string();
        Ok((Self { current }, keep(uri, shown, settings.clone(), links)))
    }

    /// Returns the connection once there is one.
    pub(super) async fn current_before(&self, deadline: Instant) -> Result<Arc<Link>, BusError> {
        let mut current = self.current.clone();
        let connected = timeout_at(deadline, current.wait_for(Option::is_some)).await;
        match connected {
            Ok(Ok(link)) => link.clone().ok_or_else(BusError::unreachable),
            Ok(Err(_)) | Err(_) => Err(BusError::unreachable()),
        }
    }
}

/// Connects, and connects again after each loss.
async fn keep(uri: AMQPUri, shown: String, settings: BusSettings, links: watch::Sender<Option<Arc<Link>>>) {
    let mut backoff = Backoff::new(&settings);
    let mut is_reported = false;
    loop {
        let connected = timeout(CONNECT_TIME, connect(&uri, &settings)).await;
        match connected.unwrap_or_else(|_| Err(BusError::unreachable())) {
            Ok(link) => {
                tracing::info!(broker = shown, "connected to the message bus");
                backoff.reset();
                is_reported = false;
                let link = Arc::new(link);
                links.send_replace(Some(link.clone()));
                until_lost(&link).await;
                links.send_replace(None);
                tracing::warn!(broker = shown, "lost the connection to the message bus");
                // An answer is not expected from a connection that is lost.
                drop(timeout(Duration::from_secs(1), link.connection.close(200, "renewed".into())).await);
            }
            // The first failure only: the next ones have the same reason.
            Err(error) if !is_reported => {
                is_reported = true;
                tracing::warn!(
                    broker = shown,
                    error = &error as &dyn std::error::Error,
                    "cannot connect to the message bus; trying again"
                );
            }
            Err(_) => {}
        }
        sleep(backoff.next()).await;
    }
}

async fn connect(uri: &AMQPUri, settings: &BusSettings) -> Result<Link, BusError> {
    let properties = ConnectionProperties::default().with_connection_name(settings.source.as_str().into());
    let connected = transport::connect(uri.clone(), properties).await;
    let connection = connected.map_err(|error| BusError::unavailable("cannot connect to RabbitMQ", error))?;
    let publisher = connection.create_channel().await.map_err(super::classified)?;
    publisher.confirm_select(ConfirmSelectOptions::default()).await.map_err(super::classified)?;
    topology::declare_exchanges(&publisher, settings).await?;
    Ok(Link { connection, publisher, lost: Notify::new() })
}

/// Waits until the connection, or its channel for publishing, is lost.
async fn until_lost(link: &Link) {
    let mut events = Box::pin(link.connection.events_listener());
    let mut collect = interval(CONFIRMS_INTERVAL);
    collect.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // An event before the subscription to them is seen by the state.
    while link.connection.status().connected() && link.publisher.status().connected() {
        tokio::select! {
            () = link.lost.notified() => return,
            event = events.next() => match event {
                Some(Event::Error(error)) => {
                    // The state may change only after the event.
                    tracing::debug!(error = &error as &dyn std::error::Error, "an error of the connection to RabbitMQ");
                    return;
                }
                Some(Event::ConnectionBlocked(reason)) => {
                    tracing::warn!(reason, "RabbitMQ accepts no messages");
                }
                Some(_) => {}
                None => return,
            },
            _ = collect.tick() => {
                // A publisher that was dropped leaves its confirmation behind, which would be kept forever.
                drop(timeout(Duration::from_secs(5), link.publisher.wait_for_confirms()).await);
            }
        }
    }
}
