//! Calls over a message bus, in the forms of RockBot: topics, envelopes, and JSON records as their bodies.
//!
//! In suggested reading order:
//!
//! - [`topic`], [`envelope`], [`headers`]: addresses and messages;
//! - [`record`]: tools and their calls as JSON records, with the registry of a host;
//! - [`message`]: every message type;
//! - [`bus`]: the [`MessageBus`] trait, deliveries and their acknowledgement, errors;
//! - [`request`]: requests with a reply on a private topic;
//! - [`reply`]: replies to requests;
//! - [`stored_results`]: results above the limit of messages, which go through a store;
//! - [`in_process`], `rabbitmq`, `nats`: implementations of the trait;
//! - [`worker`]: runs calls that arrive on the bus;
//! - [`caller`]: calls the tools of workers;
//! - [`announcement`], [`remote`]: workers announce their tools, which another gateway publishes;
//! - [`scripts`]: runs scripts of others, and sends them;
//! - [`mcp`]: has MCP servers for others, and calls their tools;
//! - [`agents`]: agents announce themselves, and give each other tasks.
//!
//! ```text
//! ToolCaller ──ToolInvokeRequest on tool.invoke──▶ broker ──▶ BusWorker ──Gateway::invoke──▶ tool
//!     ▲                                                           │
//!     └── ToolInvokeResponse or ToolError on ReplyTo ── broker ◀──┘
//! ```
//!
//! This crate is the only one that knows brokers. It decides no rights: a worker is given its caller, and no
//! header of a message changes that.

pub mod agents;
pub mod announcement;
pub mod bus;
pub mod caller;
mod consumer;
pub mod envelope;
pub mod headers;
pub mod in_process;
pub mod mcp;
pub mod message;
pub mod nats;
mod pump;
pub mod rabbitmq;
pub mod record;
pub mod remote;
pub mod reply;
pub mod request;
pub mod scripts;
pub mod stored_results;
pub mod topic;
mod wire;
pub mod worker;

use std::sync::Arc;

use toolyard_manifest::BrokerKind;
use toolyard_manifest::{BrokerUrl, BusSettings};

pub use bus::{BusError, BusErrorKind, DeadLetter, Deliveries, Delivery, MessageBus, Subscription};
pub use envelope::{Envelope, TraceContext};
pub use message::BusMessage;
pub use topic::{Topic, TopicPattern};

/// Connects to the broker of these settings. The connection is made in the background and again after each loss, so that
/// a broker may start later.
///
/// # Errors
/// [`BusErrorKind::Invalid`] if the settings have no URL, or one that the broker's client refuses, or if this build lacks
/// the broker.
pub fn connect(settings: &BusSettings) -> Result<Arc<dyn MessageBus>, BusError> {
    let url = broker_url(settings)?;
    match url.kind() {
        BrokerKind::RabbitMq => Ok(rabbitmq::RabbitBus::connect(url, settings)?),
        BrokerKind::Nats => Ok(nats::NatsBus::connect(url, settings)?),
    }
}

/// Returns the URL of the broker.
///
/// # Errors
/// [`BusErrorKind::Invalid`] if the settings have none.
pub fn broker_url(settings: &BusSettings) -> Result<&BrokerUrl, BusError> {
    let no_url =
        || BusError::invalid("no message bus: give its URL by `--bus`, or set `bus.url` in the manifest");
    settings.url.as_ref().ok_or_else(no_url)
}
