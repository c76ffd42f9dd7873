//! The server URL of an operation.

use super::{OpenApiVersion, ReadOptions};
use crate::document::SpecNode;
use crate::resolve::NodeRef;
use crate::sources::{has_scheme, join};

/// Returns the URL of the server without a trailing slash: that of the operation, its path or the document, in this
/// order.
pub(super) fn server(
    root: NodeRef<'_>,
    path_item: &SpecNode<'_>,
    operation: &SpecNode<'_>,
    version: OpenApiVersion,
    document: &str,
    options: &ReadOptions,
) -> String {
    let url = match version {
        OpenApiVersion::V2 => server_of_version_2(root.node, operation, document),
        _ => {
            let nodes = [operation, path_item, root.node].into_iter();
            let first = nodes.filter_map(|node| node.list("servers").first()).next();
            first.map_or_else(|| "/".to_owned(), |server| expand_variables(server, options))
        }
    };
    let url = if has_scheme(&url) || !has_scheme(document) { url } else { join(document, &url) };
    url.trim_end_matches('/').to_owned()
}

/// Returns the URL with its variables expanded.
fn expand_variables(server: &SpecNode<'_>, options: &ReadOptions) -> String {
    let mut url = server.text("url").unwrap_or("/").to_owned();
    let variables = server.get("variables").map_or(&[][..], SpecNode::members);
    for (name, variable) in variables {
        let own = match variable.get("default").or_else(|| variable.list("enum").first()) {
            Some(SpecNode::Text(text)) => text.clone().into_owned(),
            Some(SpecNode::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let value = options.server_variables.get(&**name).unwrap_or(&own);
        url = url.replace(&format!("{{{name}}}"), value);
    }
    url
}

/// Returns scheme, host and path of OpenAPI 2. Scheme and host default to those of the document.
fn server_of_version_2(root: &SpecNode<'_>, operation: &SpecNode<'_>, document: &str) -> String {
    let path = root.text("basePath").unwrap_or_default();
    let (own_scheme, own_host) =
        document.split_once("://").map_or(("https", None), |(scheme, rest)| (scheme, rest.split('/').next()));
    let schemes: Vec<&str> = [operation, root]
        .iter()
        .map(|node| node.list("schemes").iter().filter_map(SpecNode::as_str).collect::<Vec<_>>())
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
