//! The measured servers, and the upstream behind them.

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
use xtask_client::{McpConnection, McpEra};
use xtask_support::builds::{path_or_build, sibling_program};
use xtask_support::process::{LaunchedProcess, START_LIMIT};
use xtask_support::{measure, system};

use super::gateway::GatewaySetup;
use super::{BenchBinaries, BenchPlan, PROFILE, callgrind, load, nginx};

/// The server between the load and the upstream.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum TargetKind {
    /// No proxy: the upstream itself
    Direct,
    /// nginx as a plain proxy
    Nginx,
    /// A bare proxy that parses each message
    Hop,
    /// The gateway with its default configuration, which has an audit trail
    Gateway,
    /// The gateway without an audit trail
    Unaudited,
    /// The gateway with an audit trail, an API key, and a collector of all traces
    Operated,
}

impl TargetKind {
    pub(super) const ALL: [TargetKind; 6] = [
        TargetKind::Direct,
        TargetKind::Nginx,
        TargetKind::Hop,
        TargetKind::Gateway,
        TargetKind::Unaudited,
        TargetKind::Operated,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            TargetKind::Direct => "direct",
            TargetKind::Nginx => "nginx",
            TargetKind::Hop => "hop",
            TargetKind::Gateway => "gateway",
            TargetKind::Unaudited => "unaudited",
            TargetKind::Operated => "operated",
        }
    }

    pub(super) fn is_gateway(self) -> bool {
        self.setup().is_some()
    }

    /// The settings of the gateway; `None` for a competitor.
    fn setup(self) -> Option<GatewaySetup<'static>> {
        match self {
            TargetKind::Direct | TargetKind::Nginx | TargetKind::Hop => None,
            TargetKind::Gateway => Some(GatewaySetup::DEFAULT),
            TargetKind::Unaudited => Some(GatewaySetup::MINIMAL),
            TargetKind::Operated => Some(GatewaySetup::OPERATED),
        }
    }
}

/// The MCP library of the trivial tool.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum McpLibrary {
    /// Ours: `crates/toolyard-sdk/examples/bench_echo.rs`
    Sdk,
    /// The official one: `fixtures/rmcp-server/src/bin/echo.rs`
    Rmcp,
}

impl McpLibrary {
    pub(super) const ALL: [McpLibrary; 2] = [McpLibrary::Sdk, McpLibrary::Rmcp];

