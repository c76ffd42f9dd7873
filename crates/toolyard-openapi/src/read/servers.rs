//! Where requests go.

use super::{Options, Version};
use crate::document::Node;
use crate::resolve::At;
use crate::sources::{has_scheme, join};

/// The URL of the server, without a slash at the end: what the operation, its path or the document say first.
pub(super) fn server(
    root: At<'_>,
    path_item: &Node<'_>,
    operation: &Node<'_>,
    version: Version,
    document: &str,
    options: &Options,
) -> String {
    let url = match version {
        Version::V2 => of_version_2(root.node, operation, document),
        _ => {
            let nodes = [operation, path_item, root.node].into_iter();
            let first = nodes.filter_map(|node| node.list("servers").first()).next();
            first.map_or_else(|| "/".to_owned(), |server| filled(server, options))
        }
    };
    let url = if has_scheme(&url) || !has_scheme(document) { url } else { join(document, &url) };
    url.trim_end_matches('/').to_owned()
}

/// The URL with values in the place of its variables.
fn filled(server: &Node<'_>, options: &Options) -> String {
    let mut url = server.text("url").unwrap_or("/").to_owned();
    let variables = server.get("variables").map_or(&[][..], Node::members);
    for (name, variable) in variables {
        let own = match variable.get("default").or_else(|| variable.list("enum").first()) {
            Some(Node::Text(text)) => text.clone().into_owned(),
            Some(Node::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let value = options.server_variables.get(&**name).unwrap_or(&own);
        url = url.replace(&format!("{{{name}}}"), value);
    }
    url
}

/// The scheme, the host and the path, each of which may be the document's own.
fn of_version_2(root: &Node<'_>, operation: &Node<'_>, document: &str) -> String {
    let path = root.text("basePath").unwrap_or_default();
    let (own_scheme, own_host) =
        document.split_once("://").map_or(("https", None), |(scheme, rest)| (scheme, rest.split('/').next()));
    let schemes: Vec<&str> = [operation, root]
        .iter()
        .map(|node| node.list("schemes").iter().filter_map(Node::as_str).collect::<Vec<_>>())
        .find(|schemes| !schemes.is_empty())
        .unwrap_or_default();
    let scheme = match schemes.iter().find(|scheme| **scheme == "https").or_else(|| schemes.first()) {
        Some(scheme) => scheme,
        None => own_scheme,
    };
    match root.text("host").or(own_host) {
        Some(host) if !host.is_empty() => format!("{scheme}://{host}/{}", path.trim_start_matches('/')),
        _ => path.to_owned(),
    }
}
