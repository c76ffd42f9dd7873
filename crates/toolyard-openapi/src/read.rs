//! Converts a description to operations.

mod bodies;
mod body_texts;
mod document_faults;
mod filter;
mod input;
mod media;
mod naming;
mod parameters;
mod parts;
mod paths;
mod responses;
mod security;
mod servers;
#[cfg(test)]
mod tests;
mod words;
mod xml;

use std::collections::{BTreeMap, BTreeSet};

use toolyard_core::Object;
use toolyard_core::text::TextBounds;

pub use self::filter::OperationSelector;
use crate::callable;
use crate::document::SpecNode;
use crate::operation::OpenApiOperation;
use crate::resolve::{NodeRef, SpecFiles};
use crate::response::ResultPromise;
use crate::schema::{SchemaDialect, SchemaDirection, SchemaRegistry};
use crate::security::{SecurityRequirement, SecurityScheme};
use crate::sources::{DescriptionError, DescriptionSources, ParsedSources, origin};

/// A parsed service description.
#[derive(Debug, Default)]
pub struct ServiceDescription {
    /// Format and version, such as `OpenAPI 3.1`.
    pub format: &'static str,
    /// Title of the service.
    pub title: String,
    /// Its operations, in the order of the document.
    pub operations: Vec<DescribedOperation>,
    /// Its security schemes, by name.
    pub schemes: BTreeMap<String, SecurityScheme>,
    /// Faults of the description, each with its consequence.
    pub faults: Vec<DescriptionFault>,
}

/// An operation with its tool definition.
#[derive(Debug)]
pub struct DescribedOperation {
    /// Its `operationId`, as in the document.
    pub id: Option<String>,
    /// The definition of its requests.
    pub operation: OpenApiOperation,
    /// Its tool definition without the name: `description`, `inputSchema` and so on.
    pub definition: Object,
    /// The whole description, and those of its arguments, if the definition has only the beginning of one.
    pub manual: Option<String>,
    /// The structure of results that the definition promises.
    pub promise: ResultPromise,
    /// Alternative sets of security requirements, one of which a request must satisfy. Empty: no credentials are
    /// needed.
    pub security: Vec<Vec<SecurityRequirement>>,
}

impl ServiceDescription {
    /// The remedy if no operation has a server URL: no call can work.
    pub const NO_SERVER: &str = "no call can work, because the description has no absolute server URL: set `openAPIConfig.baseURL`, such as `https://api.example.com/v1`";

    /// Returns the tools that no arguments satisfy, with the reasons. Takes up to a millisecond a tool.
    pub fn contradictions(&self) -> impl Iterator<Item = (&str, String)> {
        self.operations.iter().filter_map(|it| Some((&*it.operation.name, it.contradiction()?)))
    }

    /// True if no operation has an absolute server URL, so that calls need a base URL from elsewhere.
    #[must_use]
    pub fn lacks_server(&self) -> bool {
        !self.operations.is_empty() && !self.operations.iter().any(|it| it.operation.server.contains("://"))
    }

    /// Origins that requests go to, including those of token endpoints.
    pub fn origins(&self) -> impl Iterator<Item = String> {
        let servers = self.operations.iter().filter_map(|it| origin(&it.operation.server));
        servers.chain(self.token_origins())
    }

    /// Origins of token endpoints.
    pub fn token_origins(&self) -> impl Iterator<Item = String> {
        self.schemes.values().filter_map(|scheme| match scheme {
            SecurityScheme::OAuth2 { token_url } => origin(token_url.as_deref()?),
            _ => None,
        })
    }
}

impl DescribedOperation {
    /// Returns the reason why no arguments satisfy the schema of the tool, if that is certain. Takes up to a millisecond.
    #[must_use]
    pub fn contradiction(&self) -> Option<String> {
        callable::contradiction(&self.definition.get("inputSchema")?.to_value())
    }

    /// True if `name` is its `operationId` or its tool name.
    #[must_use]
    pub fn has_name(&self, name: &str) -> bool {
        self.id.as_deref() == Some(name) || self.operation.name == name
    }
}

/// An unusable part of a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptionFault {
    /// Location: a file, with a JSON pointer as fragment.
    pub location: String,
    /// The problem and its consequence.
    pub problem: String,
}

/// Options for reading a description.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Selection of the operations that become tools.
    pub filter: OperationSelector,
    /// Values of server variables, instead of their defaults.
    pub server_variables: BTreeMap<String, String>,
    /// Bounds of descriptions and examples.
    pub texts: TextBounds,
    /// Names of the security schemes whose credentials are configured. Parameters that these fill are not arguments.
    pub credentials: BTreeSet<String>,
}

/// The versions of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenApiVersion {
    /// 2.0 (Swagger).
    V2,
    /// 3.0.
    V30,
    /// 3.1 and 3.2.
    V31,
}

