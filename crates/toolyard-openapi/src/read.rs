//! A description becomes operations.

mod bodies;
mod filter;
mod input;
mod media;
mod naming;
mod parameters;
mod paths;
mod responses;
mod security;
mod servers;
#[cfg(test)]
mod tests;
mod words;
mod xml;

use std::collections::BTreeMap;

use toolyard_core::Object;

pub use self::filter::Filter;
use crate::document::Node;
use crate::operation::Operation;
use crate::resolve::{At, Files};
use crate::response::Promise;
use crate::schema::{Dialect, Direction, Schemas};
use crate::security::{Requirement, Scheme};
use crate::sources::{Sources, Unreadable, origin};

/// What is made of a description.
#[derive(Debug, Default)]
pub struct Description {
    /// The format and its version, such as `OpenAPI 3.1`.
    pub format: &'static str,
    /// What the service is called.
    pub title: String,
    /// Its operations, in the order of the document.
    pub operations: Vec<Described>,
    /// What opens the service, by name.
    pub schemes: BTreeMap<String, Scheme>,
    /// What is wrong with the description. What it costs is said in each.
    pub faults: Vec<Fault>,
}

/// An operation, and what is said of it.
#[derive(Debug)]
pub struct Described {
    /// Its `operationId`, as it stands in the document.
    pub id: Option<String>,
    /// What its requests are.
    pub operation: Operation,
    /// The definition of its tool, without the name: `description`, `inputSchema` and so on.
    pub definition: Object,
    /// What the definition promises of results.
    pub promise: Promise,
    /// What opens it: each of these does, with all that stands in it. Empty: nothing is needed.
    pub security: Vec<Vec<Requirement>>,
}

impl Description {
    /// The servers that requests go to, those that give out tokens among them: schemes and authorities of URLs.
    pub fn origins(&self) -> impl Iterator<Item = String> {
        let servers = self.operations.iter().filter_map(|it| origin(&it.operation.server));
        servers.chain(self.token_origins())
    }

    /// The servers that give out tokens.
    pub fn token_origins(&self) -> impl Iterator<Item = String> {
        self.schemes.values().filter_map(|scheme| match scheme {
            Scheme::OAuth2 { token_url } => origin(token_url.as_deref()?),
            _ => None,
        })
    }
}

impl Described {
    /// Whether a name is its `operationId`, or that of its tool.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.id.as_deref() == Some(name) || self.operation.name == name
    }
}

/// Something in a description that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where: a file, and a JSON pointer into it as a fragment.
    pub place: String,
    /// What is wrong, and what it costs.
    pub problem: String,
}

/// What a reader may choose.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which operations become tools.
    pub filter: Filter,
    /// Values of variables of the server's URL, in the place of their defaults.
    pub server_variables: BTreeMap<String, String>,
}

/// The versions of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// 2.0, which is Swagger.
    V2,
    /// 3.0.
    V30,
    /// 3.1 and 3.2.
    V31,
}

/// What is known while a description is read.
struct Reader<'d> {
    files: &'d Files<'d>,
    version: Version,
    options: &'d Options,
    requests: Schemas<'d>,
    responses: Schemas<'d>,
    names: naming::Names,
    faults: Vec<Fault>,
}

/// Reads a description: Swagger 2.0, or OpenAPI 3.0, 3.1 or 3.2.
///
/// # Errors
/// When nothing can be made of it: it is no JSON or YAML, or describes no service. A fault in an operation costs that
/// operation at most, and is among the faults.
pub fn read(sources: &Sources, options: &Options) -> Result<Description, Unreadable> {
    let parsed = sources.parse()?;
    let files = Files::new(&parsed);
    let root = files.root();
    let refuse = |problem: String| Unreadable::NoDescription { file: sources.root().to_owned(), problem };
    let version = version(root.node).map_err(refuse)?;
    if !root.node.get("paths").is_none_or(Node::is_object) {
        return Err(refuse("`paths` has to be an object".to_owned()));
    }
    let dialect = if version == Version::V31 { Dialect::New } else { Dialect::Old };
    let mut reader = Reader {
        files: &files,
        version,
        options,
        requests: Schemas::new(&files, dialect, Direction::Request),
        responses: Schemas::new(&files, dialect, Direction::Response),
        names: naming::Names::default(),
        faults: Vec::new(),
    };
    let operations = reader.operations();
    let title = root.get("info").and_then(|info| info.node.text("title")).unwrap_or_default().to_owned();
    let server = servers::server(root, &Node::Null, &Node::Null, version, files.name(0), options);
    let schemes = security::schemes(&files, version, &server);
    let format = match version {
        Version::V2 => "OpenAPI 2.0",
        Version::V30 => "OpenAPI 3.0",
        Version::V31 => "OpenAPI 3.1",
    };
    Ok(Description { format, title, operations, schemes, faults: reader.faults })
}

/// The version, which a document says as a text, and some in YAML as a number.
fn version(root: &Node<'_>) -> Result<Version, String> {
    let said = |name: &str| match root.get(name)? {
        Node::Text(text) => Some(text.clone().into_owned()),
        Node::Number(number) => Some(number.to_string()),
        _ => None,
    };
    if let Some(version) = said("openapi") {
        return match &*version {
            version if version.starts_with("3.0") || version == "3" => Ok(Version::V30),
            version if version.starts_with("3.1") || version.starts_with("3.2") => Ok(Version::V31),
            version => Err(format!("`openapi` is {version:?}, and has to be 3.0, 3.1 or 3.2")),
        };
    }
    match said("swagger").as_deref() {
        Some("2.0" | "2") => Ok(Version::V2),
        Some(version) => Err(format!("`swagger` is {version:?}, and has to be \"2.0\"")),
        None => Err("it has neither `openapi` nor `swagger`, and describes no service".to_owned()),
    }
}

impl<'d> Reader<'d> {
    fn fault(&mut self, place: &Place, problem: impl Into<String>) {
        self.faults.push(Fault { place: place.to_string(), problem: problem.into() });
    }

    /// The value itself or what it refers to, whose absence is a fault.
    fn resolve(&mut self, at: At<'d>, place: &Place, cost: &str) -> Option<At<'d>> {
        let found = self.files.resolve(at).filter(|at| at.node.is_object());
        if found.is_none() {
            let problem = match at.reference() {
                Some(reference) => format!("`{reference}` leads nowhere: {cost}"),
                None => format!("it has to be an object: {cost}"),
            };
            self.fault(place, problem);
        }
        found
    }
}

/// Where something stands in a description.
#[derive(Debug, Clone)]
struct Place(String);

impl Place {
    fn of(file: &str) -> Self {
        Self(format!("{file}#"))
    }

    fn at(&self, segment: impl std::fmt::Display) -> Self {
        let segment = segment.to_string().replace('~', "~0").replace('/', "~1");
        Self(format!("{}/{segment}", self.0))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
