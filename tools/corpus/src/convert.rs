//! The conversion of one document, as JSON lines: a summary, then an operation per line.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolyard_core::Json;
use toolyard_core::argument_names::ArgumentNames;
use toolyard_core::tokens;
use toolyard_core::tool::Tool;
use toolyard_openapi::operation::{BodyContent, OpenApiOperation, RequestBody};
use toolyard_openapi::{DescribedOperation, DescriptionSources, ReadOptions, read};
use xtask_support::{measure, process};

use super::SAMPLE_SERVER;
use super::arguments::accepted_arguments;
use super::documents::CorpusDocument;
use super::examples::{BodyExamples, ExampleCall};

/// The first line: a summary of the conversion.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ConversionSummary {
    /// Size of the document with all its files, in bytes.
    pub(super) bytes: usize,
    /// CPU time of reading the document.
    pub(super) cpu_seconds: f64,
    /// Peak memory of the process, in KiB.
    pub(super) peak_kib: u64,
    /// The error if the document was refused.
    pub(super) refused: Option<String>,
    /// Estimated tokens of the list of its tools.
    #[serde(default)]
    pub(super) tokens: usize,
    /// Faults found in the document.
    pub(super) faults: Vec<DocumentFault>,
}

/// A fault in a document.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DocumentFault {
    place: String,
    problem: String,
}

/// One operation.
#[derive(Serialize)]
struct OperationLine {
    method: String,
    path: String,
    name: String,
    /// The definition of the tool, byte by byte as clients get it.
    definition: Box<RawValue>,
    /// The whole texts, if the definition has only the beginning of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    manual: Option<String>,
    plan: Value,
    call: SampleCall,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    examples: Vec<ExampleCall>,
}

/// A call with generated arguments.
#[derive(Serialize)]
struct SampleCall {
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    /// Reason why there are no arguments that can be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Converts a document in another process. If the process crashes, the document counts as refused.
pub(super) fn convert_in_process(
    document: &CorpusDocument,
    examples: &Path,
    lines: &Path,
) -> anyhow::Result<ConversionSummary> {
    let mut child = Command::new("/proc/self/exe");
    child.arg("convert").arg(&document.root).arg(examples).arg(lines);
    if let Err(error) = process::run(&mut child) {
        let summary = ConversionSummary {
            refused: Some(format!("the process: {error:#}")),
            ..ConversionSummary::default()
        };
        std::fs::write(lines, serde_json::to_string(&summary)?).context("write the lines")?;
        return Ok(summary);
    }
    let text = std::fs::read_to_string(lines).context("read the summary")?;
    serde_json::from_str(text.lines().next().unwrap_or_default()).context("read the summary")
}

/// The part of the other process.
pub(super) fn run(root: &Path, examples: &Path, lines: &Path) -> anyhow::Result<()> {
    let sources = sources(root)?;
    let started = cpu_seconds();
    let sources = with_referenced_files(sources);
    let read = read(&sources, &ReadOptions::default());
    let cpu_seconds = cpu_seconds() - started;
    let peak_kib = measure::memory(std::process::id()).peak;
    let mut summary =
        ConversionSummary { bytes: sources.bytes(), cpu_seconds, peak_kib, ..ConversionSummary::default() };
    let operations = match read {
        Ok(description) => {
            let faults = description.faults.into_iter();
            summary.faults =
                faults.map(|fault| DocumentFault { place: fault.location, problem: fault.problem }).collect();
            description.operations
        }
        Err(error) => {
            summary.refused = Some(error.to_string());
            Vec::new()
        }
    };
    let sizes = operations.iter().map(|it| it.definition.to_json().as_bytes().len());
    summary.tokens = tokens::estimate(sizes.sum());
    let examples = BodyExamples::read(examples)?;
    let file = File::create(lines).with_context(|| format!("create {}", lines.display()))?;
    let mut out = BufWriter::new(file);
    writeln!(out, "{}", serde_json::to_string(&summary)?)?;
    for described in operations {
        writeln!(out, "{}", serde_json::to_string(&line(&described, &examples)?)?)?;
    }
    out.flush().context("write the lines")
}

fn sources(root: &Path) -> anyhow::Result<DescriptionSources> {
    let text = std::fs::read(root).with_context(|| format!("read {}", root.display()))?;
    Ok(DescriptionSources::new(root.display().to_string(), String::from_utf8_lossy(&text)))
}

/// Adds the files that the document refers to. Nothing is fetched; remote files are empty.
fn with_referenced_files(mut sources: DescriptionSources) -> DescriptionSources {
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

/// Returns the operation as it is published, with names of arguments that the interfaces of models accept.
fn line(described: &DescribedOperation, examples: &BodyExamples) -> anyhow::Result<OperationLine> {
    let operation = &described.operation;
    let tool = Tool::named(&operation.name, described.definition.clone());
    let tool = tool.with_manual(described.manual.as_deref());
    let renamed = tool.renamed();
    let published = renamed.map_or(&tool, |renamed| &renamed.tool);
    let names = renamed.map(|renamed| &*renamed.names);
    let mut definition = published.definition.clone();
    definition.remove("name");
    let schema = published.input_schema().map(Json::to_value).unwrap_or_default();
    let call = sample_call(operation, &schema, names);
    let examples = examples.calls(operation, &schema, names, call.arguments.as_ref());
    Ok(OperationLine {
        method: operation.method.to_string(),
        path: operation.path.clone(),
        name: operation.name.clone(),
        definition: RawValue::from_string(definition.to_json().as_text().to_owned())
            .context("a definition is JSON")?,
        manual: published.manual().map(str::to_owned),
        plan: plan(operation, |argument| names.map_or(argument, |names| names.published(argument))),
        call,
        examples,
    })
}

/// Generates arguments that the schema accepts and that become a request.
fn sample_call(operation: &OpenApiOperation, schema: &Value, names: Option<&ArgumentNames>) -> SampleCall {
    let send = |arguments: &Value| {
        let mut object = Json::from_value(arguments).to_object().map_err(|error| error.to_string())?;
        names.map_or(Ok(()), |names| names.restore(&mut object)).map_err(|error| error.to_string())?;
        let request = operation.request(Some(&object.to_json()), Some(SAMPLE_SERVER));
        request.map(drop).map_err(|error| error.to_string())
    };
    match accepted_arguments(schema, send) {
        Ok(arguments) => SampleCall { arguments: Some(arguments), problem: None },
        Err(problem) => SampleCall { arguments: None, problem: Some(problem) },
    }
}

/// The plan of the request: the parameter of each argument.
fn plan<'o>(operation: &'o OpenApiOperation, published: impl Fn(&'o str) -> &'o str) -> Value {
    let parameters = operation.parameters.iter().map(|parameter| {
        let location = format!("{:?}", parameter.location).to_lowercase();
        json!({"argument": published(&parameter.argument), "name": parameter.name, "in": location})
    });
    json!({"parameters": parameters.collect::<Value>(), "body": operation.body.as_ref().map(|it| body(it, &published))})
}

fn body<'o>(body: &'o RequestBody, published: impl Fn(&'o str) -> &'o str) -> Value {
    let content = match &body.content {
        BodyContent::Argument(argument) => json!({"argument": published(argument)}),
        BodyContent::Members { named, .. } => {
            let named = named.iter().map(|(argument, member)| json!([published(argument), member]));
            json!({"members": named.collect::<Value>()})
        }
    };
    json!({"mediaType": body.media_type, "content": content})
}
