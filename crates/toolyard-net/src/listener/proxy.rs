//! The PROXY protocol of HAProxy, versions 1 and 2: a header in which a proxy names its client.

#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Maximum length of a header, in bytes. Version 1 has at most 107; version 2 may have fields after the addresses,
/// such as the server name of a TLS client.
const MAX_HEADER_BYTES: usize = 4096;

const TEXT_PREFIX: &[u8] = b"PROXY ";
const MAX_TEXT_BYTES: usize = 107;

const BINARY_PREFIX: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const BINARY_HEAD: usize = 16;

/// The client of a proxied connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxiedOrigin {
    /// The proxy itself, such as for a health check, or a client without a known address.
    Proxy,
    /// This client.
    Client(SocketAddr),
}

/// The received bytes are no valid header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProxyHeaderError {
    /// They do not begin as a header.
    #[error("missing PROXY protocol header")]
    Absent,
    /// The header is too long.
    #[error("PROXY protocol header too long")]
    TooLong,
    /// The header is malformed.
    #[error("malformed PROXY protocol header")]
    Invalid,
}

/// Parses the header at the beginning of a connection: returns its length and the client, or `None` if more bytes are
/// needed.
///
/// # Errors
/// Errors as soon as no valid header is possible.
pub fn parse(bytes: &[u8]) -> Result<Option<(ProxiedOrigin, usize)>, ProxyHeaderError> {
    if has_prefix(bytes, BINARY_PREFIX) {
        parse_binary(bytes)
    } else if has_prefix(bytes, TEXT_PREFIX) {
        parse_text(bytes)
    } else {
        Err(ProxyHeaderError::Absent)
    }
}

/// `true` if the bytes match the prefix as far as they go.
fn has_prefix(bytes: &[u8], begin: &[u8]) -> bool {
    bytes.iter().zip(begin).all(|(byte, expected)| byte == expected)
}

/// Version 1: a line such as `PROXY TCP4 192.0.2.1 198.51.100.1 40000 443`.
fn parse_text(bytes: &[u8]) -> Result<Option<(ProxiedOrigin, usize)>, ProxyHeaderError> {
    let bytes = &bytes[..bytes.len().min(MAX_TEXT_BYTES)];
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return if bytes.len() < MAX_TEXT_BYTES { Ok(None) } else { Err(ProxyHeaderError::TooLong) };
    };
    let line = bytes.get(TEXT_PREFIX.len()..end).and_then(|line| std::str::from_utf8(line).ok());
    let words: Vec<_> = line.ok_or(ProxyHeaderError::Invalid)?.split(' ').collect();
    let origin = match *words {
        ["UNKNOWN", ..] => Some(ProxiedOrigin::Proxy),
        ["TCP4", client, us, port, our_port] => addresses::<Ipv4Addr>([client, us], [port, our_port]),
        ["TCP6", client, us, port, our_port] => addresses::<Ipv6Addr>([client, us], [port, our_port]),
        _ => None,
    };
    Ok(Some((origin.ok_or(ProxyHeaderError::Invalid)?, end + 2)))
}

fn addresses<T: FromStr + Into<IpAddr>>(ips: [&str; 2], ports: [&str; 2]) -> Option<ProxiedOrigin> {
    let [client, _us] = ips.map(|ip| ip.parse::<T>().ok());
    let [port, _ours] =
        ports.map(|port| port.bytes().all(|b| b.is_ascii_digit()).then(|| port.parse().ok())?);
    _us?;
    _ours?;
    Some(ProxiedOrigin::Client(SocketAddr::new(client?.into(), port?)))
}

/// Version 2: twelve bytes of signature, one of version and command, one of family and transport, the length of the
/// rest, and the addresses.
fn parse_binary(bytes: &[u8]) -> Result<Option<(ProxiedOrigin, usize)>, ProxyHeaderError> {
    let Some((head, rest)) = bytes.split_first_chunk::<BINARY_HEAD>() else { return Ok(None) };
    let [.., version_and_command, family, high, low] = *head;
    let is_for_itself = match version_and_command {
        0x20 => true,
        0x21 => false,
        _ => return Err(ProxyHeaderError::Invalid),
    };
    if family >> 4 > 3 || family & 0xf > 2 {
        return Err(ProxyHeaderError::Invalid);
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    if BINARY_HEAD + length > MAX_HEADER_BYTES {
        return Err(ProxyHeaderError::TooLong);
    }
    let Some(rest) = rest.get(..length) else { return Ok(None) };
    let origin = match family {
        _ if is_for_itself => ProxiedOrigin::Proxy,
        0x11 => ProxiedOrigin::Client(binary_address::<4, 12>(rest)?),
        0x21 => ProxiedOrigin::Client(binary_address::<16, 36>(rest)?),
        // Datagrams, Unix sockets, and unspecified families.
        _ => ProxiedOrigin::Proxy,
    };
    Ok(Some((origin, BINARY_HEAD + length)))
}

/// The first of two addresses of `N` bytes each, followed by two ports: `ALL` bytes.
fn binary_address<const N: usize, const ALL: usize>(bytes: &[u8]) -> Result<SocketAddr, ProxyHeaderError>
where
    IpAddr: From<[u8; N]>,
{
    let bytes = bytes.first_chunk::<ALL>().ok_or(ProxyHeaderError::Invalid)?;
    let ip = bytes.first_chunk::<N>().ok_or(ProxyHeaderError::Invalid)?;
    let port = u16::from_be_bytes([bytes[2 * N], bytes[2 * N + 1]]);
    Ok(SocketAddr::new(IpAddr::from(*ip), port))
}

/// Reads the header without any byte after it. Returns the address of the client, or of the peer if the proxy
/// connects for itself.
pub(super) async fn read(stream: &mut TcpStream, peer: SocketAddr) -> io::Result<SocketAddr> {
    let mut bytes = [0; MAX_HEADER_BYTES];
    let mut length = 0;
    loop {
        let seen = length + stream.peek(&mut bytes[length..]).await?;
        if seen == length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let parsed = parse(&bytes[..seen]).map_err(io::Error::other)?;
        // The peeked bytes are consumed, so that the next peek waits for more.
        let end = parsed.map_or(seen, |(_, end)| end);
        stream.read_exact(&mut bytes[length..end]).await?;
        length = end;
        match parsed {
            Some((ProxiedOrigin::Client(client), _)) => return Ok(client),
            Some((ProxiedOrigin::Proxy, _)) => return Ok(peer),
            None => {}
        }
    }
}
