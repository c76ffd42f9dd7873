//! Makes tools of methods.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use http::uri::PathAndQuery;
use toolyard_core::text::truncate_at_sentence;
use toolyard_core::{Json, Tool};

use super::comments::FileComments;
use super::filter::MethodFilter;
use super::link::{Linker, joined};
use super::naming::ToolNames;
use super::raw::{RawFile, RawMethod, RawReader, RawService};
use super::schema::{Direction, MAX_INPUT_BYTES, SchemaWriter, TypeSchema, quoted};
use super::types::{TypeId, TypePool};
use super::{DescriptorError, MethodTool, ServiceTools, SkippedMethod, reach};

/// Maximum number of tools.
const MAX_METHODS: usize = 10_000;

/// Maximum size of all definitions of tools, in bytes.
const MAX_DEFINITION_BYTES: usize = 128 * 1024 * 1024;

/// Size of all definitions, in bytes, from which those that follow are short, as is [`MAX_EXPANSION`]. Many methods can
/// share one large type, whose text stands in each definition.
const ROOMY_BYTES: usize = 4 * 1024 * 1024;

/// Size of all definitions from which those that follow are short, as a multiple of the descriptors' size.
const MAX_EXPANSION: usize = 16;

/// Maximum size of an argument schema in a short definition, in bytes. It has no result schema.
const SHORT_INPUT_BYTES: usize = 4_000;

/// Maximum length of a tool description, in characters.
const MAX_TOOL_CHARS: usize = 1024;

/// Beginning of the names of services that describe others.
pub(crate) const REFLECTION: &str = "grpc.reflection.";

/// The schema that every object matches: arguments are checked when they are encoded.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

/// Note in the description of a tool whose argument schema is pruned.
const PRUNED_NOTE: &str =
    "\n\n(The schema is cut for size: where it allows any object, see the service's documentation.)";

/// Note in the description of a tool with several results.
const STREAM_NOTE: &str = "\n\nReturns a stream of messages, as `messages`.";

/// Values of `idempotency_level`.
const NO_SIDE_EFFECTS: u64 = 1;
const IDEMPOTENT: u64 = 2;

/// Reads files and makes tools of the methods that the filter selects.
pub(super) fn read(
    reader: &mut RawReader,
    files: &[&[u8]],
    filter: &MethodFilter,
) -> Result<ServiceTools, DescriptorError> {
    let (mut raw, mut names) = (Vec::with_capacity(files.len()), HashSet::new());
    for file in files {
        let file = reader.file(file)?;
        if names.insert(file.name) {
            raw.push(file);
        }
    }
    let mut pool = Linker::link(&raw)?;
    let described = files.iter().map(|file| file.len()).sum::<usize>();
    let mut builder =
        ToolBuilder::new(&pool, filter, described.saturating_mul(MAX_EXPANSION).max(ROOMY_BYTES));
    for file in &raw {
        builder.add_file(file)?;
    }
    let ToolBuilder { drafts, skipped, .. } = builder;
    pool.drop_comments();
    let types = Arc::new(pool);
    let methods = drafts.into_iter().map(|draft| draft.method(&types)).collect();
    Ok(ServiceTools { methods, skipped })
}

/// A method whose tool is defined.
struct MethodDraft {
    tool: Arc<Tool>,
    path: PathAndQuery,
    input: u32,
    output: u32,
    is_server_streaming: bool,
}

impl MethodDraft {
    fn method(self, types: &Arc<TypePool>) -> MethodTool {
        let Self { tool, path, input, output, is_server_streaming } = self;
        MethodTool { tool, path, types: types.clone(), input, output, is_server_streaming }
    }
}

struct ToolBuilder<'p> {
    pool: &'p TypePool,
    filter: &'p MethodFilter,
    faults: Vec<Option<u32>>,
    inputs: SchemaWriter<'p>,
    outputs: SchemaWriter<'p>,
    names: ToolNames,
    services: HashSet<String>,
    definition_bytes: usize,
    /// Size of all definitions from which those that follow are short.
    roomy_bytes: usize,
    drafts: Vec<MethodDraft>,
    skipped: Vec<SkippedMethod>,
}

/// A service with its comment.
struct DescribedService<'s, 'a> {
    full_name: String,
    raw: &'s RawService<'a>,
    comment: String,
}

impl<'p> ToolBuilder<'p> {
    fn new(pool: &'p TypePool, filter: &'p MethodFilter, roomy_bytes: usize) -> Self {
        Self {
            pool,
            filter,
            faults: reach::faults(pool),
            inputs: SchemaWriter::new(pool, Direction::Input),
            outputs: SchemaWriter::new(pool, Direction::Output),
            names: ToolNames::default(),
            services: HashSet::new(),
            definition_bytes: 0,
            roomy_bytes,
            drafts: Vec::new(),
            skipped: Vec::new(),
        }
    }

