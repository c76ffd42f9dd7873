//! Startup errors.

use std::io;
use std::path::PathBuf;

use toolyard_core::store::StoreError;
use toolyard_manifest::ListenAddress;
use toolyard_net::listener::TlsError;
use toolyard_store::StoreOpenError;

use crate::bus::BusFailure;
use crate::telemetry;

/// A startup error.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be bound.
    #[error("cannot listen on {0}")]
    Listen(ListenAddress, #[source] io::Error),
    /// Another program listens on the address.
    #[error(
        "cannot listen on {0}: another program does, such as a gateway; choose another address with `--listen`"
    )]
    InUse(ListenAddress),
    /// The address is reachable from other machines, and there are no keys.
    #[error(
        "{0} is reachable from other machines, but there are no keys: create one with `toolyard key create`, listen on \
         127.0.0.1, or set `allowUnauthenticated: true` in the Toolyard document if a proxy in front authenticates callers"
    )]
    Unauthenticated(ListenAddress),
    /// The marker of keys exists, but the store has none.
    #[error(
        "{} records that the gateway of this configuration has had keys, but the store has none: it may have been lost, \
         emptied or replaced. Restore it, create a key with `toolyard key create`, or run `toolyard key forget` to \
         serve without keys, each with the `-f` of this gateway", .0.display()
    )]
    KeysLost(PathBuf),
    /// The listener's certificate cannot be used.
    #[error("cannot listen with TLS")]
    Certificate(#[source] TlsError),
    /// The system's root certificates cannot be read.
    #[error("cannot read the system's root certificates")]
    Tls(#[source] io::Error),
    /// The keys in the store cannot be read, such as those of a later version.
    #[error("cannot read the keys")]
    Keys(#[source] StoreError),
    /// The in-memory store cannot be opened.
    #[error("cannot open the store")]
    Store(#[source] StoreOpenError),
    /// The system provides no random bytes for the scheduler.
    #[error("cannot start the scheduler")]
    Schedules(#[source] StoreError),
    /// The threads that serve connections cannot be started.
    #[error("cannot start the threads that serve connections")]
    Workers(#[source] io::Error),
    /// Telemetry cannot be started as configured.
    #[error("cannot start telemetry")]
    Telemetry(#[from] telemetry::TelemetryError),
    /// The message bus is not configured, or its URL is refused.
    #[error("{0}")]
    Bus(BusFailure),
    /// A layer to leave out does not exist.
    #[error("unknown layer {0:?}")]
    NoSuchLayer(String),
}
