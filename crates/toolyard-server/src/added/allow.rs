//! Which servers may be added: what the operator allows, and nothing else.

use http::Uri;
use http::uri::Authority;
use toolyard_agent::management::Refusal;
use toolyard_manifest::{AllowedServers, Handler, HandlerKind, McpTransport};

/// Whether a server is one that may be added. A host that is allowed may have any address: who allows it says so.
///
/// # Errors
/// What of it is not allowed.
pub(super) fn check(handler: &Handler, allowed: &AllowedServers) -> Result<(), Refusal> {
    let AllowedServers { commands, hosts, env: variables } = allowed;
    let HandlerKind::Mcp(mcp) = &handler.kind else {
        return Err(Refusal::Invalid("it is no MCP server".to_owned()));
    };
    match &mcp.transport {
        McpTransport::Stdio { command, env, .. } => {
            if !commands.contains(command) {
                return Err(Refusal::Command(command.clone()));
            }
            let refused = env.iter().find(|(name, _)| !variables.iter().any(|allowed| allowed == name));
            refused.map_or(Ok(()), |(name, _)| Err(Refusal::Variable(name.to_owned())))
        }
        McpTransport::Http(http) => {
            let uri = http.endpoint.uri();
            match hosts.iter().any(|pattern| fits(pattern, uri)) {
                true => Ok(()),
                false => Err(Refusal::Host(uri.authority().map_or("", Authority::as_str).to_owned())),
            }
        }
    }
}

/// Whether a URL points to a host: `example.com`, `example.com:8443`, or `*.example.com` for all names before it, but not for
/// itself. Without a port, any is meant.
fn fits(pattern: &str, uri: &Uri) -> bool {
    let (suffix, is_wildcard) = match pattern.strip_prefix("*.") {
        Some(suffix) => (suffix, true),
        None => (pattern, false),
    };
    let (Ok(allowed), Some(host)) = (suffix.parse::<Authority>(), uri.host()) else { return false };
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let port = uri.port_u16().unwrap_or(usual);
    let (host, name) = (host.to_ascii_lowercase(), allowed.host().to_ascii_lowercase());
    let is_host = match is_wildcard {
        true => host.strip_suffix(&name).is_some_and(|before| before.len() > 1 && before.ends_with('.')),
        false => host == name,
    };
    is_host && allowed.port_u16().is_none_or(|allowed| allowed == port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        let check = |pattern: &str, url: &str, expected: bool| {
            assert_eq!(fits(pattern, &url.parse().expect("a URL")), expected, "{pattern} {url}");
        };
        check("example.com", "https://example.com/mcp", true);
        check("example.com", "https://EXAMPLE.com:8443/mcp", true);
        check("Example.com", "http://example.com", true);
        check("example.com", "https://a.example.com", false);
        check("example.com", "https://example.com.evil.net", false);
        check("example.com", "https://example.com.", false);
        check("example.com", "https://evil.net/?example.com", false);
        check("example.com:443", "https://example.com", true);
        check("example.com:443", "http://example.com", false);
        check("example.com:8443", "https://example.com:8443", true);
        check("example.com:8443", "https://example.com", false);
        check("*.example.com", "https://a.b.example.com", true);
        check("*.example.com", "https://example.com", false);
        check("*.example.com", "https://.example.com", false);
        check("*.example.com", "https://notexample.com", false);
        check("*.example.com:80", "http://a.example.com", true);
        check("*.example.com:80", "https://a.example.com", false);
        check("[::1]", "http://[::1]:9000", true);
        check("127.0.0.1", "http://127.0.0.1:9000", true);
        check("127.0.0.1", "http://127.0.0.2:9000", false);
        check("*", "https://example.com", false);
    }
}
