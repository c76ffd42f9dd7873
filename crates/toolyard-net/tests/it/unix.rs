use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use tempfile::TempDir;
use tokio::net::UnixStream;
use toolyard_net::listener::SocketListener;

use crate::test_listener::{LONG, TestListener, get_client_address};

#[tokio::test]
async fn unix_socket_and_tcp_address_are_served() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.sock");
    let unix = SocketListener::unix(&path).await.unwrap();
    assert_eq!(unix.tcp_address().unwrap(), None);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let site = TestListener::open(LONG, |tcp| vec![tcp, unix]).await;
    let mut local = UnixStream::connect(&path).await.unwrap();
    assert_eq!(get_client_address(&mut local).await, "unix");
    let mut stream = site.connect().await;
    assert_eq!(get_client_address(&mut stream).await, stream.local_addr().unwrap().to_string());
    site.stop().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn stale_socket_is_replaced_and_other_files_are_kept() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.sock");
    let refusal = async || SocketListener::unix(&path).await.unwrap_err().to_string();
    let live = UnixListener::bind(&path).unwrap();
    assert_eq!(refusal().await, "another process listens there");
    drop(live);
    // The file remains, as after a crash.
    assert!(path.exists());
    drop(SocketListener::unix(&path).await.unwrap());
    fs::write(&path, "precious").unwrap();
    assert_eq!(refusal().await, "the file exists and is not a socket");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    assert!(SocketListener::unix(&folder.path().join("missing/a.sock")).await.is_err());
}

/// The file of another listener stays.
#[tokio::test]
async fn only_the_own_socket_file_is_removed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.sock");
    let ours = SocketListener::unix(&path).await.unwrap();
    fs::rename(&path, folder.path().join("b.sock")).unwrap();
    let theirs = UnixListener::bind(&path).unwrap();
    drop(ours);
    assert!(path.exists());
    drop(theirs);
}
