//! From paths to operations.

use http::Method;
use toolyard_core::{Json, Object};

use super::input::{Input, PRUNED};
use super::{Described, Place, Reader, Version, naming, security, servers, words};
use crate::document::Node;
use crate::operation::{Body, Operation, Parameter};
use crate::resolve::At;
use crate::response::Promise;

/// The members of a path that are operations.
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

/// An operation where it stands.
pub(super) struct Site<'d> {
    pub(super) path: &'d str,
    pub(super) path_item: At<'d>,
    pub(super) operation: At<'d>,
    pub(super) place: Place,
}

impl<'d> Reader<'d> {
    pub(super) fn operations(&mut self) -> Vec<Described> {
        let root = self.files.root();
        let place = Place::of(self.files.name(0)).at("paths");
        let mut sites = Vec::new();
        for (path, item) in root.get("paths").into_iter().flat_map(At::members) {
            if path.starts_with("x-") {
                continue;
            }
            let place = place.at(path);
            let Some(path_item) = self.resolve(item, &place, "the path is left out") else { continue };
            // What stands beside a reference is not forbidden, only not defined.
            let beside = item.reference().map(|_| methods(item)).unwrap_or_default();
            for (name, method, operation) in methods(path_item).into_iter().chain(beside) {
                let place = place.at(name);
                let Some(operation) = self.resolve(operation, &place, "the operation is left out") else {
                    continue;
                };
                sites.push((Site { path, path_item, operation, place }, method));
            }
        }
        let wanted = |(site, method): &(Site<'d>, Method)| {
            naming::wanted(site.operation.node.text("operationId"), method, site.path)
        };
        self.names = naming::Names::among(sites.iter().map(wanted));
        sites.into_iter().filter_map(|(site, method)| self.operation(&site, method)).collect()
    }

    fn operation(&mut self, site: &Site<'d>, method: Method) -> Option<Described> {
        let node = site.operation.node;
        let id = node.text("operationId");
        // Names are given to all, so that a filter changes none of them.
        let name = self.names.give(id, &method, site.path);
        let tags: Vec<&str> = node.list("tags").iter().filter_map(Node::as_str).collect();
        let wanted = naming::wanted(id, &method, site.path);
        let filter = &self.options.filter;
        if !filter.allows(id, &name, &tags, &method, site.path)
            && !filter.allows(id, &wanted, &tags, &method, site.path)
        {
            return None;
        }
        let (input, parameters, body) = self.arguments(site)?;
        let (input, is_pruned) = input.schema(&mut self.requests);
        let mut description = words::of_operation(node, &method, site.path);
        if is_pruned {
            description.push_str(PRUNED);
        }
        let mut definition = Object::new();
        if let (Some(title), Some(_)) = (node.text("summary"), node.text("description")) {
            definition.set("title", Json::string(title.trim()));
        }
        definition.set("description", Json::string(&description));
        definition.set("inputSchema", input);
        let (accept, result) = self.responses(site);
        let promise = result.as_ref().map_or(Promise::Nothing, |(_, promise)| *promise);
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
        let operation = Operation { name, method, server, path, parameters, body, accept };
        Some(Described {
            id: id.map(str::to_owned),
            operation,
            definition,
            promise,
            security: security::of_operation(root.node, node),
        })
    }

    /// Everything that a caller gives. What is too large is gathered again, with its parts as definitions, which can be
    /// left out.
    fn arguments(&mut self, site: &Site<'d>) -> Option<(Input, Vec<Parameter>, Option<Body>)> {
        let faults = self.faults.len();
        let arguments = self.gathered(site)?;
        if !arguments.0.is_too_large() {
            return Some(arguments);
        }
        self.faults.truncate(faults);
        let before = self.requests.set_hoisting(true);
        let arguments = self.gathered(site);
        self.requests.set_hoisting(before);
        arguments
    }

    fn gathered(&mut self, site: &Site<'d>) -> Option<(Input, Vec<Parameter>, Option<Body>)> {
        let mut input = Input::default();
        let declared = self.declared(site);
        let parameters = self.parameters(site, &declared, &mut input);
        let body = match self.version {
            Version::V2 => self.body_of_version_2(site, &declared, &mut input),
            _ => self.body(site, &mut input),
        };
        let body = body.ok()?;
        if input.others.is_none() && body.is_none() {
            input.others = Some(false.into());
        }
        Some((input, parameters, body))
    }
}

/// The operations of a path, with the names that they have there.
fn methods<'d>(item: At<'d>) -> Vec<(&'d str, Method, At<'d>)> {
    let known =
        |name: &str| METHODS.iter().find(|(known, _)| *known == name).map(|(_, method)| method.clone());
    let mut all = Vec::new();
    for (name, at) in item.members() {
        if let Some(method) = known(name) {
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

/// What a method says of its operations (RFC 9110, section 9.2).
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
