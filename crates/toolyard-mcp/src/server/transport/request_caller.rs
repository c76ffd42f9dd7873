//! The caller of an HTTP request, by what the layers in front of the endpoint have added to it.

use std::sync::Arc;

use http::request::Parts;
use toolyard_core::access::AccessGrant;
use toolyard_core::{Caller, CallerPeer};
use toolyard_net::listener::ClientAddress;

use crate::server::HttpPrincipal;

/// Returns the principal of a request.
pub(in crate::server) fn principal_of(parts: &Parts) -> Option<Arc<str>> {
    parts.extensions.get::<HttpPrincipal>().map(|principal| principal.0.clone())
}

/// Returns the caller of a request.
pub(super) fn caller_of(parts: &Parts, session: Option<Arc<str>>) -> Caller {
    let grant = parts.extensions.get::<Arc<AccessGrant>>().cloned();
    Caller { session, principal: principal_of(parts), grant, peer: peer_of(parts), ..Caller::default() }
}

/// Returns the other end of the connection of a request.
#[must_use]
pub fn peer_of(parts: &Parts) -> CallerPeer {
    match parts.extensions.get() {
        Some(ClientAddress::Tcp(address)) => CallerPeer::Address(address.ip().to_canonical()),
        Some(ClientAddress::Unix(Some(user))) => CallerPeer::User(*user),
        Some(ClientAddress::Unix(None)) | None => CallerPeer::Unknown,
    }
}
