//! Servers and backends for the tests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tempfile::TempDir;
use toolyard_core::{
    Backend, BackendPhase, Call, Catalog, FailureCause, Json, Outcome, RetrySchedule, SecretRedactor, Tool,
    ToolError,
};
use toolyard_grpc::client::{
    DiscoveryOptions, GrpcBackend, GrpcChannel, GrpcDelivery, GrpcHttpClient, GrpcOptions, GrpcTools,
    StreamBounds, ToolSource, parse_code,
};
use toolyard_grpc::descriptor::MethodFilter;
use toolyard_net::auth::{HttpAuthScheme, SecretSource, UpstreamCredentials};
use toolyard_net::budget::ByteBudget;
use toolyard_net::http2::ClientTls;
use toolyard_testing::peers::{command, peer};
use toolyard_testing::process::RunningProgram;
use toolyard_testing::scripted_server::script;

/// A server on `grpcio`.
pub(crate) struct ShopServer {
    pub(crate) process: RunningProgram,
    /// Its host and port.
    pub(crate) address: String,
    _home: TempDir,
}

impl ShopServer {
    /// Starts `grpc_shop.py` with these options.
    #[track_caller]
    pub(crate) fn start(options: &[&str]) -> Self {
        let home = TempDir::new().unwrap();
        let mut server = command(peer("grpc/bin/python"), home.path());
        server.env("PYTHONDONTWRITEBYTECODE", "1").arg(script("grpc_shop.py")).args(options);
        let process = RunningProgram::start(&mut server);
        let address =
            process.stdout.wait_for("the address", |text| text.strip_suffix('\n').map(str::to_owned));
        Self { process, address, _home: home }
    }

    pub(crate) fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap()
    }
}

/// Returns the file of the Omnia tool protocol, as an option of the server.
pub(crate) fn omnia_option() -> String {
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto/omnia/tools/v1/tools.proto");
    format!("omnia={}", proto.display())
}

/// Returns the options of a handler whose tools are discovered.
pub(crate) fn options(address: &str, tls: Option<ClientTls<'_>>) -> GrpcOptions {
    let client = GrpcHttpClient::new(tls, None).unwrap();
    let budget = ByteBudget::default();
    GrpcOptions {
        name: "shop".into(),
        tools: GrpcTools::Discovered(discovery(ToolSource::Server)),
        delivery: GrpcDelivery {
            channel: GrpcChannel::new(client, &address.parse().unwrap(), tls.is_some(), budget.clone()),
            metadata: HeaderMap::from_iter([("x-tenant".parse().unwrap(), HeaderValue::from_static("acme"))]),
            auth: Some(UpstreamCredentials {
                scheme: HttpAuthScheme::Bearer,
                source: SecretSource::Value("sesame".to_owned()),
                secrets: SecretRedactor::default(),
            }),
            attempt_time: Duration::from_secs(30),
            retry: RetrySchedule {
                initial_backoff: Duration::from_millis(1),
                max_backoff: Duration::from_millis(20),
                ..RetrySchedule::never()
            },
            retryable: vec![parse_code("UNAVAILABLE").unwrap()],
            response_bytes: 1 << 20,
        },
        bounds: StreamBounds { messages: 10, bytes: 64 << 10 },
        budget,
        probe: None,
        long_work: None,
    }
}

pub(crate) fn discovery(source: ToolSource) -> DiscoveryOptions {
    DiscoveryOptions {
        source,
        filter: MethodFilter::default(),
        selects_services: false,
        max_tools: 2000,
        refresh: None,
        read_time: Duration::from_secs(30),
        description_bytes: 16 << 20,
    }
}

/// Returns the tool that a manifest defines.
pub(crate) fn defined_tool(definition: &str) -> GrpcTools {
    GrpcTools::Defined(Tool::from_definition(&Json::parse(definition.to_owned()).unwrap()).unwrap())
}

/// Waits for a catalog.
pub(crate) async fn catalog(backend: &GrpcBackend, holds: impl FnMut(&Arc<Catalog>) -> bool) -> Arc<Catalog> {
    let mut catalog = backend.catalog();
    let found = tokio::time::timeout(toolyard_testing::wait::LIMIT, catalog.wait_for(holds)).await;
    found.expect("the catalog changes").unwrap().clone()
}

pub(crate) fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.tools.iter().map(|tool| &*tool.name).collect()
}

/// Waits until the handler is available.
pub(crate) async fn ready(backend: &GrpcBackend) -> Arc<Catalog> {
    catalog(backend, |catalog| catalog.phase == BackendPhase::Ready).await
}

/// Waits until the handler is not available, and returns the code and the message of the cause.
pub(crate) async fn unavailable(backend: &GrpcBackend) -> String {
    let is_unavailable = |catalog: &Arc<Catalog>| matches!(catalog.phase, BackendPhase::Unavailable { .. });
    let found = catalog(backend, is_unavailable).await;
    let BackendPhase::Unavailable { reason } = &found.phase else { unreachable!() };
    cause(reason)
}

pub(crate) fn cause(cause: &FailureCause) -> String {
    format!("{}: {cause}", cause.code.row().wire)
}

/// Calls a tool, and returns its result, or the code and the message of the error.
pub(crate) async fn call(backend: &GrpcBackend, tool: &str, arguments: &str) -> Result<String, String> {
    run(backend, Call::tool(tool, Json::parse(arguments.to_owned()).unwrap())).await.map_err(described)
}

pub(crate) async fn run(backend: &GrpcBackend, call: Call) -> Result<String, ToolError> {
    match backend.call(call).await? {
        Outcome::Done(output) => Ok(output.body.to_json().as_text().to_owned()),
        other => panic!("{other:?}"),
    }
}

/// Returns the code, the message and the reason of an error.
pub(crate) fn described(error: ToolError) -> String {
    let code = error.code().row().wire;
    format!("{code}: {} [{}]", error.message(), error.reason())
}
