//! A handler of the type `cortexone`: a function of the `CortexOne` platform.

use super::{HandlerScope, HandlerSettings, ReadHandler};
use crate::{
    cursor::ValueCursor,
    fields::ObjectFields,
    formats::{self, EndpointUrl},
    handler::{
        CredentialSource, HttpRetry, RetryPolicy, ToolDefinition, auth, retry, secrets::SecretCollector, tool,
    },
};

/// The default platform.
const DEFAULT_PLATFORM_URL: &str = "https://cortexconnect.rival.io";

/// A function that runs on the `CortexOne` platform.
#[derive(Clone, Debug, PartialEq)]
pub struct CortexOneHandler {
    /// `id`.
    pub id: String,
    /// `version`.
    pub version: String,
    /// `baseURL`: the base URL of the platform, without a query. Default: <https://cortexconnect.rival.io>
    pub base_url: EndpointUrl,
    /// `apiKey` or `apiKeySecretRef`: the key that pays for calls.
    pub api_key: CredentialSource,
    /// `tool`: the one tool that it implements. `None`: it is an MCP server, which lists its tools itself.
    pub tool: Option<ToolDefinition>,
    /// `retryPolicy` or `retries`.
    pub retry: HttpRetry,
}

impl HandlerSettings for CortexOneHandler {
    fn endpoint(&self) -> String {
        self.url()
    }

    fn add_secrets(&self, secrets: &mut SecretCollector) {
        secrets.credential(&self.api_key);
    }

    fn retry(&self) -> &RetryPolicy {
        &self.retry.policy
    }

    fn uses_tls(&self) -> bool {
        self.base_url.is_tls()
    }

    fn has_server_definitions(&self) -> bool {
        true
    }
}

impl ReadHandler for CortexOneHandler {
    const FIELDS: &'static [&'static str] = &["cortexoneConfig", "tool"];

    fn read(fields: &mut ObjectFields<'_>, _: &HandlerScope<'_>) -> Option<Self> {
        let config = fields.required("cortexoneConfig", config);
        let tool = tool::read_optional(fields);
        let retry = retry::handler_retry(fields, None, "cortexoneConfig");
        fields.reject_misplaced(&["auth"], "`cortexoneConfig.apiKey` already authenticates calls");
        let CortexOneConfig { id, version, base_url, api_key } = config?;
        Some(Self { id, version, base_url, api_key, tool: tool?, retry })
    }
}

impl CortexOneHandler {
    /// The base URL of this version of the function.
    #[must_use]
    pub fn url(&self) -> String {
        let base = self.base_url.uri().to_string();
        format!("{}/api/v1/functions/{}/{}", base.trim_end_matches('/'), self.id, self.version)
    }
}

// === the configuration ===

/// The content of `cortexoneConfig`.
struct CortexOneConfig {
    id: String,
    version: String,
    base_url: EndpointUrl,
    api_key: CredentialSource,
}

fn config(cursor: ValueCursor<'_>) -> Option<CortexOneConfig> {
    let mut fields = cursor.fields()?;
    let id = fields.required("id", |cursor| cursor.parse(formats::function_id));
    let version = fields.required("version", |cursor| cursor.parse(formats::function_version));
    let base_url = fields.optional("baseURL", |cursor| Some(cursor.parse_secret(formats::platform_url)));
    let base_url = base_url.unwrap_or_else(|| EndpointUrl::parse(DEFAULT_PLATFORM_URL).ok());
    let api_key = auth::secret(&mut fields, "apiKey", "apiKeySecretRef", formats::token);
    fields.finish();
    Some(CortexOneConfig { id: id?, version: version?, base_url: base_url?, api_key: api_key? })
}
