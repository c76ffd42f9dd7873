//! Services of a cluster as handlers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::json;

use super::SelectorHandler;
use crate::{
    formats::{self, EndpointUrl, FormatError, HandlerName},
    handler::{
        HandlerConfig, ToolDefinition,
        kinds::{GrpcHandler, HandlerKind, HttpHandler},
    },
};

/// Annotations of Services.
const PATH: &str = "omnia.altairalabs.ai/tool-path";
const DESCRIPTION: &str = "omnia.altairalabs.ai/tool-description";
const TYPE: &str = "omnia.altairalabs.ai/tool-type";

/// Maximum length of the name of a handler.
const MAX_HANDLER_NAME: usize = 63;

/// A Service of a cluster, as far as handlers need it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterService {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
    /// `spec.ports`.
    pub ports: Vec<ServicePort>,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// `name`, which the only port of a Service may lack.
    pub name: Option<String>,
    /// `port`: the port of the Service itself.
    pub port: u16,
}

/// The handlers of the Services that a selector matches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SelectedServices {
    /// One handler for each Service, in the order of the Services' names.
    pub handlers: Vec<HandlerConfig>,
    /// The matching Services that have no handler.
    pub notes: Vec<ServiceNote>,
}

/// The reason why a matching Service has no handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceNote {
    /// Name of the Service.
    pub service: String,
    /// The fault and the remedy.
    pub problem: String,
}

impl fmt::Display for ServiceNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the Service {}: {}", self.service, self.problem)
    }
}

impl HandlerConfig {
    /// Returns the handlers of the Services that the `selector` of this handler matches; `None` if it has none. They
    /// have all settings of this handler but its name and its kind.
    #[must_use]
    pub fn select_services<'a>(
        &self,
        services: impl IntoIterator<Item = &'a ClusterService>,
    ) -> Option<SelectedServices> {
        let HandlerKind::Selector(selector) = &self.kind else { return None };
        let mut matching: Vec<_> = services.into_iter().filter(|service| selector.matches(service)).collect();
        matching.sort_by_key(|service| &service.name);
        let mut names = BTreeSet::new();
        let mut selected = SelectedServices::default();
        for service in matching {
            match self.handler_of(selector, service) {
                Ok(handler) if names.insert(handler.name.clone()) => selected.handlers.push(handler),
                outcome => {
                    let same_name = || "another Service has a name that differs only in its end".to_owned();
                    let problem = outcome.err().unwrap_or_else(same_name);
                    selected.notes.push(ServiceNote { service: service.name.clone(), problem });
                }
            }
        }
        Some(selected)
    }

    fn handler_of(&self, selector: &SelectorHandler, service: &ClusterService) -> Result<Self, String> {
        let kind = selector.kind_of(service)?;
        let name = handler_name(self.name.as_str(), &service.name);
        let name = HandlerName::parse(&name).map_err(|error| describe(&error, &name))?;
        Ok(Self { name, kind, ..self.clone() })
    }
}

impl SelectorHandler {
    /// True if the selector matches a Service.
    #[must_use]
    pub fn matches(&self, service: &ClusterService) -> bool {
        let has = |(name, value): (&String, &String)| service.labels.get(name) == Some(value);
        service.namespace == self.namespace && self.match_labels.iter().all(has)
    }

    fn kind_of(&self, service: &ClusterService) -> Result<HandlerKind, String> {
        let annotation = |name: &str| {
            let text = service.annotations.get(name).map(|text| text.trim());
            text.filter(|text| !text.is_empty())
        };
        let port = self.port_of(service)?;
        // Names of Services and namespaces are parts of host names.
        for part in [&service.name, &service.namespace] {
            formats::service_name(part).map_err(|error| describe(&error, part))?;
        }
        let host = format!("{}.{}.svc.cluster.local:{port}", service.name, service.namespace);
        let tool = ToolDefinition {
            name: tool_name(&service.name),
            description: annotation(DESCRIPTION).unwrap_or(&service.name).to_owned(),
            input_schema: json!({"type": "object"}),
            output_schema: None,
        };
        match annotation(TYPE).unwrap_or("http") {
            "http" => {
                let path = annotation(PATH).unwrap_or("/");
                if !path.starts_with('/') {
                    return Err(format!("the annotation {PATH} is `{path}`: begin it with `/`"));
                }
                // A fragment would be dropped.
                let url = EndpointUrl::parse(&format!("http://{host}{path}")).ok();
                let url = url
                    .filter(|_| !path.contains('#'))
                    .ok_or_else(|| format!("the annotation {PATH} is `{path}`, which is no path of a URL"))?;
                Ok(HandlerKind::Http(Box::new(HttpHandler::posting(tool, url))))
            }
            "grpc" => {
                let endpoint = formats::host_and_port(&host).map_err(|error| describe(&error, &host))?;
                Ok(HandlerKind::Grpc(Box::new(GrpcHandler::plain(tool, endpoint))))
            }
            other => Err(format!("the annotation {TYPE} is `{other}`: use `http` or `grpc`")),
        }
    }

    fn port_of(&self, service: &ClusterService) -> Result<u16, String> {
        match &self.port {
            None => service.ports.first().map(|port| port.port).ok_or_else(|| "it has no port".to_owned()),
            Some(name) => {
                let port = service.ports.iter().find(|port| port.name.as_deref() == Some(name));
                port.map(|port| port.port).ok_or_else(|| format!("it has no port of the name `{name}`"))
            }
        }
    }
}

fn describe(error: &FormatError, text: &str) -> String {
    format!("the name `{text}` cannot be used: {error}")
}

/// Returns the name of a handler: those of the selector's handler and of the Service, shortened if necessary.
fn handler_name(handler: &str, service: &str) -> String {
    let name = format!("{handler}-{service}");
    match name.get(..MAX_HANDLER_NAME) {
        Some(start) if name.len() > MAX_HANDLER_NAME => start.trim_end_matches('-').to_owned(),
        _ => name,
    }
}

/// Returns the name of the tool of a Service, by the rule of the contract for names of tools.
fn tool_name(service: &str) -> String {
    let name = service.replace(|c: char| !c.is_ascii_alphanumeric(), "_").to_ascii_lowercase();
    match name.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => name,
        false => format!("tool_{name}").chars().take(64).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools() {
        let check = |service: &str, expected: &str| {
            assert_eq!(tool_name(service), expected);
            formats::tool_name(expected).unwrap();
        };
        check("weather-api", "weather_api");
        check("a", "a");
        check("3d-printer", "tool_3d_printer");
        check(&"9".repeat(63), &format!("tool_{}", "9".repeat(59)));
    }
}
