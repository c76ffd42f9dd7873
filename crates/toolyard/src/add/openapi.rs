//! `toolyard add openapi`: adds a service with an OpenAPI description.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolyard_backends::openapi::source::{self, DescriptionLocation, DescriptionReadError};
use toolyard_manifest::{HandlerName, ProcessSettings};
use toolyard_net::client::HttpClient;
use toolyard_openapi::{
    DescribedOperation, DescriptionFault, DescriptionSources, OperationSelector, ReadOptions,
    ServiceDescription,
};

use super::{AddTarget, ManifestFile};
use crate::BadInput;
use crate::output::{self, OutputFormat, count, note, print, with_wait_notice};
use crate::remote::parse_url;

/// Add a service with an OpenAPI description, whose operations become tools
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard add openapi https://petstore3.swagger.io/api/v3/openapi.json
  toolyard add openapi api/openapi.yaml --name shop --tag orders
  toolyard add openapi swagger.json --operation getPet --operation addPet --dry-run

Shows the tools, the faults of the description and the change, and asks for confirmation. Everything else in the
manifest is preserved, including comments. Credentials are not written; docs/manifest.md describes how to add them.")]
pub(super) struct AddOpenapiArgs {
    /// OpenAPI 2 or 3 description, as JSON or YAML
    #[arg(value_name = "URL|FILE")]
    description: String,

    /// Name of the handler (default: derived from the name of the service)
    #[arg(long, value_parser = HandlerName::parse)]
    name: Option<HandlerName>,

    /// Only the operation with this `operationId` or tool name; repeatable
    #[arg(long = "operation", value_name = "NAME")]
    operations: Vec<String>,

    /// Only operations with this tag; repeatable
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,

    /// Base URL of requests, if the description has no server URL or another one
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    #[command(flatten)]
    target: AddTarget,
}

/// Time limit for reading a description. The largest ones have 20 MB.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of faults that are shown as text.
const MAX_FAULTS_SHOWN: usize = 20;

pub(super) async fn run(args: AddOpenapiArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let place = parse_source(&args.description)?;
    let file = args.target.path();
    let manifest = ManifestFile::open(&file)?;
    let sources = with_wait_notice(&args.description, read_sources(place.clone())).await?;
    let filter = OperationSelector {
        operations: args.operations.clone(),
        tags: args.tags.clone(),
        ..OperationSelector::default()
    };
    let description = toolyard_openapi::read(&sources, &ReadOptions { filter, ..ReadOptions::default() })
        .map_err(|error| BadInput(error.to_string()))?;
    if format == OutputFormat::Text {
        print(&preview(title(&args, &description), &description));
    }
    if description.operations.is_empty() {
        return Err(BadInput("no operation can become a tool; nothing is written".to_owned()).into());
    }
    print_notes(&args, &description);
    let name = manifest.handler_name(args.name.as_ref(), title(&args, &description))?;
    let handler = handler(&args, &name, &spec_url(&place, &file)?);
    let after = manifest.with_handler(&handler)?;
    let is_written = manifest.write_change(&after, &args.target, format)?;
    if format == OutputFormat::Json {
        print(&report(&file, &description, &handler, is_written).to_string());
    }
    Ok(ExitCode::SUCCESS)
}

// === the description ===

fn parse_source(text: &str) -> Result<DescriptionLocation, BadInput> {
    match text.contains("://") {
        true => {
            parse_url(text).map(DescriptionLocation::Url).map_err(|invalid| BadInput(invalid.to_string()))
        }
        false => Ok(DescriptionLocation::File(text.into())),
    }
}

async fn read_sources(place: DescriptionLocation) -> anyhow::Result<DescriptionSources> {
    // Without system roots, descriptions can still be read without TLS.
    let client = HttpClient::with_system_roots().or_else(|_| HttpClient::without_roots())?;
    let read = source::read(place, client, ProcessSettings::default().limits.response_bytes);
    match timeout(READ_TIMEOUT, read)
        .await
        .with_context(|| format!("timed out after {} s reading the description", READ_TIMEOUT.as_secs()))?
    {
        Ok(sources) => Ok(sources),
        Err(error @ DescriptionReadError::File { .. }) => {
            Err(BadInput(format!("cannot read the description: {error}")).into())
        }
        Err(error) => Err(error).context("cannot read the description"),
    }
}

/// Returns the title of the service, or else the argument.
fn title<'a>(args: &'a AddOpenapiArgs, description: &'a ServiceDescription) -> &'a str {
    if description.title.is_empty() { &args.description } else { &description.title }
}

