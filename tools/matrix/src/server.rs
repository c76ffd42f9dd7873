//! The servers: one table of the matrix each.

use std::ffi::OsStr;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use xtask_support::builds::sibling_program;
use xtask_support::peers::PeerSoftware;
use xtask_support::process::{LaunchedProcess, START_LIMIT};

use super::client::{MatrixTransport, McpRevision};
use super::scope::HandlerSetting;
use super::script::{EVERYTHING, FIXTURE, FeatureScript};
use super::tap::TrafficTap;

/// The software of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerFamily {
    /// npm's `server-everything`, on the TypeScript SDK v1.
    Everything,
    /// `fixtures/matrix/typescript_v1.cjs`: each session has lists of its own.
    TypescriptV1,
    /// `fixtures/matrix/typescript_v2.cjs`, which supports both eras and asks in the legacy one.
    TypescriptV2,
    /// `fixtures/matrix/server.py`, on the Python SDK, which supports both eras and asks in the modern one.
    Python,
    /// `fixtures/matrix/fastmcp_server.py`, on FastMCP 2.14.
    Fastmcp2,
    /// The same on FastMCP 3.4.
    Fastmcp3,
    /// The same on FastMCP 4.1, which supports both eras and asks in the legacy one.
    Fastmcp4,
    /// The example `matrix` of our SDK.
    Sdk,
}

impl ServerFamily {
    /// Name for the page.
    const fn software(self) -> &'static str {
        match self {
            Self::Everything => "npm server-everything",
            Self::TypescriptV1 => "TypeScript SDK v1",
            Self::TypescriptV2 => "TypeScript SDK v2",
            Self::Python => "Python SDK",
            Self::Fastmcp2 => "FastMCP 2.14",
            Self::Fastmcp3 => "FastMCP 3.4",
            Self::Fastmcp4 => "FastMCP 4.1",
            Self::Sdk => "Toolyard's SDK",
        }
    }

    /// True if its servers support both eras.
    const fn has_both_eras(self) -> bool {
        matches!(self, Self::TypescriptV2 | Self::Python | Self::Fastmcp4)
    }

    pub(super) const fn is_fastmcp(self) -> bool {
        matches!(self, Self::Fastmcp2 | Self::Fastmcp3 | Self::Fastmcp4)
    }

    /// True if its servers announce a change of a list only to the connection that caused it.
    pub(super) const fn announces_to_one(self) -> bool {
        matches!(self, Self::Everything | Self::TypescriptV1 | Self::Fastmcp2 | Self::Fastmcp3)
    }

    /// The program and arguments of a fixture in another language; the transport follows them.
    fn fixture_command(self, peers: &PeerSoftware) -> Vec<String> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let script = |name| text(xtask_support::root().join("fixtures/matrix").join(name));
        let node = |name| {
            let modules = format!("NODE_PATH={}", peers.node_modules().display());
            vec!["env".to_owned(), modules, text(peers.node()), script(name)]
        };
        let python = |python, name| vec![text(python), script(name)];
        match self {
            Self::TypescriptV1 => node("typescript_v1.cjs"),
            Self::TypescriptV2 => node("typescript_v2.cjs"),
            Self::Python => python(peers.python(), "server.py"),
            Self::Fastmcp2 => python(peers.python_of("fastmcp-2.14"), "fastmcp_server.py"),
            Self::Fastmcp3 => python(peers.python_of("fastmcp-3.4"), "fastmcp_server.py"),
            Self::Fastmcp4 => python(peers.python(), "fastmcp_server.py"),
            Self::Everything | Self::Sdk => Vec::new(),
        }
    }
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

