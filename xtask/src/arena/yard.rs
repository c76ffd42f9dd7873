//! The gateway and its ten servers.

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

use super::fault::Fault;
use super::load::await_answer;
use super::peer::{LIMIT, Transport, note};
use crate::builds::{built, end_of};
use crate::client::Era;
use crate::measure;
use crate::process::{Process, START_LIMIT};

/// The good servers: both ways to be reached, in both eras.
const GOOD: [(Transport, Era); 9] = [
    (Transport::Stdio, Era::Legacy),
    (Transport::Stdio, Era::Modern),
    (Transport::Http, Era::Legacy),
    (Transport::Http, Era::Modern),
    (Transport::Stdio, Era::Legacy),
    (Transport::Stdio, Era::Modern),
    (Transport::Http, Era::Legacy),
    (Transport::Http, Era::Modern),
    (Transport::Stdio, Era::Legacy),
];

/// The name of the faulty handler, and of its tool.
pub(super) const FAULTY: &str = "faulty";

/// How long a gateway may take to end. It lets calls end, and servers.
const END_LIMIT: Duration = Duration::from_secs(30);

/// How long processes may take to end after the gateway has.
const LEFT_LIMIT: Duration = Duration::from_secs(10);

/// Where everything of one fault stands.
pub(super) struct Yard {
    folder: TempDir,
    binary: PathBuf,
    fault: Fault,
    /// The servers over HTTP.
    servers: Vec<Process>,
    /// The faulty server over HTTP, and where it is.
    faulty: Option<(SocketAddr, Option<Process>)>,
}

/// A running gateway.
pub(super) struct Gateway {
    pub address: SocketAddr,
    process: Process,
}

impl Yard {
    /// Starts the servers over HTTP, and writes the manifest.
    pub(super) fn open(fault: Fault, binary: &Path) -> anyhow::Result<Yard> {
        let folder = TempDir::new()?;
        // By this path the processes of this yard are told from all others.
        symlink(built("xtask")?, folder.path().join("peer"))?;
        let mut yard = Yard { folder, binary: binary.to_owned(), fault, servers: Vec::new(), faulty: None };
        let mut handlers = Vec::new();
        for (tool, (transport, era)) in good_tools().iter().zip(GOOD) {
            let args = peer_args(transport, era, tool);
            handlers.push(match transport {
                Transport::Stdio => yard.stdio_handler(tool, &args),
                Transport::Http => {
                    let (address, server) = launch(&args)?;
                    yard.servers.push(server);
                    http_handler(tool, address)
                }
            });
        }
        let mut handler = match fault.transport() {
            Transport::Stdio => yard.stdio_handler(FAULTY, &yard.faulty_args()),
            Transport::Http => {
                let (address, server) = launch(&yard.faulty_args())?;
                yard.faulty = Some((address, Some(server)));
                http_handler(FAULTY, address)
            }
        };
        handler["timeout"] = "1s".into();
        handlers.push(handler);
        std::fs::write(yard.path("registry.yaml"), manifest(&handlers))?;
        Ok(yard)
    }

    /// Starts a gateway, and waits until all the good servers answer through it.
    pub(super) async fn start_gateway(&self) -> anyhow::Result<Gateway> {
        let log = self.path("gateway.log");
        let manifest = self.path("registry.yaml");
        let args = [OsStr::new("serve"), OsStr::new("-f"), manifest.as_os_str()];
        let args = [&args[..], &["--listen", "127.0.0.1:0"].map(OsStr::new)].concat();
        let mut process = Process::launch(&self.binary, &args, File::create(&log)?.into())?;
        let address = process.printed_address().with_context(|| format!("the gateway: {}", end_of(&log)))?;
        for tool in good_tools() {
            await_answer(address, &tool, START_LIMIT).await?;
        }
        Ok(Gateway { address, process })
    }

    /// Makes the faulty server faulty. What has to be done to it again and again is another's.
    pub(super) fn hurt(&mut self) -> anyhow::Result<()> {
        File::create(self.switch())?;
        if let (Fault::Refuse, Some((_, server))) = (self.fault, &mut self.faulty) {
            *server = None;
            note(&self.switch())?;
        }
        Ok(())
    }

    /// Makes it a good one.
    pub(super) fn mend(&mut self) -> anyhow::Result<()> {
        std::fs::remove_file(self.switch())?;
        let mut args = self.faulty_args();
        if let Some((address, server @ None)) = &mut self.faulty {
            args.extend(["--listen".to_owned(), address.to_string()]);
            *server = Some(launch(&args)?.1);
        }
        Ok(())
    }

    /// Ends a gateway, and counts what is left of its servers on stdio.
    pub(super) fn end(&self, mut gateway: Gateway, signal: Signal) -> anyhow::Result<usize> {
        let status = gateway.process.end_by(signal, END_LIMIT).context("the gateway does not end")?;
        ensure!(signal == Signal::KILL || status.success(), "the gateway ended with {status}");
        let mark = self.path("peer");
        let ended = Instant::now();
        loop {
            let left = measure::named(&mark.to_string_lossy()).len();
            if left == 0 || ended.elapsed() > LEFT_LIMIT {
                return Ok(left);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What is there while the fault is to show.
    pub(super) fn switch(&self) -> PathBuf {
        self.path("switch")
    }

    /// How often the fault has shown since it was switched on.
    pub(super) fn shown(&self) -> u64 {
        std::fs::metadata(self.switch()).map_or(0, |switch| switch.len())
    }

    /// How much the gateway has logged, in bytes.
    pub(super) fn logged(&self) -> u64 {
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

impl Gateway {
    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// The tools of the good servers, and the names of their handlers.
pub(super) fn good_tools() -> Vec<String> {
    (1..=GOOD.len()).map(|number| format!("good{number}")).collect()
}

fn http_handler(name: &str, address: SocketAddr) -> Value {
    let config = json!({"transport": "streamable-http", "endpoint": format!("http://{address}/mcp")});
    json!({"name": name, "type": "mcp", "mcpConfig": config})
}

fn peer_args(transport: Transport, era: Era, tool: &str) -> Vec<String> {
    let name = |value: Option<clap::builder::PossibleValue>| {
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    };
    let (transport, era) = (name(transport.to_possible_value()), name(era.to_possible_value()));
    ["arena", "peer", "--transport", &transport, "--era", &era, "--tool", tool].map(str::to_owned).into()
}

/// Starts a server over HTTP.
fn launch(args: &[String]) -> anyhow::Result<(SocketAddr, Process)> {
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let mut server = Process::launch(built("xtask")?, &args, Stdio::inherit())?;
    let address = server.printed_address().context("a server over HTTP")?;
    Ok((address, server))
}

/// JSON is YAML, too.
fn manifest(handlers: &[Value]) -> String {
    let handlers: String = handlers.iter().map(|handler| format!("    - {handler}\n")).collect();
    format!(
        "apiVersion: toolyard.dev/v1alpha1
kind: Toolyard
spec:
  limits: {{responseBytes: {LIMIT}}}
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
