//! `toolyard add openapi`: a service whose operations are tools.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolyard_backends::openapi::source::{self, NotRead, Source};
use toolyard_manifest::{HandlerName, Process};
use toolyard_net::client::Client;
use toolyard_openapi::{Described, Description, Fault, Filter, Options, Sources};

use super::{Manifest, Target};
use crate::BadInput;
use crate::output::{self, Format, count, note, patiently, print};
use crate::remote::url;

/// Add a service with an OpenAPI description: its operations become tools
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard add openapi https://petstore3.swagger.io/api/v3/openapi.json
  toolyard add openapi api/openapi.yaml --name shop --tag orders
  toolyard add openapi swagger.json --operation getPet --operation addPet --dry-run

The tools are shown first, with what is wrong with the description. What would change of the manifest is shown,
too, and then asked for; without a terminal it takes `--yes`. Everything else in the manifest stays as it is,
comments included. Credentials are not written: docs/manifest.md says how a handler has them.")]
pub(super) struct Args {
    /// The description: OpenAPI 2 or 3, as JSON or YAML
    #[arg(value_name = "URL|FILE")]
    description: String,

    /// The name of the handler; that of the service unless set
    #[arg(long, value_parser = HandlerName::parse)]
    name: Option<HandlerName>,

    /// An operation that becomes a tool, by its `operationId` or by the name of the tool; may be said more than once
    #[arg(long = "operation", value_name = "NAME")]
    operations: Vec<String>,

    /// A tag whose operations become tools; may be said more than once
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,

    #[command(flatten)]
    target: Target,
}

/// How long a description may take to come. The largest ones have 20 MB.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many faults people are shown.
const MOST_FAULTS: usize = 20;

pub(super) async fn run(args: Args, format: Format) -> anyhow::Result<ExitCode> {
    let place = place(&args.description)?;
    let manifest = Manifest::open(&args.target.file)?;
    let sources = patiently(&args.description, read(place.clone())).await?;
    let filter = Filter { operations: args.operations.clone(), tags: args.tags.clone(), ..Filter::default() };
    let description = toolyard_openapi::read(&sources, &Options { filter, ..Options::default() })
        .map_err(|error| BadInput(error.to_string()))?;
    if format == Format::Text {
        print(&shown(title(&args, &description), &description));
    }
    if description.operations.is_empty() {
        return Err(
            BadInput("none of its operations becomes a tool, so nothing is written".to_owned()).into()
        );
    }
    remind(&args, &description);
    let name = manifest.name(args.name.as_ref(), title(&args, &description))?;
    let handler = handler(&args, &name, &spec_url(&place, &args.target.file)?);
    let after = manifest.with(&handler)?;
    let written = manifest.change(&after, &args.target, format)?;
    if format == Format::Json {
        print(&report(&args, &description, &handler, written).to_string());
    }
    Ok(ExitCode::SUCCESS)
}

// === the description ===

fn place(text: &str) -> Result<Source, BadInput> {
    match text.contains("://") {
        true => url(text).map(Source::Url).map_err(|invalid| BadInput(invalid.to_string())),
        false => Ok(Source::File(text.into())),
    }
}

async fn read(place: Source) -> anyhow::Result<Sources> {
    // Where the system has no roots, what is reached without TLS can be read.
    let client = Client::with_system_roots().or_else(|_| Client::without_roots())?;
    let read = source::read(place, client, Process::default().limits.response_bytes);
    match timeout(PATIENCE, read).await.context("the description takes too long")? {
        Ok(sources) => Ok(sources),
        Err(error @ NotRead::File { .. }) => {
            Err(BadInput(format!("the description cannot be read: {error}")).into())
        }
        Err(error) => Err(error).context("the description cannot be read"),
    }
}

/// What the service is called, which not all say.
fn title<'a>(args: &'a Args, description: &'a Description) -> &'a str {
    if description.title.is_empty() { &args.description } else { &description.title }
}