/// State while a description is read.
struct DescriptionReader<'d> {
    files: &'d SpecFiles<'d>,
    version: OpenApiVersion,
    options: &'d ReadOptions,
    requests: SchemaRegistry<'d>,
    responses: SchemaRegistry<'d>,
    schemes: BTreeMap<String, SecurityScheme>,
    names: naming::ToolNames,
    faults: Vec<DescriptionFault>,
}

/// Reads a description: Swagger 2.0, or OpenAPI 3.0, 3.1 or 3.2.
///
/// # Errors
/// If the text is not JSON or YAML, or does not describe a service. A fault in an operation affects at most that
/// operation and is in [`ServiceDescription::faults`].
pub fn read(
    sources: &DescriptionSources,
    options: &ReadOptions,
) -> Result<ServiceDescription, DescriptionError> {
    let ParsedSources { files: mut parsed, unusable } = sources.parse()?;
    let mut faults = Vec::new();
    for (file, problem) in unusable {
        let location = FaultLocation::of(file).to_string();
        faults.push(DescriptionFault { location, problem: format!("{problem}: nothing in it is used") });
    }
    for (file, root) in &mut parsed {
        document_faults::remove_duplicates(file, root, &mut faults);
    }
    let files = SpecFiles::new(&parsed);
    let root = files.root();
    let refuse =
        |problem: String| DescriptionError::InvalidDescription { file: sources.root().to_owned(), problem };
    let version = version(root.node).map_err(refuse)?;
    if !root.node.get("paths").is_none_or(SpecNode::is_object) {
        return Err(refuse("`paths` must be an object".to_owned()));
    }
    let dialect = if version == OpenApiVersion::V31 { SchemaDialect::New } else { SchemaDialect::Old };
    let server = servers::server(root, &SpecNode::Null, &SpecNode::Null, version, files.name(0), options);
    let schemes = security::schemes(&files, version, &server);
    let mut reader = DescriptionReader {
        files: &files,
        version,
        options,
        requests: SchemaRegistry::new(&files, dialect, SchemaDirection::Request)
            .with_example_bytes(options.texts.example_bytes),
        responses: SchemaRegistry::new(&files, dialect, SchemaDirection::Response),
        schemes,
        names: naming::ToolNames::default(),
        faults: Vec::new(),
    };
    let operations = reader.operations();
    let title = root.get("info").and_then(|info| info.node.text("title")).unwrap_or_default().to_owned();
    let format = match version {
        OpenApiVersion::V2 => "OpenAPI 2.0",
        OpenApiVersion::V30 => "OpenAPI 3.0",
        OpenApiVersion::V31 => "OpenAPI 3.1",
    };
    let of_documents = document_faults::find(&files, sources, &reader.faults);
    faults.extend(of_documents);
    faults.extend(reader.faults);
    Ok(ServiceDescription { format, title, operations, schemes: reader.schemes, faults })
}

/// Reads the version, which is a string, or a number in some YAML documents.
fn version(root: &SpecNode<'_>) -> Result<OpenApiVersion, String> {
    let text = |name: &str| match root.get(name)? {
        SpecNode::Text(text) => Some(text.clone().into_owned()),
        SpecNode::Number(number) => Some(number.to_string()),
        _ => None,
    };
    if let Some(version) = text("openapi") {
        return match &*version {
            version if version.starts_with("3.0") || version == "3" => Ok(OpenApiVersion::V30),
            version if version.starts_with("3.1") || version.starts_with("3.2") => Ok(OpenApiVersion::V31),
            version => Err(format!("unsupported `openapi` version {version:?}: expected 3.0, 3.1 or 3.2")),
        };
    }
    match text("swagger").as_deref() {
        Some("2.0" | "2") => Ok(OpenApiVersion::V2),
        Some(version) => Err(format!("unsupported `swagger` version {version:?}: expected \"2.0\"")),
        None => Err("it is not a service description: it has neither `openapi` nor `swagger`".to_owned()),
    }
}

impl<'d> DescriptionReader<'d> {
    fn fault(&mut self, location: &FaultLocation, problem: impl Into<String>) {
        self.faults.push(DescriptionFault { location: location.to_string(), problem: problem.into() });
    }

    /// Resolves a value. An unresolved reference is a fault.
    fn resolve(&mut self, at: NodeRef<'d>, location: &FaultLocation, cost: &str) -> Option<NodeRef<'d>> {
        let target = self.files.resolve(at).filter(|at| at.node.is_object());
        if target.is_none() {
            let problem = match at.reference() {
                Some(reference) => format!("unresolved reference `{reference}`: {cost}"),
                None => format!("not an object: {cost}"),
            };
            self.fault(location, problem);
        }
        target
    }
}

/// A location in a description.
#[derive(Debug, Clone)]
struct FaultLocation(String);

impl FaultLocation {
    fn of(file: &str) -> Self {
        Self(format!("{file}#"))
    }

    fn at(&self, segment: impl std::fmt::Display) -> Self {
        let segment = segment.to_string().replace('~', "~0").replace('/', "~1");
        Self(format!("{}/{segment}", self.0))
    }
}

impl std::fmt::Display for FaultLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
