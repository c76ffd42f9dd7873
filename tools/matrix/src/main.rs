//! The feature matrix: every kind of client with every kind of server, through the gateway.
//!
//! Each server has a gateway of its own, so that no server compensates for another; one more gateway has all servers.

#![expect(clippy::print_stdout, reason = "a developer's tool: it prints to the terminal")]

mod client;
mod exercise;
mod feature;
mod scope;
mod script;
mod server;
mod table;
mod tap;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Parser;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;
use xtask_support::builds::{log_tail, sibling_program};
use xtask_support::peers::PeerSoftware;
use xtask_support::process::{self, LaunchedProcess};

use crate::client::{ClientKind, GatewayAccess, MatrixClient, MatrixTransport, McpRevision};
use crate::feature::McpFeature;
use crate::scope::HandlerSetting;
use crate::server::{MatrixServer, SERVERS, ServerSpec};
use crate::table::{MatrixCell, MatrixTable};

/// Test every feature with every kind of client and server
#[derive(Parser)]
#[command(bin_name = "cargo xtask matrix")]
struct MatrixArgs {
    /// Write the matrix to `docs/matrix.md`
    #[arg(long)]
    write: bool,
    /// Test only servers whose name contains NAME
    #[arg(long, value_name = "NAME", conflicts_with = "write")]
    only: Option<String>,
    /// Compare the matrix with `docs/matrix.md`, with the programs of the latest build of the workspace
    #[arg(long, conflicts_with_all = ["write", "only"])]
    check: bool,
    #[command(subcommand)]
    process: Option<MatrixProcess>,
}

/// Processes that the conformance suite starts.
#[derive(clap::Subcommand)]
enum MatrixProcess {
    /// Use everything that a gateway offers
    #[command(hide = true)]
    Exercise(exercise::ExerciseArgs),
}

const CLIENTS: [ClientKind; 7] = [
    ClientKind { revision: McpRevision::V2024_11_05, carrier: MatrixTransport::Sse },
    ClientKind { revision: McpRevision::V2025_03_26, carrier: MatrixTransport::Http },
    ClientKind { revision: McpRevision::V2025_06_18, carrier: MatrixTransport::Http },
    ClientKind { revision: McpRevision::V2025_11_25, carrier: MatrixTransport::Http },
    ClientKind { revision: McpRevision::V2026_07_28, carrier: MatrixTransport::Http },
    ClientKind { revision: McpRevision::V2025_11_25, carrier: MatrixTransport::Stdio },
    ClientKind { revision: McpRevision::V2026_07_28, carrier: MatrixTransport::Stdio },
];

/// Number of servers that are tested in parallel.
const PARALLEL_SERVERS: usize = 4;

/// Maximum time of one cell: longer than any that passes.
const CELL_LIMIT: Duration = Duration::from_secs(90);

fn main() -> ExitCode {
    xtask_support::exit_code(execute())
}

fn execute() -> anyhow::Result<()> {
    process::exec_if_launcher()?;
    match MatrixArgs::parse() {
        MatrixArgs { process: Some(MatrixProcess::Exercise(args)), .. } => exercise::run(&args),
        MatrixArgs { check: true, .. } => check(),
        args => run(&args),
    }
}

/// Builds the programs, and prints or writes the matrix.
fn run(args: &MatrixArgs) -> anyhow::Result<()> {
    process::run(process::cargo().args(["build", "--quiet", "--workspace", "--all-targets"]))?;
    let tables = collect_tables(args.only.as_deref().unwrap_or_default())?;
    let text = page(&tables);
    println!("{text}");
    if args.write {
        std::fs::write(matrix_path(), text).context("write the matrix")?;
    }
    let failures = failures(&tables);
    ensure!(failures.is_empty(), "failures in the matrix\n{}", failures.join("\n"));
    Ok(())
}

/// Runs the matrix with the latest build, and compares it with the committed page.
fn check() -> anyhow::Result<()> {
    let tables = collect_tables("")?;
    let failures = failures(&tables);
    ensure!(failures.is_empty(), "failures in the matrix\n{}", failures.join("\n"));
    let committed = std::fs::read_to_string(matrix_path()).unwrap_or_default();
    ensure!(committed == page(&tables), "docs/matrix.md is out of date: run `cargo xtask matrix --write`");
    Ok(())
}

fn matrix_path() -> PathBuf {
    xtask_support::root().join("docs/matrix.md")
}

fn page(tables: &[MatrixTable]) -> String {
    let head = include_str!("head.md");
    head.to_owned() + &table::document(tables)
}

fn failures(tables: &[MatrixTable]) -> Vec<String> {
    tables.iter().flat_map(MatrixTable::failures).collect()
}

