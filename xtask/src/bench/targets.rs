//! What is measured, and the upstream behind it.

use std::ffi::OsStr;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use serde::Serialize;
use tempfile::TempDir;

use super::gateway::Setup;
use super::{Binaries, Plan, load, nginx};
use crate::builds::{built, named_or_built};
use crate::client::{Connection, Era};
use crate::process::{Process, START_LIMIT};
use crate::system;

/// What stands between the load and the upstream.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// Nothing: what is measured is the upstream itself
    Direct,
    /// nginx as a plain proxy
    Nginx,
    /// The gateway without a key, an audit trail or a collector
    Gateway,
    /// The gateway with all of these
    Operated,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::Direct, Kind::Nginx, Kind::Gateway, Kind::Operated];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Direct => "direct",
            Kind::Nginx => "nginx",
            Kind::Gateway => "gateway",
            Kind::Operated => "operated",
        }
    }

    pub(super) fn is_gateway(self) -> bool {
        matches!(self, Kind::Gateway | Kind::Operated)
    }
}

/// With what the trivial tool is served.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Library {
    /// Ours: `crates/toolyard-sdk/examples/bench_echo.rs`
    Sdk,
    /// The official one: `fixtures/rmcp-server/src/bin/echo.rs`
    Rmcp,
}

impl Library {
    pub(super) const ALL: [Library; 2] = [Library::Sdk, Library::Rmcp];

    pub(super) fn name(self) -> &'static str {
        match self {
            Library::Sdk => "sdk",
            Library::Rmcp => "rmcp",
        }
    }

    /// What cargo is told to build.
    fn cargo_target(self) -> &'static [&'static str] {
        match self {
            Library::Sdk => &["--package", "toolyard-sdk", "--example", "bench_echo"],
            Library::Rmcp => &[
                "--locked",
                "--manifest-path",
                "fixtures/rmcp-server/Cargo.toml",
                "--target-dir",
                "target/peers/rmcp-server",
                "--bin",
                "echo",
            ],
        }
    }
}

/// A server at `/mcp`. Clones are the same server; its processes end with the last of them.
#[derive(Clone)]
pub(super) struct Target {
    pub name: &'static str,
    pub address: SocketAddr,
    /// What each request shows.
    pub key: Option<Arc<str>>,
    /// Whether it does a part of its work after the answer: records are written, spans are sent.
    pub puts_off: bool,
    /// The process under test, then those that it depends on.
    processes: Vec<Arc<Process>>,
}

impl Target {
    /// Connects as a client of an era, with the key where one is needed.
    pub(super) async fn connect(&self, era: Era) -> anyhow::Result<Connection> {
        Connection::open_with_key(self.address, era, self.key.as_deref()).await
    }

    pub(super) fn pid(&self) -> u32 {
        self.processes[0].pid()
    }

    /// A server that asks for no key, and has done its work when it has answered.
    pub(super) fn new(
        name: &'static str,
        address: SocketAddr,
        process: Process,
        upstream: &[Arc<Process>],
    ) -> Target {
        let processes = std::iter::once(Arc::new(process)).chain(upstream.iter().cloned()).collect();
        Target { name, address, key: None, puts_off: false, processes }
    }

    /// The same, which ends after what it depends on beside its upstream.
    pub(super) fn beside(mut self, other: &Target) -> Target {
        self.processes.extend(other.processes.iter().cloned());
        self
    }

    pub(super) fn processes(&self) -> &[Arc<Process>] {
        &self.processes
    }
}

/// Where targets are made.
pub(super) struct Workshop {
    pub(super) folder: TempDir,
    pub(super) gateway: Option<PathBuf>,
    libraries: Vec<(Library, PathBuf)>,
    nginx_workers: usize,
    pub(super) functions: Option<PathBuf>,
}

