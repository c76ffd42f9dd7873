//! The sets: tools, queries, and the relevant tools of each query.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Maximum depth of the parameters that are read.
const MAX_DEPTH: usize = 3;

/// A set.
pub(super) struct RetrievalSet {
    pub(super) name: String,
    pub(super) tools: Vec<CatalogTool>,
    pub(super) queries: Vec<RetrievalQuery>,
}

impl RetrievalSet {
    /// Returns some of the queries, evenly spaced, with the tools that they need and others, evenly spaced too.
    pub(super) fn sample(&self, max_tools: usize, max_queries: usize) -> Self {
        let queries: Vec<_> = spaced(&self.queries, max_queries).cloned().collect();
        let relevant: HashSet<&str> =
            queries.iter().flat_map(|query| &query.relevant).flatten().map(String::as_str).collect();
        let (needed, others): (Vec<_>, Vec<_>) =
            self.tools.iter().partition(|tool| relevant.contains(&*tool.id));
        let others = spaced(&others, max_tools.saturating_sub(needed.len())).copied();
        let tools = needed.iter().copied().chain(others).cloned().collect();
        Self { name: self.name.clone(), tools, queries }
    }
}

/// At most `most` elements, evenly spaced.
fn spaced<T>(all: &[T], most: usize) -> impl Iterator<Item = &T> {
    let count = most.min(all.len());
    (0..count).map(move |at| &all[at * all.len() / count])
}

/// A tool of a set, or of a server.
#[derive(Clone, Deserialize)]
pub(super) struct CatalogTool {
    /// Its ID in queries.
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
#[derive(Clone, Deserialize)]
pub(super) struct RetrievalQuery {
    pub(super) text: String,
    /// The kind of query, in sets that have kinds.
    #[serde(default)]
    pub(super) kind: Option<String>,
    /// The relevant tools: one of each group is needed.
    pub(super) relevant: Vec<Vec<String>>,
}

impl CatalogTool {
    pub(super) fn server(&self) -> &str {
        self.server.as_deref().unwrap_or_default()
    }

    pub(super) fn description(&self) -> &str {
        self.description.as_deref().unwrap_or_default()
    }

    /// Removes its parameters.
    pub(super) fn remove_parameters(&mut self) {
        self.input_schema = Value::Null;
    }

    /// Its parameters, as our ranker reads them.
    pub(super) fn ranked_parameters(&self) -> Vec<(String, String)> {
        toolyard_rank::schema_parameters(&self.input_schema)
    }

    /// Its parameters and their descriptions, as the baseline reads them.
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
        if depth < MAX_DEPTH {
            read_parameters(schema, depth + 1, into);
        }
    }
}

/// Reads all sets of a folder, sorted by name.
pub(super) fn read_sets(folder: &Path) -> anyhow::Result<Vec<RetrievalSet>> {
    let mut sets = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry.context("read a folder")?.path();
        if path.is_dir() {
            sets.push(read_set(&path).with_context(|| format!("read the set {}", path.display()))?);
        }
    }
    ensure!(!sets.is_empty(), "no set in {}", folder.display());
    sets.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(sets)
}

fn read_set(folder: &Path) -> anyhow::Result<RetrievalSet> {
    let name = folder.file_name().context("folder without a name")?.to_string_lossy().into_owned();
    let queries = std::fs::read_to_string(folder.join("queries.jsonl")).context("read the queries")?;
    let tools = parse_lines(&unpack("xz", &folder.join("tools.jsonl.xz"))?)?;
    Ok(RetrievalSet { name, tools, queries: parse_lines(&queries)? })
}

fn parse_lines<T: for<'t> Deserialize<'t>>(text: &str) -> anyhow::Result<Vec<T>> {
    text.lines().map(|line| serde_json::from_str(line).context("invalid line")).collect()
}

/// The text of a compressed file.
fn unpack(program: &str, file: &Path) -> anyhow::Result<String> {
    ensure!(file.is_file(), "no file {}", file.display());
    let output = Command::new(program).arg("-dc").arg(file).output();
    let output = output.with_context(|| format!("start {program}"))?;
    ensure!(output.status.success(), "{program} cannot unpack {}", file.display());
    String::from_utf8(output.stdout).context("invalid UTF-8")
}

/// Reads the set of the repository: queries over recorded servers.
pub(super) fn read_recorded_set(folder: &Path, servers: &Path) -> anyhow::Result<RetrievalSet> {
    let lines = std::fs::read_to_string(folder.join("servers.json")).context("read the servers")?;
    let lines: Vec<usize> = serde_json::from_str(&lines).context("invalid servers")?;
    let queries = std::fs::read_to_string(folder.join("queries.jsonl")).context("read the queries")?;
    let recorded = unpack("gzip", servers)?;
    let recorded: Vec<&str> = recorded.lines().collect();
    let mut tools = Vec::new();
    for line in lines {
        let server = recorded.get(line).with_context(|| format!("no server in line {line}"))?;
        let server: RecordedServer = serde_json::from_str(server).context("invalid line")?;
        for tool in server.tools {
            let id = format!("{}::{}", server.id, tool.name);
            tools.push(CatalogTool { id, server: Some(server.id.clone()), ..tool });
        }
    }
    Ok(RetrievalSet { name: "recorded-servers".to_owned(), tools, queries: parse_lines(&queries)? })
}

/// A server with its list of tools.
#[derive(Deserialize)]
pub(super) struct RecordedServer {
    pub(super) id: String,
    pub(super) tools: Vec<CatalogTool>,
}

/// Reads recorded servers until they have `tools` tools together.
pub(super) fn read_servers(file: &Path, tools: usize) -> anyhow::Result<Vec<RecordedServer>> {
    let mut servers: Vec<RecordedServer> = Vec::new();
    let mut rest = tools;
    for line in unpack("gzip", file)?.lines() {
        if rest == 0 {
            break;
        }
        let mut server: RecordedServer = serde_json::from_str(line).context("invalid line")?;
        server.tools.truncate(rest);
        rest -= server.tools.len();
        servers.push(server);
    }
    ensure!(rest == 0, "{} has too few tools", file.display());
    Ok(servers)
}