/// The tables of the servers whose name contains `only`.
fn collect_tables(only: &str) -> anyhow::Result<Vec<MatrixTable>> {
    let peers = PeerSoftware::installed()?;
    let folder = TempDir::new().context("create a folder")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut servers = Vec::new();
        for subject in SERVERS.into_iter().filter(|subject| subject.name.contains(only)) {
            servers.push(MatrixServer::start(subject, &peers, folder.path()).await.context(subject.name)?);
        }
        let tables =
            stream::iter(&servers).map(|server| table(server, folder.path())).buffered(PARALLEL_SERVERS);
        let mut tables: Vec<_> =
            tables.collect::<Vec<_>>().await.into_iter().collect::<anyhow::Result<_>>()?;
        tables.push(combined_table(&servers, folder.path()).await?);
        Ok(tables)
    })
}

/// The table of one server, behind a gateway of its own in the default configuration.
async fn table(server: &MatrixServer, folder: &Path) -> anyhow::Result<MatrixTable> {
    let gateways = ServerGateways::start(server, folder)?;
    let rows = join_all(CLIENTS.into_iter().enumerate().map(|(number, kind)| {
        let gateways = &gateways;
        async move { (kind, client_row(kind, &client_name(number), server, gateways).await) }
    }));
    let mut rows = rows.await;
    for (number, (kind, cells)) in rows.iter_mut().enumerate() {
        retry_failed(cells, *kind, &client_name(number), server, &gateways).await;
    }
    Ok(MatrixTable { title: server.subject.title(), columns: table::feature_names(), rows })
}

/// Retries failed features one at a time: in parallel some may be too slow for a busy machine.
async fn retry_failed(
    cells: &mut [MatrixCell],
    kind: ClientKind,
    name: &str,
    server: &MatrixServer,
    gateways: &ServerGateways,
) {
    for (feature, outcome) in McpFeature::ALL.into_iter().zip(cells) {
        let MatrixCell::Failed(why) = &*outcome else { continue };
        let server_name = server.subject.name;
        let _unseen = writeln!(io::stderr(), "{server_name}: {kind}: retrying {feature:?}: {why}");
        // Under another name: what the first attempt left behind may still be there.
        let name = format!("{name}-again");
        *outcome = verify_cell(feature, kind, &name, &mut gateways.slots(), server).await;
    }
}

/// Name of a client; it occurs in no other text.
fn client_name(number: usize) -> String {
    let names = ["ada", "bea", "cid", "dov", "eve", "fay", "gus"];
    format!("client-{}", names.get(number).unwrap_or(&"zoe"))
}

async fn client_row(
    kind: ClientKind,
    name: &str,
    server: &MatrixServer,
    gateways: &ServerGateways,
) -> Vec<MatrixCell> {
    let mut slots = gateways.slots();
    let mut cells = Vec::new();
    for feature in McpFeature::ALL {
        cells.push(match scope::not_applicable_reason(feature, kind, &server.subject) {
            Some(reason) => MatrixCell::NotApplicable(reason),
            None => verify_cell(feature, kind, name, &mut slots, server).await,
        });
    }
    cells
}

/// The gateways of one server: one in the default configuration, and one for each other setting that a cell needs.
struct ServerGateways(Vec<(HandlerSetting, MatrixGateway)>);

impl ServerGateways {
    fn start(server: &MatrixServer, folder: &Path) -> anyhow::Result<Self> {
        let is_needed = |setting: &HandlerSetting| {
            let needs = |kind, feature| scope::needed_setting(feature, kind, &server.subject).0 == *setting;
            CLIENTS.into_iter().any(|kind| McpFeature::ALL.into_iter().any(|feature| needs(kind, feature)))
        };
        let start = |setting: HandlerSetting| {
            let name = format!("{}-{setting:?}", server.subject.name);
            anyhow::Ok((setting, MatrixGateway::start(&name, &[server.handler(setting)], folder)?))
        };
        HandlerSetting::ALL.into_iter().filter(is_needed).map(start).collect::<anyhow::Result<_>>().map(Self)
    }

    fn slots(&self) -> Vec<(HandlerSetting, ClientSlot<'_>)> {
        let slot = |(setting, gateway)| (setting, ClientSlot { gateway, client: None });
        self.0.iter().map(|(setting, gateway)| slot((*setting, gateway))).collect()
    }
}

/// The gateway of a client, and the client once it is connected.
struct ClientSlot<'a> {
    gateway: &'a MatrixGateway,
    client: Option<MatrixClient>,
}

