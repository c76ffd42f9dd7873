use proptest::prelude::*;

use super::*;

fn client(address: &str) -> ProxiedOrigin {
    ProxiedOrigin::Client(address.parse().unwrap())
}

/// A header of version 2.
fn binary_header(version_and_command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [BINARY_PREFIX, &[version_and_command, family], &length, rest].concat()
}

/// The addresses of version 2.
fn binary_addresses(client: SocketAddr, us: SocketAddr) -> Vec<u8> {
    let octets = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let ports = [client.port().to_be_bytes(), us.port().to_be_bytes()].concat();
    [octets(client), octets(us), ports].concat()
}

#[test]
fn text_header_is_parsed() {
    let cases: &[(&str, Result<ProxiedOrigin, ProxyHeaderError>)] = &[
        ("PROXY TCP4 192.0.2.1 198.51.100.1 40000 443\r\n", Ok(client("192.0.2.1:40000"))),
        ("PROXY TCP6 2001:db8::1 ::1 40000 443\r\n", Ok(client("[2001:db8::1]:40000"))),
        ("PROXY UNKNOWN\r\n", Ok(ProxiedOrigin::Proxy)),
        ("PROXY UNKNOWN ff::1 anything 0\r\n", Ok(ProxiedOrigin::Proxy)),
        ("PROXY TCP4 192.0.2.1 198.51.100.1 0 65535\r\n", Ok(client("192.0.2.1:0"))),
        ("PROXY TCP4 2001:db8::1 ::1 40000 443\r\n", Err(ProxyHeaderError::Invalid)),
        ("PROXY TCP6 192.0.2.1 198.51.100.1 40000 443\r\n", Err(ProxyHeaderError::Invalid)),
        ("PROXY TCP4 192.0.2.1 198.51.100.1 65536 443\r\n", Err(ProxyHeaderError::Invalid)),
        ("PROXY TCP4 192.0.2.1 198.51.100.1 +1 443\r\n", Err(ProxyHeaderError::Invalid)),
        ("PROXY TCP4 192.0.2.1 198.51.100.1 1 -1\r\n", Err(ProxyHeaderError::Invalid)),
        ("PROXY TCP4 192.0.2.1 198.51.100.1 1  2\r\n", Err(ProxyHeaderError::Invalid)),
        ("PROXY TCP4 192.0.2.1 198.51.100.1 1\r\n", Err(ProxyHeaderError::Invalid)),
        ("PROXY UDP4 192.0.2.1 198.51.100.1 1 2\r\n", Err(ProxyHeaderError::Invalid)),
        ("PROXY \r\n", Err(ProxyHeaderError::Invalid)),
        ("PROXY\r\n", Err(ProxyHeaderError::Absent)),
        ("proxy UNKNOWN\r\n", Err(ProxyHeaderError::Absent)),
        ("GET / HTTP/1.1\r\n", Err(ProxyHeaderError::Absent)),
    ];
    for (line, expected) in cases {
        let expected = expected.map(|origin| Some((origin, line.len())));
        assert_eq!(parse(line.as_bytes()), expected, "{line:?}");
    }
    let filler = "x".repeat(MAX_TEXT_BYTES - "PROXY UNKNOWN \r\n".len());
    assert!(parse(format!("PROXY UNKNOWN {filler}\r\n").as_bytes()).unwrap().is_some());
    assert_eq!(parse(format!("PROXY UNKNOWN x{filler}\r\n").as_bytes()), Err(ProxyHeaderError::TooLong));
}

