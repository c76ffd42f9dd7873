//! A handler of the type `grpc`: one tool, whose calls are requests of the Omnia Tool protocol.

use std::path::PathBuf;

use http::uri::Authority;

use super::{RequestAuth, RetryPolicy, ToolDefinition};

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

/// Applies the default status codes of the contract.
impl From<RetryPolicy> for GrpcRetry {
    fn from(policy: RetryPolicy) -> Self {
        let retryable_status_codes = vec!["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"];
        Self { policy, retryable_status_codes }
    }
}