/// Checks one feature with the setting that it needs.
async fn verify_cell(
    feature: McpFeature,
    kind: ClientKind,
    name: &str,
    slots: &mut [(HandlerSetting, ClientSlot<'_>)],
    server: &MatrixServer,
) -> MatrixCell {
    let (setting, reason) = scope::needed_setting(feature, kind, &server.subject);
    let Some((_, slot)) = slots.iter_mut().find(|(other, _)| *other == setting) else {
        return MatrixCell::Failed(format!("no gateway with {setting}"));
    };
    match verify(feature, kind, name, slot, server).await {
        Ok(()) => reason.map_or(MatrixCell::Passed, |reason| MatrixCell::PassedWith(setting, reason)),
        Err(error) => MatrixCell::Failed(format!("{error:#}")),
    }
}

/// Checks one feature. After a failure the next feature gets a new client.
async fn verify(
    feature: McpFeature,
    kind: ClientKind,
    name: &str,
    slot: &mut ClientSlot<'_>,
    server: &MatrixServer,
) -> anyhow::Result<()> {
    let ClientSlot { gateway, client } = slot;
    let script = server.subject.script();
    let verification = async {
        if client.is_none() {
            let new = client.insert(MatrixClient::open(kind, name, gateway.access()).await?);
            new.await_tool(script.call.tool).await?;
        }
        let client = client.as_mut().context("a client")?;
        feature.verify(client, script, server.tap.as_ref()).await
    };
    let outcome = timeout(CELL_LIMIT, verification).await.context("timeout").flatten();
    if outcome.is_err() {
        *client = None;
    }
    outcome
}

/// The table of all servers behind one gateway: a call of each, by its prefixed name.
async fn combined_table(servers: &[MatrixServer], folder: &Path) -> anyhow::Result<MatrixTable> {
    let handlers = servers.iter().map(|server| server.handler(HandlerSetting::Default));
    let mut handlers: Vec<_> = handlers.collect();
    handlers.iter_mut().for_each(|handler| handler["prefix"] = "always".into());
    let gateway = MatrixGateway::start("all", &handlers, folder)?;
    let rows = join_all(CLIENTS.into_iter().enumerate().map(|(number, kind)| {
        let gateway = &gateway;
        async move { (kind, call_each_server(kind, &client_name(number), servers, gateway).await) }
    }));
    let columns = servers.iter().map(|server| server.subject.name.to_owned()).collect();
    Ok(MatrixTable { title: "All servers behind one gateway: call".to_owned(), columns, rows: rows.await })
}

async fn call_each_server(
    kind: ClientKind,
    name: &str,
    servers: &[MatrixServer],
    gateway: &MatrixGateway,
) -> Vec<MatrixCell> {
    let opening = MatrixClient::open(kind, name, gateway.access()).await;
    let mut client = match opening {
        Ok(client) => client,
        Err(error) => return vec![MatrixCell::Failed(format!("{error:#}")); servers.len()],
    };
    let mut cells = Vec::new();
    for server in servers {
        let (ServerSpec { name: handler, .. }, step) = (server.subject, &server.subject.script().call);
        // The name identifies the server, so that a response of another one is detected.
        let name = format!("{name} at {handler}");
        let tool = format!("{handler}_{}", step.tool);
        let outcome = match client.await_tool(&tool).await {
            Ok(()) => client.call(&tool, step.arguments(&name)).await,
            Err(error) => Err(error),
        };
        cells.push(match outcome {
            Ok(text) if text.contains(&step.expected_text(&name)) => MatrixCell::Passed,
            Ok(text) => MatrixCell::Failed(format!("returned {text:?}")),
            Err(error) => MatrixCell::Failed(format!("{error:#}")),
        });
    }
    cells
}

/// A gateway over HTTP, and the manifest for `toolyard stdio` instead.
struct MatrixGateway {
    address: std::net::SocketAddr,
    manifest: PathBuf,
    log: PathBuf,
    _process: LaunchedProcess,
}

impl MatrixGateway {
    fn start(name: &str, handlers: &[Value], folder: &Path) -> anyhow::Result<Self> {
        let (manifest, log) =
            (folder.join(format!("{name}.yaml")), folder.join(format!("{name}-gateway.log")));
        std::fs::write(&manifest, manifest_of(handlers)).context("write a manifest")?;
        let args = [OsStr::new("serve"), OsStr::new("-f"), manifest.as_os_str()];
        let args = [&args[..], &["--listen", "127.0.0.1:0"].map(OsStr::new)].concat();
        let mut process =
            LaunchedProcess::launch(sibling_program("toolyard")?, &args, File::create(&log)?.into())?;
        let address =
            process.printed_address().with_context(|| format!("the gateway: {}", log_tail(&log)))?;
        Ok(Self { address, manifest, log, _process: process })
    }

    fn access(&self) -> GatewayAccess<'_> {
        GatewayAccess { address: self.address, manifest: &self.manifest, log: &self.log }
    }
}

/// JSON is valid YAML. The gateway has its default configuration.
fn manifest_of(handlers: &[Value]) -> String {
    let registry = json!({
        "apiVersion": "omnia.altairalabs.ai/v1alpha1",
        "kind": "ToolRegistry",
        "metadata": {"name": "matrix"},
        "spec": {"handlers": handlers},
    });
    format!("{registry}\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_of_clients_and_servers_are_unique() {
        let clients: BTreeSet<_> = (0..CLIENTS.len()).map(client_name).collect();
        let servers: BTreeSet<_> = SERVERS.iter().map(|subject| subject.name).collect();
        assert_eq!((clients.len(), servers.len()), (CLIENTS.len(), SERVERS.len()));
    }
}
