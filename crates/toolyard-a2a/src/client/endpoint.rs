//! The address of an agent, and the credentials for it.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use serde_json::json;
use sha2::{Digest, Sha256};
use toolyard_core::random::hex;
use toolyard_manifest::{AgentCardSource, CardKeys, EndpointUrl, SecretString};

use super::error::AgentError;
use crate::wire::ProtocolVersion;
use crate::wire::card::AgentCard;
use crate::wire::rpc::CARD_PATH;

/// Number of bytes of the digest that is the id of a source.
const ID_BYTES: usize = 16;

/// Headers of requests, which may be secret.
#[derive(Clone, Default)]
pub struct AgentHeaders(Vec<(HeaderName, HeaderValue)>);

impl AgentHeaders {
    /// Returns the headers of a manifest. Values that no header can have are left out; the manifest has none.
    #[must_use]
    pub fn new(headers: &[(HeaderName, SecretString)]) -> Self {
        let header = |(name, value): &(HeaderName, SecretString)| {
            let mut value = HeaderValue::from_str(value.expose()).ok()?;
            value.set_sensitive(true);
            Some((name.clone(), value))
        };
        Self(headers.iter().filter_map(header).collect())
    }

    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.0 {
            headers.insert(name.clone(), value.clone());
        }
    }
}

impl fmt::Debug for AgentHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// The address of an agent.
#[derive(Debug, Clone)]
pub struct AgentEndpoint {
    /// URL of the JSON-RPC interface.
    pub url: Uri,
    /// Version that it speaks.
    pub version: ProtocolVersion,
    /// Name that requests repeat, or nothing.
    pub tenant: String,
    /// Headers of requests.
    pub headers: AgentHeaders,
    /// True if the address may be private, because the operator has named it or its host.
    pub is_trusted: bool,
}

impl AgentEndpoint {
    /// Returns the address of a card. `source` is that of the manifest, if the card comes from there. The operator has named
    /// its origin, so that an address there may be private and gets the headers; any other one has been chosen by the agent.
    ///
    /// # Errors
    /// If the card names no address that is spoken here.
    pub fn of_card(card: &AgentCard, source: Option<&AgentCardSource>) -> Result<Self, AgentError> {
        let spoken = card.json_rpc();
        let version = spoken.map_or(ProtocolVersion::V1, |(_, version)| version);
        let tenant = spoken.map(|(interface, _)| interface.tenant.clone()).unwrap_or_default();
        if let Some((source, endpoint)) = source.and_then(|source| Some((source, source.endpoint.as_ref()?)))
        {
            let headers = AgentHeaders::new(&source.headers);
            return Ok(Self { url: endpoint.uri().clone(), version, tenant, headers, is_trusted: true });
        }
        let (interface, _) = spoken.ok_or(AgentError::NoInterface)?;
        let url = EndpointUrl::parse(&interface.url).map_err(|_| AgentError::NoInterface)?;
        let source = source.filter(|source| origin(source.url.uri()) == origin(url.uri()));
        let headers = source.map(|source| AgentHeaders::new(&source.headers)).unwrap_or_default();
        Ok(Self { url: url.uri().clone(), version, tenant, headers, is_trusted: source.is_some() })
    }

    /// Marks the address as one that the operator has named.
    #[must_use]
    pub fn trusted(self) -> Self {
        Self { is_trusted: true, ..self }
    }
}

/// Returns the URL of the card of a source.
#[must_use]
pub fn card_url(source: &AgentCardSource) -> Uri {
    let url = source.url.uri();
    if url.path().to_ascii_lowercase().ends_with(".json") {
        return url.clone();
    }
    let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
    let path = format!("{}{CARD_PATH}{query}", url.path().trim_end_matches('/'));
    let mut parts = url.clone().into_parts();
    parts.path_and_query = path.parse().ok();
    Uri::from_parts(parts).unwrap_or_else(|_| url.clone())
}

/// Returns an id of a source, which does not reveal its URL: services take tokens from paths and queries. A source with
/// other keys for its card is another one, so that a stored card was checked with the current keys.
#[must_use]
pub fn source_id(source: &AgentCardSource) -> String {
    let mut digest = Sha256::new_with_prefix(source.url.uri().to_string());
    if let Some(CardKeys { url, keys }) = &source.signature {
        let url = url.as_ref().map(|url| url.uri().to_string());
        digest.update(json!([url, keys]).to_string());
    }
    hex(&digest.finalize()[..ID_BYTES])
}

/// Returns scheme, host and port.
fn origin(url: &Uri) -> (Option<&str>, Option<String>, Option<u16>) {
    let scheme = url.scheme_str();
    let default = if scheme == Some("https") { 443 } else { 80 };
    (scheme, url.host().map(str::to_lowercase), Some(url.port_u16().unwrap_or(default)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(url: &str, endpoint: Option<&str>) -> AgentCardSource {
        AgentCardSource {
            url: EndpointUrl::parse(url).expect("a URL"),
            endpoint: endpoint.map(|url| EndpointUrl::parse(url).expect("a URL")),
            signature: None,
            headers: vec![(http::header::AUTHORIZATION, SecretString::new("Bearer s"))],
        }
    }

    #[test]
    fn card_is_below_the_url_of_an_agent() {
        let check =
            |url: &str, expected: &str| assert_eq!(card_url(&source(url, None)).to_string(), expected);
        check("https://a", "https://a/.well-known/agent-card.json");
        check("https://a/team/", "https://a/team/.well-known/agent-card.json");
        check("https://a/x?k=1", "https://a/x/.well-known/agent-card.json?k=1");
        check("https://a/.well-known/agent.json", "https://a/.well-known/agent.json");
    }

    #[test]
    fn credentials_go_to_the_origin_that_the_operator_has_named() {
        let check = |interface: &str, source: Option<AgentCardSource>, expected: &str| {
            let card = json!({"name": "A", "supportedInterfaces":
                [{"url": interface, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]});
            let card = AgentCard::of_value(card).expect("a card");
            let found = match AgentEndpoint::of_card(&card, source.as_ref()) {
                Ok(AgentEndpoint { url, headers, is_trusted, .. }) => {
                    format!("{url} trusted {is_trusted} headers {headers:?}")
                }
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected);
        };
        let of = |url: &str| Some(source(url, None));
        let with_all = |url: &str| format!("{url} trusted true headers [\"authorization\"]");
        let with_none = |url: &str| format!("{url} trusted false headers []");
        check("https://a/rpc", of("https://a"), &with_all("https://a/rpc"));
        check("https://A:443/rpc", of("https://a/x"), &with_all("https://A:443/rpc"));
        check("https://b/rpc", of("https://a"), &with_none("https://b/rpc"));
        check("http://a/rpc", of("https://a"), &with_none("http://a/rpc"));
        check("https://a:8443/rpc", of("https://a"), &with_none("https://a:8443/rpc"));
        check("https://a/rpc", None, &with_none("https://a/rpc"));
        let redirected = Some(source("https://a", Some("http://10.0.0.5/a2a")));
        check("https://evil/rpc", redirected, &with_all("http://10.0.0.5/a2a"));
        let missing = "the agent card names no JSON-RPC interface of A2A 1.0 or 0.3 with an http URL";
        check("file:///etc/passwd", of("https://a"), missing);
        check("https://user@a/rpc", of("https://a"), missing);
    }
}
