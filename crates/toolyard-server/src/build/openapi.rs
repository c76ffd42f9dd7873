//! A handler of the type `openapi`, in the words of its backend.

use std::collections::HashMap;

use toolyard_backends::openapi::credentials::{self, Credentials};
use toolyard_backends::openapi::source::Source;
use toolyard_backends::openapi::{OpenApiBackend, Options};
use toolyard_core::Secrets;
use toolyard_manifest::{Credential, Handler, OpenApiHandler, OpenApiSpec, SchemeCredential};
use toolyard_openapi::Filter;

use super::{Builder, auth, headers, http};

impl Builder {
    pub(super) fn openapi(
        &self,
        handler: &Handler,
        openapi: &OpenApiHandler,
        secrets: &Secrets,
    ) -> OpenApiBackend {
        let process = &self.process;
        let filter = openapi.filter.clone();
        let variables = openapi.server_variables.iter();
        let options = Options {
            name: handler.name.as_str().into(),
            source: source(&openapi.spec),
            base_url: openapi.base_url.as_ref().map(|url| url.uri().to_string()),
            reading: toolyard_openapi::Options {
                filter: Filter {
                    operations: filter.operations,
                    tags: filter.tags,
                    methods: filter.methods,
                    paths: filter.paths,
                },
                server_variables: variables
                    .map(|(name, value)| (name.clone(), value.expose().to_owned()))
                    .collect(),
            },
            tools: process.limits.tools_per_handler,
            headers: headers(&openapi.headers),
            auth: openapi.auth.as_ref().map(|auth| auth::auth(auth, process, secrets)),
            credentials: self.credentials(&openapi.credentials, secrets),
            delivery: http::delivery(&openapi.retry, handler.timeout, process),
            refresh: openapi.refresh,
            read_time: process.timeouts.connect,
            document_bytes: process.limits.response_bytes,
        };
        OpenApiBackend::start(options, &self.client)
    }

    fn credentials(&self, all: &[(String, SchemeCredential)], secrets: &Secrets) -> Credentials {
        let source = |credential: &Credential| auth::source(credential, &self.process);
        let credential = |(scheme, credential): &(String, SchemeCredential)| {
            let credential = match credential {
                SchemeCredential::Secret(secret) => credentials::Credential::Secret(source(secret)),
                SchemeCredential::OAuth(client) => credentials::Credential::Client {
                    id: client.id.clone(),
                    secret: source(&client.secret),
                    token_url: client.token_url.as_ref().map(|url| url.uri().to_string()),
                    scopes: (!client.scopes.is_empty()).then(|| client.scopes.clone()),
                },
            };
            (scheme.clone(), credential)
        };
        Credentials::new(all.iter().map(credential).collect::<HashMap<_, _>>(), secrets.clone())
    }
}

/// Whether any of its requests may need the system's root certificates.
pub(super) fn uses_tls(handler: &OpenApiHandler) -> bool {
    let spec = matches!(&handler.spec, OpenApiSpec::Url(url) if url.is_tls());
    let token = |(_, credential): &(String, SchemeCredential)| match credential {
        SchemeCredential::OAuth(client) => client.token_url.as_ref().is_none_or(|url| url.is_tls()),
        SchemeCredential::Secret(_) => false,
    };
    // Where the description says it, the server may be anywhere.
    spec || handler.base_url.as_ref().is_none_or(|url| url.is_tls()) || handler.credentials.iter().any(token)
}

fn source(spec: &OpenApiSpec) -> Source {
    match spec {
        OpenApiSpec::Url(url) => Source::Url(url.uri().clone()),
        OpenApiSpec::File(path) => Source::File(path.clone()),
        OpenApiSpec::Inline(serde_json::Value::String(text)) => Source::Inline(text.clone()),
        OpenApiSpec::Inline(value) => Source::Inline(value.to_string()),
    }
}
