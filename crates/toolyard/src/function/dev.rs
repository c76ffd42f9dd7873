//! `toolyard function dev`: a function while it is written.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use serde_json::json;
use tokio::time::sleep;
use toolyard_functions::project::folder;
use toolyard_functions::{FolderExchange, Host, Kind, LogQuery};
use toolyard_manifest::{Listen, Manifest, Process, Source};
use toolyard_process::Spawner;
use toolyard_server::{Options, Running};

use super::logs::Entry;
use super::report::Reports;
use super::walls::Walls;
use crate::BadInput;
use crate::output::{Format, line, print};
use crate::sources::Stops;

/// Test a function whenever it is saved, and serve it to agents meanwhile
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard function dev weather
  toolyard function dev . --listen 127.0.0.1:0 --isolation best-effort
  toolyard call echo text=hello              in another terminal: its tools are at http://127.0.0.1:8080/mcp

A function that is no MCP server is one tool there, `call`, whose arguments are its event. Each call is shown with what
it printed. A save that cannot be loaded is shown, and what was there before goes on. SIGINT (Ctrl-C) ends it.")]
pub(super) struct Args {
    /// The folder of the function, or a single file with a handler
    #[arg(value_name = "DIR")]
    path: PathBuf,

    /// Where to serve it
    #[arg(long, value_name = "PLACE", default_value = "127.0.0.1:8080")]
    listen: Listen,

    #[command(flatten)]
    walls: Walls,
}

/// How often the folder, and the calls, are looked at.
const EVERY: Duration = Duration::from_millis(250);

/// How many calls are shown of those that were made between two looks.
const SHOWN: usize = 100;

pub(super) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    let mut stops = Stops::listen()?;
    let path =
        args.path.canonicalize().map_err(|error| BadInput(format!("{}: {error}", args.path.display())))?;
    let found = folder::read(&path).map_err(|error| BadInput(error.to_string()))?;
    let id = found.id.unwrap_or_else(|| folder::name_of(&path));
    let mut process = Process { listen: vec![args.listen], ..args.walls.process()? };
    process.timeouts.manifest_check = EVERY;
    let manifest = manifest(&path, found.project.kind, process)?;
    let spawner = Spawner::supervised_by_ourselves();
    let running = toolyard_server::start(&manifest, &Options { spawner, ..Options::default() }).await?;
    greet(&running, &id, format);
    let host = running.functions().clone();
    let exchange = FolderExchange::new(host.clone(), path, EVERY);
    tokio::select! {
        never = tests(&host, &exchange, format) => match never {},
        never = calls(&host, &id, format) => match never {},
        () = stops.next() => {}
    }
    running.stop().await;
    Ok(ExitCode::SUCCESS)
}

/// A manifest with the function as its only handler.
fn manifest(path: &Path, kind: Kind, process: Process) -> anyhow::Result<Manifest> {
    let mut handler = json!({"name": "function", "type": "function", "functionConfig": {"path": path}});
    if kind == Kind::Function {
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
    let source = Source { name: "dev".to_owned(), text: registry.to_string() };
    let read = toolyard_manifest::parse_with(&[source], &|_| None);
    let manifest = read.map_err(|problems| anyhow!("the function cannot be served\n\n{problems}"))?;
    Ok(Manifest { process, ..manifest })
}

fn greet(running: &Running, id: &str, format: Format) {
    let url = running.url();
    print(&match format {
        Format::Json => json!({"id": id, "url": url}).to_string(),
        Format::Text => format!("{} is served as MCP on {url}", line(id)),
    });
}

/// Runs the test cases after each save.
async fn tests(host: &Host, exchange: &FolderExchange, format: Format) -> std::convert::Infallible {
    let mut readings = exchange.problem();
    loop {
        if readings.changed().await.is_err() {
            // It is read for as long as there is the exchange.
            std::future::pending::<()>().await;
        }
        let problem = readings.borrow_and_update().clone();
        let said = match (problem, exchange.edition().await) {
            (Some(problem), _) => json!({"problem": problem}),
            (None, Err(error)) => json!({"problem": error.message()}),
            (None, Ok(edition)) => {
                let tests = host.test(&edition).await;
                let failed = tests.iter().filter(|test| !test.passed).count();
                json!({"id": edition.id, "failed": failed, "tests": tests})
            }
        };
        print(&match (format, said["problem"].as_str(), serde_json::from_value::<Reports>(said.clone())) {
            (Format::Text, Some(problem), _) => format!("\ncannot be used: {}", line(problem)),
            (Format::Text, None, Ok(reports)) => format!("\n{}", reports.text()),
            _ => said.to_string(),
        });
    }
}

/// Shows each call, a moment after its end.
async fn calls(host: &Host, id: &str, format: Format) -> std::convert::Infallible {
    let mut last = String::new();
    loop {
        sleep(EVERY).await;
        let query = LogQuery { limit: Some(SHOWN), ..LogQuery::default() };
        let Ok(page) = host.logs(id, query).await else { continue };
        let new: Vec<_> = page.entries.into_iter().take_while(|entry| entry.request_id != last).collect();
        if let Some(newest) = new.first() {
            last.clone_from(&newest.request_id);
        }
        for entry in new.iter().rev() {
            let said = json!(entry);
            print(&match (format, serde_json::from_value::<Entry>(said.clone())) {
                (Format::Text, Ok(entry)) => entry.text(),
                _ => said.to_string(),
            });
        }
    }
}
