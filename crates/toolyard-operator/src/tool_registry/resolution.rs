//! Registries as their gateway reads them: selectors and references to Services are replaced by addresses.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::Service;
use serde_json::{Map, Value, json};
use toolyard_manifest::{
    ClusterService, GrpcToolSettings, HandlerConfig, HandlerKind, HttpUrl, ServicePort, ToolDefinition,
};

use super::ToolRegistry;
use super::secrets::{SecretKeys, add_secrets};
use super::validation::{RegistryProblem, parsed, problems};

/// Domain of Services in the manifests of `toolyard-manifest`.
const MANIFEST_DOMAIN: &str = "svc.cluster.local";

/// The registries of one gateway.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResolvedRegistries {
    /// The documents, in the order of the registries, without the invalid ones.
    pub documents: Vec<Value>,
    /// The handlers of each registry, by its name.
    pub handlers: BTreeMap<String, Vec<ResolvedHandler>>,
    /// The problems of the invalid registries, by their names.
    pub problems: BTreeMap<String, Vec<RegistryProblem>>,
    /// The secrets that all of them refer to.
    pub secrets: SecretKeys,
}

/// A handler of a resource, and those of its gateway that it became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedHandler {
    /// Name in the resource.
    pub name: String,
    /// Names in the manifest of the gateway: the name itself, or those of the selected Services.
    pub served: Vec<String>,
    /// Target of the selector, if it has one.
    pub selector: Option<String>,
    /// Reasons why matching Services are no tools.
    pub notes: Vec<String>,
}

/// Resolves registries of one namespace. If names of handlers clash, the registry that is first keeps the name.
#[must_use]
pub fn resolve(
    registries: &[&ToolRegistry],
    services: &[ClusterService],
    domain: &str,
) -> ResolvedRegistries {
    let mut resolved = ResolvedRegistries::default();
    let mut owners = HashMap::new();
    for registry in registries {
        let name = registry.metadata.name.clone().unwrap_or_default();
        let document = registry.document();
        let found = problems(&document);
        if !found.is_empty() {
            resolved.problems.insert(name, found);
            continue;
        }
        let (document, handlers) = resolved_document(document, services, domain);
        let clashes: Vec<_> = handlers
            .iter()
            .flat_map(|handler| &handler.served)
            .filter_map(|served| Some(clash(served, owners.get(served)?)))
            .collect();
        if !clashes.is_empty() {
            resolved.problems.insert(name, clashes);
            continue;
        }
        let served = handlers.iter().flat_map(|handler| handler.served.iter().cloned());
        owners.extend(served.map(|served| (served, name.clone())));
        for handler in document["spec"]["handlers"].as_array().into_iter().flatten() {
            add_secrets(handler, &mut resolved.secrets);
        }
        resolved.documents.push(document);
        resolved.handlers.insert(name, handlers);
    }
    resolved
}

fn clash(handler: &str, owner: &String) -> RegistryProblem {
    RegistryProblem {
        field: "spec.handlers".to_owned(),
        message: format!("the registry `{owner}` of the same gateway has a handler `{handler}` already"),
        expected: None,
        hint: Some("rename the handler".to_owned()),
    }
}

