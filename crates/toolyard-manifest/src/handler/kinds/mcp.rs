//! A handler of the type `mcp`: a server that lists its tools itself.

use std::{fmt, path::PathBuf, time::Duration};

use http::HeaderName;

use super::{HandlerScope, HandlerSettings, ReadHandler};
use crate::{
    cursor::{KeywordChoice, ValueCursor},
    fields::ObjectFields,
    formats::{self, EndpointUrl},
    handler::{
        OutboundSettings, RequestAuth, RetryPolicy, SecretString, auth, headers::headers, outbound, retry,
        secrets::SecretCollector,
    },
};

/// An MCP server and the filter of its tools.
#[derive(Clone, Debug, PartialEq)]
pub struct McpHandler {
    /// The transport to the server.
    pub transport: McpTransport,
    /// `lane`: the sharing of its connections. Default: clients share one, except for clients that accept server
    /// requests when the server's protocol revision does not relate them to a call.
    pub lane: Option<ConnectionSharing>,
    /// `era`: the only era in which the server is spoken to. Default (`auto`): the modern era if the server speaks it,
    /// and the session-based one for calls whose tools may have to ask the client.
    pub era: Option<McpEra>,
    /// `toolFilter`. Default: all tools.
    pub filter: McpToolFilter,
    /// `retryPolicy` or `retries`: the policy for calls that did not reach the server, or whose connection broke before
    /// any response.
    pub retry: RetryPolicy,
}

/// The sharing of connections to a server between clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionSharing {
    /// One connection for all clients. Requests of a server with a session-based protocol revision reach no client.
    Shared,
    /// A dedicated connection for each client, so that the state of the server belongs to that client.
    Client,
}

/// The eras of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpEra {
    /// Sessions: the revisions up to 2025-11-25.
    Legacy,
    /// Independent requests: the revisions from 2026-07-28.
    Modern,
}

/// The transport to an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpTransport {
    /// HTTP to a running server.
    Http(McpHttp),
    /// The standard streams of a process that the gateway starts.
    Stdio {
        /// The program: a path, or a name that is looked up in `PATH`.
        command: String,
        /// The arguments of the program.
        args: CommandArgs,
        /// The working directory. Default: that of the gateway.
        work_dir: Option<PathBuf>,
        /// Additional environment variables.
        env: CommandEnv,
        /// `firstStart`: time limit of the first start, which may install the program. Default: `timeouts.firstStart`
        /// of the process, for launchers.
        first_start: Option<Duration>,
    },
}

/// A server that is reached over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpHttp {
    /// `transport`: the transport to try first. A server with the other one is detected.
    pub style: McpHttpStyle,
    /// The URL of the server.
    pub endpoint: EndpointUrl,
    /// `headers`: headers of every request, in addition to those of the protocol.
    pub headers: Vec<(HeaderName, SecretString)>,
    /// `auth` of the handler, or `authType` and the related fields. Applies to every request and replaces an
    /// `Authorization` among the headers.
    pub auth: Option<RequestAuth>,
    /// The proxy, and the certificates that are trusted.
    pub outbound: OutboundSettings,
}

/// The two HTTP transports of MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpHttpStyle {
    /// Streamable HTTP: one endpoint.
    Streamable,
    /// HTTP+SSE, the older one: a stream for server messages, and another endpoint for client messages.
    Sse,
}

/// The filter of a server's tools. Names are compared exactly, as everywhere in MCP: case matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpToolFilter {
    /// `allowlist`: only these, regardless of the block list. An empty list allows all.
    pub allow: Vec<String>,
    /// `blocklist`: all but these.
    pub block: Vec<String>,
}

/// The arguments of a command. They may contain tokens, so `Debug` shows only their number.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CommandArgs(Vec<String>);

/// Environment variables of a process. Their values may be secret, so `Debug` shows only the names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct CommandEnv(Vec<(String, String)>);

