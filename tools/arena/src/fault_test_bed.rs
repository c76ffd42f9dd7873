//! The gateway and its ten upstream servers.

use std::ffi::OsStr;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::ValueEnum;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use xtask_client::McpEra;
use xtask_support::builds::{log_tail, sibling_program};
use xtask_support::measure;
use xtask_support::process::{LaunchedProcess, START_LIMIT};

use super::fault::ServerFault;
use super::load::await_answer;
use super::peer::{PeerTransport, RESPONSE_LIMIT, record_occurrence};

/// The good servers: both transports, both eras.
const GOOD_SERVERS: [(PeerTransport, McpEra); 9] = [
    (PeerTransport::Stdio, McpEra::Legacy),
    (PeerTransport::Stdio, McpEra::Modern),
    (PeerTransport::Http, McpEra::Legacy),
    (PeerTransport::Http, McpEra::Modern),
    (PeerTransport::Stdio, McpEra::Legacy),
    (PeerTransport::Stdio, McpEra::Modern),
    (PeerTransport::Http, McpEra::Legacy),
    (PeerTransport::Http, McpEra::Modern),
    (PeerTransport::Stdio, McpEra::Legacy),
];

/// Name of the faulty handler, and of its tool.
pub(super) const FAULTY: &str = "faulty";

/// Maximum time until a gateway has ended. It waits for running calls, and for servers.
const END_LIMIT: Duration = Duration::from_secs(30);

/// Maximum time until server processes have ended after the gateway.
const CLEANUP_LIMIT: Duration = Duration::from_secs(10);

/// All processes and files of one fault run.
pub(super) struct FaultTestBed {
    folder: TempDir,
    binary: PathBuf,
    fault: ServerFault,
    /// Servers over HTTP.
    servers: Vec<LaunchedProcess>,
    /// The faulty server over HTTP, and its address.
    faulty: Option<(SocketAddr, Option<LaunchedProcess>)>,
}

/// A running gateway.
pub(super) struct GatewayProcess {
    pub address: SocketAddr,
    process: LaunchedProcess,
}

impl FaultTestBed {
    /// Starts the servers over HTTP, and writes the manifest.
    pub(super) fn start(fault: ServerFault, binary: &Path) -> anyhow::Result<FaultTestBed> {
        let folder = TempDir::new()?;
        // This path identifies the processes of this test bed.
        symlink(sibling_program("xtask-arena")?, folder.path().join("peer"))?;
        let mut test_bed =
            FaultTestBed { folder, binary: binary.to_owned(), fault, servers: Vec::new(), faulty: None };
        let mut handlers = Vec::new();
        for (tool, (transport, era)) in good_tools().iter().zip(GOOD_SERVERS) {
            let args = peer_args(transport, era, tool);
            handlers.push(match transport {
                PeerTransport::Stdio => test_bed.stdio_handler(tool, &args),
                PeerTransport::Http => {
                    let (address, server) = launch_server(&args)?;
                    test_bed.servers.push(server);
                    http_handler(tool, address)
                }
            });
        }
        let mut handler = match fault.transport() {
            PeerTransport::Stdio => test_bed.stdio_handler(FAULTY, &test_bed.faulty_args()),
            PeerTransport::Http => {
                let (address, server) = launch_server(&test_bed.faulty_args())?;
                test_bed.faulty = Some((address, Some(server)));
                http_handler(FAULTY, address)
            }
        };
        handler["timeout"] = "1s".into();
        handlers.push(handler);
        std::fs::write(
            test_bed.path("registry.yaml"),
            manifest(&json!({"limits": {"responseBytes": RESPONSE_LIMIT}}), &handlers),
        )?;
        Ok(test_bed)
    }

    /// Starts a gateway, and waits until all good servers respond through it.
    pub(super) async fn start_gateway(&self) -> anyhow::Result<GatewayProcess> {
        let log = self.path("gateway.log");
        let manifest = self.path("registry.yaml");
        let args = [OsStr::new("serve"), OsStr::new("-f"), manifest.as_os_str()];
        let args = [&args[..], &["--listen", "127.0.0.1:0"].map(OsStr::new)].concat();
        let mut process = LaunchedProcess::launch(&self.binary, &args, File::create(&log)?.into())?;
        let address =
            process.printed_address().with_context(|| format!("the gateway: {}", log_tail(&log)))?;
        for tool in good_tools() {
            await_answer(address, &tool, START_LIMIT).await?;
        }
        Ok(GatewayProcess { address, process })
    }

