//! The reader of a handler of the type `grpc`.

use http::uri::Authority;

use super::{
    auth,
    endpoint::{self, Form},
    retry, tool,
};
use crate::{
    cursor::Cursor,
    fields::Fields,
    forms,
    handler::{GrpcHandler, GrpcRetry, Tls},
};

/// gRPC has no URLs: an endpoint is a host and a port.
const HOST_AND_PORT: Form<Authority> = Form { before_service: "", parse: forms::host_and_port };

/// The fields that mean nothing where nothing is encrypted.
const OF_TLS: &[&str] = &["tlsCertPath", "tlsKeyPath", "tlsCAPath"];

/// What `grpcConfig` says.
#[derive(Default)]
struct Config {
    endpoint: Option<Authority>,
    tls: Option<Tls>,
    retry: Option<GrpcRetry>,
}

/// What a handler's fields say that has the type `grpc`. `namespace` is that of its registry.
pub(super) fn handler(fields: &mut Fields<'_>, namespace: &str, place: &Cursor<'_>) -> Option<GrpcHandler> {
    let endpoint =
        fields.optional("endpoint", |cursor| Some(endpoint::read(cursor, namespace, &HOST_AND_PORT)));
    let tool = fields.required("tool", tool::read);
    let config = fields.optional("grpcConfig", |cursor| Some(config(cursor)));
    let known_to_be_wrong = matches!(config, Some(None)) || matches!(endpoint, Some(None));
    let config = config.flatten().unwrap_or_default();
    let auth = auth::of_handler(fields, None, "grpcConfig");
    let retry = retry::of_handler(fields, config.retry, "grpcConfig");
    let endpoint = endpoint.flatten().or(config.endpoint);
    if endpoint.is_none() && !known_to_be_wrong {
        endpoint::missing(place);
    }
    Some(GrpcHandler { tool: tool?, endpoint: endpoint?, tls: config.tls, auth, retry })
}

fn config(cursor: Cursor<'_>) -> Option<Config> {
    let mut fields = cursor.clone().fields()?;
    let endpoint = fields.optional("endpoint", |cursor| cursor.parse_secret(forms::host_and_port));
    let tls = match fields.optional("tls", |cursor| Some(cursor.flag())) {
        None | Some(Some(false)) => {
            fields.misplaced(OF_TLS, "without `tls: true` nothing is encrypted");
            fields.optional("tlsInsecureSkipVerify", Cursor::flag);
            None
        }
        Some(_) => Some(tls(&mut fields, &cursor)),
    };
    let retry = fields.optional("retryPolicy", retry::Policy::read);
    fields.finish();
    Some(Config { endpoint, tls, retry })
}

fn tls(fields: &mut Fields<'_>, config: &Cursor<'_>) -> Tls {
    let path = |cursor: Cursor<'_>| Some(cursor.path_from_here(&cursor.clone().parse(forms::file)?));
    let certificate = fields.optional("tlsCertPath", |cursor| Some(path(cursor)));
    let key = fields.optional("tlsKeyPath", |cursor| Some(path(cursor)));
    let authority = fields.optional("tlsCAPath", path);
    let skips_verification = fields.with_default("tlsInsecureSkipVerify", Cursor::flag, false);
    if certificate.is_some() != key.is_some() {
        let problem = config.problem("a certificate and its key go together");
        config.report(problem.expected("both `tlsCertPath` and `tlsKeyPath`, or neither"));
    }
    Tls { identity: certificate.flatten().zip(key.flatten()), authority, skips_verification }
}
