//! Converts paths to operations.

use http::Method;
use toolyard_core::{Json, Object};

use super::input::{ArgumentSchema, PRUNED_NOTE};
use super::words::BoundedTexts;
use super::{DescribedOperation, DescriptionReader, FaultLocation, OpenApiVersion, naming, servers, words};
use crate::document::SpecNode;
use crate::operation::{OpenApiOperation, OperationParameter, RequestBody};
use crate::resolve::NodeRef;
use crate::response::ResultPromise;

/// The members of a path item that are operations.
const METHODS: [(&str, Method); 8] = [
    ("get", Method::GET),
    ("put", Method::PUT),
    ("post", Method::POST),
    ("delete", Method::DELETE),
    ("options", Method::OPTIONS),
    ("head", Method::HEAD),
    ("patch", Method::PATCH),
    ("trace", Method::TRACE),
];

/// Maximum size of the whole texts of an operation, in bytes: the longest known ones have ten thousand.
const MAX_MANUAL_BYTES: usize = 64_000;

/// An operation and its location.
pub(super) struct OperationSite<'d> {
    pub(super) path: &'d str,
    pub(super) path_item: NodeRef<'d>,
    pub(super) operation: NodeRef<'d>,
    pub(super) fault_location: FaultLocation,
}

impl<'d> DescriptionReader<'d> {
    pub(super) fn operations(&mut self) -> Vec<DescribedOperation> {
        let root = self.files.root();
        let fault_location = FaultLocation::of(self.files.name(0)).at("paths");
        let mut sites = Vec::new();
        for (path, item) in root.get("paths").into_iter().flat_map(NodeRef::members) {
            if path.starts_with("x-") {
                continue;
            }
            let fault_location = fault_location.at(path);
            let Some(path_item) = self.resolve(item, &fault_location, "the path is skipped") else {
                continue;
            };
            // The specification leaves the siblings of a reference undefined; they are read as well.
            let beside = item.reference().map(|_| methods(item)).unwrap_or_default();
            for (name, method, operation) in methods(path_item).into_iter().chain(beside) {
                let fault_location = fault_location.at(name);
                let Some(operation) = self.resolve(operation, &fault_location, "the operation is skipped")
                else {
                    continue;
                };
                sites.push((OperationSite { path, path_item, operation, fault_location }, method));
            }
        }
        let preferred = |(site, method): &(OperationSite<'d>, Method)| {
            naming::preferred_name(site.operation.node.text("operationId"), method, site.path)
        };
        self.names = naming::ToolNames::with_preferred(sites.iter().map(preferred));
        sites.into_iter().filter_map(|(site, method)| self.operation(&site, method)).collect()
    }

    fn operation(&mut self, site: &OperationSite<'d>, method: Method) -> Option<DescribedOperation> {
        let node = site.operation.node;
        let id = node.text("operationId");
        // Filtered operations get a name as well, so that the filter does not affect names.
        let name = self.names.assign(id, &method, site.path);
        let tags: Vec<&str> = node.list("tags").iter().filter_map(SpecNode::as_str).collect();
        let preferred = naming::preferred_name(id, &method, site.path);
        let filter = &self.options.filter;
        if !filter.allows(id, &name, &tags, &method, site.path)
            && !filter.allows(id, &preferred, &tags, &method, site.path)
        {
            return None;
        }
        let (input, parameters, body) = self.arguments(site)?;
        let security = self.operation_security(node, &input.filled);
        let texts = self.texts(site, &method, &input);
        let mut description = texts.short.clone();
        description.extend(input.body_note());
        let (input, is_pruned) = input.schema(&mut self.requests);
        if is_pruned {
            description.push_str(PRUNED_NOTE);
        }
        let mut definition = Object::new();
        if let (Some(title), Some(_)) = (node.text("summary"), node.text("description")) {
            definition.set("title", Json::string(title.trim()));
        }
        definition.set("description", Json::string(&description));
        definition.set("inputSchema", input);
        let (accept, result) = self.responses(site);
        let promise = result.as_ref().map_or(ResultPromise::Nothing, |(_, promise)| *promise);
        if let Some((schema, _)) = result {
            definition.set("outputSchema", schema);
        }
        if let Some(annotations) = annotations(&method) {
            definition.set("annotations", annotations);
        }
        let root = self.files.root();
        let document = self.files.name(0);
        let item = site.path_item.node;
        let server = servers::server(root, item, node, self.version, document, self.options);
        let path = site.path.to_owned();
        let operation = OpenApiOperation { name, method, server, path, parameters, body, accept };
        Some(DescribedOperation {
            id: id.map(str::to_owned),
            operation,
            definition,
            manual: texts.whole(MAX_MANUAL_BYTES),
            promise,
            security,
        })
    }

