//! The reader of a handler of the type `grpc`.

use http::uri::Authority;

use super::{
    auth,
    endpoint::{self, EndpointFormat},
    retry, tool,
};
use crate::{
    cursor::ValueCursor,
    fields::ObjectFields,
    formats,
    handler::{GrpcHandler, GrpcRetry, GrpcTls},
};

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

/// Reads the fields of a handler of the type `grpc`. `namespace` is that of its registry.
pub(super) fn handler(
    fields: &mut ObjectFields<'_>,
    namespace: &str,
    location: &ValueCursor<'_>,
) -> Option<GrpcHandler> {
    let endpoint =
        fields.optional("endpoint", |cursor| Some(endpoint::read(cursor, namespace, &HOST_AND_PORT)));
    let tool = fields.required("tool", tool::read);
    let config = fields.optional("grpcConfig", |cursor| Some(config(cursor)));
    let is_reported = matches!(config, Some(None)) || matches!(endpoint, Some(None));
    let config = config.flatten().unwrap_or_default();
    let auth = auth::handler_auth(fields, None, "grpcConfig");
    let retry = retry::handler_retry(fields, config.retry, "grpcConfig");
    let endpoint = endpoint.flatten().or(config.endpoint);
    if endpoint.is_none() && !is_reported {
        endpoint::report_missing(location);
    }
    Some(GrpcHandler { tool: tool?, endpoint: endpoint?, tls: config.tls, auth, retry })
}

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
    let retry = fields.optional("retryPolicy", retry::ReadRetryPolicy::read);
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
