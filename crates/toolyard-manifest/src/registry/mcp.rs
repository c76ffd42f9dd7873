//! The reader of a handler of the type `mcp`.

use super::{auth, headers, retry};
use crate::{
    cursor::{Choice, Cursor},
    fields::Fields,
    forms::{self, Endpoint},
    handler::{Lane, McpHandler, McpHttp, McpHttpStyle, McpTransport, RetryPolicy, ToolFilter},
};

const TRANSPORT: Choice<Transport> = Choice {
    noun: "transport",
    words: &[
        ("stdio", Transport::Stdio),
        ("sse", Transport::Http(McpHttpStyle::Sse)),
        ("streamable-http", Transport::Http(McpHttpStyle::Streamable)),
    ],
    not_yet: &[],
};

const LANE: Choice<Lane> =
    Choice { noun: "lane", words: &[("shared", Lane::Shared), ("client", Lane::Client)], not_yet: &[] };

const STDIO_FIELDS: &[&str] = &["command", "args", "workDir", "env"];

const HTTP_FIELDS: &[&str] = &["endpoint"];

const CREDENTIAL_FIELDS: &[&str] = &["headers", "authType", "authToken", "authSecretRef"];

const OF_HTTP: &str = "it belongs to the transports `streamable-http` and `sse`";

const NOT_OF_STDIO: &str = "a program has no requests to put it into: give it its secrets by `env`";

#[derive(Clone, Copy)]
enum Transport {
    Stdio,
    Http(McpHttpStyle),
}

/// What `mcpConfig` says.
pub(super) struct Config {
    transport: McpTransport,
    lane: Option<Lane>,
    filter: ToolFilter,
    retry: Option<RetryPolicy>,
}

/// What a handler's fields say that has the type `mcp`.
pub(super) fn handler(fields: &mut Fields<'_>) -> Option<McpHandler> {
    let mut config = fields.required("mcpConfig", config);
    match config.as_mut().map(|config| &mut config.transport) {
        Some(McpTransport::Stdio { .. }) => fields.misplaced(&["auth"], NOT_OF_STDIO),
        Some(McpTransport::Http(http)) => http.auth = auth::of_handler(fields, http.auth.take(), "mcpConfig"),
        // What is wrong with it is known already.
        None => drop(auth::of_handler(fields, None, "mcpConfig")),
    }
    fields.misplaced(&["toolFilter"], "it belongs into `mcpConfig`");
    let configured = config.as_ref().and_then(|config| config.retry);
    let retry = retry::of_handler(fields, configured, "mcpConfig");
    let Config { transport, lane, filter, .. } = config?;
    Some(McpHandler { transport, lane, filter, retry })
}

pub(super) fn config(cursor: Cursor<'_>) -> Option<Config> {
    let mut fields = cursor.fields()?;
    let transport = match fields.required("transport", |cursor| cursor.choice(&TRANSPORT)) {
        Some(Transport::Stdio) => stdio(&mut fields),
        Some(Transport::Http(style)) => http(&mut fields, style).map(McpTransport::Http),
        None => {
            fields.accept(HTTP_FIELDS);
            fields.accept(CREDENTIAL_FIELDS);
            fields.accept(STDIO_FIELDS);
            None
        }
    };
    let lane = fields.optional("lane", |cursor| cursor.choice(&LANE));
    let filter = fields.with_default("toolFilter", filter, ToolFilter::default());
    let retry = fields.optional("retryPolicy", retry::Policy::read);
    fields.finish();
    Some(Config { transport: transport?, lane, filter, retry })
}

fn stdio(fields: &mut Fields<'_>) -> Option<McpTransport> {
    let command = fields.required("command", |cursor| cursor.parse(forms::command));
    let args = fields.with_default("args", |cursor| cursor.list(Cursor::text), Vec::new());
    let work_dir = fields.optional("workDir", |cursor| cursor.parse(forms::folder));
    let env =
        fields.with_default("env", |cursor| cursor.entries(forms::variable_name, Cursor::text), Vec::new());
    fields.misplaced(HTTP_FIELDS, OF_HTTP);
    fields.misplaced(CREDENTIAL_FIELDS, NOT_OF_STDIO);
    let (args, env) = (args.into_iter().collect(), env.into_iter().collect());
    Some(McpTransport::Stdio { command: command?, args, work_dir, env })
}

fn http(fields: &mut Fields<'_>, style: McpHttpStyle) -> Option<McpHttp> {
    let endpoint = fields.required("endpoint", |cursor| cursor.parse_secret(Endpoint::parse));
    let is_name = forms::is_mcp_header_name;
    let headers = fields.with_default("headers", |cursor| headers(cursor, is_name), Vec::new());
    let auth = auth::configured(fields);
    fields.misplaced(STDIO_FIELDS, "it belongs to the transport `stdio`");
    Some(McpHttp { style, endpoint: endpoint?, headers, auth })
}

fn filter(cursor: Cursor<'_>) -> Option<ToolFilter> {
    let mut fields = cursor.fields()?;
    let mut names = |name| fields.with_default(name, |cursor| cursor.list(Cursor::text), Vec::new());
    let filter = ToolFilter { allow: names("allowlist"), block: names("blocklist") };
    fields.finish();
    Some(filter)
}
