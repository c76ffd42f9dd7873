//! The status of a gateway, from its `GET /api/v1/status`.

use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

/// Maximum size of a report in bytes.
const MAX_BYTES: usize = 16 << 20;

/// The part of a gateway's report that the status of registries needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayReport {
    /// The tools of all handlers.
    pub discovered_tools: Vec<ReportedTool>,
    /// The handlers.
    pub handlers: Vec<ReportedHandler>,
    /// Digest of the manifest that the gateway serves; `None` from gateways that do not report it.
    pub manifest_digest: Option<String>,
    /// Outcome of the last edit of the manifest.
    pub last_edit: Option<ReportedEdit>,
}

/// A tool of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportedTool {
    /// Name of the handler.
    pub handler_name: String,
    /// Name of the tool.
    pub name: String,
    /// `Available`, `Unavailable` or `Unknown`.
    pub status: String,
    /// Address of the server.
    pub endpoint: String,
    /// Reason why it is unavailable.
    pub error: Option<String>,
}

/// A handler of a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportedHandler {
    /// Name.
    pub name: String,
    /// `Ready`, `Pending`, `Installing` or `Unavailable`.
    pub phase: String,
    /// Address of the server.
    pub endpoint: String,
    /// The last failure.
    pub last_error: Option<ReportedError>,
}

/// A failure of a handler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReportedError {
    /// Message.
    pub message: String,
}

/// Outcome of an edit of the manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReportedEdit {
    /// True if the edit was applied.
    pub applied: bool,
    /// The reason for a refusal.
    pub message: String,
}

/// Reads the reports of gateways.
pub trait GatewayReader: Send + Sync {
    /// Returns the report of the gateway at a host and port.
    ///
    /// # Errors
    /// A reason for the status, if the gateway does not respond.
    fn read<'a>(&'a self, authority: &'a str) -> BoxFuture<'a, Result<GatewayReport, String>>;
}

/// Reads reports over HTTP.
#[derive(Debug, Clone, Copy)]
pub struct HttpGatewayReader {
    /// Time limit of a reading.
    pub timeout: Duration,
}

impl GatewayReader for HttpGatewayReader {
    fn read<'a>(&'a self, authority: &'a str) -> BoxFuture<'a, Result<GatewayReport, String>> {
        let reading = tokio::time::timeout(self.timeout, read(authority));
        reading
            .map(|read| read.unwrap_or_else(|_| Err("the gateway does not respond in time".to_owned())))
            .boxed()
    }
}

async fn read(authority: &str) -> Result<GatewayReport, String> {
    let stream = TcpStream::connect(authority)
        .await
        .map_err(|error| format!("the gateway cannot be reached: {error}"))?;
    let broken = |error: hyper::Error| format!("the connection to the gateway broke: {error}");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let request = Request::get("/api/v1/status")
        .header(header::HOST, authority)
        .header(header::ACCEPT, "application/json")
        .body(Empty::<bytes::Bytes>::new())
        .map_err(|error| error.to_string())?;
    let exchange = async move {
        let response = sender.send_request(request).await.map_err(broken)?;
        if response.status() != StatusCode::OK {
            return Err(format!("the gateway responds with the status {}", response.status().as_u16()));
        }
        let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
        let body =
            body.map_err(|_| "the report of the gateway breaks off or is too long".to_owned())?.to_bytes();
        serde_json::from_slice(&body)
            .map_err(|error| format!("the report of the gateway is invalid: {error}"))
    };
    // The connection ends when the exchange has dropped its sender.
    let (report, _) = futures_util::future::join(exchange, connection).await;
    report
}
