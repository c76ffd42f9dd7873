//! A handler of the type `grpc`: one tool, whose calls are requests of the Omnia tool protocol, or the tools that a server
//! has: the methods of its services, or those of the Omnia tool protocol.

mod discovery;

use std::{path::PathBuf, time::Duration};

use http::{HeaderName, header::AUTHORIZATION, uri::Authority};

pub use self::discovery::{GrpcDiscovery, GrpcFilter, GrpcStreamBounds};

use super::{HandlerScope, HandlerSettings, ReadHandler};
use crate::{
    cursor::{KeywordChoice, ValueCursor},
    fields::ObjectFields,
    formats,
    handler::{
        ProbeSettings, RequestAuth, RetryPolicy, SecretString, ToolDefinition, auth,
        endpoint::{self, EndpointFormat},
        headers::metadata,
        retry::{self, ReadRetryPolicy},
        secrets::SecretCollector,
        tool,
    },
};

/// A gRPC server and its tools.
#[derive(Clone, Debug, PartialEq)]
pub struct GrpcHandler {
    /// The tools.
    pub tools: GrpcToolSettings,
    /// `endpoint` or `grpcConfig.endpoint`: a host and a port.
    pub endpoint: Authority,
    /// `tls` and the related fields. `None`: plain text.
    pub tls: Option<GrpcTls>,
    /// `auth`: the authentication of its requests.
    pub auth: Option<RequestAuth>,
    /// `metadata`: metadata of every request.
    pub metadata: Vec<(HeaderName, SecretString)>,
    /// `keepAlive`: pings on connections. Default: none.
    pub keep_alive: Option<KeepAliveSettings>,
    /// `probe`: regular checks of the server. Default: none.
    pub probe: Option<GrpcProbeSettings>,
    /// `retryPolicy` or `retries`.
    pub retry: GrpcRetry,
}

/// The tools of a gRPC handler.
#[derive(Clone, Debug, PartialEq)]
pub enum GrpcToolSettings {
    /// `tool`: one tool of the Omnia tool protocol.
    Defined(Box<ToolDefinition>),
    /// Those that the server has.
    Discovered(GrpcDiscovery),
}

/// Pings on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeepAliveSettings {
    /// `interval`: time between two pings. Default: 5 min.
    pub interval: Duration,
    /// `timeout`: time limit of the answer. Default: 20 s.
    pub timeout: Duration,
}

/// Regular checks of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcProbeSettings {
    /// `interval`: time between two checks. Default: 60 s.
    pub interval: Duration,
    /// `timeout`: time limit of a check. Default: 5 s.
    pub timeout: Duration,
    /// `service`: the service that the server's health service is asked about. Default: the server as a whole.
    pub service: String,
}

/// The encryption of a gRPC connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcTls {
    /// `tlsCertPath` and `tlsKeyPath`: the client certificate and its key. `None`: no client certificate.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// `tlsCAPath`: the certificate authorities of the server. `None`: those of the system.
    pub authority: Option<PathBuf>,
    /// `tlsInsecureSkipVerify`: accept any server certificate. Default: false.
    pub skips_verification: bool,
}

/// The retry policy of gRPC requests.
#[derive(Clone, Debug, PartialEq)]
pub struct GrpcRetry {
    /// Number of attempts and backoff.
    pub policy: RetryPolicy,
    /// `retryableStatusCodes`: the retryable status codes. Default: UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED.
    pub retryable_status_codes: Vec<&'static str>,
}

impl GrpcHandler {
    /// Creates the handler of a tool that a server without encryption runs.
    pub(super) fn plain(tool: ToolDefinition, endpoint: Authority) -> Self {
        Self {
            tools: GrpcToolSettings::Defined(Box::new(tool)),
            endpoint,
            tls: None,
            auth: None,
            metadata: Vec::new(),
            keep_alive: None,
            probe: None,
            retry: RetryPolicy::attempts(1).into(),
        }
    }
}

impl HandlerSettings for GrpcHandler {
    fn endpoint(&self) -> String {
        self.endpoint.to_string()
    }

    fn add_secrets(&self, secrets: &mut SecretCollector) {
        secrets.auth(self.auth.as_ref());
        secrets.headers(&self.metadata);
    }

    fn retry(&self) -> &RetryPolicy {
        &self.retry.policy
    }

    fn uses_tls(&self) -> bool {
        self.tls.is_some()
    }

