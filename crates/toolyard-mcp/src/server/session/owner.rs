//! The owners of sessions, each with a share of the total.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use http::request::Parts;
use toolyard_core::Call;
use toolyard_net::listener::ClientAddress;

use crate::server::transport::http::principal_of;

/// The owner of a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::server) enum SessionOwner {
    /// Clients on this machine without a key, or of unknown origin. They may use the whole total.
    Local,
    /// Clients without a key at one address.
    Address(IpAddr),
    /// Clients with the same key.
    Principal(Arc<str>),
}

/// Names the owner of a call: its key, the address of its client, or this machine.
#[must_use]
pub fn owner_of(call: &Call) -> Arc<str> {
    let head = call.origin.as_deref().and_then(|origin| origin.downcast_ref::<Parts>());
    if let Some(principal) = &call.caller.principal {
        return principal.clone();
    }
    head.and_then(owner_of_request).unwrap_or_default()
}

/// Names the owner of a request: its key, or the address of its client; `None` for a client on this machine without a
/// key.
#[must_use]
pub fn owner_of_request(parts: &Parts) -> Option<Arc<str>> {
    SessionOwner::of(parts).name()
}

impl SessionOwner {
    /// Returns the owner of what this request opens.
    pub(in crate::server) fn of(parts: &Parts) -> Self {
        match (principal_of(parts), parts.extensions.get()) {
            (Some(principal), _) => Self::Principal(principal),
            (None, Some(ClientAddress::Tcp(address))) => Self::at(address.ip()),
            (None, Some(ClientAddress::Unix(_)) | None) => Self::Local,
        }
    }

    /// Returns the name of the owner; a local one has none.
    pub(super) fn name(&self) -> Option<Arc<str>> {
        match self {
            Self::Local => None,
            Self::Address(address) => Some(address.to_string().into()),
            Self::Principal(principal) => Some(principal.clone()),
        }
    }

    fn at(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Local,
            // One customer of a provider has a whole /64 (RFC 6177).
            IpAddr::V6(address) => {
                Self::Address(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into())
            }
            address @ IpAddr::V4(_) => Self::Address(address),
        }
    }

    /// Returns the maximum number of sessions of the owner: `share` of `all`, or `all` for a local one.
    pub(in crate::server) fn share(&self, share: usize, all: usize) -> usize {
        if *self == Self::Local { all } else { share.min(all) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::server::HttpPrincipal;

    #[test]
    fn calls_have_the_owner_of_their_request() {
        let call = |principal: Option<&str>, address: &str| {
            let mut request = http::Request::new(());
            request.extensions_mut().insert(ClientAddress::Tcp(address.parse::<SocketAddr>().unwrap()));
            let mut call = Call::tool("t", toolyard_core::Json::null());
            call.origin = Some(Arc::new(request.into_parts().0));
            call.caller.principal = principal.map(Into::into);
            owner_of(&call).to_string()
        };
        assert_eq!(call(Some("k"), "192.0.2.7:1"), "k");
        assert_eq!(call(None, "192.0.2.7:1"), "192.0.2.7");
        assert_eq!(call(None, "127.0.0.1:1"), "");
        assert_eq!(&*owner_of(&Call::tool("t", toolyard_core::Json::null())), "");
    }

    #[test]
    fn an_owner_is_a_key_or_an_address() {
        let owner = |principal: Option<&str>, address: &str| {
            let mut request = http::Request::new(());
            let extensions = request.extensions_mut();
            principal.map(|name| extensions.insert(HttpPrincipal(name.into())));
            match address {
                "" => None,
                "unix" => extensions.insert(ClientAddress::Unix(Some(1000))),
                address => extensions.insert(ClientAddress::Tcp(address.parse::<SocketAddr>().unwrap())),
            };
            SessionOwner::of(&request.into_parts().0)
        };
        let address = |address: &str| SessionOwner::Address(address.parse().unwrap());
        let cases = [
            ("", SessionOwner::Local),
            ("unix", SessionOwner::Local),
            ("127.0.0.1:1", SessionOwner::Local),
            ("127.9.9.9:1", SessionOwner::Local),
            ("[::1]:1", SessionOwner::Local),
            ("[::ffff:127.0.0.1]:1", SessionOwner::Local),
            ("192.0.2.7:1", address("192.0.2.7")),
            ("192.0.2.7:2", address("192.0.2.7")),
            ("[::ffff:192.0.2.7]:1", address("192.0.2.7")),
            ("[2001:db8:1:2:3:4:5:6]:1", address("2001:db8:1:2::")),
            ("[2001:db8:1:2::9]:1", address("2001:db8:1:2::")),
        ];
        for (at, expected) in cases {
            assert_eq!(owner(None, at), expected, "{at}");
            assert_eq!(owner(Some("k"), at), SessionOwner::Principal("k".into()), "{at}");
        }
    }
}
