//! The servers: a table of the matrix each.

use std::ffi::OsStr;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::client::{Carrier, Revision};
use super::script::{EVERYTHING, FIXTURE, Script};
use super::tap::Tap;
use crate::builds::built;
use crate::peers::Peers;
use crate::process::{Process, START_LIMIT};

/// Whose software a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// npm's `server-everything`, on the TypeScript SDK.
    Everything,
    /// `fixtures/matrix/server.py`, on the Python SDK.
    Python,
    /// The example `matrix` of our SDK.
    Sdk,
}

/// A server, and how it is reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    /// The name of its handler.
    pub(super) name: &'static str,
    pub(super) family: Family,
    pub(super) revision: Revision,
    pub(super) carrier: Carrier,
}

const fn subject(name: &'static str, family: Family, revision: Revision, carrier: Carrier) -> Subject {
    Subject { name, family, revision, carrier }
}

pub(super) const SUBJECTS: [Subject; 10] = [
    subject("everything-stdio", Family::Everything, Revision::V2025_11_25, Carrier::Stdio),
    subject("everything-sse", Family::Everything, Revision::V2025_11_25, Carrier::Sse),
    subject("everything-http", Family::Everything, Revision::V2025_11_25, Carrier::Http),
    subject("python-stdio", Family::Python, Revision::V2026_07_28, Carrier::Stdio),
    subject("python-http", Family::Python, Revision::V2026_07_28, Carrier::Http),
    subject("sdk-2024-11-05", Family::Sdk, Revision::V2024_11_05, Carrier::Sse),
    subject("sdk-2025-03-26", Family::Sdk, Revision::V2025_03_26, Carrier::Http),
    subject("sdk-2025-06-18", Family::Sdk, Revision::V2025_06_18, Carrier::Http),
    subject("sdk-2025-11-25", Family::Sdk, Revision::V2025_11_25, Carrier::Http),
    subject("sdk-2026-07-28", Family::Sdk, Revision::V2026_07_28, Carrier::Http),
];

impl Subject {
    /// What it is, for people.
    pub(super) fn title(&self) -> String {
        let software = match self.family {
            Family::Everything => "npm server-everything",
            Family::Python => "Python SDK",
            Family::Sdk => "Toolyard's SDK",
        };
        let carrier = match self.carrier {
            Carrier::Stdio => "stdio",
            Carrier::Sse => "HTTP+SSE",
            Carrier::Http => "streamable HTTP",
        };
        format!("{software}, {} over {carrier}", self.revision.name())
    }

    pub(super) const fn script(&self) -> &'static Script {
        match self.family {
            Family::Everything => &EVERYTHING,
            Family::Python | Family::Sdk => &FIXTURE,
        }
    }
}

/// A server that runs, or that the gateway starts.
pub(super) struct Server {
    pub(super) subject: Subject,
    /// The entry of the manifest.
    pub(super) handler: Value,
    /// The same server on one connection for all, where it does not have that anyhow.
    pub(super) shared: Option<Value>,
    /// The same server with a connection for each client, where what it says would not tell whom it is for.
    pub(super) apart: Option<Value>,
    pub(super) tap: Option<Tap>,
    _process: Option<Process>,
}

impl Server {
    pub(super) async fn start(subject: Subject, peers: &Peers, folder: &Path) -> anyhow::Result<Self> {
        let (mut process, mut tap) = (None, None);
        let mut config = match (subject.family, subject.carrier) {
            (Family::Everything, Carrier::Stdio) => {
                let said = folder.join(format!("{}.said", subject.name));
                let line = format!("tee {}.$$ | {}", quoted(&said), everything(peers));
                tap = Some(Tap::Files(said));
                json!({"transport": "stdio", "command": "sh", "args": ["-c", line]})
            }
            (Family::Everything, carrier) => {
                let port = free_port()?;
                let (word, path) =
                    if carrier == Carrier::Sse { ("sse", "sse") } else { ("streamableHttp", "mcp") };
                let line = format!("PORT={port} exec {} {word} > /dev/null 2>&1", everything(peers));
                process = Some(Process::launch("sh", &["-c", &line].map(OsStr::new), Stdio::null())?);
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                await_listener(address)?;
                let (address, relay) = Tap::relay(address).await?;
                tap = Some(relay);
                over_http(carrier, &format!("http://{address}/{path}"))
            }
            (Family::Python, Carrier::Stdio) => {
                json!({"transport": "stdio", "command": python(peers), "args": [fixture(), "stdio"]})
            }
            (Family::Python, carrier) => {
                let script = fixture();
                let args = [script.as_str(), "http"].map(OsStr::new);
                let (address, server) = launch(python(peers).as_ref(), &args, folder, subject.name)?;
                process = Some(server);
                over_http(carrier, &format!("http://{address}/mcp"))
            }
            (Family::Sdk, carrier) => {
                let args = [subject.revision.name()].map(OsStr::new);
                let (address, server) = launch(&built("examples/matrix")?, &args, folder, subject.name)?;
                process = Some(server);
                let path = if carrier == Carrier::Sse { "sse" } else { "mcp" };
                over_http(carrier, &format!("http://{address}/{path}"))
            }
        };
        let (mut shared, mut apart) = (None, None);
        let entry = |config: &Value| json!({"name": subject.name, "type": "mcp", "mcpConfig": config});
        if subject.family == Family::Everything {
            config["lane"] = "shared".into();
            shared = Some(entry(&config));
            // It lists what asks its client to those only who can be asked, and remembers what it was told.
            config["lane"] = "client".into();
        }
        let handler = entry(&config);
        if (subject.family, subject.carrier) == (Family::Python, Carrier::Stdio) {
            config["lane"] = "client".into();
            apart = Some(entry(&config));
        }
        Ok(Self { subject, handler, shared, apart, tap, _process: process })
    }
}

fn over_http(carrier: Carrier, url: &str) -> Value {
    let transport = if carrier == Carrier::Sse { "sse" } else { "streamable-http" };
    json!({"transport": transport, "endpoint": url})
}

fn launch(
    program: &Path,
    args: &[&OsStr],
    folder: &Path,
    name: &str,
) -> anyhow::Result<(SocketAddr, Process)> {
    let log = File::create(folder.join(format!("{name}.log")))?;
    let mut server = Process::launch(program, args, log.into())?;
    let address = server.printed_address().with_context(|| name.to_owned())?;
    Ok((address, server))
}

fn python(peers: &Peers) -> std::path::PathBuf {
    peers.folder().join("python/bin/python")
}

fn fixture() -> String {
    crate::root().join("fixtures/matrix/server.py").to_string_lossy().into_owned()
}

fn everything(peers: &Peers) -> String {
    let program = peers.folder().join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    format!("{} {}", quoted(&peers.node()), quoted(&program))
}

/// As a shell has it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

/// A port on which nobody listened a moment ago: this server cannot choose one by itself.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn await_listener(address: SocketAddr) -> anyhow::Result<()> {
    let begun = Instant::now();
    while std::net::TcpStream::connect(address).is_err() {
        ensure!(begun.elapsed() < START_LIMIT, "nobody listens on {address}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
