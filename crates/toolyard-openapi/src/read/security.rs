//! What opens a service, as it stands in a description.

use std::collections::BTreeMap;

use super::Version;
use crate::document::Node;
use crate::resolve::{At, Files};
use crate::security::{KeyPlace, Requirement, Scheme};
use crate::sources::join;

/// All schemes, by name.
pub(super) fn schemes(files: &Files<'_>, version: Version, server: &str) -> BTreeMap<String, Scheme> {
    let root = files.root();
    let all = match version {
        Version::V2 => root.get("securityDefinitions"),
        _ => root.get("components").and_then(|components| components.get("securitySchemes")),
    };
    let all = all.into_iter().flat_map(At::members);
    all.filter_map(|(name, at)| Some((name.to_owned(), scheme(files.resolve(at)?.node, server)))).collect()
}

fn scheme(node: &Node<'_>, server: &str) -> Scheme {
    let name = || node.text("name").unwrap_or_default().to_owned();
    let http = |scheme: &str| match scheme {
        "basic" => Scheme::Basic,
        "bearer" => Scheme::Bearer,
        _ => Scheme::Other,
    };
    match node.text("type").unwrap_or_default() {
        "apiKey" => match node.text("in") {
            Some("query") => Scheme::ApiKey { place: KeyPlace::Query, name: name() },
            Some("cookie") => Scheme::ApiKey { place: KeyPlace::Cookie, name: name() },
            _ => Scheme::ApiKey { place: KeyPlace::Header, name: name() },
        },
        "basic" => Scheme::Basic,
        "http" => http(&node.text("scheme").unwrap_or_default().to_ascii_lowercase()),
        "oauth2" | "openIdConnect" => {
            // One that is no whole URL is at the server (OpenAPI 3.1, section 4.8.27.1).
            Scheme::OAuth2 { token_url: token_url(node).map(|url| join(&format!("{server}/"), url)) }
        }
        _ => Scheme::Other,
    }
}

fn token_url<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    let flow = node.get("flows").and_then(|flows| flows.get("clientCredentials"));
    let of_version_2 = || node.text("tokenUrl").filter(|_| node.text("flow") == Some("application"));
    flow.and_then(|flow| flow.text("tokenUrl")).or_else(of_version_2)
}

/// What opens an operation: what it says itself, or else the document.
pub(super) fn of_operation(root: &Node<'_>, operation: &Node<'_>) -> Vec<Vec<Requirement>> {
    let alternatives = operation.get("security").or_else(|| root.get("security"));
    let alternatives = alternatives.map_or(&[][..], Node::items).iter();
    alternatives.map(|all| all.members().iter().map(requirement).collect()).collect()
}

fn requirement((name, scopes): &(std::borrow::Cow<'_, str>, Node<'_>)) -> Requirement {
    let scopes = scopes.items().iter().filter_map(Node::as_str).map(str::to_owned).collect();
    Requirement { scheme: name.clone().into_owned(), scopes }
}
