//! A handler of the type `grpc`: one tool, whose calls are requests of the Omnia Tool protocol.

use std::path::PathBuf;

use http::uri::Authority;

use super::{HandlerScope, HandlerSettings, ReadHandler};
use crate::{
    cursor::{KeywordChoice, ValueCursor},
    fields::ObjectFields,
    formats,
    handler::{
        RequestAuth, RetryPolicy, ToolDefinition, auth,
        endpoint::{self, EndpointFormat},
        retry::{self, ReadRetryPolicy},
        secrets::SecretCollector,
        tool,
    },
};

/// A tool and the gRPC service that implements it.
#[derive(Clone, Debug, PartialEq)]
pub struct GrpcHandler {
    /// `tool`: the definition of the tool.
    pub tool: ToolDefinition,
    /// `endpoint` or `grpcConfig.endpoint`: a host and a port.
    pub endpoint: Authority,
    /// `tls` and the related fields. `None`: plain text.
    pub tls: Option<GrpcTls>,
    /// `auth`: the authentication of its requests.
    pub auth: Option<RequestAuth>,
    /// `retryPolicy` or `retries`.
    pub retry: GrpcRetry,
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
        Self { tool, endpoint, tls: None, auth: None, retry: RetryPolicy::attempts(1).into() }
    }
}

impl HandlerSettings for GrpcHandler {
    fn endpoint(&self) -> String {
        self.endpoint.to_string()
    }

    fn add_secrets(&self, secrets: &mut SecretCollector) {
        secrets.auth(self.auth.as_ref());
    }

    fn retry(&self) -> &RetryPolicy {
        &self.retry.policy
    }

    fn uses_tls(&self) -> bool {
        // Such handlers are not served yet.
        false
    }

    fn has_server_definitions(&self) -> bool {
        false
    }
}

impl ReadHandler for GrpcHandler {
    const FIELDS: &'static [&'static str] = &["grpcConfig", "endpoint", "tool"];

    fn read(fields: &mut ObjectFields<'_>, scope: &HandlerScope<'_>) -> Option<Self> {
        let endpoint = fields
            .optional("endpoint", |cursor| Some(endpoint::read(cursor, scope.namespace, &HOST_AND_PORT)));
        let tool = fields.required("tool", tool::read);
        let config = fields.optional("grpcConfig", |cursor| Some(config(cursor)));
        let is_reported = matches!(config, Some(None)) || matches!(endpoint, Some(None));
        let config = config.flatten().unwrap_or_default();
        let auth = auth::handler_auth(fields, None, "grpcConfig");
        let retry = retry::handler_retry(fields, config.retry, "grpcConfig");
        let endpoint = endpoint.flatten().or(config.endpoint);
        if endpoint.is_none() && !is_reported {
            endpoint::report_missing(scope.location);
        }
        Some(Self { tool: tool?, endpoint: endpoint?, tls: config.tls, auth, retry })
    }
}

// === the configuration ===

/// gRPC has no URLs: an endpoint is a host and a port.
const HOST_AND_PORT: EndpointFormat<Authority> =
    EndpointFormat { service_prefix: "", parse: formats::host_and_port };

/// Fields that have no meaning without encryption.
const TLS_FIELDS: &[&str] = &["tlsCertPath", "tlsKeyPath", "tlsCAPath"];

/// The content of `grpcConfig`.
#[derive(Default)]
struct GrpcConfig {
    endpoint: Option<Authority>,
    tls: Option<GrpcTls>,
    retry: Option<GrpcRetry>,
}

/// Reads `grpcConfig`.
fn config(cursor: ValueCursor<'_>) -> Option<GrpcConfig> {
    let mut fields = cursor.clone().fields()?;
    let endpoint = fields.optional("endpoint", |cursor| cursor.parse_secret(formats::host_and_port));
    let tls = match fields.optional("tls", |cursor| Some(cursor.flag())) {
        None | Some(Some(false)) => {
            fields.reject_misplaced(TLS_FIELDS, "without `tls: true` nothing is encrypted");
            fields.optional("tlsInsecureSkipVerify", ValueCursor::flag);
            None
        }
        Some(_) => Some(tls(&mut fields, &cursor)),
    };
    let retry = fields.optional("retryPolicy", ReadRetryPolicy::read);
    fields.finish();
    Some(GrpcConfig { endpoint, tls, retry })
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
