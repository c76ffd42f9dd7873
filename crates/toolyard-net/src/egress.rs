//! The egress policy: the addresses that a client may connect to.
//!
//! If a caller can influence the name of a host, the name must not lead to addresses that only this machine or its
//! network can reach: a cloud's metadata service, a neighbour's admin port ("server-side request forgery"). A name is
//! resolved once, and the client connects only to addresses that were checked: a second resolution could give another
//! answer ("DNS rebinding").

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::Uri;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower_service::Service;

/// The addresses that a client may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EgressPolicy {
    /// Any address: the operator has configured the host.
    Anywhere,
    /// Public addresses only.
    Public,
    /// The one address that a test treats as public.
    #[cfg(test)]
    Only(IpAddr),
}

/// The policy does not allow the host. The error does not name the addresses: the caller that chose the name could
/// map a network with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host has no public address")]
pub struct NonPublicHost;

impl EgressPolicy {
    /// Checks a host that is an IP address literal, as these are not resolved.
    pub(crate) fn check(self, uri: &Uri) -> Result<(), NonPublicHost> {
        let host = uri.host().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
        if literal.is_none_or(|address| self.allows(address)) { Ok(()) } else { Err(NonPublicHost) }
    }

    fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Public => is_public(address),
            #[cfg(test)]
            Self::Only(only) => address == only,
        }
    }

    /// The addresses that the policy allows.
    fn filter(self, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, ResolveError> {
        let has_addresses = !addresses.is_empty();
        let allowed: Vec<_> = addresses.into_iter().filter(|address| self.allows(address.ip())).collect();
        if has_addresses && allowed.is_empty() {
            Err(ResolveError::NotPublic(NonPublicHost))
        } else {
            Ok(allowed)
        }
    }
}

/// Returns `true` for an address of the public internet: not of this machine, of a private network, or reserved for
/// another purpose (IANA's special-purpose address registries, RFC 6890).
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        // This network, private, loopback.
        [0 | 10 | 127, ..] => true,
        // Shared by a carrier's customers (RFC 6598); some clouds use it for their metadata service.
        [100, 64..=127, ..] => true,
        // Link-local, used by most metadata services: 169.254.169.254.
        [169, 254, ..] => true,
        [172, 16..=31, ..] | [192, 168, ..] => true,
        // Protocol assignments, documentation, the relay of 6to4.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 51, 100, _] | [203, 0, 113, _] => true,
        // Benchmarks of network devices.
        [198, 18 | 19, ..] => true,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => true,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // An embedded IPv4 address: mapped, or with the well-known prefix of NAT64 (RFC 6052).
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Protocol assignments with Teredo; documentation; 6to4.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Global unicast; excludes loopback, link-local, unique-local and multicast.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

// === resolving ===

/// A function that resolves a name. The ports of the addresses are ignored.
type NameLookup = dyn Fn(Name) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// Resolves a name and filters its addresses by the policy.
#[derive(Clone)]
pub(crate) struct PolicyResolver {
    policy: EgressPolicy,
    lookup: Arc<NameLookup>,
}

/// A name could not be resolved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error(transparent)]
    NotPublic(NonPublicHost),
    #[error("cannot resolve the name")]
    NameLookup(#[source] io::Error),
}

impl PolicyResolver {
    /// A resolver of the system.
    pub(crate) fn system(policy: EgressPolicy) -> Self {
        let lookup = |name| -> BoxFuture<'static, _> {
            Box::pin(async move { Ok(GaiResolver::new().call(name).await?.collect()) })
        };
        Self { policy, lookup: Arc::new(lookup) }
    }

    #[cfg(test)]
    pub(crate) fn with_lookup(policy: EgressPolicy, lookup: Arc<NameLookup>) -> Self {
        Self { policy, lookup }
    }
}

impl fmt::Debug for PolicyResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyResolver").field("reach", &self.policy).finish_non_exhaustive()
    }
}

impl Service<Name> for PolicyResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = ResolveError;
    type Future = BoxFuture<'static, Result<Self::Response, ResolveError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ResolveError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (policy, lookup) = (self.policy, (self.lookup)(name));
        Box::pin(async move {
            let addresses = lookup.await.map_err(ResolveError::NameLookup)?;
            policy.filter(addresses).map(Vec::into_iter)
        })
    }
}

/// `true` if the policy's refusal is among the causes of an error.
pub(crate) fn is_policy_refusal(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(ResolveError::NotPublic(_)) = error.downcast_ref() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests;
