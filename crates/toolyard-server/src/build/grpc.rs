//! Builds handlers of the type `grpc`.

use std::sync::Arc;

use toolyard_backends::health::CheckTimes;
use toolyard_core::{Backend, SecretRedactor};
use toolyard_grpc::client::{
    DiscoveryOptions, GrpcBackend, GrpcChannel, GrpcDelivery, GrpcHttpClient, GrpcOptions, GrpcProbe,
    GrpcTools, StreamBounds, ToolSource, parse_code,
};
use toolyard_grpc::descriptor::MethodFilter;
use toolyard_manifest::{
    GrpcDiscovery, GrpcHandler, GrpcProbeSettings, GrpcStreamBounds, GrpcTls, GrpcToolSettings,
    HandlerConfig, KeepAliveSettings,
};
use toolyard_net::http2::{ClientTls, KeepAlivePings, ServerTrust};

use super::{HandlerBuilder, UnsupportedBackend, auth, explicit_tool, headers, retry};

impl HandlerBuilder {
    pub(super) fn grpc(
        &self,
        handler: &HandlerConfig,
        grpc: &GrpcHandler,
        secrets: &SecretRedactor,
    ) -> Arc<dyn Backend> {
        let limits = &self.process.limits;
        let client = match client(grpc) {
            Ok(client) => client,
            Err(reason) => {
                let tool = match &grpc.tools {
                    GrpcToolSettings::Defined(tool) => Some(explicit_tool(tool)),
                    GrpcToolSettings::Discovered(_) => None,
                };
                return Arc::new(UnsupportedBackend::because(reason, tool));
            }
        };
        let budget = self.budget_of(handler);
        let channel = GrpcChannel::new(client, &grpc.endpoint, grpc.tls.is_some(), budget.clone());
        let delivery = GrpcDelivery {
            channel,
            metadata: headers(&grpc.metadata),
            auth: grpc.auth.as_ref().map(|auth| auth::auth(auth, &self.process, secrets)),
            attempt_time: handler.timeout,
            retry: retry(&grpc.retry.policy),
            retryable: grpc.retry.retryable_status_codes.iter().filter_map(|name| parse_code(name)).collect(),
            response_bytes: limits.response_bytes,
        };
        let (tools, bounds) = match &grpc.tools {
            GrpcToolSettings::Defined(tool) => {
                (GrpcTools::Defined(explicit_tool(tool)), GrpcStreamBounds::default())
            }
            GrpcToolSettings::Discovered(discovery) => (self.discovered(discovery), discovery.stream),
        };
        Arc::new(GrpcBackend::start(GrpcOptions {
            name: handler.name.as_str().into(),
            tools,
            delivery,
            bounds: StreamBounds { messages: bounds.messages, bytes: bounds.bytes },
            budget,
            probe: grpc.probe.as_ref().map(probe),
            long_work: self.long_work.clone(),
        }))
    }

    fn discovered(&self, discovery: &GrpcDiscovery) -> GrpcTools {
        let filter = &discovery.filter;
        GrpcTools::Discovered(DiscoveryOptions {
            source: match &discovery.descriptor_set {
                Some(file) => ToolSource::DescriptorSet(file.clone()),
                None => ToolSource::Server,
            },
            filter: MethodFilter { services: filter.services.clone(), methods: filter.methods.clone() },
            selects_services: !filter.services.is_empty(),
            max_tools: self.process.limits.tools_per_handler,
            refresh: discovery.refresh,
            read_time: self.process.timeouts.connect,
            description_bytes: self.process.limits.response_bytes,
        })
    }
}

fn client(grpc: &GrpcHandler) -> Result<GrpcHttpClient, String> {
    let tls = grpc.tls.as_ref().map(|GrpcTls { identity, authority, skips_verification }| ClientTls {
        trust: match (authority, skips_verification) {
            (_, true) => ServerTrust::AnyCertificate,
            (Some(file), false) => ServerTrust::Authorities(file),
            (None, false) => ServerTrust::System,
        },
        identity: identity.as_ref().map(|(chain, key)| (&**chain, &**key)),
    });
    let pings = grpc
        .keep_alive
        .as_ref()
        .map(|&KeepAliveSettings { interval, timeout }| KeepAlivePings { interval, timeout });
    GrpcHttpClient::new(tls, pings).map_err(|error| error.to_string())
}

fn probe(probe: &GrpcProbeSettings) -> GrpcProbe {
    let times = CheckTimes { interval: probe.interval, timeout: probe.timeout };
    GrpcProbe { times, service: probe.service.clone() }
}