/// What a person is told of it: the tools, and what is wrong.
fn shown(title: &str, description: &Description) -> String {
    let rows: Vec<[String; 3]> = description.operations.iter().map(row).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (names, requests) = (width(0), width(1));
    let mut lines = vec![format!("{}: {}", output::line(title), count(rows.len(), "tool"))];
    for [name, request, first] in &rows {
        lines.push(format!("  {name:names$}  {request:requests$}  {first}").trim_end().to_owned());
    }
    let faults = &description.faults;
    if !faults.is_empty() {
        lines.push(format!("{} in the description", count(faults.len(), "fault")));
        let fault = |Fault { place, problem }: &Fault| output::line(&format!("  {place}: {problem}"));
        lines.extend(faults.iter().take(MOST_FAULTS).map(fault));
    }
    if faults.len() > MOST_FAULTS {
        lines.push(format!("  and {} more, which `--output json` has", faults.len() - MOST_FAULTS));
    }
    lines.join("\n")
}

/// The name of a tool, its request, and the first line of what it does.
fn row(described: &Described) -> [String; 3] {
    let Described { operation, definition, .. } = described;
    let description = definition.get_str("description").unwrap_or_default();
    let first = description.lines().next().unwrap_or_default();
    let request = format!("{} {}", operation.method, operation.path);
    [&*operation.name, &*request, first].map(output::line)
}

/// Says what its user has to see to.
fn remind(args: &Args, description: &Description) {
    let operations = &description.operations;
    if args.tags.is_empty() && operations.len() < args.operations.len() {
        let named = count(args.operations.len(), "operation");
        note(&format!("of {named} that you named, {} can be tools", operations.len()));
    }
    if operations.iter().any(|described| !described.operation.server.contains("://")) {
        note("the description does not say where the service is: set `baseURL` of the handler");
    }
    let schemes: BTreeSet<_> = operations
        .iter()
        .filter(|described| !described.security.iter().any(Vec::is_empty))
        .flat_map(|described| described.security.iter().flatten())
        .map(|requirement| format!("`{}`", requirement.scheme))
        .collect();
    if !schemes.is_empty() {
        let schemes = schemes.into_iter().collect::<Vec<_>>().join(", ");
        note(&format!("the service is opened by {schemes}: set `credentials` of the handler"));
    }
}

// === the handler ===

fn handler(args: &Args, name: &str, spec_url: &str) -> Value {
    let mut config = json!({"specURL": spec_url});
    if !args.operations.is_empty() {
        config["operationFilter"] = json!(args.operations);
    }
    if !args.tags.is_empty() {
        config["filter"] = json!({"tags": args.tags});
    }
    json!({"name": name, "type": "openapi", "openAPIConfig": config})
}

/// Where the description is, as a manifest says it.
fn spec_url(place: &Source, manifest: &Path) -> anyhow::Result<String> {
    let text = match place {
        Source::Url(url) => url.to_string(),
        Source::File(path) => format!("file:{}", from_folder(path, manifest)?),
        Source::Inline(text) => text.clone(),
    };
    // It stands for itself there.
    Ok(text.replace("${", "$${"))
}

/// The path from the folder of the manifest, where it leads downwards; else the absolute one.
fn from_folder(path: &Path, manifest: &Path) -> anyhow::Result<String> {
    let (path, manifest): (PathBuf, PathBuf) = (std::path::absolute(path)?, std::path::absolute(manifest)?);
    let below = manifest.parent().and_then(|folder| path.strip_prefix(folder).ok());
    let text = below.unwrap_or(&path).to_str();
    Ok(text.ok_or_else(|| BadInput("the path of the description is not UTF-8".to_owned()))?.to_owned())
}

fn report(args: &Args, description: &Description, handler: &Value, written: bool) -> Value {
    let tools = description.operations.iter().map(|Described { operation, definition, .. }| {
        json!({
            "name": operation.name,
            "method": operation.method.as_str(),
            "path": operation.path,
            "description": definition.get_str("description"),
        })
    });
    let faults = description.faults.iter();
    let faults = faults.map(|Fault { place, problem }| json!({"place": place, "problem": problem}));
    json!({
        "file": args.target.file,
        "handler": handler,
        "title": description.title,
        "tools": tools.collect::<Vec<_>>(),
        "faults": faults.collect::<Vec<_>>(),
        "written": written,
    })
}
