//! A handler of the type `grpc`: one tool, whose calls are requests of the Omnia Tool protocol.

use std::path::PathBuf;

use http::uri::Authority;

use super::{Auth, RetryPolicy, ToolDefinition};

/// A tool, and where the service is that runs it.
#[derive(Clone, Debug, PartialEq)]
pub struct GrpcHandler {
    /// `tool`.
    pub tool: ToolDefinition,
    /// `endpoint` or `grpcConfig.endpoint`: a host and a port.
    pub endpoint: Authority,
    /// `tls` and what belongs to it. None: nothing is encrypted.
    pub tls: Option<Tls>,
    /// `auth`.
    pub auth: Option<Auth>,
    /// `retryPolicy`, or what `retries` stands for.
    pub retry: GrpcRetry,
}

/// How a connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// `tlsCertPath` and `tlsKeyPath`: how the gateway says who it is. None: it does not.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// `tlsCAPath`: who vouches for the server. None: those whom the system trusts.
    pub authority: Option<PathBuf>,
    /// `tlsInsecureSkipVerify`: whether anybody may be the server. False.
    pub skips_verification: bool,
}

/// When and how often a request that failed is sent again.
#[derive(Clone, Debug, PartialEq)]
pub struct GrpcRetry {
    /// How often, and after which waits.
    pub policy: RetryPolicy,
    /// `retryableStatusCodes`: the statuses after which it is sent again. UNAVAILABLE, DEADLINE_EXCEEDED,
    /// RESOURCE_EXHAUSTED.
    pub retryable_status_codes: Vec<&'static str>,
}

/// With the defaults of the contract.
impl From<RetryPolicy> for GrpcRetry {
    fn from(policy: RetryPolicy) -> Self {
        let retryable_status_codes = vec!["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"];
        Self { policy, retryable_status_codes }
    }
}