impl HandlerSettings for McpHandler {
    fn endpoint(&self) -> String {
        match &self.transport {
            McpTransport::Http(http) => http.endpoint.display_url(),
            McpTransport::Stdio { command, .. } => format!("stdio://{command}"),
        }
    }

    fn add_secrets(&self, secrets: &mut SecretCollector) {
        match &self.transport {
            McpTransport::Http(http) => {
                secrets.query_of(&http.endpoint);
                secrets.auth(http.auth.as_ref());
                secrets.headers(&http.headers);
                http.outbound.add_secrets(secrets);
            }
            McpTransport::Stdio { args, env, .. } => {
                secrets.args(args.iter());
                env.iter().for_each(|(_, value)| secrets.add(value));
            }
        }
    }

    fn retry(&self) -> &RetryPolicy {
        &self.retry
    }

    fn uses_tls(&self) -> bool {
        matches!(&self.transport, McpTransport::Http(http) if http.endpoint.is_tls())
    }

    fn identity(&self) -> Vec<String> {
        let Self { transport, lane: _, era: _, filter: McpToolFilter { allow, block }, retry: _ } = self;
        let mut texts = match transport {
            McpTransport::Http(McpHttp { style: _, endpoint, headers: _, auth: _, outbound: _ }) => {
                vec![endpoint.uri().to_string()]
            }
            McpTransport::Stdio { command, args, work_dir, env, first_start: _ } => {
                let folder = work_dir.iter().map(|folder| folder.display().to_string());
                let env = env.iter().flat_map(|(name, value)| [name.to_owned(), value.to_owned()]);
                [command.clone()]
                    .into_iter()
                    .chain(args.iter().map(str::to_owned))
                    .chain(folder)
                    .chain(env)
                    .collect()
            }
        };
        texts.extend(["allow".to_owned()].into_iter().chain(allow.iter().cloned()));
        texts.extend(["block".to_owned()].into_iter().chain(block.iter().cloned()));
        texts
    }

    fn has_server_definitions(&self) -> bool {
        true
    }
}

impl ReadHandler for McpHandler {
    const FIELDS: &'static [&'static str] = &["mcpConfig"];

    fn read(fields: &mut ObjectFields<'_>, _: &HandlerScope<'_>) -> Option<Self> {
        let mut config = fields.required("mcpConfig", config);
        match config.as_mut().map(|config| &mut config.transport) {
            Some(McpTransport::Stdio { .. }) => fields.reject_misplaced(&["auth"], STDIO_CREDENTIALS),
            Some(McpTransport::Http(http)) => {
                http.auth = auth::handler_auth(fields, http.auth.take(), "mcpConfig")
            }
            // The problem of the configuration is already reported.
            None => drop(auth::handler_auth(fields, None, "mcpConfig")),
        }
        fields.reject_misplaced(&["toolFilter", "era"], "it belongs in `mcpConfig`");
        let configured = config.as_ref().and_then(|config| config.retry);
        let retry = retry::handler_retry(fields, configured, "mcpConfig");
        let McpConfig { transport, lane, era, filter, .. } = config?;
        Some(Self { transport, lane, era, filter, retry })
    }
}

// === impl CommandArgs ===

impl CommandArgs {
    /// The arguments, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl FromIterator<String> for CommandArgs {
    fn from_iter<I: IntoIterator<Item = String>>(args: I) -> Self {
        Self(args.into_iter().collect())
    }
}

impl fmt::Debug for CommandArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommandArgs({} hidden)", self.0.len())
    }
}

// === impl CommandEnv ===

impl CommandEnv {
    /// Names and values, in the order of the document.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl FromIterator<(String, String)> for CommandEnv {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl fmt::Debug for CommandEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommandEnv")?;
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

// === the configuration ===

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

const ERA: KeywordChoice<Option<McpEra>> = KeywordChoice {
    noun: "era",
    words: &[("auto", None), ("legacy", Some(McpEra::Legacy)), ("modern", Some(McpEra::Modern))],
    unsupported: &[],
};

const STDIO_FIELDS: &[&str] = &["command", "args", "workDir", "env", "firstStart"];

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
    era: Option<McpEra>,
    filter: McpToolFilter,
    retry: Option<RetryPolicy>,
}

