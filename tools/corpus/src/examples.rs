//! The examples of bodies that the owner of a document wrote, as calls of its tools.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolyard_core::argument_names::ArgumentNames;
use toolyard_core::schema::{CompiledSchema, ValidationBudget};
use toolyard_core::{Json, Object};
use toolyard_openapi::OpenApiOperation;
use toolyard_openapi::operation::{BodyContent, RequestBody};
use xtask_support::peers::PeerSoftware;
use xtask_support::process;

use super::SAMPLE_SERVER;
use super::documents::CorpusDocument;

/// An example as the judge found it.
#[derive(Deserialize)]
struct FoundExample {
    method: String,
    path: String,
    media: String,
    name: String,
    /// The forms that it may be sent in: as it stands, and without members that are read only.
    values: Vec<Box<RawValue>>,
}

/// The examples of a document, by method and path.
#[derive(Default)]
pub(super) struct BodyExamples(HashMap<(String, String), Vec<FoundExample>>);

/// An example as a call.
#[derive(Serialize)]
pub(super) struct ExampleCall {
    media: String,
    name: String,
    forms: Vec<ExampleForm>,
}

/// One form of an example.
#[derive(Serialize)]
struct ExampleForm {
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    /// The body of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Reason why there is no request.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Has the judge write the examples of all documents.
pub(super) fn extract(documents: &[CorpusDocument], files: &[PathBuf], folder: &Path) -> anyhow::Result<()> {
    let cases = folder.join("examples.json");
    let all = documents.iter().zip(files);
    let all = all.map(|(document, file)| json!({"document": document.root, "examples": file}));
    std::fs::write(&cases, json!(all.collect::<Vec<_>>()).to_string()).context("write the cases")?;
    let script = xtask_support::root().join("fixtures/openapi-judge/examples.py");
    process::run(Command::new(PeerSoftware::installed()?.python()).arg(script).arg(&cases))
}

impl BodyExamples {
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        let mut examples = Self::default();
        for line in text.lines() {
            let found: FoundExample = serde_json::from_str(line).context("read an example")?;
            examples.0.entry((found.method.clone(), found.path.clone())).or_default().push(found);
        }
        Ok(examples)
    }

    /// Maps the examples of an operation to its arguments. `sample` are arguments that it accepts, from which the
    /// parameters are taken.
    pub(super) fn calls(
        &self,
        operation: &OpenApiOperation,
        schema: &Value,
        names: Option<&ArgumentNames>,
        sample: Option<&Value>,
    ) -> Vec<ExampleCall> {
        let Some(body) = &operation.body else { return Vec::new() };
        let key = (operation.method.to_string(), operation.path.clone());
        let found = self.0.get(&key).map_or(&[][..], Vec::as_slice);
        let mine: Vec<&FoundExample> = found.iter().filter(|it| is_of(&it.media, body)).collect();
        if mine.is_empty() {
            return Vec::new();
        }
        let mapping =
            ExampleMapping { operation, body, names, schema: CompiledSchema::compile(schema), sample };
        let call = |found: &&FoundExample| ExampleCall {
            media: found.media.clone(),
            name: found.name.clone(),
            forms: found.values.iter().map(|value| mapping.form(value)).collect(),
        };
        mine.iter().map(call).collect()
    }
}

/// True if a body is sent as this media type of the document. OpenAPI 2 names none.
fn is_of(media: &str, body: &RequestBody) -> bool {
    let essence = |name: &str| name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let sent = essence(&body.media_type);
    essence(media) == sent || (media == "*/*" && (sent == "application/json" || sent.ends_with("+json")))
}

/// A tool whose arguments are made of examples.
struct ExampleMapping<'m, E> {
    operation: &'m OpenApiOperation,
    body: &'m RequestBody,
    names: Option<&'m ArgumentNames>,
    schema: Result<CompiledSchema, E>,
    sample: Option<&'m Value>,
}

impl<E: std::fmt::Display> ExampleMapping<'_, E> {
    fn form(&self, value: &RawValue) -> ExampleForm {
        let arguments = match self.arguments(value) {
            Ok(arguments) => arguments,
            Err(problem) => return ExampleForm { arguments: None, body: None, problem: Some(problem) },
        };
        let (body, problem) = match self.send(&arguments) {
            Ok(body) => (Some(body), None),
            Err(problem) => (None, Some(problem)),
        };
        ExampleForm { arguments: Some(arguments.to_json().to_value()), body, problem }
    }

    /// Returns the arguments, with the names that models see.
    fn arguments(&self, value: &RawValue) -> Result<Object, String> {
        let value = Json::parse(value.get().as_bytes().to_vec()).map_err(|error| error.to_string())?;
        let published =
            |argument: &str| self.names.map_or(argument, |names| names.published(argument)).to_owned();
        let parameters = self.operation.parameters.iter();
        let parameters: HashSet<String> =
            parameters.map(|parameter| published(&parameter.argument)).collect();
        let mut arguments = Object::new();
        for (name, value) in self.sample.and_then(Value::as_object).into_iter().flatten() {
            if parameters.contains(name) {
                arguments.set(name, Json::from_value(value));
            }
        }
        match &self.body.content {
            // No body.
            BodyContent::Members { .. } if value.is_null() && !self.body.required => {}
            BodyContent::Argument(argument) => arguments.set(&published(argument), value),
            BodyContent::Members { named, .. } => {
                let members = value.to_object().map_err(|error| format!("the body is no object: {error}"))?;
                for (member, value) in members.iter() {
                    let argument = named.iter().find(|(_, it)| *it == member).map(|(argument, _)| argument);
                    let argument =
                        argument.map_or_else(|| member.to_string(), |argument| published(argument));
                    if parameters.contains(&argument) {
                        return Err(format!("the member {member} has the name of a parameter"));
                    }
                    arguments.set(&argument, value.clone());
                }
            }
        }
        Ok(arguments)
    }

    /// Returns the body of the request.
    fn send(&self, arguments: &Object) -> Result<String, String> {
        let schema = self.schema.as_ref().map_err(ToString::to_string)?;
        let value = arguments.to_json().to_value();
        let budget = ValidationBudget::of(value.to_string().len());
        schema.check(&value, &budget).map_err(|mismatch| format!("refused: {mismatch}"))?;
        let mut arguments = arguments.clone();
        self.names
            .map_or(Ok(()), |names| names.restore(&mut arguments))
            .map_err(|error| error.to_string())?;
        let request = self.operation.request(Some(&arguments.to_json()), Some(SAMPLE_SERVER));
        let request = request.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(request.body()).into_owned())
    }
}