    fn identity(&self) -> Vec<String> {
        let GrpcToolSettings::Discovered(discovery) = &self.tools else { return Vec::new() };
        let GrpcFilter { services, methods } = &discovery.filter;
        let file = discovery.descriptor_set.iter().map(|file| file.display().to_string());
        let lists = [("services", services), ("methods", methods)];
        let lists =
            lists.into_iter().flat_map(|(name, list)| [name.to_owned()].into_iter().chain(list.clone()));
        file.chain(lists).collect()
    }

    fn has_server_definitions(&self) -> bool {
        matches!(self.tools, GrpcToolSettings::Discovered(_))
    }
}

impl ReadHandler for GrpcHandler {
    const FIELDS: &'static [&'static str] = &["grpcConfig", "endpoint", "tool"];

    fn read(fields: &mut ObjectFields<'_>, scope: &HandlerScope<'_>) -> Option<Self> {
        let endpoint = fields
            .optional("endpoint", |cursor| Some(endpoint::read(cursor, scope.namespace, &HOST_AND_PORT)));
        let tool = fields.optional("tool", |cursor| Some(tool::read(cursor)));
        let config = fields.optional("grpcConfig", |cursor| Some(config(cursor, tool.is_some())));
        let is_reported = matches!(config, Some(None)) || matches!(endpoint, Some(None));
        let config = config.flatten().unwrap_or_default();
        if config.metadata.iter().any(|(name, _)| name == AUTHORIZATION) {
            fields.reject_misplaced(&["auth"], "`grpcConfig.metadata` already sets `authorization`");
        }
        let auth = auth::handler_auth(fields, None, "grpcConfig");
        let retry = retry::handler_retry(fields, config.retry, "grpcConfig");
        let endpoint = endpoint.flatten().or(config.endpoint);
        if endpoint.is_none() && !is_reported {
            endpoint::report_missing(scope.location);
        }
        let tools = match tool {
            Some(tool) => GrpcToolSettings::Defined(Box::new(tool?)),
            None => GrpcToolSettings::Discovered(config.discovery),
        };
        let GrpcConfig { tls, metadata, keep_alive, probe, .. } = config;
        Some(Self { tools, endpoint: endpoint?, tls, auth, metadata, keep_alive, probe, retry })
    }
}

// === the configuration ===

/// gRPC has no URLs: an endpoint is a host and a port.
const HOST_AND_PORT: EndpointFormat<Authority> =
    EndpointFormat { service_prefix: "", parse: formats::host_and_port };

/// Fields that have no meaning without encryption.
const TLS_FIELDS: &[&str] = &["tlsCertPath", "tlsKeyPath", "tlsCAPath"];

/// The reason why they have none.
const PLAIN_TEXT: &str = "without `tls: true` nothing is encrypted";

/// The content of `grpcConfig`.
#[derive(Default)]
struct GrpcConfig {
    endpoint: Option<Authority>,
    tls: Option<GrpcTls>,
    metadata: Vec<(HeaderName, SecretString)>,
    keep_alive: Option<KeepAliveSettings>,
    probe: Option<GrpcProbeSettings>,
    discovery: GrpcDiscovery,
    retry: Option<GrpcRetry>,
}

/// Reads `grpcConfig`. A handler with a tool discovers none.
fn config(cursor: ValueCursor<'_>, has_tool: bool) -> Option<GrpcConfig> {
    let mut fields = cursor.clone().fields()?;
    let endpoint = fields.optional("endpoint", |cursor| Some(cursor.parse_secret(formats::host_and_port)));
    let tls = match fields.optional("tls", |cursor| Some(cursor.flag())) {
        None | Some(Some(false)) => {
            fields.reject_misplaced(TLS_FIELDS, PLAIN_TEXT);
            if fields.optional("tlsInsecureSkipVerify", ValueCursor::flag) == Some(true) {
                fields.reject_misplaced(&["tlsInsecureSkipVerify"], PLAIN_TEXT);
            }
            None
        }
        Some(_) => Some(tls(&mut fields, &cursor)),
    };
    let metadata = fields.with_default("metadata", metadata, Vec::new());
    let keep_alive = fields.optional("keepAlive", keep_alive);
    let probe = fields.optional("probe", probe);
    let discovery = match has_tool {
        false => GrpcDiscovery::read(&mut fields),
        true => {
            fields.reject_misplaced(discovery::FIELDS, "`tool` defines the only tool of the handler");
            GrpcDiscovery::default()
        }
    };
    let retry = fields.optional("retryPolicy", ReadRetryPolicy::read);
    fields.finish();
    // An invalid endpoint is reported, unlike a missing one.
    let endpoint = endpoint.map_or(Some(None), |endpoint| endpoint.map(Some))?;
    Some(GrpcConfig { endpoint, tls, metadata, keep_alive, probe, discovery, retry })
}

