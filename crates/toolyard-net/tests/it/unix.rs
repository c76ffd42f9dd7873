use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use tempfile::TempDir;
use tokio::net::UnixStream;
use toolyard_net::listener::Listener;

use crate::site::{LONG, Site, ask};

#[tokio::test]
async fn a_socket_beside_an_address() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.sock");
    let unix = Listener::unix(&path).await.unwrap();
    assert_eq!(unix.tcp_address().unwrap(), None);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let site = Site::open(LONG, |tcp| vec![tcp, unix]).await;
    let mut local = UnixStream::connect(&path).await.unwrap();
    assert_eq!(ask(&mut local).await, "unix");
    let mut stream = site.connect().await;
    assert_eq!(ask(&mut stream).await, stream.local_addr().unwrap().to_string());
    site.stop().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn what_may_be_there_already() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.sock");
    let refusal = async || Listener::unix(&path).await.unwrap_err().to_string();
    let live = UnixListener::bind(&path).unwrap();
    assert_eq!(refusal().await, "somebody listens there already");
    drop(live);
    // Its file stays, as after a crash.
    assert!(path.exists());
    drop(Listener::unix(&path).await.unwrap());
    fs::write(&path, "precious").unwrap();
    assert_eq!(refusal().await, "there is a file of this name that is no socket");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    assert!(Listener::unix(&folder.path().join("missing/a.sock")).await.is_err());
}

/// Whoever listens there now keeps the file.
#[tokio::test]
async fn only_our_own_file_is_removed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.sock");
    let ours = Listener::unix(&path).await.unwrap();
    fs::rename(&path, folder.path().join("b.sock")).unwrap();
    let theirs = UnixListener::bind(&path).unwrap();
    drop(ours);
    assert!(path.exists());
    drop(theirs);
}
