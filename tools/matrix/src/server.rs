//! The servers: one table of the matrix each.

use std::ffi::OsStr;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use xtask_support::builds::sibling_program;
use xtask_support::peers::PeerSoftware;
use xtask_support::process::{LaunchedProcess, START_LIMIT};

use super::client::{MatrixTransport, McpRevision};
use super::script::{EVERYTHING, FIXTURE, FeatureScript};
use super::tap::TrafficTap;

/// The software of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerFamily {
    /// npm's `server-everything`, on the TypeScript SDK.
    Everything,
    /// `fixtures/matrix/server.py`, on the Python SDK.
    Python,
    /// The example `matrix` of our SDK.
    Sdk,
}

/// A server, its revision and its transport.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerSpec {
    /// Name of its handler.
    pub(super) name: &'static str,
    pub(super) family: ServerFamily,
    pub(super) revision: McpRevision,
    pub(super) carrier: MatrixTransport,
}

const fn server_spec(
    name: &'static str,
    family: ServerFamily,
    revision: McpRevision,
    carrier: MatrixTransport,
) -> ServerSpec {
    ServerSpec { name, family, revision, carrier }
}

pub(super) const SERVERS: [ServerSpec; 10] = [
    server_spec(
        "everything-stdio",
        ServerFamily::Everything,
        McpRevision::V2025_11_25,
        MatrixTransport::Stdio,
    ),
    server_spec("everything-sse", ServerFamily::Everything, McpRevision::V2025_11_25, MatrixTransport::Sse),
    server_spec("everything-http", ServerFamily::Everything, McpRevision::V2025_11_25, MatrixTransport::Http),
    server_spec("python-stdio", ServerFamily::Python, McpRevision::V2026_07_28, MatrixTransport::Stdio),
    server_spec("python-http", ServerFamily::Python, McpRevision::V2026_07_28, MatrixTransport::Http),
    server_spec("sdk-2024-11-05", ServerFamily::Sdk, McpRevision::V2024_11_05, MatrixTransport::Sse),
    server_spec("sdk-2025-03-26", ServerFamily::Sdk, McpRevision::V2025_03_26, MatrixTransport::Http),
    server_spec("sdk-2025-06-18", ServerFamily::Sdk, McpRevision::V2025_06_18, MatrixTransport::Http),
    server_spec("sdk-2025-11-25", ServerFamily::Sdk, McpRevision::V2025_11_25, MatrixTransport::Http),
    server_spec("sdk-2026-07-28", ServerFamily::Sdk, McpRevision::V2026_07_28, MatrixTransport::Http),
];

impl ServerSpec {
    /// Title for the page.
    pub(super) fn title(&self) -> String {
        let software = match self.family {
            ServerFamily::Everything => "npm server-everything",
            ServerFamily::Python => "Python SDK",
            ServerFamily::Sdk => "Toolyard's SDK",
        };
        let carrier = match self.carrier {
            MatrixTransport::Stdio => "stdio",
            MatrixTransport::Sse => "HTTP+SSE",
            MatrixTransport::Http => "streamable HTTP",
        };
        format!("{software}, {} over {carrier}", self.revision.name())
    }

    pub(super) const fn script(&self) -> &'static FeatureScript {
        match self.family {
            ServerFamily::Everything => &EVERYTHING,
            ServerFamily::Python | ServerFamily::Sdk => &FIXTURE,
        }
    }
}

/// A running server, or one that the gateway starts.
pub(super) struct MatrixServer {
    pub(super) subject: ServerSpec,
    /// Its handler in the manifest.
    pub(super) handler: Value,
    /// The same server with one connection for all clients, unless `handler` has that already.
    pub(super) shared: Option<Value>,
    /// The same server with a connection per client, if its messages do not name their receiver.
    pub(super) apart: Option<Value>,
    pub(super) tap: Option<TrafficTap>,
    _process: Option<LaunchedProcess>,
}