    /// Returns the description of a tool, with the texts of its body, and the whole texts of its arguments.
    fn texts(&self, site: &OperationSite<'d>, method: &Method, input: &ArgumentSchema) -> BoundedTexts {
        let bounds = self.options.texts;
        let node = site.operation.node;
        let mut texts =
            BoundedTexts::new(&words::whole_description(node, method, site.path), bounds.tool_chars);
        if node.is_true("deprecated") {
            texts.push("\n\n", "Deprecated.", bounds.tool_chars);
        }
        let mut heading = "\n\nBody: ";
        for text in &input.body_texts {
            if !texts.contains(text) {
                texts.push(heading, text, bounds.argument_chars);
                heading = "\n\n";
            }
        }
        for (argument, text) in &input.cut_texts {
            texts.push_whole(&format!("\n\n`{argument}`: "), text);
        }
        texts
    }

    /// Collects all arguments. If they are too large, collects them again with inline objects as definitions, which can
    /// be pruned.
    fn arguments(
        &mut self,
        site: &OperationSite<'d>,
    ) -> Option<(ArgumentSchema, Vec<OperationParameter>, Option<RequestBody>)> {
        let faults = self.faults.len();
        let arguments = self.collect_arguments(site)?;
        if !arguments.0.is_too_large() {
            return Some(arguments);
        }
        self.faults.truncate(faults);
        let before = self.requests.set_hoisting(true);
        let arguments = self.collect_arguments(site);
        self.requests.set_hoisting(before);
        arguments
    }

    fn collect_arguments(
        &mut self,
        site: &OperationSite<'d>,
    ) -> Option<(ArgumentSchema, Vec<OperationParameter>, Option<RequestBody>)> {
        let mut input = ArgumentSchema::default();
        let declared = self.declared_parameters(site);
        let parameters = self.parameters(site, &declared, &mut input);
        let body = match self.version {
            OpenApiVersion::V2 => self.body_of_version_2(site, &declared, &mut input),
            _ => self.body(site, &mut input),
        };
        let body = body.ok()?;
        if input.others.is_none() && body.is_none() {
            input.others = Some(false.into());
        }
        Some((input, parameters, body))
    }
}

/// Returns the operations of a path item with their names.
fn methods<'d>(item: NodeRef<'d>) -> Vec<(&'d str, Method, NodeRef<'d>)> {
    let method_of = |name: &str| {
        METHODS.iter().find(|(method_of, _)| *method_of == name).map(|(_, method)| method.clone())
    };
    let mut all = Vec::new();
    for (name, at) in item.members() {
        if let Some(method) = method_of(name) {
            all.push((name, method, at));
        } else if name == "query" {
            all.extend(Method::from_bytes(b"QUERY").ok().map(|method| (name, method, at)));
        } else if name == "additionalOperations" {
            let own = at
                .members()
                .filter_map(|(name, at)| Some((name, Method::from_bytes(name.as_bytes()).ok()?, at)));
            all.extend(own);
        }
    }
    all
}

/// Derives annotations from the method (RFC 9110, section 9.2).
fn annotations(method: &Method) -> Option<Json> {
    let hints: &[&str] = match *method {
        Method::GET | Method::HEAD => &["readOnlyHint"],
        Method::DELETE => &["destructiveHint", "idempotentHint"],
        Method::PUT => &["idempotentHint"],
        _ => return None,
    };
    let annotations = hints.iter().fold(Object::new(), |all, hint| all.with(hint, Json::boolean(true)));
    Some(annotations.to_json())
}
