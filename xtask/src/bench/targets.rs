//! What is measured, and the upstream behind it.

use std::ffi::OsStr;
use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use serde::Serialize;
use tempfile::TempDir;

use super::{Binaries, Plan, load, nginx};
use crate::builds::{built, end_of, named_or_built};
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
    /// The gateway
    Gateway,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Direct, Kind::Nginx, Kind::Gateway];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Direct => "direct",
            Kind::Nginx => "nginx",
            Kind::Gateway => "gateway",
        }
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
    /// The process under test, then those that it depends on.
    processes: Vec<Arc<Process>>,
}

impl Target {
    pub(super) fn pid(&self) -> u32 {
        self.processes[0].pid()
    }

    fn new(name: &'static str, address: SocketAddr, process: Process, upstream: &[Arc<Process>]) -> Target {
        let processes = std::iter::once(Arc::new(process)).chain(upstream.iter().cloned()).collect();
        Target { name, address, processes }
    }
}

/// Where targets are made.
pub(super) struct Workshop {
    folder: TempDir,
    gateway: Option<PathBuf>,
    libraries: Vec<(Library, PathBuf)>,
    nginx_workers: usize,
}

impl Workshop {
    /// Gets ready what the plan needs: nginx from Debian, the rest by building what was not named.
    pub(super) fn open(plan: &Plan, binaries: &Binaries, nginx_workers: usize) -> anyhow::Result<Workshop> {
        if plan.kinds.contains(&Kind::Nginx) {
            system::install_nginx()?;
        }
        let gateway = match plan.kinds.contains(&Kind::Gateway) {
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
        Ok(Workshop { folder: TempDir::new()?, gateway, libraries, nginx_workers })
    }

    /// The wanted targets in front of one upstream, each of which lists all its tools already.
    pub(super) async fn line_up(&self, kinds: &[Kind], tools: usize) -> anyhow::Result<Vec<Target>> {
        let echo = self.echo(tools)?;
        let mut targets = Vec::new();
        for kind in kinds {
            let target = match kind {
                Kind::Direct => echo.clone(),
                Kind::Nginx => self.nginx(&echo)?,
                Kind::Gateway => self.gateway(&echo, None)?,
            };
            load::first_list(target.address, tools).await.context(kind.name())?;
            targets.push(target);
        }
        Ok(targets)
    }

    /// The upstream.
    pub(super) fn echo(&self, tools: usize) -> anyhow::Result<Target> {
        let own = built("xtask")?;
        let tools = tools.to_string();
        let arguments = ["bench", "echo", "--tools", &tools].map(OsStr::new);
        let mut process = Process::launch(own, &arguments, Stdio::inherit())?;
        let address = process.printed_address().context("the upstream")?;
        Ok(Target::new(Kind::Direct.name(), address, process, &[]))
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

    /// The gateway in front of an upstream, as it is or without one of its layers.
    pub(super) fn gateway(&self, upstream: &Target, without: Option<&str>) -> anyhow::Result<Target> {
        let binary = self.gateway.as_ref().context("the gateway is not among the targets")?;
        let manifest = self.folder.path().join(format!("upstream-{}.yaml", upstream.address.port()));
        std::fs::write(&manifest, manifest_for(upstream.address))?;
        let log = self.folder.path().join("gateway.log");
        let mut arguments = vec![OsStr::new("serve"), OsStr::new("-f"), manifest.as_os_str()];
        arguments.extend(["--listen", "127.0.0.1:0"].map(OsStr::new));
        arguments.extend(without.iter().flat_map(|layer| ["--without-layer", *layer]).map(OsStr::new));
        let mut process = Process::launch(binary, &arguments, File::create(&log)?.into())?;
        let address = process.printed_address().with_context(|| format!("the gateway: {}", end_of(&log)))?;
        Ok(Target::new(Kind::Gateway.name(), address, process, &upstream.processes))
    }
}

fn manifest_for(upstream: SocketAddr) -> String {
    format!(
        "apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata: {{name: bench}}
spec:
  handlers:
    - name: echo
      type: mcp
      mcpConfig: {{transport: streamable-http, endpoint: \"http://{upstream}/mcp\"}}
"
    )
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