impl Workshop {
    /// Gets ready what the plan needs: nginx from Debian, the rest by building what was not named.
    pub(super) fn open(plan: &Plan, binaries: &Binaries, nginx_workers: usize) -> anyhow::Result<Workshop> {
        if plan.kinds.contains(&Kind::Nginx) {
            system::install_nginx()?;
        }
        let gateway = match plan.measures_gateways() {
            true => {
                let target = ["--package", "toolyard", "--bin", "toolyard"];
                Some(named_or_built(binaries.gateway.as_deref(), &target)?)
            }
            false => None,
        };
        let library = |library: &Library| {
            let named = match library {
                Library::Sdk => binaries.sdk_echo.as_deref(),
                Library::Rmcp => binaries.rmcp_echo.as_deref(),
            };
            anyhow::Ok((*library, named_or_built(named, library.cargo_target())?))
        };
        let libraries = plan.libraries.iter().map(library).collect::<anyhow::Result<_>>()?;
        let functions = binaries.functions.clone();
        Ok(Workshop { folder: TempDir::new()?, gateway, libraries, nginx_workers, functions })
    }

    /// The wanted targets in front of one upstream, each of which lists all its tools already.
    pub(super) async fn line_up(&self, kinds: &[Kind], tools: usize) -> anyhow::Result<Vec<Target>> {
        let echo = self.echo(tools)?;
        let mut targets = Vec::new();
        for kind in kinds {
            let target = match kind {
                Kind::Direct => echo.clone(),
                Kind::Nginx => self.nginx(&echo)?,
                Kind::Gateway => self.gateway(&echo, &Setup::PLAIN).await?,
                Kind::Operated => self.gateway(&echo, &Setup::OPERATED).await?,
            };
            load::first_list(&target, tools).await.context(kind.name())?;
            targets.push(target);
        }
        Ok(targets)
    }

    /// The upstream.
    pub(super) fn echo(&self, tools: usize) -> anyhow::Result<Target> {
        own_part(Kind::Direct.name(), &["echo", "--tools", &tools.to_string()])
    }

    /// What telemetry is sent to.
    pub(super) fn sink(&self) -> anyhow::Result<Target> {
        own_part("collector", &["sink"])
    }

    /// The trivial tool, served by a process of its own.
    pub(super) fn library(&self, library: Library) -> anyhow::Result<Target> {
        let binary = self.libraries.iter().find(|(built, _)| *built == library);
        let (_, binary) = binary.context("the libraries are not measured")?;
        let mut process = Process::launch(binary, &[], Stdio::inherit())?;
        let address = process.printed_address().with_context(|| format!("the tool on {}", library.name()))?;
        Ok(Target::new(library.name(), address, process, &[]))
    }

    /// nginx in front of an upstream.
    fn nginx(&self, upstream: &Target) -> anyhow::Result<Target> {
        let address = free_address()?;
        let folder = self.folder.path().join(format!("nginx-{}", address.port()));
        std::fs::create_dir(&folder)?;
        let configuration = folder.join("nginx.conf");
        let text = nginx::configuration(&folder, self.nginx_workers, address, upstream.address);
        std::fs::write(&configuration, text)?;
        let arguments = [OsStr::new("-c"), configuration.as_os_str(), OsStr::new("-e"), OsStr::new("stderr")];
        let process = Process::launch("nginx", &arguments, Stdio::inherit())?;
        await_listener(address).context("nginx")?;
        Ok(Target::new(Kind::Nginx.name(), address, process, &upstream.processes))
    }
}

/// A server that is a part of this program.
fn own_part(name: &'static str, arguments: &[&str]) -> anyhow::Result<Target> {
    let arguments: Vec<&OsStr> = ["bench"].iter().chain(arguments).map(OsStr::new).collect();
    let mut process = Process::launch(built("xtask")?, &arguments, Stdio::inherit())?;
    let address = process.printed_address().context(name)?;
    Ok(Target::new(name, address, process, &[]))
}

/// A free address of the loopback interface, for a program that cannot choose one itself. Another process may take
/// it before that program does; the bench then fails to start.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn await_listener(address: SocketAddr) -> anyhow::Result<()> {
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        ensure!(begun.elapsed() < START_LIMIT, "nothing listens at {address}");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