impl MatrixServer {
    pub(super) async fn start(
        subject: ServerSpec,
        peers: &PeerSoftware,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let (mut process, mut tap) = (None, None);
        let mut config = match (subject.family, subject.carrier) {
            (ServerFamily::Everything, MatrixTransport::Stdio) => {
                let path_prefix = folder.join(format!("{}.input", subject.name));
                let line = format!("tee {}.$$ | {}", shell_quote(&path_prefix), everything_command(peers));
                tap = Some(TrafficTap::Files(path_prefix));
                json!({"transport": "stdio", "command": "sh", "args": ["-c", line]})
            }
            (ServerFamily::Everything, carrier) => {
                let port = free_port()?;
                let (word, path) =
                    if carrier == MatrixTransport::Sse { ("sse", "sse") } else { ("streamableHttp", "mcp") };
                let line = format!("PORT={port} exec {} {word} > /dev/null 2>&1", everything_command(peers));
                process = Some(LaunchedProcess::launch("sh", &["-c", &line].map(OsStr::new), Stdio::null())?);
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                await_listener(address)?;
                let (address, relay) = TrafficTap::relay(address).await?;
                tap = Some(relay);
                http_config(carrier, &format!("http://{address}/{path}"))
            }
            (ServerFamily::Python, MatrixTransport::Stdio) => {
                json!({"transport": "stdio", "command": python_path(peers), "args": [fixture_path(), "stdio"]})
            }
            (ServerFamily::Python, carrier) => {
                let script = fixture_path();
                let args = [script.as_str(), "http"].map(OsStr::new);
                let (address, server) = launch(python_path(peers).as_ref(), &args, folder, subject.name)?;
                process = Some(server);
                http_config(carrier, &format!("http://{address}/mcp"))
            }
            (ServerFamily::Sdk, carrier) => {
                let args = [subject.revision.name()].map(OsStr::new);
                let (address, server) =
                    launch(&sibling_program("examples/matrix")?, &args, folder, subject.name)?;
                process = Some(server);
                let path = if carrier == MatrixTransport::Sse { "sse" } else { "mcp" };
                http_config(carrier, &format!("http://{address}/{path}"))
            }
        };
        let (mut shared, mut apart) = (None, None);
        let entry = |config: &Value| json!({"name": subject.name, "type": "mcp", "mcpConfig": config});
        if subject.family == ServerFamily::Everything {
            config["lane"] = "shared".into();
            shared = Some(entry(&config));
            // It lists tools that need client capabilities only to clients that have them, and keeps state per
            // connection.
            config["lane"] = "client".into();
        }
        let handler = entry(&config);
        if (subject.family, subject.carrier) == (ServerFamily::Python, MatrixTransport::Stdio) {
            config["lane"] = "client".into();
            apart = Some(entry(&config));
        }
        Ok(Self { subject, handler, shared, apart, tap, _process: process })
    }
}

fn http_config(carrier: MatrixTransport, url: &str) -> Value {
    let transport = if carrier == MatrixTransport::Sse { "sse" } else { "streamable-http" };
    json!({"transport": transport, "endpoint": url})
}

fn launch(
    program: &Path,
    args: &[&OsStr],
    folder: &Path,
    name: &str,
) -> anyhow::Result<(SocketAddr, LaunchedProcess)> {
    let log = File::create(folder.join(format!("{name}.log")))?;
    let mut server = LaunchedProcess::launch(program, args, log.into())?;
    let address = server.printed_address().with_context(|| name.to_owned())?;
    Ok((address, server))
}

fn python_path(peers: &PeerSoftware) -> std::path::PathBuf {
    peers.folder().join("python/bin/python")
}

fn fixture_path() -> String {
    xtask_support::root().join("fixtures/matrix/server.py").to_string_lossy().into_owned()
}

fn everything_command(peers: &PeerSoftware) -> String {
    let program = peers.folder().join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    format!("{} {}", shell_quote(&peers.node()), shell_quote(&program))
}

/// Quotes a path for the shell.
fn shell_quote(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

/// A port that was free a moment ago: this server cannot choose one itself.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn await_listener(address: SocketAddr) -> anyhow::Result<()> {
    let started = Instant::now();
    while std::net::TcpStream::connect(address).is_err() {
        ensure!(started.elapsed() < START_LIMIT, "nothing listens on {address}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