    pub(super) fn name(self) -> &'static str {
        match self {
            McpLibrary::Sdk => "sdk",
            McpLibrary::Rmcp => "rmcp",
        }
    }

    /// Arguments of `cargo build`.
    fn cargo_target(self) -> &'static [&'static str] {
        match self {
            McpLibrary::Sdk => &["--package", "toolyard-sdk", "--example", "bench_echo"],
            McpLibrary::Rmcp => &[
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

/// A server at `/mcp`. Clones share it; its processes end with the last clone.
#[derive(Clone)]
pub(super) struct BenchTarget {
    pub name: &'static str,
    pub address: SocketAddr,
    /// API key of the requests.
    pub key: Option<Arc<str>>,
    /// `true` if it defers work until after the response: writing records, sending spans.
    pub defers_work: bool,
    /// `true` if its children are part of it, as the workers of nginx are; `false` if they are servers behind it.
    pub counts_children: bool,
    /// The process under test, then those that it depends on.
    processes: Vec<Arc<LaunchedProcess>>,
}

impl BenchTarget {
    /// Connects as a client of an era, with the key if there is one.
    pub(super) async fn connect(&self, era: McpEra) -> anyhow::Result<McpConnection> {
        McpConnection::open_with_key(self.address, era, self.key.as_deref()).await
    }

    pub(super) fn pid(&self) -> u32 {
        self.processes[0].pid()
    }

    /// CPU time that the server has used.
    pub(super) fn cpu_time(&self) -> Duration {
        match self.counts_children {
            true => measure::cpu_time(self.pid()),
            false => measure::cpu_time_of(&[self.pid()]),
        }
    }

    /// A server without an API key and without deferred work.
    pub(super) fn new(
        name: &'static str,
        address: SocketAddr,
        process: LaunchedProcess,
        upstream: &[Arc<LaunchedProcess>],
    ) -> BenchTarget {
        let processes = std::iter::once(Arc::new(process)).chain(upstream.iter().cloned()).collect();
        BenchTarget { name, address, key: None, defers_work: false, counts_children: true, processes }
    }

    /// Adds a dependency, which ends after the target.
    pub(super) fn with_dependency(mut self, other: &BenchTarget) -> BenchTarget {
        self.processes.extend(other.processes.iter().cloned());
        self
    }

    pub(super) fn processes(&self) -> &[Arc<LaunchedProcess>] {
        &self.processes
    }

    /// The process under test.
    pub(super) fn process(&self) -> &LaunchedProcess {
        &self.processes[0]
    }

    /// Returns the process under test, and ends those that only it depends on when the caller has ended it.
    pub(super) fn into_process(self) -> anyhow::Result<LaunchedProcess> {
        let process = self.processes.into_iter().next().and_then(Arc::into_inner);
        process.context("the process under test is in use")
    }
}

/// Starts targets.
pub(super) struct TargetFactory {
    pub(super) folder: TempDir,
    pub(super) gateway: Option<PathBuf>,
    libraries: Vec<(McpLibrary, PathBuf)>,
    nginx_workers: usize,
    pub(super) functions: Option<PathBuf>,
    pub(super) descriptors: Option<PathBuf>,
    pub(super) bus: Option<PathBuf>,
}

impl TargetFactory {
    /// Prepares the programs that the plan needs: installs nginx from Debian, and builds those without a given path.
    pub(super) fn prepare(
        plan: &BenchPlan,
        binaries: &BenchBinaries,
        nginx_workers: usize,
    ) -> anyhow::Result<TargetFactory> {
        if plan.kinds.contains(&TargetKind::Nginx) {
            system::install_packages(&[system::NGINX])?;
        }
        let gateway = match plan.measures_gateways() {
            true => {
                let target = ["--package", "toolyard", "--bin", "toolyard"];
                Some(path_or_build(binaries.gateway.as_deref(), &target, PROFILE)?)
            }
            false => None,
        };
        let library = |library: &McpLibrary| {
            let binary_path = match library {
                McpLibrary::Sdk => binaries.sdk_echo.as_deref(),
                McpLibrary::Rmcp => binaries.rmcp_echo.as_deref(),
            };
            anyhow::Ok((*library, path_or_build(binary_path, library.cargo_target(), PROFILE)?))
        };
        let libraries = plan.libraries.iter().map(library).collect::<anyhow::Result<_>>()?;
        let (functions, descriptors) = (binaries.functions.clone(), binaries.descriptors.clone());
        let bus = binaries.bus.clone();
        let folder = TempDir::new()?;
        Ok(TargetFactory { folder, gateway, libraries, nginx_workers, functions, descriptors, bus })
    }

    /// Starts targets in front of one upstream, and waits until each lists all tools.
    pub(super) async fn start_targets(
        &self,
        kinds: &[TargetKind],
        tools: usize,
    ) -> anyhow::Result<Vec<BenchTarget>> {
        let echo = self.echo(tools)?;
        let mut targets = Vec::new();
        for kind in kinds {
            let target = match kind {
                TargetKind::Direct => echo.clone(),
                TargetKind::Nginx => self.nginx(&echo)?,
                TargetKind::Hop => self.hop(&echo)?,
                TargetKind::Gateway | TargetKind::Unaudited | TargetKind::Operated => {
                    let setup = kind.setup().unwrap_or(GatewaySetup::DEFAULT);
                    self.gateway(&echo, &setup).await?
                }
            };
            load::first_list(&target, tools).await.context(kind.name())?;
            targets.push(target);
        }
        Ok(targets)
    }

    /// Starts the upstream.
    pub(super) fn echo(&self, tools: usize) -> anyhow::Result<BenchTarget> {
        launch_own_server(TargetKind::Direct.name(), &["echo", "--tools", &tools.to_string()])
    }

    /// Starts the upstream of the gRPC tool.
    pub(super) fn grpc_echo(&self) -> anyhow::Result<BenchTarget> {
        launch_own_server("gRPC server", &["grpc-echo"])
    }

    /// Starts the collector of telemetry.
    pub(super) fn sink(&self) -> anyhow::Result<BenchTarget> {
        launch_own_server("collector", &["sink"])
    }

    /// Starts the trivial tool in a process of its own.
    pub(super) fn library(&self, library: McpLibrary) -> anyhow::Result<BenchTarget> {
        self.library_with_runner(&[], library)
    }

    /// As [`TargetFactory::library`], under another program if `runner` names one.
    pub(super) fn library_with_runner(
        &self,
        runner: &[&OsStr],
        library: McpLibrary,
    ) -> anyhow::Result<BenchTarget> {
        let binary = self.libraries.iter().find(|(built, _)| *built == library);
        let (_, binary) = binary.context("the library is not part of the plan")?;
        let command = [runner, &[binary.as_os_str()]].concat();
        let mut process = LaunchedProcess::launch(command[0], &command[1..], Stdio::inherit())?;
        let address = process.printed_address_within(callgrind::start_limit(runner));
        let address = address.with_context(|| format!("the tool on {}", library.name()))?;
        Ok(BenchTarget::new(library.name(), address, process, &[]))
    }

    /// Starts the bare JSON proxy in front of an upstream.
    fn hop(&self, upstream: &BenchTarget) -> anyhow::Result<BenchTarget> {
        let address = upstream.address.to_string();
        let hop = launch_own_server(TargetKind::Hop.name(), &["hop", "--upstream", &address])?;
        Ok(hop.with_dependency(upstream))
    }

    /// Starts nginx in front of an upstream.
    fn nginx(&self, upstream: &BenchTarget) -> anyhow::Result<BenchTarget> {
        let address = free_address()?;
        let folder = self.folder.path().join(format!("nginx-{}", address.port()));
        std::fs::create_dir(&folder)?;
        let configuration = folder.join("nginx.conf");
        let text = nginx::configuration(&folder, self.nginx_workers, address, upstream.address);
        std::fs::write(&configuration, text)?;
        let arguments = [OsStr::new("-c"), configuration.as_os_str(), OsStr::new("-e"), OsStr::new("stderr")];
        let process = LaunchedProcess::launch("nginx", &arguments, Stdio::inherit())?;
        await_listener(address).context("nginx")?;
        Ok(BenchTarget::new(TargetKind::Nginx.name(), address, process, &upstream.processes))
    }
}

/// Starts a server that is part of this program.
fn launch_own_server(name: &'static str, arguments: &[&str]) -> anyhow::Result<BenchTarget> {
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    let mut process = LaunchedProcess::launch(sibling_program("xtask-bench")?, &arguments, Stdio::inherit())?;
    let address = process.printed_address().context(name)?;
    Ok(BenchTarget::new(name, address, process, &[]))
}

/// A free address of the loopback interface, for a program that cannot choose one itself. If another process takes it
/// first, the bench fails to start.
fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn await_listener(address: SocketAddr) -> anyhow::Result<()> {
    let started = Instant::now();
    while TcpStream::connect(address).is_err() {
        ensure!(started.elapsed() < START_LIMIT, "nothing listens at {address}");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
