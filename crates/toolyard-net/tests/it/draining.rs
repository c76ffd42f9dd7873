//! Draining: accepted requests are answered within the drain time.

use std::time::Duration;

use tokio::sync::watch;
use toolyard_net::listener::{ListenerLimits, TlsSettings};

use crate::certificates::{TestAuthority, TestClient};
use crate::test_listener::{LIMITS, LONG, TestListener, answer, get_page, read_to_end};

#[tokio::test]
async fn accepted_connections_are_answered() {
    let authority = TestAuthority::new();
    let tls = watch::Sender::new(TlsSettings::read(&authority.issue("a", "a.example")).unwrap());
    let current = tls.subscribe();
    let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let encrypted = other.local_addr().unwrap();
    let other = toolyard_net::listener::SocketListener::from(other).with_tls(current);
    let site = TestListener::open(LONG, |listener| vec![listener, other]).await;
    let mut running = site.connect().await;
    site.start_wait(&mut running).await;
    let (mut silent, mut used) = (site.connect().await, site.connect().await);
    get_page(&mut used, "/").await;
    let unencrypted = tokio::net::TcpStream::connect(encrypted).await.unwrap();

    let stopping = site.start_draining().await;
    let mut shaken = authority.connect(unencrypted, "a.example", &TestClient::default()).await.unwrap();
    let (head, _) = get_page(&mut shaken, "/").await;
    assert!(head.contains("connection: close"), "{head}");
    for stream in [&mut silent, &mut used] {
        let (head, _) = get_page(stream, "/").await;
        assert!(head.contains("connection: close"), "{head}");
        assert_eq!(read_to_end(stream).await, b"");
    }
    stopping.end_waits(1);
    let (head, body) = answer(&mut running).await;
    assert!(head.contains("connection: close"), "{head}");
    assert_eq!(body, "done");
    stopping.end().await;
}

#[tokio::test]
async fn silent_connections_do_not_delay_draining() {
    let site = TestListener::open(LONG, |listener| vec![listener]).await;
    let (mut silent, mut used) = (site.connect().await, site.connect().await);
    get_page(&mut used, "/").await;
    site.stop().await;
    assert_eq!((read_to_end(&mut silent).await, read_to_end(&mut used).await), (vec![], vec![]));
}

#[tokio::test]
async fn draining_ends_after_the_drain_time() {
    let drain_time = Duration::from_millis(50);
    let site = TestListener::with(ListenerLimits { drain_time, ..LIMITS }, |listener| vec![listener]).await;
    let mut running = site.connect().await;
    site.start_wait(&mut running).await;
    site.stop().await;
    assert_eq!(read_to_end(&mut running).await, b"");
}