    /// Makes the faulty server faulty. A fault that has to be repeated is injected elsewhere.
    pub(super) fn inject_fault(&mut self) -> anyhow::Result<()> {
        File::create(self.switch())?;
        if let (ServerFault::Refuse, Some((_, server))) = (self.fault, &mut self.faulty) {
            *server = None;
            record_occurrence(&self.switch())?;
        }
        Ok(())
    }

    /// Makes the faulty server good.
    pub(super) fn remove_fault(&mut self) -> anyhow::Result<()> {
        std::fs::remove_file(self.switch())?;
        let mut args = self.faulty_args();
        if let Some((address, server @ None)) = &mut self.faulty {
            args.extend(["--listen".to_owned(), address.to_string()]);
            *server = Some(launch_server(&args)?.1);
        }
        Ok(())
    }

    /// Ends a gateway with this signal, and counts the remaining processes of its servers over stdio.
    pub(super) fn terminate(&self, mut gateway: GatewayProcess, signal: Signal) -> anyhow::Result<usize> {
        let status = gateway.process.terminate_with(signal, END_LIMIT).context("the gateway does not end")?;
        ensure!(signal == Signal::KILL || status.success(), "the gateway ended with {status}");
        let peer_path = self.path("peer");
        let ended = Instant::now();
        loop {
            let remaining = measure::pids_with_command(&peer_path.to_string_lossy()).len();
            if remaining == 0 || ended.elapsed() > CLEANUP_LIMIT {
                return Ok(remaining);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The file that exists while the fault is active.
    pub(super) fn switch(&self) -> PathBuf {
        self.path("switch")
    }

    /// Number of occurrences of the fault since it was switched on.
    pub(super) fn occurrences(&self) -> u64 {
        std::fs::metadata(self.switch()).map_or(0, |switch| switch.len())
    }

    /// Size of the log of the gateway, in bytes.
    pub(super) fn log_bytes(&self) -> u64 {
        std::fs::metadata(self.path("gateway.log")).map_or(0, |log| log.len())
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn faulty_args(&self) -> Vec<String> {
        let mut args = peer_args(self.fault.transport(), self.fault.era(), FAULTY);
        args.extend(["--fault".to_owned(), self.fault.to_string()]);
        args.extend(["--switch".to_owned(), self.switch().to_string_lossy().into_owned()]);
        args
    }

    fn stdio_handler(&self, name: &str, args: &[String]) -> Value {
        let config = json!({"transport": "stdio", "command": self.path("peer"), "args": args});
        json!({"name": name, "type": "mcp", "mcpConfig": config})
    }
}

impl GatewayProcess {
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// Tools of the good servers, which are also the names of their handlers.
pub(super) fn good_tools() -> Vec<String> {
    (1..=GOOD_SERVERS.len()).map(|number| format!("good{number}")).collect()
}

pub(super) fn http_handler(name: &str, address: SocketAddr) -> Value {
    let config = json!({"transport": "streamable-http", "endpoint": format!("http://{address}/mcp")});
    json!({"name": name, "type": "mcp", "mcpConfig": config})
}

pub(super) fn peer_args(transport: PeerTransport, era: McpEra, tool: &str) -> Vec<String> {
    let name = |value: Option<clap::builder::PossibleValue>| {
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    };
    let (transport, era) = (name(transport.to_possible_value()), name(era.to_possible_value()));
    ["peer", "--transport", &transport, "--era", &era, "--tool", tool].map(str::to_owned).into()
}

/// Starts a server over HTTP.
pub(super) fn launch_server(args: &[String]) -> anyhow::Result<(SocketAddr, LaunchedProcess)> {
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let mut server = LaunchedProcess::launch(sibling_program("xtask-arena")?, &args, Stdio::inherit())?;
    let address = server.printed_address().context("a server over HTTP")?;
    Ok((address, server))
}

/// A manifest with this `spec` of the `Toolyard` document and these handlers. JSON is valid YAML.
pub(super) fn manifest(spec: &Value, handlers: &[Value]) -> String {
    let handlers: String = handlers.iter().map(|handler| format!("    - {handler}\n")).collect();
    format!(
        "apiVersion: toolyard.dev/v1alpha1
kind: Toolyard
spec: {spec}
---
apiVersion: omnia.altairalabs.ai/v1alpha1
kind: ToolRegistry
metadata: {{name: arena}}
spec:
  probe: {{interval: 1s, timeout: 1s}}
  handlers:
{handlers}"
    )
}
