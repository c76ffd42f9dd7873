//! Every kind of client with every kind of server, through the gateway, and what of each feature is seen.
//!
//! A gateway stands in front of each server, so that no server helps another; one more stands in front of all.

pub(crate) mod client;
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
use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::builds::{built, end_of};
use crate::peers::Peers;
use crate::process::{self, Process};
use client::{Carrier, Client, Door, Kind, Revision};
use feature::Feature;
use server::{SUBJECTS, Server, Subject};
use table::{Cell, Table};

/// What this command is told.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write what is seen to `docs/matrix.md`
    #[arg(long)]
    write: bool,
    /// Only servers whose name contains this
    #[arg(long, value_name = "NAME", conflicts_with = "write")]
    only: Option<String>,
}

const CLIENTS: [Kind; 7] = [
    Kind { revision: Revision::V2024_11_05, carrier: Carrier::Sse },
    Kind { revision: Revision::V2025_03_26, carrier: Carrier::Http },
    Kind { revision: Revision::V2025_06_18, carrier: Carrier::Http },
    Kind { revision: Revision::V2025_11_25, carrier: Carrier::Http },
    Kind { revision: Revision::V2026_07_28, carrier: Carrier::Http },
    Kind { revision: Revision::V2025_11_25, carrier: Carrier::Stdio },
    Kind { revision: Revision::V2026_07_28, carrier: Carrier::Stdio },
];

/// Servers that are looked at side by side.
const AT_ONCE: usize = 4;

/// Longer than any cell takes that will ever be green.
const CELL_LIMIT: Duration = Duration::from_secs(90);

/// Builds what takes part, and prints or writes the matrix.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    process::run(process::cargo().args(["build", "--quiet", "--workspace", "--all-targets"]))?;
    let tables = look(args.only.as_deref().unwrap_or_default())?;
    let text = page(&tables);
    println!("{text}");
    let failures = failures(&tables);
    ensure!(failures.is_empty(), "not everything was seen\n{}", failures.join("\n"));
    if args.write {
        std::fs::write(written(), text).context("write the matrix")?;
    }
    Ok(())
}

/// Looks with what was built last, and compares with what is written.
pub(crate) fn check() -> anyhow::Result<()> {
    let tables = look("")?;
    let failures = failures(&tables);
    ensure!(failures.is_empty(), "not everything was seen\n{}", failures.join("\n"));
    let kept = std::fs::read_to_string(written()).unwrap_or_default();
    ensure!(kept == page(&tables), "docs/matrix.md is not what is seen: run `cargo xtask matrix --write`");
    Ok(())
}

fn written() -> PathBuf {
    crate::root().join("docs/matrix.md")
}

fn page(tables: &[Table]) -> String {
    let head = include_str!("head.md");
    head.to_owned() + &table::document(tables)
}

fn failures(tables: &[Table]) -> Vec<String> {
    tables.iter().flat_map(Table::failures).collect()
}

/// All that is seen of the servers whose name contains `only`.
fn look(only: &str) -> anyhow::Result<Vec<Table>> {
    let peers = Peers::installed()?;
    let folder = TempDir::new().context("make a folder")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut servers = Vec::new();
        for subject in SUBJECTS.into_iter().filter(|subject| subject.name.contains(only)) {
            servers.push(Server::start(subject, &peers, folder.path()).await.context(subject.name)?);
        }
        let tables = stream::iter(&servers).map(|server| table(server, folder.path())).buffered(AT_ONCE);
        let mut tables: Vec<_> =
            tables.collect::<Vec<_>>().await.into_iter().collect::<anyhow::Result<_>>()?;
        tables.push(together(&servers, folder.path()).await?);
        Ok(tables)
    })
}

/// One server, behind a gateway of its own.
async fn table(server: &Server, folder: &Path) -> anyhow::Result<Table> {
    let name = server.subject.name;
    let gateway = Gateway::start(name, std::slice::from_ref(&server.handler), folder)?;
    let other = |handler: &Option<Value>, what: &str| {
        let start =
            |handler| Gateway::start(&format!("{name}-{what}"), std::slice::from_ref(handler), folder);
        handler.as_ref().map(start).transpose()
    };
    let (shared, apart) = (other(&server.shared, "shared")?, other(&server.apart, "apart")?);
    let [shared, apart] = [&shared, &apart].map(|other| other.as_ref().unwrap_or(&gateway));
    let gateways = [&gateway, shared, apart];
    let rows =
        join_all(CLIENTS.into_iter().enumerate().map(|(number, kind)| async move {
            (kind, row(kind, &name_of(number), server, gateways).await)
        }));
    let mut rows = rows.await;
    for (number, (kind, cells)) in rows.iter_mut().enumerate() {
        again(cells, *kind, &name_of(number), server, gateways).await;
    }
    Ok(Table { title: server.subject.title(), heads: table::features(), rows })
}

/// Shows once more what has failed, while no other client is at work: with so many at once a machine may be too slow for some.
async fn again(cells: &mut [Cell], kind: Kind, name: &str, server: &Server, gateways: [&Gateway; 3]) {
    for (feature, shown) in Feature::ALL.into_iter().zip(cells) {
        let Cell::Failed(why) = &*shown else { continue };
        let server_name = server.subject.name;
        let _unseen = writeln!(io::stderr(), "{server_name}: {kind}: {feature:?} is tried again: {why}");
        let mut seat = Seat { gateway: gateways[seat_of(feature)], client: None };
        *shown = cell(feature, kind, name, &mut seat, server).await;
    }
}

/// Which gateway a feature is shown at: the second one is for what is told to all, the third for log, which does not say whom it
/// is for.
fn seat_of(feature: Feature) -> usize {
    match feature {
        Feature::Log => 2,
        feature => usize::from(feature.is_told_to_all()),
    }
}

