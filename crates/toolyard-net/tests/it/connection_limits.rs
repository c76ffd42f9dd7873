//! Connections beyond the limit, and clients that do not read.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use toolyard_net::listener::ListenerLimits;

use crate::test_listener::{LIMITS, TestListener, answer, get_client_address, get_page, read_to_end, send};

async fn site(connections: usize) -> TestListener {
    TestListener::with(ListenerLimits { connections, ..LIMITS }, |listener| vec![listener]).await
}

#[tokio::test]
async fn longest_silent_connection_is_evicted() {
    let site = site(3).await;
    let mut first = site.connect().await;
    get_client_address(&mut first).await;
    let [mut second, mut third] = [site.connect().await, site.connect().await];
    // The first connection is not the longest silent one any more.
    get_client_address(&mut first).await;
    let mut fourth = site.connect().await;
    get_client_address(&mut fourth).await;
    assert_eq!(read_to_end(&mut second).await, b"");
    for stream in [&mut first, &mut third, &mut fourth] {
        get_client_address(stream).await;
    }
    // An incomplete head counts as silence.
    let mut half = site.connect().await;
    half.write_all(b"GET / HTTP/1.1\r\nHo").await.unwrap();
    let mut more = Vec::new();
    for _ in 0..3 {
        more.push(site.connect().await);
        get_client_address(more.last_mut().unwrap()).await;
    }
    assert_eq!(read_to_end(&mut half).await, b"");
    site.stop().await;
}

#[tokio::test]
async fn connection_with_an_admitted_request_is_evicted_last() {
    let site = site(2).await;
    let mut admitted = site.connect().await;
    assert_eq!(get_page(&mut admitted, "/enter").await.1, "welcome");
    for _ in 0..3 {
        let mut stranger = site.connect().await;
        let mut other = site.connect().await;
        other.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.unwrap();
        assert_eq!(read_to_end(&mut stranger).await, b"");
        // A connection whose request is still open would be evicted even later than the admitted one.
        assert_ne!(read_to_end(&mut other).await, b"");
    }
    assert_eq!(get_page(&mut admitted, "/enter").await.1, "known");
    let mut second = site.connect().await;
    assert_eq!(get_page(&mut second, "/enter").await.1, "welcome");
    let mut third = site.connect().await;
    assert_eq!(get_page(&mut third, "/enter").await.1, "welcome");
    assert_eq!(read_to_end(&mut admitted).await, b"", "the longest silent one is evicted");
    site.stop().await;
}

#[tokio::test]
async fn busy_connections_are_not_evicted_and_health_has_reserved_permits() {
    let site = site(2).await;
    let mut waiting = [site.connect().await, site.connect().await];
    for stream in &mut waiting {
        site.start_wait(stream).await;
    }
    for _ in 0..3 {
        let mut health = site.connect().await;
        let (head, body) = get_page(&mut health, "/health").await;
        assert!(head.starts_with("http/1.1 200 ") && head.contains("connection: close"), "{head}");
        assert_eq!((body.as_str(), read_to_end(&mut health).await.len()), ("well", 0));
    }
    let mut refused = site.connect().await;
    let (head, body) = get_page(&mut refused, "/").await;
    assert!(head.starts_with("http/1.1 503 ") && head.contains("retry-after: 1"), "{head}");
    assert_eq!(body, "too many connections are open");
    // Silent connections do not take the permits of the health check either.
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(site.connect().await);
    }
    assert_eq!(get_page(&mut site.connect().await, "/health").await.1, "well");
    site.end_waits(2);
    for stream in &mut waiting {
        assert_eq!(answer(stream).await.1, "done");
    }
    site.stop().await;
}

/// Connects as a proxy does for a client.
async fn connect_from(site: &TestListener, client: &str) -> TcpStream {
    let mut stream = site.connect().await;
    let (family, own) = if client.contains(':') { ("TCP6", "::1") } else { ("TCP4", "127.0.0.1") };
    let header = format!("PROXY {family} {client} {own} 40000 443\r\n");
    stream.write_all(header.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn connections_per_address_are_limited() {
    let limits = ListenerLimits { connections_per_address: 2, ..LIMITS };
    let behind = |network: &str| vec![network.parse().unwrap()];
    let site =
        TestListener::with(limits, |listener| vec![listener.with_proxies(&behind("127.0.0.1/32"))]).await;
    for client in ["192.0.2.1", "::ffff:192.0.2.2", "2001:db8::1"] {
        let mut open = [connect_from(&site, client).await, connect_from(&site, client).await];
        for stream in &mut open {
            site.start_wait(stream).await;
        }
        let mut third = connect_from(&site, client).await;
        send(&mut third, "/").await;
        assert_eq!(read_to_end(&mut third).await, b"", "{client}");
        // Other addresses have permits of their own.
        get_client_address(&mut connect_from(&site, "198.51.100.1").await).await;
        site.end_waits(2);
        for stream in &mut open {
            assert_eq!(answer(stream).await.1, "done");
        }
        get_client_address(&mut connect_from(&site, client).await).await;
        get_client_address(&mut open[1]).await;
        assert_eq!(read_to_end(&mut open[0]).await, b"", "the longest silent one of the address is evicted");
    }
    let mut waiting = [connect_from(&site, "2001:db8::1").await, connect_from(&site, "2001:db8::2").await];
    for stream in &mut waiting {
        site.start_wait(stream).await;
    }
    let mut same_network = connect_from(&site, "2001:db8::3").await;
    send(&mut same_network, "/").await;
    assert_eq!(read_to_end(&mut same_network).await, b"");
    get_client_address(&mut connect_from(&site, "2001:db8:0:1::1").await).await;
    // This machine has no limit per address.
    let mut local = Vec::new();
    for _ in 0..4 {
        local.push(connect_from(&site, "127.0.0.2").await);
        site.start_wait(local.last_mut().unwrap()).await;
    }
    site.end_waits(6);
    site.stop().await;
}

#[tokio::test]
async fn client_that_does_not_read_is_disconnected() {
    let write_time = Duration::from_millis(50);
    let site = TestListener::with(ListenerLimits { write_time, ..LIMITS }, |listener| vec![listener]).await;
    let mut deaf = site.connect().await;
    send(&mut deaf, "/endless").await;
    site.cut().await;
    get_client_address(&mut site.connect().await).await;
    site.stop().await;
}