/// Reads `keepAlive`.
fn keep_alive(cursor: ValueCursor<'_>) -> Option<KeepAliveSettings> {
    let mut fields = cursor.fields()?;
    let settings = KeepAliveSettings {
        interval: fields.with_default("interval", ValueCursor::timeout, Duration::from_secs(300)),
        timeout: fields.with_default("timeout", ValueCursor::timeout, Duration::from_secs(20)),
    };
    fields.finish();
    Some(settings)
}

/// Reads `probe`.
fn probe(cursor: ValueCursor<'_>) -> Option<GrpcProbeSettings> {
    let mut fields = cursor.fields()?;
    let default = ProbeSettings::default();
    let settings = GrpcProbeSettings {
        interval: fields.with_default("interval", ValueCursor::timeout, default.interval),
        timeout: fields.with_default("timeout", ValueCursor::timeout, default.timeout),
        service: fields.with_default("service", ValueCursor::text, String::new()),
    };
    fields.finish();
    Some(settings)
}

fn tls(fields: &mut ObjectFields<'_>, config: &ValueCursor<'_>) -> GrpcTls {
    let path = |cursor: ValueCursor<'_>| Some(cursor.resolve_path(&cursor.clone().parse(formats::file)?));
    let certificate = fields.optional("tlsCertPath", |cursor| Some(path(cursor)));
    let key = fields.optional("tlsKeyPath", |cursor| Some(path(cursor)));
    let authority = fields.optional("tlsCAPath", path);
    let skips_verification = fields.with_default("tlsInsecureSkipVerify", ValueCursor::flag, false);
    if certificate.is_some() != key.is_some() {
        let problem = config.problem("a certificate needs its key, and a key its certificate");
        config.report(problem.expected("both `tlsCertPath` and `tlsKeyPath`, or neither"));
    }
    GrpcTls { identity: certificate.flatten().zip(key.flatten()), authority, skips_verification }
}

// === the retry policy ===

/// The status codes of gRPC (grpc.io, "Status codes and their use in gRPC"), without OK: successful requests are not
/// repeated.
const GRPC_STATUS: KeywordChoice<&str> = KeywordChoice {
    noun: "status of gRPC",
    words: &[
        ("CANCELLED", "CANCELLED"),
        ("UNKNOWN", "UNKNOWN"),
        ("INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        ("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"),
        ("NOT_FOUND", "NOT_FOUND"),
        ("ALREADY_EXISTS", "ALREADY_EXISTS"),
        ("PERMISSION_DENIED", "PERMISSION_DENIED"),
        ("RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED"),
        ("FAILED_PRECONDITION", "FAILED_PRECONDITION"),
        ("ABORTED", "ABORTED"),
        ("OUT_OF_RANGE", "OUT_OF_RANGE"),
        ("UNIMPLEMENTED", "UNIMPLEMENTED"),
        ("INTERNAL", "INTERNAL"),
        ("UNAVAILABLE", "UNAVAILABLE"),
        ("DATA_LOSS", "DATA_LOSS"),
        ("UNAUTHENTICATED", "UNAUTHENTICATED"),
    ],
    unsupported: &[],
};

/// Applies the default status codes of the contract.
impl From<RetryPolicy> for GrpcRetry {
    fn from(policy: RetryPolicy) -> Self {
        let retryable_status_codes = vec!["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"];
        Self { policy, retryable_status_codes }
    }
}

impl ReadRetryPolicy for GrpcRetry {
    fn read(cursor: ValueCursor<'_>) -> Option<Self> {
        let mut fields = cursor.fields()?;
        let policy = retry::common_fields(&mut fields);
        let retryable_status_codes = fields.with_default(
            "retryableStatusCodes",
            |cursor| cursor.list(|item| item.choice(&GRPC_STATUS)),
            Self::from(RetryPolicy::attempts(1)).retryable_status_codes,
        );
        fields.finish();
        Some(Self { policy: policy?, retryable_status_codes })
    }
}
