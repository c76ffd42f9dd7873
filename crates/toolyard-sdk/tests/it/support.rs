//! A client on a pipe, with access to every message, and an application that serves routes.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use toolyard_net::listener::{self, ListenerLimits};
use toolyard_net::workers::WorkerPool;
use toolyard_sdk::axum::Router;
use toolyard_sdk::{Result, Server};
use toolyard_testing::line_pipe::LinePipe;

/// A client of one server.
pub(crate) struct Peer {
    pipe: LinePipe,
    serving: JoinHandle<Result<()>>,
    next_id: u64,
    /// The received messages that are not responses.
    pub(crate) notices: Vec<Value>,
}

impl Peer {
    /// A client that has not sent anything yet.
    pub(crate) fn connect(server: Server) -> Self {
        let (pipe, input, output) = LinePipe::new(64 << 10);
        let serving = tokio::spawn(server.serve(input, output));
        Self { pipe, serving, next_id: 0, notices: Vec::new() }
    }

    /// An initialized client of revision 2025-11-25.
    pub(crate) async fn initialized(server: Server) -> Self {
        let mut peer = Self::connect(server);
        let client = json!({"name": "test", "version": "0"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        peer.request("initialize", params).await;
        peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        peer
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.pipe.send(&message.to_string()).await;
    }

    /// Sends a request and returns its id.
    pub(crate) async fn start(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        let line = self.pipe.next().await.expect("the server has closed the connection");
        serde_json::from_str(&line).unwrap()
    }

    /// The response to a request, without its envelope.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return message.get("result").cloned().unwrap_or_else(|| json!({"error": message["error"]}));
            }
            self.notices.push(message);
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params).await;
        self.answer(id).await
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Calls a tool and returns its result in one line.
    pub(crate) async fn text(&mut self, tool: &str, arguments: Value) -> String {
        result_line(&self.call(tool, arguments).await)
    }

    /// The names of the tools, in order.
    pub(crate) async fn tools(&mut self) -> Vec<String> {
        let list = self.request("tools/list", json!({})).await;
        let tools = list["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until the server closes the connection, and returns the result of serving.
    pub(crate) async fn wait_for_end(mut self) -> Result<()> {
        while self.pipe.next().await.is_some() {}
        self.serving.await.unwrap()
    }

    /// Closes the connection and returns the result of serving.
    pub(crate) async fn close(self) -> Result<()> {
        drop(self.pipe);
        self.serving.await.unwrap()
    }
}

/// Serves routes on a free port until `stop` completes, as another application would, without limits of time.
pub(crate) async fn serve_routes(
    routes: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let hour = Duration::from_secs(3600);
    let limits = ListenerLimits {
        connections: 100,
        connections_per_address: 100,
        health_paths: &[],
        head_bytes: 8 << 10,
        head_time: hour,
        write_time: hour,
        drain_time: hour,
    };
    let workers = WorkerPool::start(1).unwrap();
    let serving = tokio::spawn(async move {
        listener::serve(vec![listener.into()], routes, limits, &workers, stop).await;
    });
    (address, serving)
}

/// The texts of a result in one line, marked if it is an error.
pub(crate) fn result_line(result: &Value) -> String {
    if !result["error"].is_null() {
        return format!(
            "error {}: {}",
            result["error"]["code"],
            result["error"]["message"].as_str().unwrap()
        );
    }
    let content = result["content"].as_array().unwrap();
    let texts: Vec<_> = content.iter().map(|block| block["text"].as_str().unwrap_or("?")).collect();
    let failed = if result["isError"] == true { "failed: " } else { "" };
    format!("{failed}{}", texts.join(" | "))
}
