//! The header with which a proxy says whom it speaks for: "The PROXY protocol", versions 1 and 2, by HAProxy.

#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// The longest header that is read, in bytes. One of version 1 has 107 at most; one of version 2 may have fields behind
/// the addresses, such as the name that the client asked TLS for.
const MOST: usize = 4096;

const TEXT_BEGIN: &[u8] = b"PROXY ";
const TEXT_MOST: usize = 107;

const BINARY_BEGIN: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const BINARY_HEAD: usize = 16;

/// For whom the proxy has opened the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// For itself, such as to see whether we are there; or for somebody who has no address that we know.
    Proxy,
    /// For this client.
    Client(SocketAddr),
}

/// What came is no header of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It begins otherwise.
    #[error("there is no header of the PROXY protocol")]
    Absent,
    /// It is longer than we read.
    #[error("the header of the PROXY protocol is too long")]
    TooLong,
    /// It begins as one, and goes on otherwise.
    #[error("the header of the PROXY protocol is malformed")]
    Invalid,
}

/// Reads the header that a connection begins with: how many bytes it has, and for whom it is. `None` where more has to
/// come.
///
/// # Errors
/// As soon as it is certain that no header of ours can come of it.
pub fn parse(bytes: &[u8]) -> Result<Option<(Origin, usize)>, Malformed> {
    if begins(bytes, BINARY_BEGIN) {
        binary(bytes)
    } else if begins(bytes, TEXT_BEGIN) {
        text(bytes)
    } else {
        Err(Malformed::Absent)
    }
}

/// Whether the bytes begin like that, as far as there are any.
fn begins(bytes: &[u8], begin: &[u8]) -> bool {
    bytes.iter().zip(begin).all(|(byte, expected)| byte == expected)
}

/// Version 1: a line such as `PROXY TCP4 192.0.2.1 198.51.100.1 40000 443`.
fn text(bytes: &[u8]) -> Result<Option<(Origin, usize)>, Malformed> {
    let bytes = &bytes[..bytes.len().min(TEXT_MOST)];
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return if bytes.len() < TEXT_MOST { Ok(None) } else { Err(Malformed::TooLong) };
    };
    let line = bytes.get(TEXT_BEGIN.len()..end).and_then(|line| std::str::from_utf8(line).ok());
    let words: Vec<_> = line.ok_or(Malformed::Invalid)?.split(' ').collect();
    let origin = match *words {
        ["UNKNOWN", ..] => Some(Origin::Proxy),
        ["TCP4", client, us, port, our_port] => addresses::<Ipv4Addr>([client, us], [port, our_port]),
        ["TCP6", client, us, port, our_port] => addresses::<Ipv6Addr>([client, us], [port, our_port]),
        _ => None,
    };
    Ok(Some((origin.ok_or(Malformed::Invalid)?, end + 2)))
}

fn addresses<T: FromStr + Into<IpAddr>>(ips: [&str; 2], ports: [&str; 2]) -> Option<Origin> {
    let [client, _us] = ips.map(|ip| ip.parse::<T>().ok());
    let [port, _ours] =
        ports.map(|port| port.bytes().all(|b| b.is_ascii_digit()).then(|| port.parse().ok())?);
    _us?;
    _ours?;
    Some(Origin::Client(SocketAddr::new(client?.into(), port?)))
}

/// Version 2: twelve bytes that no other protocol begins with, one of version and command, one of family and
/// transport, the length of the rest, and the addresses.
fn binary(bytes: &[u8]) -> Result<Option<(Origin, usize)>, Malformed> {
    let Some((head, rest)) = bytes.split_first_chunk::<BINARY_HEAD>() else { return Ok(None) };
    let [.., version_and_command, family, high, low] = *head;
    let is_for_itself = match version_and_command {
        0x20 => true,
        0x21 => false,
        _ => return Err(Malformed::Invalid),
    };
    if family >> 4 > 3 || family & 0xf > 2 {
        return Err(Malformed::Invalid);
    }
    let length = usize::from(u16::from_be_bytes([high, low]));
    if BINARY_HEAD + length > MOST {
        return Err(Malformed::TooLong);
    }
    let Some(rest) = rest.get(..length) else { return Ok(None) };
    let origin = match family {
        _ if is_for_itself => Origin::Proxy,
        0x11 => Origin::Client(binary_address::<4, 12>(rest)?),
        0x21 => Origin::Client(binary_address::<16, 36>(rest)?),
        // Datagrams, Unix sockets, and what has no address.
        _ => Origin::Proxy,
    };
    Ok(Some((origin, BINARY_HEAD + length)))
}

/// The first of two addresses of `N` bytes each, with two ports behind them: `ALL` bytes.
fn binary_address<const N: usize, const ALL: usize>(bytes: &[u8]) -> Result<SocketAddr, Malformed>
where
    IpAddr: From<[u8; N]>,
{
    let bytes = bytes.first_chunk::<ALL>().ok_or(Malformed::Invalid)?;
    let ip = bytes.first_chunk::<N>().ok_or(Malformed::Invalid)?;
    let port = u16::from_be_bytes([bytes[2 * N], bytes[2 * N + 1]]);
    Ok(SocketAddr::new(IpAddr::from(*ip), port))
}

/// Reads the header, and not a byte of what comes behind it. Gives the client's address; the peer's where it speaks
/// for itself.
pub(super) async fn read(stream: &mut TcpStream, peer: SocketAddr) -> io::Result<SocketAddr> {
    let mut bytes = [0; MOST];
    let mut length = 0;
    loop {
        let seen = length + stream.peek(&mut bytes[length..]).await?;
        if seen == length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let parsed = parse(&bytes[..seen]).map_err(io::Error::other)?;
        // What was looked at is taken, so that the next look waits for more.
        let end = parsed.map_or(seen, |(_, end)| end);
        stream.read_exact(&mut bytes[length..end]).await?;
        length = end;
        match parsed {
            Some((Origin::Client(client), _)) => return Ok(client),
            Some((Origin::Proxy, _)) => return Ok(peer),
            None => {}
        }
    }
}
