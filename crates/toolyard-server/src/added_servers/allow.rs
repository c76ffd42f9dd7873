//! The check of servers to add against the operator's settings.

use std::net::{IpAddr, SocketAddr};

use http::Uri;
use http::uri::Authority;
use serde_json::json;
use toolyard_agent::management::RegistrationError;
use toolyard_manifest::{AllowedServers, HandlerConfig, HandlerKind, McpTransport};

/// Host names of the local machine, beside those that end in `.localhost`.
const LOCAL_NAMES: [&str; 4] = ["localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"];

/// Checks that a server may be added to a gateway with these bound addresses. An allowed host may resolve to any
/// address. The gateway itself may not be added.
///
/// # Errors
/// The part of the server that is not allowed.
pub(super) fn check(
    handler: &HandlerConfig,
    allowed: &AllowedServers,
    listening: &[SocketAddr],
) -> Result<(), RegistrationError> {
    let AllowedServers { commands, hosts, env: variables } = allowed;
    let HandlerKind::Mcp(mcp) = &handler.kind else {
        return Err(RegistrationError::Invalid("not an MCP server".to_owned()));
    };
    match &mcp.transport {
        McpTransport::Stdio { command, env, .. } => {
            if !commands.contains(command) {
                return Err(RegistrationError::Command(command.clone()));
            }
            let refused = env.iter().find(|(name, _)| !variables.iter().any(|allowed| allowed == name));
            refused.map_or(Ok(()), |(name, _)| Err(RegistrationError::Variable(name.to_owned())))
        }
        McpTransport::Http(http) => {
            let uri = http.endpoint.uri();
            match hosts.iter().any(|pattern| matches_host(pattern, uri)) {
                true if is_itself(uri, listening) => Err(RegistrationError::Itself),
                true => Ok(()),
                false => {
                    Err(RegistrationError::Host(uri.authority().map_or("", Authority::as_str).to_owned()))
                }
            }
        }
    }
}

/// Returns the error of a gateway that allows no servers, with the line of configuration that would allow this one.
pub(super) fn nothing_allowed(handler: &HandlerConfig) -> RegistrationError {
    let list = |values: &[&str]| json!(values).to_string();
    let transport = match &handler.kind {
        HandlerKind::Mcp(mcp) => Some(&mcp.transport),
        _ => None,
    };
    let allow = match transport {
        Some(McpTransport::Stdio { command, env, .. }) => {
            let names: Vec<_> = env.iter().map(|(name, _)| name).collect();
            let env = if names.is_empty() { String::new() } else { format!(", env: {}", list(&names)) };
            format!("commands: {}{env}", list(&[command]))
        }
        Some(McpTransport::Http(http)) => {
            format!("hosts: {}", list(&[http.endpoint.uri().host().unwrap_or_default()]))
        }
        None => String::new(),
    };
    RegistrationError::NothingAllowed(format!("builtins: {{mcp: {{allow: {{{allow}}}}}}}"))
}

/// True if a URL matches a host pattern: `example.com`, `example.com:8443`, or `*.example.com` for all its subdomains,
/// but not for itself. A pattern without a port matches every port.
fn matches_host(pattern: &str, uri: &Uri) -> bool {
    let (suffix, is_wildcard) = match pattern.strip_prefix("*.") {
        Some(suffix) => (suffix, true),
        None => (pattern, false),
    };
    let (Ok(allowed), Some(host)) = (suffix.parse::<Authority>(), uri.host()) else { return false };
    let port = port(uri);
    let (host, name) = (host.to_ascii_lowercase(), allowed.host().to_ascii_lowercase());
    let is_host = match is_wildcard {
        true => host
            .strip_suffix(&name)
            .is_some_and(|subdomains| subdomains.len() > 1 && subdomains.ends_with('.')),
        false => host == name,
    };
    is_host && allowed.port_u16().is_none_or(|allowed| allowed == port)
}

fn port(uri: &Uri) -> u16 {
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    uri.port_u16().unwrap_or(usual)
}

/// True if a URL points to the gateway, as far as its text shows. Names are not resolved.
fn is_itself(uri: &Uri, listening: &[SocketAddr]) -> bool {
    let port = port(uri);
    let mut own = listening.iter().filter(|address| address.port() == port).map(SocketAddr::ip).peekable();
    let (Some(_), Some(host)) = (own.peek(), uri.host()) else { return false };
    match host.trim_matches(['[', ']']).parse::<IpAddr>().map(|ip| ip.to_canonical()) {
        Ok(ip) => ip.is_loopback() || ip.is_unspecified() || own.any(|own| own.to_canonical() == ip),
        Err(_) => {
            let name = host.to_ascii_lowercase();
            let name = name.strip_suffix('.').unwrap_or(&name);
            LOCAL_NAMES.contains(&name) || name.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_of_the_gateway_is_recognized() {
        let listening = ["127.0.0.1:8080", "[::]:9090", "10.0.0.5:80", "[::ffff:10.0.0.6]:443"];
        let listening = listening.map(|address| address.parse().expect("an address"));
        let check = |url: &str, expected: bool| {
            assert_eq!(is_itself(&url.parse().expect("a URL"), &listening), expected, "{url}");
        };
        check("http://127.0.0.1:8080/mcp", true);
        check("https://127.0.0.1:8080/mcp", true);
        check("http://127.9.9.9:8080/mcp", true);
        check("http://0.0.0.0:8080/mcp", true);
        check("http://[::]:8080/mcp", true);
        check("http://[::1]:9090/sse", true);
        check("http://[::ffff:127.0.0.1]:8080/mcp", true);
        check("http://[::ffff:7f00:1]:8080/mcp", true);
        check("http://[::ffff:0.0.0.0]:8080/mcp", true);
        check("http://LocalHost:8080/mcp", true);
        check("http://localhost.:9090/mcp", true);
        check("http://tools.localhost:8080/mcp", true);
        check("http://ip6-localhost:9090/mcp", true);
        check("http://10.0.0.5/mcp", true);
        check("http://[::ffff:10.0.0.5]/mcp", true);
        check("https://10.0.0.6/mcp", true);
        check("http://localhost/mcp", true);
        check("http://127.0.0.1:8081/mcp", false);
        check("http://localhost:8081/mcp", false);
        check("https://10.0.0.5/mcp", false);
        check("http://10.0.0.6/mcp", false);
        check("http://10.0.0.5:8080/mcp", false);
        check("http://notlocalhost:8080/mcp", false);
        check("http://localhost.example.com:8080/mcp", false);
        assert!(!is_itself(&"http://127.0.0.1:8080/mcp".parse().expect("a URL"), &[]));
    }

    #[test]
    fn hosts() {
        let check = |pattern: &str, url: &str, expected: bool| {
            assert_eq!(matches_host(pattern, &url.parse().expect("a URL")), expected, "{pattern} {url}");
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