/// Reads `mcpConfig`. Fields of the handler itself are added later.
pub(super) fn config(cursor: ValueCursor<'_>) -> Option<McpConfig> {
    let mut fields = cursor.fields()?;
    let transport = match fields.required("transport", |cursor| cursor.choice(&TRANSPORT)) {
        Some(McpTransportType::Stdio) => stdio(&mut fields),
        Some(McpTransportType::Http(style)) => http(&mut fields, style).map(McpTransport::Http),
        None => {
            fields.allow(HTTP_FIELDS);
            fields.allow(CREDENTIAL_FIELDS);
            fields.allow(STDIO_FIELDS);
            fields.allow(outbound::FIELDS);
            None
        }
    };
    let lane = fields.optional("lane", |cursor| cursor.choice(&LANE));
    let era = fields.with_default("era", |cursor| era(cursor, transport.as_ref()), None);
    let filter = fields.with_default("toolFilter", filter, McpToolFilter::default());
    let retry = fields.optional("retryPolicy", retry::ReadRetryPolicy::read);
    fields.finish();
    Some(McpConfig { transport: transport?, lane, era, filter, retry })
}

/// Reads the era. HTTP+SSE exists in one of them only.
fn era(cursor: ValueCursor<'_>, transport: Option<&McpTransport>) -> Option<Option<McpEra>> {
    let era = cursor.clone().choice(&ERA)?;
    let is_sse = matches!(transport, Some(McpTransport::Http(McpHttp { style: McpHttpStyle::Sse, .. })));
    if is_sse && era == Some(McpEra::Modern) {
        let problem = cursor.problem("the transport `sse` has no modern era");
        cursor.report(problem.hint("use the transport `streamable-http`, or remove `era`"));
    }
    Some(era)
}

fn stdio(fields: &mut ObjectFields<'_>) -> Option<McpTransport> {
    let command = fields.required("command", |cursor| cursor.parse(formats::command));
    let args = fields.with_default("args", |cursor| cursor.list(ValueCursor::text), Vec::new());
    let work_dir = fields.optional("workDir", |cursor| cursor.parse(formats::folder));
    let env = fields.with_default(
        "env",
        |cursor| {
            cursor.mark_secret();
            cursor.entries(formats::variable_name, ValueCursor::text)
        },
        Vec::new(),
    );
    let first_start = fields.optional("firstStart", ValueCursor::timeout);
    fields.reject_misplaced(HTTP_FIELDS, HTTP_ONLY);
    fields.reject_misplaced(outbound::FIELDS, HTTP_ONLY);
    fields.reject_misplaced(CREDENTIAL_FIELDS, STDIO_CREDENTIALS);
    let (args, env) = (args.into_iter().collect(), env.into_iter().collect());
    Some(McpTransport::Stdio { command: command?, args, work_dir, env, first_start })
}

fn http(fields: &mut ObjectFields<'_>, style: McpHttpStyle) -> Option<McpHttp> {
    let endpoint = fields.required("endpoint", |cursor| cursor.parse_secret(EndpointUrl::parse));
    let is_name = formats::is_mcp_header_name;
    let headers = fields.with_default("headers", |cursor| headers(cursor, is_name), Vec::new());
    let (auth, outbound) = (auth::config_auth(fields), OutboundSettings::read(fields));
    fields.reject_misplaced(STDIO_FIELDS, "it belongs to the transport `stdio`");
    Some(McpHttp { style, endpoint: endpoint?, headers, auth, outbound })
}

fn filter(cursor: ValueCursor<'_>) -> Option<McpToolFilter> {
    let mut fields = cursor.fields()?;
    let mut names = |name| fields.with_default(name, |cursor| cursor.list(ValueCursor::text), Vec::new());
    let filter = McpToolFilter { allow: names("allowlist"), block: names("blocklist") };
    fields.finish();
    Some(filter)
}
