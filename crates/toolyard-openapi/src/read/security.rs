//! The security schemes and requirements of a description.

use std::collections::BTreeMap;

use super::parameters::DeclaredParameter;
use super::{DescriptionReader, OpenApiVersion};
use crate::document::SpecNode;
use crate::resolve::{NodeRef, SpecFiles};
use crate::security::{ApiKeyLocation, SecurityRequirement, SecurityScheme};
use crate::sources::join;

/// Returns all schemes, by name.
pub(super) fn schemes(
    files: &SpecFiles<'_>,
    version: OpenApiVersion,
    server: &str,
) -> BTreeMap<String, SecurityScheme> {
    let root = files.root();
    let all = match version {
        OpenApiVersion::V2 => root.get("securityDefinitions"),
        _ => root.get("components").and_then(|components| components.get("securitySchemes")),
    };
    let all = all.into_iter().flat_map(NodeRef::members);
    all.filter_map(|(name, at)| Some((name.to_owned(), scheme(files.resolve(at)?.node, server)))).collect()
}

fn scheme(node: &SpecNode<'_>, server: &str) -> SecurityScheme {
    let name = || node.text("name").unwrap_or_default().to_owned();
    let http = |scheme: &str| match scheme {
        "basic" => SecurityScheme::Basic,
        "bearer" => SecurityScheme::Bearer,
        _ => SecurityScheme::Other,
    };
    match node.text("type").unwrap_or_default() {
        "apiKey" => match node.text("in") {
            Some("query") => SecurityScheme::ApiKey { location: ApiKeyLocation::Query, name: name() },
            Some("cookie") => SecurityScheme::ApiKey { location: ApiKeyLocation::Cookie, name: name() },
            _ => SecurityScheme::ApiKey { location: ApiKeyLocation::Header, name: name() },
        },
        "basic" => SecurityScheme::Basic,
        "http" => http(&node.text("scheme").unwrap_or_default().to_ascii_lowercase()),
        "oauth2" | "openIdConnect" => {
            // A relative URL refers to the server (OpenAPI 3.1, section 4.8.27.1).
            SecurityScheme::OAuth2 { token_url: token_url(node).map(|url| join(&format!("{server}/"), url)) }
        }
        _ => SecurityScheme::Other,
    }
}

fn token_url<'n>(node: &'n SpecNode<'_>) -> Option<&'n str> {
    let flow = node.get("flows").and_then(|flows| flows.get("clientCredentials"));
    let of_version_2 = || node.text("tokenUrl").filter(|_| node.text("flow") == Some("application"));
    flow.and_then(|flow| flow.text("tokenUrl")).or_else(of_version_2)
}

impl<'d> DescriptionReader<'d> {
    /// Returns the scheme whose configured key fills a parameter.
    pub(super) fn filling_scheme(&self, parameter: &DeclaredParameter<'d>) -> Option<String> {
        let fills = |scheme: &SecurityScheme| match scheme {
            SecurityScheme::ApiKey { location: ApiKeyLocation::Header, name } => {
                parameter.location == "header" && parameter.name.eq_ignore_ascii_case(name)
            }
            SecurityScheme::ApiKey { location, name } => {
                let place = if *location == ApiKeyLocation::Query { "query" } else { "cookie" };
                parameter.location == place && parameter.name == name
            }
            _ => false,
        };
        let mut configured = self.options.credentials.iter();
        configured.find(|name| self.schemes.get(*name).is_some_and(fills)).cloned()
    }

    /// Returns the security requirements of an operation. Keys that fill its parameters are part of the first alternative
    /// with configured credentials, which is the one that requests satisfy.
    pub(super) fn operation_security(
        &self,
        operation: &SpecNode<'_>,
        filled: &[String],
    ) -> Vec<Vec<SecurityRequirement>> {
        let mut alternatives = operation_security(self.files.root().node, operation);
        let is_configured = |one: &SecurityRequirement| {
            self.options.credentials.contains(&one.scheme) && self.schemes.contains_key(&one.scheme)
        };
        let applied = alternatives.iter_mut().find(|all| !all.is_empty() && all.iter().all(is_configured));
        let is_missing = |all: &[SecurityRequirement], scheme: &String| {
            !all.iter().any(|one| self.schemes.get(&one.scheme) == self.schemes.get(scheme))
        };
        let requirement =
            |scheme: &String| SecurityRequirement { scheme: scheme.clone(), scopes: Vec::new() };
        match applied {
            Some(all) => {
                for scheme in filled {
                    if is_missing(all, scheme) {
                        all.push(requirement(scheme));
                    }
                }
            }
            None if filled.is_empty() => {}
            None => alternatives.insert(0, filled.iter().map(requirement).collect()),
        }
        alternatives
    }
}

/// Returns the security requirements of an operation: its own, or else those of the document.
fn operation_security(root: &SpecNode<'_>, operation: &SpecNode<'_>) -> Vec<Vec<SecurityRequirement>> {
    let alternatives = operation.get("security").or_else(|| root.get("security"));
    let alternatives = alternatives.map_or(&[][..], SpecNode::items).iter();
    alternatives.map(|all| all.members().iter().map(requirement).collect()).collect()
}

fn requirement((name, scopes): &(std::borrow::Cow<'_, str>, SpecNode<'_>)) -> SecurityRequirement {
    let scopes = scopes.items().iter().filter_map(SpecNode::as_str).map(str::to_owned).collect();
    SecurityRequirement { scheme: name.clone().into_owned(), scopes }
}
