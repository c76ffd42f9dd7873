//! Why the gateway does not start.

use std::io;

use toolyard_core::store::StoreError;
use toolyard_manifest::Listen;
use toolyard_net::listener::TlsError;
use toolyard_store::OpenError;

use crate::telemetry;

/// Why the gateway does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A place cannot be listened on.
    #[error("cannot listen on {0}")]
    Listen(Listen, #[source] io::Error),
    /// Anybody who reaches the address could call every tool.
    #[error(
        "{0} is reached from other machines, and there is no key that callers could show: make one with `toolyard key \
         create`, listen on 127.0.0.1, or set `allowUnauthenticated: true` in the Toolyard document if something in \
         front of it asks callers who they are"
    )]
    Unauthenticated(Listen),
    /// The certificate of the listener cannot be used.
    #[error("cannot listen with TLS")]
    Certificate(#[source] TlsError),
    /// The system's root certificates cannot be read.
    #[error("cannot read the system's root certificates")]
    Tls(#[source] io::Error),
    /// The store is none of ours, or of a later version: nobody could come in.
    #[error("cannot read the keys")]
    Keys(#[source] StoreError),
    /// Not even memory can be used as a store.
    #[error("there is no store")]
    Store(#[source] OpenError),
    /// The threads that serve connections cannot be started.
    #[error("cannot start the threads that serve connections")]
    Workers(#[source] io::Error),
    /// There can be no telemetry as it is wanted.
    #[error("cannot start telemetry")]
    Telemetry(#[from] telemetry::Error),
    /// There is no layer of this name.
    #[error("there is no layer {0:?}")]
    NoSuchLayer(String),
}