#[test]
fn binary_header_is_parsed() {
    let of = |client: &str, us: &str| binary_addresses(client.parse().unwrap(), us.parse().unwrap());
    let v4 = of("192.0.2.1:40000", "198.51.100.1:443");
    let v6 = of("[2001:db8::1]:40000", "[::1]:443");
    let with_fields = |addresses: &[u8], count| [addresses, &vec![7; count]].concat();
    let check = |version_and_command: u8,
                 family: u8,
                 rest: &[u8],
                 expected: Result<ProxiedOrigin, ProxyHeaderError>| {
        let header = binary_header(version_and_command, family, rest);
        let expected = expected.map(|origin| Some((origin, header.len())));
        assert_eq!(parse(&header), expected, "{version_and_command:x} {family:x} {rest:?}");
    };
    let room = MAX_HEADER_BYTES - BINARY_HEAD - v4.len();
    check(0x21, 0x11, &v4, Ok(client("192.0.2.1:40000")));
    check(0x21, 0x21, &v6, Ok(client("[2001:db8::1]:40000")));
    check(0x21, 0x11, &with_fields(&v4, 100), Ok(client("192.0.2.1:40000")));
    check(0x21, 0x11, &with_fields(&v4, room), Ok(client("192.0.2.1:40000")));
    check(0x21, 0x11, &with_fields(&v4, room + 1), Err(ProxyHeaderError::TooLong));
    check(0x20, 0x00, &[], Ok(ProxiedOrigin::Proxy));
    check(0x20, 0x11, &v4, Ok(ProxiedOrigin::Proxy));
    check(0x21, 0x00, &[1, 2, 3], Ok(ProxiedOrigin::Proxy));
    check(0x21, 0x12, &v4, Ok(ProxiedOrigin::Proxy));
    check(0x21, 0x31, &[0; 216], Ok(ProxiedOrigin::Proxy));
    check(0x21, 0x11, &v4[..11], Err(ProxyHeaderError::Invalid));
    check(0x21, 0x21, &v4, Err(ProxyHeaderError::Invalid));
    check(0x22, 0x11, &v4, Err(ProxyHeaderError::Invalid));
    check(0x11, 0x11, &v4, Err(ProxyHeaderError::Invalid));
    check(0x21, 0x41, &v4, Err(ProxyHeaderError::Invalid));
    check(0x21, 0x13, &v4, Err(ProxyHeaderError::Invalid));
}

/// A header of either version, and the client that it names.
fn header() -> impl Strategy<Value = (Vec<u8>, SocketAddr)> {
    let v4 = (any::<Ipv4Addr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip.into(), port));
    let v6 = (any::<Ipv6Addr>(), any::<u16>()).prop_map(|(ip, port)| SocketAddr::new(ip.into(), port));
    let both = prop_oneof![(v4.clone(), v4), (v6.clone(), v6)];
    (both, any::<bool>(), prop::collection::vec(any::<u8>(), 0..64)).prop_map(
        |((client, us), is_text, more)| {
            let (word, family) = if client.is_ipv4() { ("TCP4", 0x11) } else { ("TCP6", 0x21) };
            let header = if is_text {
                format!("PROXY {word} {} {} {} {}\r\n", client.ip(), us.ip(), client.port(), us.port()).into()
            } else {
                binary_header(0x21, family, &[binary_addresses(client, us), more].concat())
            };
            (header, client)
        },
    )
}

proptest! {
    /// With any bytes after it, and for each of its prefixes.
    #[test]
    fn parsed_header_equals_the_serialized_one((header, client) in header(), behind: Vec<u8>) {
        let expected = Ok(Some((ProxiedOrigin::Client(client), header.len())));
        prop_assert_eq!(parse(&[&header[..], &behind].concat()), expected);
        for length in 0..header.len() {
            prop_assert_eq!(parse(&header[..length]), Ok(None), "{}", length);
        }
    }

    /// More bytes do not change the result, so the chunks of the stream do not matter.
    #[test]
    fn more_bytes_do_not_change_the_result(
        begin in prop_oneof![Just(TEXT_PREFIX.to_vec()), Just(BINARY_PREFIX.to_vec()), Just(Vec::new())],
        rest: Vec<u8>,
    ) {
        let bytes = [begin, rest].concat();
        let whole = parse(&bytes);
        for length in 0..bytes.len() {
            let part = parse(&bytes[..length]);
            prop_assert!(part == Ok(None) || part == whole, "{length}: {part:?}, then {whole:?}");
        }
        if let Ok(Some((_, end))) = whole {
            prop_assert!(end <= bytes.len());
        }
    }
}
