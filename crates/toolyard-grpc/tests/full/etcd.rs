//! Debian's etcd, which has no reflection, with the descriptors of its sources.

use std::fs;
use std::process::Command;

use prost::Message;
use prost_types::FileDescriptorSet;
use tempfile::TempDir;
use toolyard_core::Backend;
use toolyard_grpc::client::{GrpcBackend, GrpcTools, ToolSource};
use toolyard_testing::peers::{command, free_port, peer};
use toolyard_testing::process::RunningProgram;

use crate::support::{call, discovery, names, options, ready};

/// Starts etcd and returns its address.
fn etcd(home: &TempDir) -> (RunningProgram, String) {
    let [client, server] = [(); 2].map(|()| format!("http://127.0.0.1:{}", free_port()));
    let mut etcd: Command = command(peer("debian/usr/bin/etcd"), home.path());
    etcd.current_dir(home.path()).args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    etcd.args(["--listen-peer-urls", &server, "--initial-advertise-peer-urls", &server]);
    etcd.args(["--initial-cluster", &format!("default={server}")]);
    let process = RunningProgram::start(&mut etcd);
    process
        .stderr
        .wait_for("the start", |text| text.contains("ready to serve client requests").then_some(()));
    (process, client.replace("http://", ""))
}

/// Returns a file with the descriptors of etcd.
fn descriptors(home: &TempDir) -> std::path::PathBuf {
    let sources = peer("debian/usr/share/gocode/src");
    let folders = [
        "go.etcd.io",
        "github.com/gogo/protobuf",
        "github.com/grpc-ecosystem/grpc-gateway/third_party/googleapis",
    ];
    let compiled =
        protox::compile(["etcd/etcdserver/etcdserverpb/rpc.proto"], folders.map(|it| sources.join(it)));
    let file = home.path().join("etcd.binpb");
    fs::write(&file, FileDescriptorSet { file: compiled.unwrap().file }.encode_to_vec()).unwrap();
    file
}

#[tokio::test]
async fn methods_of_etcd_are_called_by_a_descriptor_set() {
    let home = TempDir::new().unwrap();
    let (_etcd, address) = etcd(&home);
    let mut options = options(&address, None);
    options.delivery.auth = None;
    options.tools = GrpcTools::Discovered(discovery(ToolSource::DescriptorSet(descriptors(&home))));
    let backend = GrpcBackend::start(options);
    let catalog = ready(&backend).await;
    let tool = |method: &str| {
        let found = names(&catalog).into_iter().find(|name| name.ends_with(method));
        found.unwrap_or_else(|| panic!("{method}: {:?}", names(&catalog))).to_owned()
    };
    // `key` and `value` are bytes: base64 of `a` and `hello`.
    let put = call(&backend, &tool("Put"), r#"{"key":"YQ==","value":"aGVsbG8="}"#).await.unwrap();
    assert!(put.contains(r#""revision":"2""#), "{put}");
    let range = call(&backend, &tool("KV_Range"), r#"{"key":"YQ==","limit":7}"#).await.unwrap();
    assert!(range.contains(r#""value":"aGVsbG8=""#) && range.contains(r#""count":"1""#), "{range}");
    let snapshot = call(&backend, &tool("Snapshot"), "{}").await.unwrap();
    assert!(snapshot.contains(r#""structuredContent":{"messages":["#), "{snapshot}");
    let refused = call(&backend, &tool("LeaseRevoke"), r#"{"ID":"77"}"#).await.unwrap_err();
    assert_eq!(
        refused,
        "execution_failed: gRPC status NOT_FOUND: etcdserver: requested lease not found [gRPC status NOT_FOUND]"
    );
    let left_out: Vec<_> = catalog.left_out[0].iter().map(|item| item.name.to_string()).collect();
    assert_eq!(left_out, ["etcdserverpb.Watch/Watch", "etcdserverpb.Lease/LeaseKeepAlive"]);
    assert!(backend.last_failure().is_none());
}
