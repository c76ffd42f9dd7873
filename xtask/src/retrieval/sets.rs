//! The sets: tools, queries, and which tools each query asks for.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Deeper parameters are not read.
const DEEPEST: usize = 3;

/// A set.
pub(super) struct Set {
    pub(super) name: String,
    pub(super) tools: Vec<Tool>,
    pub(super) queries: Vec<Query>,
}

/// A tool of a set, or of a server.
#[derive(Deserialize)]
pub(super) struct Tool {
    /// What queries call it.
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) server: Option<String>,
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default, rename = "inputSchema")]
    input_schema: Value,
}

/// A query.
#[derive(Deserialize)]
pub(super) struct Query {
    pub(super) text: String,
    /// What it needs: one tool of each group.
    pub(super) relevant: Vec<Vec<String>>,
}

impl Tool {
    pub(super) fn server(&self) -> &str {
        self.server.as_deref().unwrap_or_default()
    }

    pub(super) fn description(&self) -> &str {
        self.description.as_deref().unwrap_or_default()
    }

    /// Its parameters, and what is said of each.
    pub(super) fn parameters(&self) -> Vec<(String, String)> {
        let mut parameters = Vec::new();
        read_parameters(&self.input_schema, 0, &mut parameters);
        parameters
    }
}

fn read_parameters(schema: &Value, depth: usize, into: &mut Vec<(String, String)>) {
    for (name, schema) in schema["properties"].as_object().into_iter().flat_map(Map::iter) {
        let description = schema["description"].as_str().unwrap_or_default();
        into.push((name.clone(), description.to_owned()));
        if depth < DEEPEST {
            read_parameters(schema, depth + 1, into);
        }
    }
}

/// All sets of a folder, by name.
pub(super) fn all(folder: &Path) -> anyhow::Result<Vec<Set>> {
    let mut sets = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry.context("read a folder")?.path();
        if path.is_dir() {
            sets.push(set(&path).with_context(|| format!("read the set {}", path.display()))?);
        }
    }
    ensure!(!sets.is_empty(), "there is no set in {}", folder.display());
    sets.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(sets)
}

fn set(folder: &Path) -> anyhow::Result<Set> {
    let name = folder.file_name().context("a folder has a name")?.to_string_lossy().into_owned();
    let queries = std::fs::read_to_string(folder.join("queries.jsonl")).context("read the queries")?;
    let tools = lines(&unpacked("xz", &folder.join("tools.jsonl.xz"))?)?;
    Ok(Set { name, tools, queries: lines(&queries)? })
}

fn lines<T: for<'t> Deserialize<'t>>(text: &str) -> anyhow::Result<Vec<T>> {
    text.lines().map(|line| serde_json::from_str(line).context("a line is JSON")).collect()
}

/// The text of a packed file.
fn unpacked(program: &str, file: &Path) -> anyhow::Result<String> {
    ensure!(file.is_file(), "there is no file {}", file.display());
    let output = Command::new(program).arg("-dc").arg(file).output();
    let output = output.with_context(|| format!("start {program}"))?;
    ensure!(output.status.success(), "{program} cannot unpack {}", file.display());
    String::from_utf8(output.stdout).context("a file is UTF-8")
}

/// A server, as it listed its tools.
#[derive(Deserialize)]
pub(super) struct Server {
    pub(super) id: String,
    pub(super) tools: Vec<Tool>,
}

/// Recorded servers, as many as have so many tools together.
pub(super) fn servers(file: &Path, tools: usize) -> anyhow::Result<Vec<Server>> {
    let mut servers: Vec<Server> = Vec::new();
    let mut rest = tools;
    for line in unpacked("gzip", file)?.lines() {
        if rest == 0 {
            break;
        }
        let mut server: Server = serde_json::from_str(line).context("a line is a server")?;
        server.tools.truncate(rest);
        rest -= server.tools.len();
        servers.push(server);
    }
    ensure!(rest == 0, "{} has too few tools", file.display());
    Ok(servers)
}