/// Formats the tools and the faults of the description as text.
fn preview(title: &str, description: &ServiceDescription) -> String {
    let rows: Vec<[String; 3]> = description.operations.iter().map(row).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (names, requests) = (width(0), width(1));
    let mut lines = vec![format!("{}: {}", output::escape_line(title), count(rows.len(), "tool"))];
    for [name, request, first] in &rows {
        lines.push(format!("  {name:names$}  {request:requests$}  {first}").trim_end().to_owned());
    }
    let faults = &description.faults;
    if !faults.is_empty() {
        lines.push(format!("{} in the description", count(faults.len(), "fault")));
        let fault = |DescriptionFault { location: place, problem }: &DescriptionFault| {
            output::escape_line(&format!("  {place}: {problem}"))
        };
        lines.extend(faults.iter().take(MAX_FAULTS_SHOWN).map(fault));
    }
    if faults.len() > MAX_FAULTS_SHOWN {
        lines.push(format!("  and {} more; `--output json` shows all", faults.len() - MAX_FAULTS_SHOWN));
    }
    let uncallable: Vec<_> = description.contradictions().collect();
    if !uncallable.is_empty() {
        lines.push(format!(
            "{} left out, because no arguments satisfy the schema",
            count(uncallable.len(), "tool")
        ));
    }
    let line = |(name, reason): &(&str, String)| output::escape_line(&format!("  {name}: {reason}"));
    lines.extend(uncallable.iter().take(MAX_FAULTS_SHOWN).map(line));
    lines.join("\n")
}

/// Returns the name of a tool, its HTTP request and the first line of its description.
fn row(described: &DescribedOperation) -> [String; 3] {
    let DescribedOperation { operation, definition, .. } = described;
    let description = definition.get_str("description").unwrap_or_default();
    let first = description.lines().next().unwrap_or_default();
    let request = format!("{} {}", operation.method, operation.path);
    [&*operation.name, &*request, first].map(output::escape_line)
}

/// Prints notes about settings that the user must still add.
fn print_notes(args: &AddOpenapiArgs, description: &ServiceDescription) {
    let operations = &description.operations;
    if args.tags.is_empty() && operations.len() < args.operations.len() {
        let named = count(args.operations.len(), "operation");
        note(&format!("only {} of the {named} given with `--operation` can become tools", operations.len()));
    }
    let has_no_server = |described: &&DescribedOperation| !described.operation.server.contains("://");
    let without_server = operations.iter().filter(has_no_server).count();
    match (&args.base_url, without_server) {
        (Some(_), _) | (None, 0) => {}
        (None, all) if all == operations.len() => note(&format!(
            "{}, or add it with `--base-url https://api.example.com/v1`",
            ServiceDescription::NO_SERVER
        )),
        (None, some) => note(&format!(
            "{} cannot be called, because the description has no absolute server URL for them; set `baseURL` in the handler",
            count(some, "tool")
        )),
    }
    let schemes: BTreeSet<_> = operations
        .iter()
        .filter(|described| !described.security.iter().any(Vec::is_empty))
        .flat_map(|described| described.security.iter().flatten())
        .map(|requirement| format!("`{}`", requirement.scheme))
        .collect();
    if !schemes.is_empty() {
        let schemes = schemes.into_iter().collect::<Vec<_>>().join(", ");
        note(&format!("the service requires {schemes}; set `credentials` in the handler"));
    }
}

// === the handler ===

fn handler(args: &AddOpenapiArgs, name: &str, spec_url: &str) -> Value {
    let mut config = json!({"specURL": spec_url});
    if let Some(base_url) = &args.base_url {
        // `$$` escapes a variable reference in a manifest.
        config["baseURL"] = json!(base_url.replace("${", "$${"));
    }
    if !args.operations.is_empty() {
        config["operationFilter"] = json!(args.operations);
    }
    if !args.tags.is_empty() {
        config["filter"] = json!({"tags": args.tags});
    }
    json!({"name": name, "type": "openapi", "openAPIConfig": config})
}

/// Returns the location of the description in the form of a manifest.
fn spec_url(place: &DescriptionLocation, manifest: &Path) -> anyhow::Result<String> {
    let text = match place {
        DescriptionLocation::Url(url) => url.to_string(),
        DescriptionLocation::File(path) => format!("file:{}", path_from_manifest(path, manifest)?),
        DescriptionLocation::Inline(text) => text.clone(),
    };
    // `$$` escapes a variable reference in a manifest.
    Ok(text.replace("${", "$${"))
}

/// Returns the path relative to the directory of the manifest if it is below, or else the absolute path.
fn path_from_manifest(path: &Path, manifest: &Path) -> anyhow::Result<String> {
    let (path, manifest): (PathBuf, PathBuf) = (std::path::absolute(path)?, std::path::absolute(manifest)?);
    let below = manifest.parent().and_then(|folder| path.strip_prefix(folder).ok());
    let text = below.unwrap_or(&path).to_str();
    Ok(text.ok_or_else(|| BadInput("the path of the description is not UTF-8".to_owned()))?.to_owned())
}

fn report(file: &Path, description: &ServiceDescription, handler: &Value, written: bool) -> Value {
    let tools = description.operations.iter().map(|DescribedOperation { operation, definition, .. }| {
        json!({
            "name": operation.name,
            "method": operation.method.as_str(),
            "path": operation.path,
            "description": definition.get_str("description"),
        })
    });
    let faults = description.faults.iter();
    let faults = faults
        .map(|DescriptionFault { location: place, problem }| json!({"place": place, "problem": problem}));
    let uncallable =
        description.contradictions().map(|(name, reason)| json!({"name": name, "reason": reason}));
    json!({
        "file": file,
        "handler": handler,
        "title": description.title,
        "tools": tools.collect::<Vec<_>>(),
        "faults": faults.collect::<Vec<_>>(),
        "uncallable": uncallable.collect::<Vec<_>>(),
        "written": written,
    })
}
