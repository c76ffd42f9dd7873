//! Builds handlers of the type `openapi`.

use std::collections::HashMap;
use std::sync::Arc;

use toolyard_backends::openapi::credentials::{self, ServiceCredentials};
use toolyard_backends::openapi::source::DescriptionLocation;
use toolyard_backends::openapi::{OpenApiBackend, OpenApiOptions};
use toolyard_core::text::TextBounds;
use toolyard_core::{Backend, SecretRedactor};
use toolyard_manifest::{CredentialSource, HandlerConfig, OpenApiHandler, OpenApiSpec, SchemeCredential};
use toolyard_openapi::OperationSelector;

use super::http::service_probe;
use super::{HandlerBuilder, UnsupportedBackend, auth, headers};

impl HandlerBuilder {
    pub(super) fn openapi(
        &self,
        handler: &HandlerConfig,
        openapi: &OpenApiHandler,
        secrets: &SecretRedactor,
    ) -> Arc<dyn Backend> {
        let process = &self.process;
        let client = match self.outbound_client(&openapi.outbound) {
            Ok(client) => client,
            Err(reason) => return Arc::new(UnsupportedBackend::because(reason, None)),
        };
        let filter = openapi.filter.clone();
        let variables = openapi.server_variables.iter();
        let options = OpenApiOptions {
            probe: openapi.probe.as_ref().map(service_probe),
            name: handler.name.as_str().into(),
            source: source(&openapi.spec),
            base_url: openapi.base_url.as_ref().map(|url| url.uri().to_string()),
            read_options: toolyard_openapi::ReadOptions {
                filter: OperationSelector {
                    operations: filter.operations,
                    tags: filter.tags,
                    methods: filter.methods,
                    paths: filter.paths,
                },
                server_variables: variables
                    .map(|(name, value)| (name.clone(), value.expose().to_owned()))
                    .collect(),
                texts: TextBounds {
                    tool_chars: process.limits.tool_description,
                    argument_chars: process.limits.argument_description,
                    example_bytes: process.limits.example_bytes,
                },
                credentials: openapi.credentials.iter().map(|(scheme, _)| scheme.clone()).collect(),
            },
            max_tools: process.limits.tools_per_handler,
            headers: headers(&openapi.headers),
            auth: openapi.auth.as_ref().map(|auth| auth::auth(auth, process, secrets)),
            credentials: self.credentials(&openapi.credentials, secrets),
            delivery: self.http_delivery(handler, &openapi.retry),
            refresh: openapi.refresh,
            read_time: process.timeouts.connect,
            document_bytes: process.limits.response_bytes,
        };
        Arc::new(OpenApiBackend::start(options, &client))
    }

    fn credentials(
        &self,
        all: &[(String, SchemeCredential)],
        secrets: &SecretRedactor,
    ) -> ServiceCredentials {
        let source = |credential: &CredentialSource| auth::source(credential, &self.process);
        let credential = |(scheme, credential): &(String, SchemeCredential)| {
            let credential = match credential {
                SchemeCredential::Secret(secret) => credentials::OpenApiCredential::Secret(source(secret)),
                SchemeCredential::OAuth(client) => credentials::OpenApiCredential::OAuthClient {
                    id: client.id.clone(),
                    secret: source(&client.secret),
                    token_url: client.token_url.as_ref().map(|url| url.uri().to_string()),
                    scopes: (!client.scopes.is_empty()).then(|| client.scopes.clone()),
                },
            };
            (scheme.clone(), credential)
        };
        ServiceCredentials::new(all.iter().map(credential).collect::<HashMap<_, _>>(), secrets.clone())
    }
}

fn source(spec: &OpenApiSpec) -> DescriptionLocation {
    match spec {
        OpenApiSpec::Url(url) => DescriptionLocation::Url(url.uri().clone()),
        OpenApiSpec::File(path) => DescriptionLocation::File(path.clone()),
        OpenApiSpec::Inline(serde_json::Value::String(text)) => DescriptionLocation::Inline(text.clone()),
        OpenApiSpec::Inline(value) => DescriptionLocation::Inline(value.to_string()),
    }
}