pub(super) const SERVERS: [ServerSpec; 18] = [
    server_spec(
        "everything-stdio",
        ServerFamily::Everything,
        McpRevision::V2025_11_25,
        MatrixTransport::Stdio,
    ),
    server_spec("everything-sse", ServerFamily::Everything, McpRevision::V2025_11_25, MatrixTransport::Sse),
    server_spec("everything-http", ServerFamily::Everything, McpRevision::V2025_11_25, MatrixTransport::Http),
    server_spec(
        "typescript-v1-stdio",
        ServerFamily::TypescriptV1,
        McpRevision::V2025_11_25,
        MatrixTransport::Stdio,
    ),
    server_spec(
        "typescript-v1-http",
        ServerFamily::TypescriptV1,
        McpRevision::V2025_11_25,
        MatrixTransport::Http,
    ),
    server_spec(
        "typescript-v2-stdio",
        ServerFamily::TypescriptV2,
        McpRevision::V2026_07_28,
        MatrixTransport::Stdio,
    ),
    server_spec(
        "typescript-v2-http",
        ServerFamily::TypescriptV2,
        McpRevision::V2026_07_28,
        MatrixTransport::Http,
    ),
    server_spec("python-stdio", ServerFamily::Python, McpRevision::V2026_07_28, MatrixTransport::Stdio),
    server_spec("python-http", ServerFamily::Python, McpRevision::V2026_07_28, MatrixTransport::Http),
    server_spec("fastmcp-2-sse", ServerFamily::Fastmcp2, McpRevision::V2025_11_25, MatrixTransport::Sse),
    server_spec("fastmcp-2-http", ServerFamily::Fastmcp2, McpRevision::V2025_11_25, MatrixTransport::Http),
    server_spec("fastmcp-3-http", ServerFamily::Fastmcp3, McpRevision::V2025_11_25, MatrixTransport::Http),
    server_spec("fastmcp-4-http", ServerFamily::Fastmcp4, McpRevision::V2026_07_28, MatrixTransport::Http),
    server_spec("sdk-2024-11-05", ServerFamily::Sdk, McpRevision::V2024_11_05, MatrixTransport::Sse),
    server_spec("sdk-2025-03-26", ServerFamily::Sdk, McpRevision::V2025_03_26, MatrixTransport::Http),
    server_spec("sdk-2025-06-18", ServerFamily::Sdk, McpRevision::V2025_06_18, MatrixTransport::Http),
    server_spec("sdk-2025-11-25", ServerFamily::Sdk, McpRevision::V2025_11_25, MatrixTransport::Http),
    server_spec("sdk-2026-07-28", ServerFamily::Sdk, McpRevision::V2026_07_28, MatrixTransport::Http),
];

impl ServerSpec {
    /// Title for the page.
    pub(super) fn title(&self) -> String {
        let carrier = match self.carrier {
            MatrixTransport::Stdio => "stdio",
            MatrixTransport::Sse => "HTTP+SSE",
            MatrixTransport::Http => "streamable HTTP",
        };
        let revision = if self.family.has_both_eras() { "both eras" } else { self.revision.name() };
        format!("{}, {revision} over {carrier}", self.family.software())
    }

    pub(super) const fn script(&self) -> &'static FeatureScript {
        match self.family {
            ServerFamily::Everything => &EVERYTHING,
            _ => &FIXTURE,
        }
    }
}

/// A running server, or one that the gateway starts.
pub(super) struct MatrixServer {
    pub(super) subject: ServerSpec,
    /// The `mcpConfig` of its handler: only where it is.
    location: Value,
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
        let location = match (subject.family, subject.carrier) {
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
                http_location(carrier, &format!("http://{address}/{path}"))
            }
            (ServerFamily::Sdk, carrier) => {
                let program = sibling_program("examples/matrix")?;
                let (location, server) =
                    launch(subject, &program, &[subject.revision.name()], carrier, folder)?;
                process = Some(server);
                location
            }
            (family, MatrixTransport::Stdio) => {
                let command = family.fixture_command(peers);
                let [command, args @ ..] = &command[..] else { bail!("no command") };
                let args = [args, &["stdio".to_owned()]].concat();
                json!({"transport": "stdio", "command": command, "args": args})
            }
            (family, carrier) => {
                let word = if carrier == MatrixTransport::Sse { "sse" } else { "http" };
                let command = family.fixture_command(peers);
                let [program, args @ ..] = &command[..] else { bail!("no command") };
                let args: Vec<_> = args.iter().map(String::as_str).chain([word]).collect();
                let (location, server) = launch(subject, Path::new(program), &args, carrier, folder)?;
                process = Some(server);
                location
            }
        };
        Ok(Self { subject, location, tap, _process: process })
    }

    /// Its handler in the manifest, in the default configuration or with another setting.
    pub(super) fn handler(&self, setting: HandlerSetting) -> Value {
        let mut config = self.location.clone();
        if let Some((name, value)) = setting.field() {
            config[name] = value.into();
        }
        json!({"name": self.subject.name, "type": "mcp", "mcpConfig": config})
    }
}

fn http_location(carrier: MatrixTransport, url: &str) -> Value {
    let transport = if carrier == MatrixTransport::Sse { "sse" } else { "streamable-http" };
    json!({"transport": transport, "endpoint": url})
}

/// Starts a server that prints its address.
fn launch(
    subject: ServerSpec,
    program: &Path,
    args: &[&str],
    carrier: MatrixTransport,
    folder: &Path,
) -> anyhow::Result<(Value, LaunchedProcess)> {
    let log = File::create(folder.join(format!("{}.log", subject.name)))?;
    let args: Vec<_> = args.iter().map(OsStr::new).collect();
    let mut server = LaunchedProcess::launch(program, &args, log.into())?;
    let address = server.printed_address().context(subject.name)?;
    let path = if carrier == MatrixTransport::Sse { "sse" } else { "mcp" };
    Ok((http_location(carrier, &format!("http://{address}/{path}")), server))
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
