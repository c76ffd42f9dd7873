//! A client receives its response after its connection breaks during a call.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;
use tempfile::TempDir;
use toolyard_testing::manifest::stdio_handler;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::support::gateway::TestGateway;

/// A proxy that cuts the first connection with an event of a call, and then creates the file `gate`.
struct CuttingProxy {
    gateway: SocketAddr,
    gate: Box<Path>,
    cuts: AtomicUsize,
}

impl CuttingProxy {
    /// Starts the proxy and returns its address.
    fn open(gateway: SocketAddr, gate: &Path) -> (Arc<Self>, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let this = Arc::new(Self { gateway, gate: gate.into(), cuts: AtomicUsize::new(0) });
        let scissors = this.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(scissors.gateway).unwrap();
                let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || {
                    let _over = std::io::copy(&mut from, &mut to);
                    let _gone = to.shutdown(Shutdown::Both);
                });
                let scissors = scissors.clone();
                thread::spawn(move || scissors.forward(server, client));
            }
        });
        (this, address)
    }

    fn forward(&self, mut server: TcpStream, mut client: TcpStream) {
        let mut piece = [0; 16 << 10];
        while let Ok(read @ 1..) = server.read(&mut piece) {
            if client.write_all(&piece[..read]).is_err() {
                break;
            }
            let is_of_call = piece[..read].windows(6).any(|window| window == b"-call-");
            if is_of_call && self.cuts.fetch_add(1, Ordering::SeqCst) == 0 {
                break;
            }
        }
        for stream in [&client, &server] {
            let _gone = stream.shutdown(Shutdown::Both);
        }
        if self.cuts.load(Ordering::SeqCst) == 1 {
            std::fs::write(&self.gate, "").unwrap();
        }
    }
}

#[test]
fn python_client_resumes_its_stream() {
    let folder = TempDir::new().unwrap();
    let python = peers::peer("python/bin/python");
    let server = stdio_handler(
        "asking",
        python.to_str().unwrap(),
        &[script("asking.py").to_str().unwrap(), folder.path().to_str().unwrap()],
    );
    let gateway = TestGateway::with_handlers(&[server]);
    let (scissors, address) = CuttingProxy::open(gateway.address, &folder.path().join("gate"));
    let mut client = peers::command(&python, folder.path());
    let calls = json!([["wait", {}]]);
    client.arg(script("client.py")).args([&format!("http://{address}/mcp"), "legacy", &calls.to_string()]);
    let ended = run(&mut client);
    assert_eq!(ended.code, 0, "{ended}");
    let seen: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(seen["texts"], json!(["The gate is open."]));
    assert!(scissors.cuts.load(Ordering::SeqCst) > 0, "the connection was cut");
    let received = std::fs::read_to_string(folder.path().join("received")).unwrap();
    assert_eq!(received.matches(r#""tools/call""#).count(), 1, "it was called once");
}