fn resolved_document(
    mut document: Value,
    services: &[ClusterService],
    domain: &str,
) -> (Value, Vec<ResolvedHandler>) {
    // The document is valid.
    let configs = parsed(&[&document]).map(|manifest| manifest.handlers).unwrap_or_default();
    let namespace = document["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let mut resolved = Vec::new();
    let mut items = Vec::new();
    for handler in document["spec"]["handlers"].as_array().into_iter().flatten() {
        let name = handler["name"].as_str().unwrap_or_default().to_owned();
        let config = configs.iter().find(|config| config.name.as_str() == name);
        let selected = config.and_then(|config| Some((config, config.select_services(services)?)));
        let Some((config, selected)) = selected else {
            items.push(with_address(handler.clone(), &namespace, domain));
            resolved.push(ResolvedHandler {
                served: vec![name.clone()],
                name,
                selector: None,
                notes: Vec::new(),
            });
            continue;
        };
        items.extend(selected.handlers.iter().map(|config| selected_handler(handler, config, domain)));
        resolved.push(ResolvedHandler {
            name,
            served: selected.handlers.iter().map(|config| config.name.as_str().to_owned()).collect(),
            selector: Some(config.endpoint()),
            notes: selected.notes.iter().map(ToString::to_string).collect(),
        });
    }
    document["spec"]["handlers"] = items.into();
    (document, resolved)
}

/// Replaces `serviceRef` by the address of the Service.
fn with_address(mut handler: Value, namespace: &str, domain: &str) -> Value {
    let reference = &handler["endpoint"]["serviceRef"];
    let (Some(name), Some(port)) = (reference["name"].as_str(), reference["port"].as_u64()) else {
        return handler;
    };
    let namespace = reference["namespace"].as_str().unwrap_or(namespace);
    let scheme = if handler["type"] == "grpc" { "" } else { "http://" };
    handler["endpoint"] = json!({"url": format!("{scheme}{name}.{namespace}.{domain}:{port}")});
    handler
}

/// Returns the handler of a selected Service: the settings of the selector's handler, with another name, an address and a
/// tool. A `${` in an annotation is literal.
fn selected_handler(handler: &Value, config: &HandlerConfig, domain: &str) -> Value {
    let (address, tool) = match &config.kind {
        HandlerKind::Http(http) => (http_address(&http.url), Some(&http.tool)),
        HandlerKind::Grpc(grpc) => match &grpc.tools {
            GrpcToolSettings::Defined(tool) => (grpc.endpoint.to_string(), Some(&**tool)),
            GrpcToolSettings::Discovered(_) => (grpc.endpoint.to_string(), None),
        },
        _ => (config.endpoint(), None),
    };
    let address = address.replacen(&format!(".{MANIFEST_DOMAIN}:"), &format!(".{domain}:"), 1);
    let mut members = handler.as_object().cloned().unwrap_or_default();
    members.remove("selector");
    let mut selected = Map::new();
    selected.insert("name".to_owned(), config.name.as_str().into());
    selected.insert("type".to_owned(), config.kind.name().into());
    selected.insert("endpoint".to_owned(), json!({"url": literal(&address)}));
    if let Some(tool) = tool {
        selected.insert("tool".to_owned(), tool_document(tool));
    }
    members.remove("name");
    selected.extend(members);
    Value::Object(selected)
}

fn http_address(url: &HttpUrl) -> String {
    match url {
        HttpUrl::Fixed(url) => url.uri().to_string(),
        HttpUrl::Template(template) => template.as_str().to_owned(),
    }
}

fn tool_document(tool: &ToolDefinition) -> Value {
    json!({"name": tool.name, "description": literal(&tool.description), "inputSchema": tool.input_schema})
}

/// Escapes references.
fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// Returns a Service as far as handlers need it.
#[must_use]
pub fn cluster_service(service: &Service) -> ClusterService {
    let metadata = &service.metadata;
    let ports = service.spec.iter().filter_map(|spec| spec.ports.as_ref()).flatten();
    let port = |port: &k8s_openapi::api::core::v1::ServicePort| {
        Some(ServicePort { name: port.name.clone(), port: u16::try_from(port.port).ok()? })
    };
    ClusterService {
        name: metadata.name.clone().unwrap_or_default(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        labels: metadata.labels.clone().unwrap_or_default(),
        annotations: metadata.annotations.clone().unwrap_or_default(),
        ports: ports.filter_map(port).collect(),
    }
}

/// Returns `true` if a registry selects Services of a namespace.
#[must_use]
pub fn selects_in(registry: &ToolRegistry, namespace: &str) -> bool {
    let own = registry.metadata.namespace.as_deref().unwrap_or_default();
    let handlers = registry.spec.fields.get("handlers").and_then(Value::as_array);
    handlers.into_iter().flatten().any(|handler| {
        handler["selector"].is_object()
            && handler["selector"]["namespace"].as_str().unwrap_or(own) == namespace
    })
}
