//! Tools that are discovered.

use std::fs;
use std::path::Path;
use std::process::Command;

use prost::Message;
use prost_types::FileDescriptorSet;
use tempfile::TempDir;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use toolyard_grpc::client::{DiscoveryOptions, GrpcBackend, GrpcTools, ToolSource};
use toolyard_grpc::descriptor::MethodFilter;
use toolyard_testing::corpora::corpus;
use toolyard_testing::peers::{command, peer};
use toolyard_testing::process::RunningProgram;

use crate::support::{ShopServer, call, discovery, names, omnia_option, options, ready, unavailable};

#[tokio::test]
async fn methods_are_tools_by_reflection() {
    let server = ShopServer::start(&[]);
    let backend = GrpcBackend::start(options(&server.address, None));
    let catalog = ready(&backend).await;
    assert_eq!(names(&catalog).len(), 4, "{:?}", names(&catalog));
    assert_eq!(catalog.protocol.as_deref(), Some("gRPC reflection v1alpha"));
    let left_out: Vec<_> = catalog.left_out[0].iter().map(|item| &*item.name).collect();
    assert_eq!(left_out, ["shop.v1.Orders/AddOrders"]);
}

#[tokio::test]
async fn infrastructure_is_selected_by_name() {
    let server = ShopServer::start(&[]);
    let mut options = options(&server.address, None);
    let mut selected = discovery(ToolSource::Server);
    selected.filter.services = vec!["grpc.**".to_owned()];
    selected.selects_services = true;
    options.tools = GrpcTools::Discovered(selected);
    let backend = GrpcBackend::start(options);
    let catalog = ready(&backend).await;
    let tools = names(&catalog);
    assert!(tools.iter().any(|name| name.contains("Check")), "{tools:?}");
    assert!(!tools.iter().any(|name| name.contains("ServerReflectionInfo")), "{tools:?}");
}

/// Returns the reasons why a handler has no tools.
async fn no_tools(address: &str, discovery: DiscoveryOptions) -> Vec<String> {
    let mut options = options(address, None);
    options.tools = GrpcTools::Discovered(discovery);
    let backend = GrpcBackend::start(options);
    let catalog = ready(&backend).await;
    assert_eq!(names(&catalog), [""; 0]);
    catalog.left_out[0].iter().map(|item| format!("{}: {}", item.name, item.reason)).collect()
}

#[tokio::test]
async fn handler_without_tools_names_the_reason() {
    let server = ShopServer::start(&[&omnia_option()]);
    let selected = |services: &[&str], methods: &[&str]| {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let filter = MethodFilter { services: all(services), methods: all(methods) };
        DiscoveryOptions { selects_services: !services.is_empty(), filter, ..discovery(ToolSource::Server) }
    };
    let none = "*: no method matches `grpcConfig.filter`";
    assert_eq!(no_tools(&server.address, selected(&["shop.v2.*"], &[])).await, [none]);
    assert_eq!(no_tools(&server.address, selected(&[], &["Get_Order", "add"])).await, [none]);
    let server = ShopServer::start(&["without=orders"]);
    let infrastructure = "*: the server has no services but those of the infrastructure";
    assert_eq!(no_tools(&server.address, selected(&[], &[])).await, [infrastructure]);
    let folder = TempDir::new().unwrap();
    let empty = folder.path().join("empty.binpb");
    fs::write(&empty, []).unwrap();
    let set = discovery(ToolSource::DescriptorSet(empty));
    assert_eq!(no_tools(&server.address, set).await, ["*: `grpcConfig.descriptorSet` has no methods"]);
}

/// Returns a `FileDescriptorSet` of `shop.proto`.
fn shop_descriptors() -> Vec<u8> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../toolyard-testing/scripts");
    let compiled = protox::compile(["shop.proto"], [scripts]).unwrap();
    FileDescriptorSet { file: compiled.file }.encode_to_vec()
}

/// `tonic-reflection` has both versions.
#[tokio::test]
async fn newer_version_of_reflection_is_preferred() {
    let set = shop_descriptors();
    let reflection =
        || tonic_reflection::server::Builder::configure().register_encoded_file_descriptor_set(&set);
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap().to_string();
    let server = Server::builder()
        .add_service(reflection().build_v1().unwrap())
        .add_service(reflection().build_v1alpha().unwrap());
    let server = tokio::spawn(server.serve_with_incoming(incoming));
    let backend = GrpcBackend::start(options(&address, None));
    let catalog = ready(&backend).await;
    assert_eq!(catalog.protocol.as_deref(), Some("gRPC reflection v1"));
    assert_eq!(names(&catalog).len(), 4, "{:?}", names(&catalog));
    let tool = names(&catalog).into_iter().find(|name| name.contains("GetOrder")).unwrap().to_owned();
    let refused = call(&backend, &tool, "{}").await.unwrap_err();
    assert!(refused.starts_with("execution_failed: gRPC status UNIMPLEMENTED"), "{refused}");
    server.abort();
}

#[tokio::test]
async fn descriptor_set_replaces_reflection() {
    let folder = TempDir::new().unwrap();
    let set = folder.path().join("shop.binpb");
    fs::write(&set, shop_descriptors()).unwrap();
    let server = ShopServer::start(&["without=reflection"]);
    let mut options = options(&server.address, None);
    options.tools = GrpcTools::Discovered(discovery(ToolSource::DescriptorSet(set)));
    let backend = GrpcBackend::start(options);
    let catalog = ready(&backend).await;
    let tool = names(&catalog).into_iter().find(|name| name.contains("GetOrder")).unwrap().to_owned();
    let order = call(&backend, &tool, r#"{"id":"7"}"#).await.unwrap();
    assert!(order.contains(r#""structuredContent":{"id":"7""#), "{order}");
}

#[tokio::test]
async fn missing_and_malformed_descriptor_sets_are_reported() {
    let folder = TempDir::new().unwrap();
    let malformed = folder.path().join("malformed");
    fs::write(&malformed, [0xff; 9]).unwrap();
    for (file, expected) in [
        (malformed, "description: the descriptors cannot be used: "),
        (folder.path().join("missing"), "description: grpcConfig.descriptorSet: cannot read "),
    ] {
        let mut options = options("127.0.0.1:1", None);
        options.tools = GrpcTools::Discovered(discovery(ToolSource::DescriptorSet(file)));
        let reason = unavailable(&GrpcBackend::start(options)).await;
        assert!(reason.starts_with(expected), "{reason}");
    }
}

/// The services of `googleapis-sample.fds`, health checks and channelz, served by `grpcio`.
#[tokio::test]
async fn services_of_a_large_server_are_read() {
    let Some(folder) = corpus("grpc", "the services of a large server") else { return };
    let home = TempDir::new().unwrap();
    let port = toolyard_testing::peers::free_port().to_string();
    let mut program: Command = command(peer("grpc/bin/python"), home.path());
    program
        .arg(folder.join("serve_real.py"))
        .args([&port, "--fds"])
        .arg(folder.join("googleapis-sample.fds"));
    let server = RunningProgram::start(&mut program);
    server.stdout.wait_for("the start", |text| text.contains("serving").then_some(()));
    let backend = GrpcBackend::start(options(&format!("127.0.0.1:{port}"), None));
    let catalog = ready(&backend).await;
    let methods = catalog.tools.len() + catalog.left_out[0].len();
    assert_eq!(methods, 1277, "{} tools, left out: {:?}", catalog.tools.len(), catalog.left_out[0]);
}