    fn add_file(&mut self, file: &RawFile<'_>) -> Result<(), DescriptorError> {
        let comments = FileComments::new(&file.comments);
        for (index, raw) in (0..).zip(&file.services) {
            let full_name = joined(file.package, raw.name);
            if full_name.starts_with(REFLECTION) {
                continue;
            }
            if !self.services.insert(full_name.clone()) {
                return Err(DescriptorError::Duplicate(full_name));
            }
            if !self.filter.allows_service(&full_name) {
                continue;
            }
            let path = [6, index];
            let service = DescribedService { full_name, raw, comment: comments.at(&path, &[]) };
            let mut methods = HashSet::new();
            for (index, method) in (0..).zip(&raw.methods) {
                let comment = comments.at(&path, &[2, index]);
                let draft = match methods.insert(method.name) {
                    true => self.method(&service, method, &comment),
                    false => Err("another method has the same name".to_owned()),
                };
                match draft {
                    Ok(Some(draft)) => self.drafts.push(draft),
                    Ok(None) => {}
                    Err(reason) => {
                        let name = format!("{}/{}", service.full_name, method.name);
                        self.skipped.push(SkippedMethod { name, reason });
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes a tool of a method; `None` if the filter does not select it. The error is the reason why it is no tool.
    fn method(
        &mut self,
        service: &DescribedService<'_, '_>,
        method: &RawMethod<'_>,
        comment: &str,
    ) -> Result<Option<MethodDraft>, String> {
        let full_name = &service.full_name;
        let name = self.names.assign(full_name, method.name);
        if !self.filter.allows_method(full_name, method.name, &name) {
            return Ok(None);
        }
        if method.is_client_streaming {
            return Err("client streaming: a call has one message of arguments".to_owned());
        }
        if self.drafts.len() >= MAX_METHODS {
            return Err(format!("the services have more than {MAX_METHODS} methods"));
        }
        let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "._".contains(c));
        let path = format!("/{full_name}/{}", method.name).parse::<PathAndQuery>();
        let path =
            path.ok().filter(|_| is_name(full_name) && is_name(method.name) && !method.name.is_empty());
        let path = path.ok_or("its name is not a name of protocol buffers")?;
        let input = self.message(method.input, full_name)?;
        let output = self.message(method.output, full_name)?;
        let (arguments, results) = if self.definition_bytes < self.roomy_bytes {
            let arguments = self.inputs.input(input, MAX_INPUT_BYTES);
            let results = self.outputs.output(output, method.is_server_streaming);
            (arguments.ok_or("the schema of its arguments is too large")?, results)
        } else {
            let any = || TypeSchema { text: ANY_OBJECT.to_owned(), is_pruned: true };
            (self.inputs.input(input, SHORT_INPUT_BYTES).unwrap_or_else(any), None)
        };
        let mut description = description(service, method, comment);
        if arguments.is_pruned {
            description.push_str(PRUNED_NOTE);
        }
        let mut definition = format!(
            r#"{{"name":{},"description":{},"inputSchema":{}"#,
            quoted(&name),
            quoted(&description),
            arguments.text
        );
        if let Some(results) = results {
            let _ = write!(definition, r#","outputSchema":{}"#, results.text);
        }
        definition.push_str(match method.idempotency {
            NO_SIDE_EFFECTS => r#","annotations":{"readOnlyHint":true}}"#,
            IDEMPOTENT => r#","annotations":{"idempotentHint":true}}"#,
            _ => "}",
        });
        self.definition_bytes += definition.len();
        if self.definition_bytes > MAX_DEFINITION_BYTES {
            return Err("the definitions of all tools are larger than 128 MiB".to_owned());
        }
        let invalid = |_| "its definition is invalid".to_owned();
        let definition = Json::parse(definition).map_err(invalid)?;
        let tool = Tool::from_definition(&definition).map_err(|_| "its definition is invalid".to_owned())?;
        let accepted = Json::parse(ANY_OBJECT).map_err(invalid)?;
        Ok(Some(MethodDraft {
            tool: Arc::new(tool.accepting(accepted)),
            path,
            input,
            output,
            is_server_streaming: method.is_server_streaming,
        }))
    }

    /// Finds a message type that can be used.
    fn message(&self, name: &str, scope: &str) -> Result<u32, String> {
        let short = name.trim_start_matches('.');
        match self.pool.find(name, scope) {
            Some(TypeId::Message(message)) => match self.faults[message as usize] {
                None => Ok(message),
                Some(faulty) => {
                    Err(self.pool.message(faulty).fault.as_deref().unwrap_or_default().to_owned())
                }
            },
            Some(TypeId::Enum(_)) => Err(format!("the type `{short}` is an enum")),
            None => Err(format!("the type `{short}` is not in the descriptors")),
        }
    }
}

/// Returns the description of a tool: the comment of the method, or else its name with the comment of the service.
fn description(service: &DescribedService<'_, '_>, method: &RawMethod<'_>, comment: &str) -> String {
    let text = match (comment, service.comment.as_str()) {
        ("", "") => format!("{}/{}", service.full_name, method.name),
        ("", of_service) => format!("{}/{}\n\n{of_service}", service.full_name, method.name),
        (comment, _) => comment.to_owned(),
    };
    let mut text = truncate_at_sentence(&text, MAX_TOOL_CHARS).into_owned();
    if method.is_deprecated || service.raw.is_deprecated {
        text.push_str("\n\nDeprecated.");
    }
    if method.is_server_streaming {
        text.push_str(STREAM_NOTE);
    }
    text
}
