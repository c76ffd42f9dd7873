//! The reader of a handler of the type `mcp`.

use super::{auth, headers, retry};
use crate::{
    cursor::{KeywordChoice, ValueCursor},
    fields::ObjectFields,
    formats::{self, EndpointUrl},
    handler::{
        ConnectionSharing, McpHandler, McpHttp, McpHttpStyle, McpToolFilter, McpTransport, RetryPolicy,
    },
};

const TRANSPORT: KeywordChoice<McpTransportType> = KeywordChoice {
    noun: "transport",
    words: &[
        ("stdio", McpTransportType::Stdio),
        ("sse", McpTransportType::Http(McpHttpStyle::Sse)),
        ("streamable-http", McpTransportType::Http(McpHttpStyle::Streamable)),
    ],
    unsupported: &[],
};

const LANE: KeywordChoice<ConnectionSharing> = KeywordChoice {
    noun: "lane",
    words: &[("shared", ConnectionSharing::Shared), ("client", ConnectionSharing::Client)],
    unsupported: &[],
};

const STDIO_FIELDS: &[&str] = &["command", "args", "workDir", "env"];

const HTTP_FIELDS: &[&str] = &["endpoint"];

const CREDENTIAL_FIELDS: &[&str] = &["headers", "authType", "authToken", "authSecretRef"];

const HTTP_ONLY: &str = "it belongs to the transports `streamable-http` and `sse`";

const STDIO_CREDENTIALS: &str = "a program takes no headers: pass secrets in `env`";

#[derive(Clone, Copy)]
enum McpTransportType {
    Stdio,
    Http(McpHttpStyle),
}

/// The content of `mcpConfig`.
pub(super) struct McpConfig {
    transport: McpTransport,
    lane: Option<ConnectionSharing>,
    filter: McpToolFilter,
    retry: Option<RetryPolicy>,
}

/// Reads the fields of a handler of the type `mcp`.
pub(super) fn handler(fields: &mut ObjectFields<'_>) -> Option<McpHandler> {
    let mut config = fields.required("mcpConfig", config);
    match config.as_mut().map(|config| &mut config.transport) {
        Some(McpTransport::Stdio { .. }) => fields.reject_misplaced(&["auth"], STDIO_CREDENTIALS),
        Some(McpTransport::Http(http)) => {
            http.auth = auth::handler_auth(fields, http.auth.take(), "mcpConfig")
        }
        // The problem of the configuration is already reported.
        None => drop(auth::handler_auth(fields, None, "mcpConfig")),
    }
    fields.reject_misplaced(&["toolFilter"], "it belongs in `mcpConfig`");
    let configured = config.as_ref().and_then(|config| config.retry);
    let retry = retry::handler_retry(fields, configured, "mcpConfig");
    let McpConfig { transport, lane, filter, .. } = config?;
    Some(McpHandler { transport, lane, filter, retry })
}

pub(super) fn config(cursor: ValueCursor<'_>) -> Option<McpConfig> {
    let mut fields = cursor.fields()?;
    let transport = match fields.required("transport", |cursor| cursor.choice(&TRANSPORT)) {
        Some(McpTransportType::Stdio) => stdio(&mut fields),
        Some(McpTransportType::Http(style)) => http(&mut fields, style).map(McpTransport::Http),
        None => {
            fields.allow(HTTP_FIELDS);
            fields.allow(CREDENTIAL_FIELDS);
            fields.allow(STDIO_FIELDS);
            None
        }
    };
    let lane = fields.optional("lane", |cursor| cursor.choice(&LANE));
    let filter = fields.with_default("toolFilter", filter, McpToolFilter::default());
    let retry = fields.optional("retryPolicy", retry::ReadRetryPolicy::read);
    fields.finish();
    Some(McpConfig { transport: transport?, lane, filter, retry })
}

fn stdio(fields: &mut ObjectFields<'_>) -> Option<McpTransport> {
    let command = fields.required("command", |cursor| cursor.parse(formats::command));
    let args = fields.with_default("args", |cursor| cursor.list(ValueCursor::text), Vec::new());
    let work_dir = fields.optional("workDir", |cursor| cursor.parse(formats::folder));
    let env = fields.with_default(
        "env",
        |cursor| cursor.entries(formats::variable_name, ValueCursor::text),
        Vec::new(),
    );
    fields.reject_misplaced(HTTP_FIELDS, HTTP_ONLY);
    fields.reject_misplaced(CREDENTIAL_FIELDS, STDIO_CREDENTIALS);
    let (args, env) = (args.into_iter().collect(), env.into_iter().collect());
    Some(McpTransport::Stdio { command: command?, args, work_dir, env })
}

fn http(fields: &mut ObjectFields<'_>, style: McpHttpStyle) -> Option<McpHttp> {
    let endpoint = fields.required("endpoint", |cursor| cursor.parse_secret(EndpointUrl::parse));
    let is_name = formats::is_mcp_header_name;
    let headers = fields.with_default("headers", |cursor| headers(cursor, is_name), Vec::new());
    let auth = auth::config_auth(fields);
    fields.reject_misplaced(STDIO_FIELDS, "it belongs to the transport `stdio`");
    Some(McpHttp { style, endpoint: endpoint?, headers, auth })
}

fn filter(cursor: ValueCursor<'_>) -> Option<McpToolFilter> {
    let mut fields = cursor.fields()?;
    let mut names = |name| fields.with_default(name, |cursor| cursor.list(ValueCursor::text), Vec::new());
    let filter = McpToolFilter { allow: names("allowlist"), block: names("blocklist") };
    fields.finish();
    Some(filter)
}
