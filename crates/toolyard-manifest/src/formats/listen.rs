//! Addresses to listen on, and networks.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    str::FromStr,
};

use ipnet::IpNet;

use super::FormatError;

/// The format of a listen address, for messages.
pub(crate) const LISTEN: &str = "an IP address and a port, such as 127.0.0.1:8080 or [::]:8080, or a socket such as unix:/run/toolyard.sock";

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// An IP address and a port; port 0 selects a free one. Host names are not accepted, because one name may stand for
    /// several addresses.
    Tcp(SocketAddr),
    /// A Unix socket: `unix:` and the path of its file.
    Unix(PathBuf),
}

impl ListenAddress {
    /// True if other machines can reach it.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        matches!(self, Self::Tcp(address) if !address.ip().to_canonical().is_loopback())
    }

    /// The TCP address, if it is one.
    #[must_use]
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl FromStr for ListenAddress {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        const INVALID: FormatError = FormatError::new("an address to listen on", LISTEN);
        match text.strip_prefix("unix:") {
            Some("") => Err(INVALID),
            Some(path) if path.starts_with("//") => Err(INVALID.hint("write `unix:/path` without `//`")),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_| INVALID),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A network, or the address of one machine.
pub(crate) fn network(text: &str) -> Result<IpNet, FormatError> {
    let invalid = FormatError::new("a network", "a network such as 10.0.0.0/8, or an address such as ::1");
    text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).map_err(|_| invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses() {
        for text in ["127.0.0.1:8080", "[::]:0", "[fe80::1%3]:80", "unix:/run/toolyard.sock", "unix:a.sock"] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
        }
        let cases = ["", "8080", "localhost:8080", "127.0.0.1", ":8080", "unix:", "unix:///run/a", "/run/a"];
        for text in cases {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn exposed_addresses() {
        let cases = [
            ("127.0.0.1:1", false),
            ("127.1.2.3:1", false),
            ("[::1]:1", false),
            ("[::ffff:127.0.0.1]:1", false),
            ("unix:/a", false),
            ("0.0.0.0:1", true),
            ("[::]:1", true),
            ("10.0.0.1:1", true),
        ];
        for (text, is_exposed) in cases {
            assert_eq!(text.parse::<ListenAddress>().unwrap().is_exposed(), is_exposed, "{text}");
        }
    }

    #[test]
    fn networks() {
        for text in ["10.0.0.0/8", "::1/128", "fd00::/8"] {
            assert_eq!(network(text).unwrap().to_string(), text);
        }
        assert_eq!(network("10.1.2.3").unwrap().to_string(), "10.1.2.3/32");
        assert_eq!(network("::1").unwrap().to_string(), "::1/128");
        for text in ["", "10.0.0.0/33", "10.0.0/8", "a.example", "*", "10.0.0.1:80"] {
            assert!(network(text).is_err(), "{text}");
        }
    }
}
