//! What the converter makes of one document, written as JSON lines: what it cost and refused, then an operation a line.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolyard_openapi::operation::{Body, Content, Operation};
use toolyard_openapi::{Described, Options, Sources, read};

use super::documents::Document;
use crate::{measure, process};

/// The first line: what was made as a whole.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Made {
    /// How large the document is with all its files, in bytes.
    pub(super) bytes: usize,
    /// The CPU time of reading it.
    pub(super) cpu_seconds: f64,
    /// The most memory that the process had, in KiB.
    pub(super) peak_kib: u64,
    /// Why nothing was made of it.
    pub(super) refused: Option<String>,
    /// What was found to be wrong in it.
    pub(super) faults: Vec<Fault>,
}

/// One thing that was found to be wrong.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Fault {
    place: String,
    problem: String,
}

/// One operation.
#[derive(Serialize)]
struct Line {
    method: String,
    path: String,
    name: String,
    /// The definition of the tool, byte by byte as clients get it.
    definition: Box<RawValue>,
    plan: Value,
}

/// Converts a document by another process, which may end badly: nothing was made of the document then.
pub(super) fn in_a_process(document: &Document, lines: &Path) -> anyhow::Result<Made> {
    let mut child = Command::new("/proc/self/exe");
    child.args(["corpus", "convert"]).arg(&document.root).arg(lines);
    if let Err(error) = process::run(&mut child) {
        let made = Made { refused: Some(format!("the process: {error:#}")), ..Made::default() };
        std::fs::write(lines, serde_json::to_string(&made)?).context("write what was made")?;
        return Ok(made);
    }
    let text = std::fs::read_to_string(lines).context("read what was made")?;
    serde_json::from_str(text.lines().next().unwrap_or_default()).context("read what was made")
}

/// What the other process does.
pub(super) fn run(root: &Path, lines: &Path) -> anyhow::Result<()> {
    let sources = sources(root)?;
    let begun = cpu_seconds();
    let sources = with_others(sources);
    let read = read(&sources, &Options::default());
    let cpu_seconds = cpu_seconds() - begun;
    let peak_kib = measure::memory(std::process::id()).peak;
    let mut made = Made { bytes: sources.bytes(), cpu_seconds, peak_kib, ..Made::default() };
    let operations = match read {
        Ok(description) => {
            let faults = description.faults.into_iter();
            made.faults = faults.map(|fault| Fault { place: fault.place, problem: fault.problem }).collect();
            description.operations
        }
        Err(error) => {
            made.refused = Some(error.to_string());
            Vec::new()
        }
    };
    let file = File::create(lines).with_context(|| format!("create {}", lines.display()))?;
    let mut out = BufWriter::new(file);
    writeln!(out, "{}", serde_json::to_string(&made)?)?;
    for described in operations {
        writeln!(out, "{}", serde_json::to_string(&line(&described)?)?)?;
    }
    out.flush().context("write what was made")
}

fn sources(root: &Path) -> anyhow::Result<Sources> {
    let text = std::fs::read(root).with_context(|| format!("read {}", root.display()))?;
    Ok(Sources::new(root.display().to_string(), String::from_utf8_lossy(&text)))
}

/// With the files that the document refers to. Nothing is fetched: what is on another machine is not there.
fn with_others(mut sources: Sources) -> Sources {
    loop {
        let missing = sources.missing();
        if missing.is_empty() {
            return sources;
        }
        for file in missing {
            let text = std::fs::read_to_string(PathBuf::from(&file)).unwrap_or_default();
            sources.add(file, text);
        }
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    std::time::Duration::try_from(time).unwrap_or_default().as_secs_f64()
}

fn line(described: &Described) -> anyhow::Result<Line> {
    let operation = &described.operation;
    let definition = described.definition.to_json().as_text().to_owned();
    Ok(Line {
        method: operation.method.to_string(),
        path: operation.path.clone(),
        name: operation.name.clone(),
        definition: RawValue::from_string(definition).context("a definition is JSON")?,
        plan: plan(operation),
    })
}

/// Which argument goes where.
fn plan(operation: &Operation) -> Value {
    let parameters = operation.parameters.iter().map(|parameter| {
        let location = format!("{:?}", parameter.location).to_lowercase();
        json!({"argument": parameter.argument, "name": parameter.name, "in": location})
    });
    json!({"parameters": parameters.collect::<Value>(), "body": operation.body.as_ref().map(body)})
}

fn body(body: &Body) -> Value {
    let content = match &body.content {
        Content::Argument(argument) => json!({"argument": argument}),
        Content::Members { named, .. } => json!({"members": named}),
    };
    json!({"mediaType": body.media_type, "content": content})
}
