//! Which addresses a client connects to.
//!
//! Where a caller has a say in the name of a host, it must not lead to what only this machine or its network
//! reaches: a cloud's metadata service, a neighbour's admin port ("server-side request forgery"). A name is
//! resolved once, and only addresses that were looked at are connected to: asking twice would let a name
//! change its answer in between ("DNS rebinding").

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

/// Which addresses a client connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Whatever a name stands for: whoever configured it wants it so.
    Anywhere,
    /// Public addresses, and no others.
    Public,
    /// The one address that a test calls public.
    #[cfg(test)]
    Only(IpAddr),
}

/// A host is none that this client may connect to. It does not say what the name stands for: whoever chose
/// the name could map a network with that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host has no public address")]
pub struct NotPublic;

impl Reach {
    /// Looks at a host that is written as an address, which nobody resolves.
    pub(crate) fn check(self, uri: &Uri) -> Result<(), NotPublic> {
        let host = uri.host().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
        if literal.is_none_or(|address| self.includes(address)) { Ok(()) } else { Err(NotPublic) }
    }

    fn includes(self, address: IpAddr) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Public => is_public(address),
            #[cfg(test)]
            Self::Only(only) => address == only,
        }
    }

    /// Of the addresses of a name those that may be connected to.
    fn filter(self, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, ResolveError> {
        let found = !addresses.is_empty();
        let allowed: Vec<_> = addresses.into_iter().filter(|address| self.includes(address.ip())).collect();
        if found && allowed.is_empty() { Err(ResolveError::NotPublic(NotPublic)) } else { Ok(allowed) }
    }
}

/// Whether an address is one of the public internet: neither of this machine, nor of a private network, nor
/// set aside for another purpose (IANA's special-purpose address registries, RFC 6890).
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
        // Shared by a carrier's customers (RFC 6598); some clouds have their metadata service there.
        [100, 64..=127, ..] => true,
        // Link-local, where most clouds have it: 169.254.169.254.
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
        // An IPv4 address in other clothes: mapped, or behind the well-known prefix of NAT64 (RFC 6052).
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Protocol assignments with Teredo; documentation; 6to4.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Global unicast is this and nothing else: not loopback, link-local, unique-local, multicast.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

// === resolving ===

/// Who knows the addresses of a name. The port of an address does not count.
type Lookup = dyn Fn(Name) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// Resolves a name, and lets through what its reach includes.
#[derive(Clone)]
pub(crate) struct Resolver {
    reach: Reach,
    lookup: Arc<Lookup>,
}

/// Why a name was not resolved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error(transparent)]
    NotPublic(NotPublic),
    #[error("the name was not resolved")]
    Lookup(#[source] io::Error),
}

impl Resolver {
    /// A resolver that asks the system.
    pub(crate) fn system(reach: Reach) -> Self {
        let lookup = |name| -> BoxFuture<'static, _> {
            Box::pin(async move { Ok(GaiResolver::new().call(name).await?.collect()) })
        };
        Self { reach, lookup: Arc::new(lookup) }
    }

    #[cfg(test)]
    pub(crate) fn scripted(reach: Reach, lookup: Arc<Lookup>) -> Self {
        Self { reach, lookup }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("reach", &self.reach).finish_non_exhaustive()
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = ResolveError;
    type Future = BoxFuture<'static, Result<Self::Response, ResolveError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ResolveError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (reach, looked_up) = (self.reach, (self.lookup)(name));
        Box::pin(async move {
            let addresses = looked_up.await.map_err(ResolveError::Lookup)?;
            reach.filter(addresses).map(Vec::into_iter)
        })
    }
}

/// Whether a resolver's refusal is what is behind an error.
pub(crate) fn is_refusal(error: &(dyn Error + 'static)) -> bool {
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