/// What a client is called: nothing that anybody else says.
fn name_of(number: usize) -> String {
    let names = ["ada", "bea", "cid", "dov", "eve", "fay", "gus"];
    format!("client-{}", names.get(number).unwrap_or(&"who"))
}

async fn row(kind: Kind, name: &str, server: &Server, gateways: [&Gateway; 3]) -> Vec<Cell> {
    let mut seats = gateways.map(|gateway| Seat { gateway, client: None });
    let mut cells = Vec::new();
    for feature in Feature::ALL {
        let seat = &mut seats[seat_of(feature)];
        cells.push(match scope::because(feature, kind, &server.subject) {
            Some(because) => Cell::Nothing(because),
            None => cell(feature, kind, name, seat, server).await,
        });
    }
    cells
}

/// A client at a gateway, once it is needed.
struct Seat<'a> {
    gateway: &'a Gateway,
    client: Option<Client>,
}

/// Shows one feature. Who has failed is not asked again: the next one is shown by a new client.
async fn cell(feature: Feature, kind: Kind, name: &str, seat: &mut Seat<'_>, server: &Server) -> Cell {
    let Seat { gateway, client } = seat;
    let shown = async {
        if client.is_none() {
            *client = Some(Client::open(kind, name, gateway.door()).await?);
        }
        let client = client.as_mut().context("a client")?;
        feature.show(client, server.subject.script(), server.tap.as_ref()).await
    };
    match timeout(CELL_LIMIT, shown).await.context("it takes too long").flatten() {
        Ok(()) => Cell::Seen,
        Err(error) => {
            *client = None;
            Cell::Failed(format!("{error:#}"))
        }
    }
}

/// All servers behind one gateway: a call of each, by the name that it has there.
async fn together(servers: &[Server], folder: &Path) -> anyhow::Result<Table> {
    let mut handlers: Vec<_> = servers.iter().map(|server| &server.handler).cloned().collect();
    handlers.iter_mut().for_each(|handler| handler["prefix"] = "always".into());
    let gateway = Gateway::start("all", &handlers, folder)?;
    let rows = join_all(CLIENTS.into_iter().enumerate().map(|(number, kind)| {
        let gateway = &gateway;
        async move { (kind, calls(kind, &name_of(number), servers, gateway).await) }
    }));
    let heads = servers.iter().map(|server| server.subject.name.to_owned()).collect();
    Ok(Table { title: "All of them behind one gateway: call".to_owned(), heads, rows: rows.await })
}

async fn calls(kind: Kind, name: &str, servers: &[Server], gateway: &Gateway) -> Vec<Cell> {
    let opened = Client::open(kind, name, gateway.door()).await;
    let mut client = match opened {
        Ok(client) => client,
        Err(error) => return vec![Cell::Failed(format!("{error:#}")); servers.len()],
    };
    let mut cells = Vec::new();
    for server in servers {
        let (Subject { name: handler, .. }, step) = (server.subject, &server.subject.script().call);
        // Each says who it is about, so that an answer of another one would be noticed.
        let name = format!("{name} at {handler}");
        let called = client.call(&format!("{handler}_{}", step.tool), step.arguments(&name)).await;
        cells.push(match called {
            Ok(text) if text.contains(&step.says(&name)) => Cell::Seen,
            Ok(text) => Cell::Failed(format!("said {text:?}")),
            Err(error) => Cell::Failed(format!("{error:#}")),
        });
    }
    cells
}

/// A gateway over HTTP, and what `toolyard stdio` is started with in its place.
struct Gateway {
    address: std::net::SocketAddr,
    manifest: PathBuf,
    log: PathBuf,
    _process: Process,
}

impl Gateway {
    fn start(name: &str, handlers: &[Value], folder: &Path) -> anyhow::Result<Self> {
        let (manifest, log) =
            (folder.join(format!("{name}.yaml")), folder.join(format!("{name}-gateway.log")));
        std::fs::write(&manifest, manifest_of(handlers)).context("write a manifest")?;
        let args = [OsStr::new("serve"), OsStr::new("-f"), manifest.as_os_str()];
        let args = [&args[..], &["--listen", "127.0.0.1:0"].map(OsStr::new)].concat();
        let mut process = Process::launch(built("toolyard")?, &args, File::create(&log)?.into())?;
        let address = process.printed_address().with_context(|| format!("the gateway: {}", end_of(&log)))?;
        Ok(Self { address, manifest, log, _process: process })
    }

    fn door(&self) -> Door<'_> {
        Door { address: self.address, manifest: &self.manifest, log: &self.log }
    }
}

/// JSON is YAML, too. Nobody is too slow for the first list: a busy machine must not decide what is on it.
fn manifest_of(handlers: &[Value]) -> String {
    let patience = json!({"firstList": "50s", "connect": "50s", "eraProbe": "10s"});
    let process = json!({
        "apiVersion": "toolyard.dev/v1alpha1",
        "kind": "Toolyard",
        // Whoever has failed comes again as somebody else.
        "spec": {"timeouts": patience, "limits": {"lanesPerHandler": 64}},
    });
    let registry = json!({
        "apiVersion": "omnia.altairalabs.ai/v1alpha1",
        "kind": "ToolRegistry",
        "metadata": {"name": "matrix"},
        "spec": {"handlers": handlers},
    });
    format!("{process}\n---\n{registry}\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_clients_or_servers_have_one_name() {
        let clients: BTreeSet<_> = (0..CLIENTS.len()).map(name_of).collect();
        let servers: BTreeSet<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
        assert_eq!((clients.len(), servers.len()), (CLIENTS.len(), SUBJECTS.len()));
    }
}
