//! The listening addresses in the status.

use serde::Serialize;
use toolyard_manifest::ListenAddress;

use crate::listeners::ListeningAddresses;

/// An address that the gateway listens on.
#[derive(Debug, Serialize)]
pub(super) struct ListenerStatus {
    /// `http` for MCP and REST, `console` for the same with the console, or `grpc`.
    protocol: &'static str,
    address: String,
}

impl ListenerStatus {
    /// Returns all addresses, by protocol.
    pub(super) fn of(listening: &ListeningAddresses) -> Vec<Self> {
        let of = |protocol, addresses: &[ListenAddress]| -> Vec<_> {
            addresses.iter().map(|address| Self { protocol, address: address.to_string() }).collect()
        };
        let ListeningAddresses { http, console, grpc } = listening;
        [("http", http), ("console", console), ("grpc", grpc)]
            .into_iter()
            .flat_map(|(name, addresses)| of(name, addresses))
            .collect()
    }
}
