//! `toolyard function dev`: serves and tests a function during development.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use serde_json::json;
use tokio::time::sleep;
use toolyard_functions::project::folder;
use toolyard_functions::{FolderExchange, FunctionHost, FunctionKind, LogQuery};
use toolyard_manifest::{ListenAddress, Manifest, ManifestSource, ProcessSettings};
use toolyard_process::ProcessSpawner;
use toolyard_server::lifecycle::TerminationSignals;
use toolyard_server::{GatewayOptions, RunningGateway};

use super::isolation::IsolationArgs;
use super::logs::CallLogEntry;
use super::report::TestReports;
use crate::BadInput;
use crate::output::{OutputFormat, escape_line, note, print};

/// Serve a function to agents and test it on every save
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function dev weather
  toolyard function dev . --listen 127.0.0.1:0 --isolation best-effort
  toolyard call echo text=hello              in another terminal: call a tool at http://127.0.0.1:8080/mcp

A function of kind `function` is served as one tool, `call`, whose arguments are the event. Prints each call with the
output of the function. If a saved version cannot be loaded, prints the problem and keeps serving the previous one.
Press Ctrl-C to exit.")]
pub(super) struct DevArgs {
    /// Directory of the function, or a single file with a handler
    #[arg(value_name = "DIR")]
    path: PathBuf,

    /// Address or Unix socket to listen on (default: 127.0.0.1:8080, or a free port if it is in use)
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<ListenAddress>,

    #[command(flatten)]
    isolation: IsolationArgs,
}

/// Interval at which the directory and the log of calls are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum number of calls that are shown per poll.
const MAX_CALLS_SHOWN: usize = 100;

pub(super) async fn run(args: DevArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let mut stops = TerminationSignals::listen()?;
    let path =
        args.path.canonicalize().map_err(|error| BadInput(format!("{}: {error}", args.path.display())))?;
    let source_folder = folder::read(&path).map_err(|error| BadInput(error.to_string()))?;
    let id = source_folder.id.unwrap_or_else(|| folder::default_id(&path));
    let listen = match args.listen {
        Some(listen) => listen,
        None => free_address(DEFAULT_ADDRESS)?,
    };
    let mut process = ProcessSettings { listen: vec![listen], ..args.isolation.process()? };
    process.timeouts.manifest_check = POLL_INTERVAL;
    let manifest = manifest(&path, source_folder.project.kind, process)?;
    let spawner = ProcessSpawner::supervised_by_this_program();
    let running =
        toolyard_server::start(&manifest, &GatewayOptions { spawner, ..GatewayOptions::default() }).await?;
    greet(&running, &id, format);
    let host = running.functions().clone();
    let exchange = FolderExchange::new(host.clone(), path, POLL_INTERVAL);
    tokio::select! {
        never = report_tests(&host, &exchange, format) => match never {},
        never = report_calls(&host, &id, format) => match never {},
        () = stops.next() => {}
    }
    running.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// Default address, that of a gateway as well.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Returns an address if it is free, or else one with a free port, which a note names.
fn free_address(wanted: SocketAddr) -> anyhow::Result<ListenAddress> {
    let free = match TcpListener::bind(wanted) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let free = TcpListener::bind((wanted.ip(), 0))?.local_addr()?;
            note(&format!(
                "{wanted} is in use, so the function is served on port {}: call it with `toolyard call --url \
                 http://{free}/mcp`",
                free.port()
            ));
            free
        }
        // The gateway reports other errors.
        _ => wanted,
    };
    Ok(free.to_string().parse()?)
}

/// Returns a manifest with the function as its only handler.
fn manifest(path: &Path, kind: FunctionKind, process: ProcessSettings) -> anyhow::Result<Manifest> {
    let mut handler = json!({"name": "function", "type": "function", "functionConfig": {"path": path}});
    if kind == FunctionKind::Function {
        let description = "Calls the function with these arguments as its event.";
        let schema = json!({"type": "object"});
        handler["tool"] = json!({"name": "call", "description": description, "inputSchema": schema});
    }
    let registry = json!({
        "apiVersion": "omnia.altairalabs.ai/v1alpha1",
        "kind": "ToolRegistry",
        "metadata": {"name": "dev"},
        "spec": {"handlers": [handler]},
    });
    let source = ManifestSource { name: "dev".to_owned(), text: registry.to_string() };
    let read = toolyard_manifest::parse_with(&[source], &|_| None);
    let manifest = read.map_err(|problems| anyhow!("cannot serve the function\n\n{problems}"))?;
    Ok(Manifest { process, ..manifest })
}

fn greet(running: &RunningGateway, id: &str, format: OutputFormat) {
    let url = running.url();
    print(&match format {
        OutputFormat::Json => json!({"id": id, "url": url}).to_string(),
        OutputFormat::Text => format!("serving {} as MCP on {url}", escape_line(id)),
    });
}

/// Runs the test cases after each save and prints their results.
async fn report_tests(
    host: &FunctionHost,
    exchange: &FolderExchange,
    format: OutputFormat,
) -> std::convert::Infallible {
    let mut readings = exchange.problem();
    loop {
        if readings.changed().await.is_err() {
            // The channel stays open as long as the exchange exists.
            std::future::pending::<()>().await;
        }
        let problem = readings.borrow_and_update().clone();
        let report = match (problem, exchange.loaded_version().await) {
            (Some(problem), _) => json!({"problem": problem}),
            (None, Err(error)) => json!({"problem": error.message()}),
            (None, Ok(edition)) => {
                let tests = host.test_reports(&edition).await;
                let failed = tests.iter().filter(|test| !test.passed).count();
                json!({"id": edition.id, "failed": failed, "tests": tests})
            }
        };
        print(&match (
            format,
            report["problem"].as_str(),
            serde_json::from_value::<TestReports>(report.clone()),
        ) {
            (OutputFormat::Text, Some(problem), _) => format!("\ninvalid function: {}", escape_line(problem)),
            (OutputFormat::Text, None, Ok(reports)) => format!("\n{}", reports.text()),
            _ => report.to_string(),
        });
    }
}

/// Prints each call shortly after its end.
async fn report_calls(host: &FunctionHost, id: &str, format: OutputFormat) -> std::convert::Infallible {
    let mut last = String::new();
    loop {
        sleep(POLL_INTERVAL).await;
        let query = LogQuery { limit: Some(MAX_CALLS_SHOWN), ..LogQuery::default() };
        let Ok(page) = host.logs(id, query).await else { continue };
        let new: Vec<_> = page.entries.into_iter().take_while(|entry| entry.request_id != last).collect();
        if let Some(newest) = new.first() {
            last.clone_from(&newest.request_id);
        }
        for entry in new.iter().rev() {
            let json_entry = json!(entry);
            print(&match (format, serde_json::from_value::<CallLogEntry>(json_entry.clone())) {
                (OutputFormat::Text, Ok(entry)) => entry.text(),
                _ => json_entry.to_string(),
            });
        }
    }
}
