//! The security schemes and requirements of a description.

use std::collections::BTreeMap;

use super::OpenApiVersion;
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

/// Returns the security requirements of an operation: its own, or else those of the document.
pub(super) fn operation_security(
    root: &SpecNode<'_>,
    operation: &SpecNode<'_>,
) -> Vec<Vec<SecurityRequirement>> {
    let alternatives = operation.get("security").or_else(|| root.get("security"));
    let alternatives = alternatives.map_or(&[][..], SpecNode::items).iter();
    alternatives.map(|all| all.members().iter().map(requirement).collect()).collect()
}

fn requirement((name, scopes): &(std::borrow::Cow<'_, str>, SpecNode<'_>)) -> SecurityRequirement {
    let scopes = scopes.items().iter().filter_map(SpecNode::as_str).map(str::to_owned).collect();
    SecurityRequirement { scheme: name.clone().into_owned(), scopes }
}
