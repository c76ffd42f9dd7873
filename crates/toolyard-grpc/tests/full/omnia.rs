//! The Omnia tool protocol.

use std::time::Duration;

use toolyard_backends::health::CheckTimes;
use toolyard_core::{BackendPhase, Call, Json};
use toolyard_grpc::client::{DiscoveryOptions, GrpcBackend, GrpcProbe, GrpcTools, ToolSource};
use toolyard_grpc::descriptor::MethodFilter;
use toolyard_testing::wait::until_async;

use crate::support::{
    ShopServer, call, catalog, defined_tool, described, discovery, names, omnia_option, options, ready, run,
    unavailable,
};

const GET_USER: &str = r#"{"name":"get_user","description":"Gets","inputSchema":{"type":"object"}}"#;

#[tokio::test]
async fn tools_are_listed_with_and_without_reflection() {
    for option in ["without=none", "without=reflection"] {
        let server = ShopServer::start(&[&omnia_option(), "without=orders", option]);
        let backend = GrpcBackend::start(options(&server.address, None));
        let catalog = ready(&backend).await;
        assert_eq!(names(&catalog), ["get_user", "nothing"], "{option}");
        let schema = catalog.tools[0].input_schema().unwrap().to_value();
        assert_eq!(schema["required"][0], "user_id", "{option}");
        let protocol = catalog.protocol.as_deref();
        let expected = if option.ends_with("none") { "gRPC reflection v1alpha" } else { "Omnia tools v1" };
        assert_eq!(protocol, Some(expected));
        let user = call(&backend, "get_user", r#"{"user_id":"7"}"#).await.unwrap();
        assert!(
            user.contains(r#""structuredContent":{"id": "7", "tool": "get_user", "auth": "Bearer sesame"}"#),
            "{user}"
        );
    }
}

#[tokio::test]
async fn filter_applies_to_listed_tools() {
    let server = ShopServer::start(&[&omnia_option()]);
    let check = async |services: &[&str], methods: &[&str], expected: &[&str]| {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let filter = MethodFilter { services: all(services), methods: all(methods) };
        let mut options = options(&server.address, None);
        options.tools = GrpcTools::Discovered(DiscoveryOptions {
            selects_services: !services.is_empty(),
            filter,
            ..discovery(ToolSource::Server)
        });
        let catalog = ready(&GrpcBackend::start(options)).await;
        assert_eq!(names(&catalog), expected, "{services:?} {methods:?}");
    };
    check(&["ToolService"], &[], &["get_user", "nothing"]).await;
    check(&["omnia.tools.v1.ToolService"], &["get_*"], &["get_user"]).await;
    check(&[], &["omnia.tools.v1.ToolService/nothing"], &["nothing"]).await;
    check(&["shop.**"], &["GetOrder"], &["shop_v1_Orders_GetOrder"]).await;
}

#[tokio::test]
async fn defined_tool_is_executed() {
    let server = ShopServer::start(&[&omnia_option()]);
    let mut options = options(&server.address, None);
    options.tools = defined_tool(GET_USER);
    let backend = GrpcBackend::start(options);
    let catalog = ready(&backend).await;
    assert_eq!(names(&catalog), ["get_user"]);
    let user = call(&backend, "get_user", r#"{"user_id":"7"}"#).await.unwrap();
    assert!(user.contains(r#""id": "7""#), "{user}");
    assert_eq!(
        call(&backend, "get_user", r#"{"user_id":"0"}"#).await.unwrap(),
        r#"{"content":[{"type":"text","text":"tool error: no such user"}],"isError":true}"#
    );
}

#[tokio::test]
async fn empty_result_is_null() {
    let server = ShopServer::start(&[&omnia_option()]);
    let mut options = options(&server.address, None);
    options.tools = defined_tool(r#"{"name":"nothing","inputSchema":{"type":"object"}}"#);
    let backend = GrpcBackend::start(options);
    let nothing = call(&backend, "nothing", "{}").await.unwrap();
    assert_eq!(nothing, r#"{"content":[{"type":"text","text":"null"}]}"#);
}

#[tokio::test]
async fn server_without_the_protocol_and_reflection_is_reported() {
    let server = ShopServer::start(&["without=reflection"]);
    let backend = GrpcBackend::start(options(&server.address, None));
    insta::assert_snapshot!(
        unavailable(&backend).await,
        @"description: the server has neither reflection nor the Omnia tool protocol: name its methods in a file, `grpcConfig.descriptorSet`"
    );
}

#[tokio::test]
async fn killed_server_is_unavailable_until_it_is_back() {
    let server = ShopServer::start(&[&omnia_option(), "without=orders"]);
    let backend = GrpcBackend::start(options(&server.address, None));
    ready(&backend).await;
    let port = format!("port={}", server.port());
    drop(server);
    let reason = unavailable(&backend).await;
    assert!(reason.starts_with("connection_refused: "), "{reason}");
    let tools = catalog(&backend, |_| true).await;
    assert_eq!(names(&tools), ["get_user", "nothing"], "the tools stay known");
    let refused = call(&backend, "nothing", "{}").await.unwrap_err();
    assert_eq!(refused, "unavailable: The tool's server cannot be reached [connection refused]");
    let _server = ShopServer::start(&[&omnia_option(), "without=orders", &port]);
    ready(&backend).await;
    call(&backend, "nothing", "{}").await.unwrap();
}

#[tokio::test]
async fn restarted_server_with_other_tools_is_noticed_without_a_call() {
    let server = ShopServer::start(&["without=orders"]);
    let backend = GrpcBackend::start(options(&server.address, None));
    assert!(ready(&backend).await.tools.is_empty());
    let port = format!("port={}", server.port());
    drop(server);
    let _server = ShopServer::start(&[&omnia_option(), "without=orders", &port]);
    catalog(&backend, |catalog| !catalog.tools.is_empty() && catalog.phase == BackendPhase::Ready).await;
}

#[tokio::test]
async fn unreachable_server_is_reported_and_nothing_was_sent() {
    let port = toolyard_testing::peers::free_port();
    let mut options = options(&format!("127.0.0.1:{port}"), None);
    options.tools = defined_tool(GET_USER);
    options.delivery.retry.attempts = 2;
    let backend = GrpcBackend::start(options);
    let error = run(&backend, Call::tool("get_user", Json::parse("{}").unwrap())).await.unwrap_err();
    assert_eq!(
        described(error),
        "unavailable: 2 attempts exhausted: The tool's server cannot be reached [connection refused]"
    );
    let reason = unavailable(&backend).await;
    assert_eq!(reason, "connection_refused: the server cannot be reached: connection refused");
    until_async("the failure is known", || toolyard_core::Backend::last_failure(&backend).is_some()).await;
}

#[tokio::test]
async fn unknown_host_is_reported() {
    let mut options = options("nowhere.invalid:50051", None);
    options.tools = defined_tool(GET_USER);
    options.delivery.attempt_time = Duration::from_secs(60);
    let backend = GrpcBackend::start(options);
    let error = call(&backend, "get_user", "{}").await.unwrap_err();
    assert!(error.starts_with("unavailable: The tool's server cannot be reached [DNS: "), "{error}");
}

#[tokio::test]
async fn probe_asks_the_health_service() {
    let server = ShopServer::start(&[&omnia_option()]);
    let probed = |address: &str, service: &str| {
        let mut options = options(address, None);
        options.tools = defined_tool(GET_USER);
        let times = CheckTimes { interval: Duration::from_millis(1), timeout: Duration::from_secs(30) };
        options.probe = Some(GrpcProbe { times, service: service.to_owned() });
        GrpcBackend::start(options)
    };
    let not_serving = unavailable(&probed(&server.address, "shop.v1.Orders")).await;
    assert_eq!(not_serving, "grpc_status: the health service reports NOT_SERVING");
    let unknown = unavailable(&probed(&server.address, "shop.v1.Nothing")).await;
    assert_eq!(unknown, "grpc_status: gRPC status NOT_FOUND");
    let stopped = probed(&server.address, "");
    ready(&stopped).await;
    drop(server);
    let reason = unavailable(&stopped).await;
    assert!(reason.starts_with("connection_"), "{reason}");
    // A server without the health service is available if it answers.
    let server = ShopServer::start(&[&omnia_option(), "without=health"]);
    let backend = probed(&server.address, "");
    call(&backend, "get_user", r#"{"user_id":"7"}"#).await.unwrap();
    ready(&backend).await;
}
