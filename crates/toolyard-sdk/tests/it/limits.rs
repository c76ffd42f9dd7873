//! Long-running calls, cancellation and limits.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use toolyard_sdk::client::Client;
use toolyard_sdk::{Context, Server, ServerOptions, ToolFailure};

use crate::support::Peer;

/// Notifies when it is dropped.
struct DropNotice(Arc<Notify>);

impl Drop for DropNotice {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn cancelled_call_is_dropped() {
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let hang = {
        let (started, dropped) = (started.clone(), dropped.clone());
        async move || {
            let _dropped = DropNotice(dropped);
            started.notify_one();
            std::future::pending::<String>().await
        }
    };
    let mut peer = Peer::initialized(Server::new("test", "1.0.0").tool("hang", "", hang).unwrap()).await;
    let id = peer.start("tools/call", json!({"name": "hang"})).await;
    started.notified().await;
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    dropped.notified().await;
}

#[tokio::test]
async fn blocking_handler_sees_the_cancellation() {
    let (started, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let spin = {
        let (started, ended) = (started.clone(), ended.clone());
        move |ctx: Context| {
            started.notify_one();
            while !ctx.is_cancelled() {
                std::thread::yield_now();
            }
            ended.notify_one();
        }
    };
    let server =
        Server::new("test", "1.0.0").tool("spin", "", spin).unwrap().tool("fine", "", || "fine").unwrap();
    let mut peer = Peer::initialized(server).await;
    let id = peer.start("tools/call", json!({"name": "spin"})).await;
    started.notified().await;
    assert_eq!(peer.text("fine", json!({})).await, "fine", "other calls are not delayed");
    peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    ended.notified().await;
}

#[tokio::test(start_paused = true)]
async fn call_times_out() {
    let options = ServerOptions { timeout: Duration::from_secs(5), ..ServerOptions::default() };
    let server = Server::new("test", "1.0.0").options(options);
    let server = server.tool("hang", "", async || std::future::pending::<String>().await).unwrap();
    let mut peer = Peer::initialized(server).await;
    let start = tokio::time::Instant::now();
    assert_eq!(peer.text("hang", json!({})).await, "error -32603: The tool did not answer in time");
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test]
async fn call_over_the_limit_is_refused() {
    let options = ServerOptions { concurrent_calls: 1, queued_calls: 0, ..ServerOptions::default() };
    let (started, may_end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let wait = {
        let (started, may_end) = (started.clone(), may_end.clone());
        async move || {
            started.notify_one();
            may_end.notified().await;
            "done"
        }
    };
    let server = Server::new("test", "1.0.0").options(options).tool("wait", "", wait).unwrap();
    let running = server.listen("127.0.0.1:0").await.unwrap();
    let client = Client::connect(&running.url()).await.unwrap();
    let nothing = json!({});
    let call = || client.call::<_, String>("wait", &nothing);
    let second = async {
        started.notified().await;
        let refused = call().await;
        may_end.notify_one();
        refused
    };
    let (first, second) = tokio::join!(call(), second);
    assert_eq!(first.unwrap(), "done");
    let refused = second.unwrap_err().to_string();
    assert_eq!(refused, "the call failed: Too many calls are running: try again later");
}

#[tokio::test]
async fn nested_call_takes_no_slot() {
    let options = ServerOptions { concurrent_calls: 1, ..ServerOptions::default() };
    let outer = async |ctx: Context| {
        let inner = ctx.call_tool("inner", &json!({})).await?;
        Ok::<_, ToolFailure>(format!("outer and {}", inner.text()))
    };
    let server = Server::new("test", "1.0.0").options(options);
    let server = server.tool("outer", "", outer).unwrap().tool("inner", "", async || "inner").unwrap();
    let mut peer = Peer::initialized(server).await;
    assert_eq!(peer.text("outer", json!({})).await, "outer and inner");
}
