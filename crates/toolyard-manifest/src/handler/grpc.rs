//! A handler of the type `grpc`: one tool, whose calls are requests of the Omnia Tool protocol.

use std::{path::PathBuf, time::Duration};

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
    pub retry: GrpcRetryPolicy,
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
pub struct GrpcRetryPolicy {
    /// `maxAttempts`: how often it is sent in all.
    pub max_attempts: u32,
    /// `initialBackoff`: the wait before the second attempt. 100 ms.
    pub initial_backoff: Duration,
    /// `backoffMultiplier`: how much longer each further wait is. 2.
    pub backoff_multiplier: f64,
    /// `maxBackoff`: no wait is longer. 30 s.
    pub max_backoff: Duration,
    /// `retryableStatusCodes`: the statuses after which it is sent again. UNAVAILABLE, DEADLINE_EXCEEDED,
    /// RESOURCE_EXHAUSTED.
    pub retryable_status_codes: Vec<&'static str>,
}

impl GrpcRetryPolicy {
    /// The policy of so many attempts, and the defaults of the contract.
    #[must_use]
    pub fn attempts(max_attempts: u32) -> Self {
        let RetryPolicy { initial_backoff, backoff_multiplier, max_backoff, .. } = RetryPolicy::attempts(1);
        let retryable_status_codes = vec!["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"];
        Self { max_attempts, initial_backoff, backoff_multiplier, max_backoff, retryable_status_codes }
    }
}
