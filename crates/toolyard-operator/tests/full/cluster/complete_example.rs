//! The complete example of the contract, applied to a real API server: a real gateway serves what the operator writes for
//! it, and the operator writes a status with the real tools.
//!
//! All of it runs in a network namespace, in which the names of Services resolve. The test is the kubelet and the proxy of
//! the cluster: it starts the gateway with the arguments of the Deployment and the files of the ConfigMap, and gives the
//! Service its address.

#![expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use insta::assert_snapshot;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::Api;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::json;
use tempfile::TempDir;
use toolyard_operator::controller::{ClusterFacts, Context, OperatorConfig, OperatorMetrics};
use toolyard_operator::tool_registry::{self, ToolRegistry};
use toolyard_testing::peers::{self, peer, root};
use toolyard_testing::process::{bound_to_thread, run};
use toolyard_testing::scripted_server::script;

use super::tool_registry::{NAMESPACE, NoTools, RegistryCluster};
use crate::tool_registry::COMPLETE_EXAMPLE;

/// Name of the objects of the gateway.
const GATEWAY: &str = "agent-tools-gateway";

#[test]
fn complete_example_is_served_by_a_real_gateway() {
    let folder = TempDir::new().unwrap();
    write_certificates(folder.path());
    let mut command = peers::command("unshare", folder.path());
    command.args(["--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "sh"]);
    command.arg(script("cluster_example.sh")).arg(std::env::current_exe().unwrap());
    command.arg("cluster::complete_example::example_in_a_namespace").arg(peer("")).arg(script(""));
    command.arg(root().join("crates/toolyard-grpc/proto/omnia/tools/v1/tools.proto"));
    // Without it, insta would ask cargo for the folder.
    command.env("TOOLYARD_PEERS", peer("")).env("INSTA_WORKSPACE_ROOT", root());
    let output = run(command.current_dir(folder.path()));
    assert!(output.stdout.contains("test result: ok. 1 passed"), "{output}");
}

fn write_certificates(folder: &Path) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority");
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["api.example.com".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    for (name, text) in
        [("ca.pem", issuer.pem()), ("api.pem", certificate), ("api-key.pem", key.serialize_pem())]
    {
        fs::write(folder.join(name), text).unwrap();
    }
}

#[tokio::test]
#[ignore = "complete_example_is_served_by_a_real_gateway starts it in a namespace"]
async fn example_in_a_namespace() {
    let cluster = RegistryCluster::new().await;
    let config = OperatorConfig { poll_interval: Duration::from_secs(1), ..OperatorConfig::default() };
    let metrics = Arc::new(OperatorMetrics::default());
    let context =
        Context::new(cluster.admin.clone(), config, ClusterFacts { minor: 20 }, Arc::new(NoTools), metrics);
    let operator = tokio::spawn(tool_registry::controller(Arc::new(context)));
    cluster.apply("agent-tools", COMPLETE_EXAMPLE).await.unwrap();
    cluster.wait_for_phase("agent-tools", "Pending").await;
    let node = Node::new(&cluster).await;
    let mut gateway = node.start_gateway(&cluster).await;
    cluster.start_pod(GATEWAY).await;

    let ready = cluster.wait_for_phase("agent-tools", "Ready").await;
    assert_snapshot!(tools(&ready), @"
    17 of 17 tools
    calculator calculate Available https://api.example.com/calculate
    user-service get_user Available user-grpc.internal.svc.cluster.local:50051
    code-tools echo Available http://mcp-code.tools.svc.cluster.local:8080/sse
    code-tools get-annotated-message Available http://mcp-code.tools.svc.cluster.local:8080/sse
    code-tools get-env Available http://mcp-code.tools.svc.cluster.local:8080/sse
    code-tools get-resource-links Available http://mcp-code.tools.svc.cluster.local:8080/sse
    code-tools get-resource-reference Available http://mcp-code.tools.svc.cluster.local:8080/sse
    code-tools get-structured-content Available http://mcp-code.tools.svc.cluster.local:8080/sse
    code-tools get-sum Available http://mcp-code.tools.svc.cluster.local:8080/sse
    code-tools get-tiny-image Available http://mcp-code.tools.svc.cluster.local:8080/sse
    code-tools gzip-file-as-resource Available http://mcp-code.tools.svc.cluster.local:8080/sse
    code-tools simulate-research-query Available http://mcp-code.tools.svc.cluster.local:8080/sse
    code-tools toggle-simulated-logging Available http://mcp-code.tools.svc.cluster.local:8080/sse
    code-tools toggle-subscriber-updates Available http://mcp-code.tools.svc.cluster.local:8080/sse
    code-tools trigger-long-running-operation Available http://mcp-code.tools.svc.cluster.local:8080/sse
    external-api getProductDetails Available https://api.example.com
    external-api searchProducts Available https://api.example.com
    ");
    let endpoint = ready.status.unwrap().endpoint.unwrap();
    assert_snapshot!(call(&endpoint, &["calculate", "expression=1+2"]), @r#"{"value": 3}"#);
    assert_snapshot!(call(&endpoint, &["get_user", "user_id=7"]), @r#"{"id": "7", "tool": "get_user", "auth": null}"#);

    // An edit reaches the running gateway with the ConfigMap.
    let mut handlers = json!(ready.spec.fields["handlers"]);
    handlers.as_array_mut().unwrap().truncate(2);
    cluster
        .apply("agent-tools", &super::tool_registry::http_registry("agent-tools", &handlers))
        .await
        .unwrap();
    // Until then the gateway serves what it served before.
    let pending = cluster.wait_for_phase("agent-tools", "Pending").await;
    assert!(lists(&endpoint, "searchProducts"));
    let condition = &pending.status.as_ref().unwrap().conditions[1];
    assert_eq!((&*condition.r#type, &*condition.reason), ("AllHandlersReady", "ManifestNotServed"));
    node.mount_manifests(&cluster).await;
    let edited = cluster.wait_for_phase("agent-tools", "Ready").await;
    assert_snapshot!(tools(&edited), @"
    2 of 2 tools
    calculator calculate Available https://api.example.com/calculate
    user-service get_user Available user-grpc.internal.svc.cluster.local:50051
    ");
    // The status is true at once.
    assert!(!lists(&endpoint, "searchProducts"));
    assert!(gateway.try_wait().unwrap().is_none(), "the gateway was not restarted");
    gateway.kill().unwrap();
    operator.abort();
}

/// The counts and the tools of a status.
fn tools(registry: &ToolRegistry) -> String {
    let status = registry.status.as_ref().unwrap();
    let counts = format!("{} of {} tools\n", status.available_tools_count, status.discovered_tools_count);
    let line = |tool: &tool_registry::RegistryTool| {
        format!("{} {} {} {}\n", tool.handler_name, tool.name, tool.status, tool.endpoint)
    };
    counts + &status.discovered_tools.iter().map(line).collect::<String>()
}

/// The program of this build.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join("toolyard");
    assert!(
        program.exists(),
        "{} is not there: run `cargo build --workspace --all-targets`",
        program.display()
    );
    program
}

fn command(endpoint: &str) -> Command {
    let mut command = Command::new(program());
    command.env("TOOLYARD_URL", endpoint);
    command
}

/// Calls a tool at the address of the status.
fn call(endpoint: &str, args: &[&str]) -> String {
    let output = command(endpoint).arg("call").args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns `true` if a gateway has a tool.
fn lists(endpoint: &str, tool: &str) -> bool {
    let listed = command(endpoint).args(["tools", "--output", "json"]).output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    String::from_utf8(listed.stdout).unwrap().contains(tool)
}

/// The node of the gateway's pod.
struct Node {
    folder: PathBuf,
    address: String,
}

impl Node {
    /// Gives the Service of the gateway its address and its name.
    async fn new(cluster: &RegistryCluster) -> Self {
        let services = Api::<Service>::namespaced(cluster.admin.clone(), NAMESPACE);
        let address = services.get(GATEWAY).await.unwrap().spec.unwrap().cluster_ip.unwrap();
        let device = std::env::var("EXAMPLE_DEVICE").unwrap();
        let added =
            Command::new("ip").args(["address", "add", &format!("{address}/32"), "dev", &device]).status();
        assert!(added.unwrap().success());
        let folder = PathBuf::from(std::env::var("EXAMPLE_FOLDER").unwrap());
        // The file is mounted over `/etc/hosts`.
        let mut hosts = fs::OpenOptions::new().append(true).open(folder.join("hosts")).unwrap();
        writeln!(hosts, "{address} {GATEWAY}.{NAMESPACE}.svc.cluster.local").unwrap();
        fs::create_dir(folder.join("manifests")).unwrap();
        Self { folder, address }
    }

    /// Writes the files of the ConfigMap.
    async fn mount_manifests(&self, cluster: &RegistryCluster) {
        let maps = Api::<ConfigMap>::namespaced(cluster.admin.clone(), NAMESPACE);
        for (name, text) in maps.get(GATEWAY).await.unwrap().data.unwrap() {
            fs::write(self.folder.join("manifests").join(name), text).unwrap();
        }
    }

    /// Starts the container of the Deployment, with its paths below the folder of the test.
    async fn start_gateway(&self, cluster: &RegistryCluster) -> std::process::Child {
        self.mount_manifests(cluster).await;
        let deployments = Api::<Deployment>::namespaced(cluster.admin.clone(), NAMESPACE);
        let pod = deployments.get(GATEWAY).await.unwrap().spec.template.spec.unwrap();
        let container = &pod.containers[0];
        let mounts = container.volume_mounts.as_ref().unwrap();
        let manifests = &mounts.iter().find(|mount| mount.name == "manifests").unwrap().mount_path;
        let here = self.folder.join("manifests");
        let args = container.args.as_ref().unwrap().iter();
        let mut gateway = bound_to_thread(program());
        gateway.args(args.map(|arg| arg.replace(manifests.as_str(), here.to_str().unwrap())));
        // Pods have an address of their own; here other servers have the port on other addresses.
        gateway.args(["--listen", &format!("{}:8080", self.address)]);
        gateway.env("TOOLYARD_STATE_DIR", &self.folder).env("SSL_CERT_FILE", self.folder.join("ca.pem"));
        let log = fs::File::create(self.folder.join("gateway.log")).unwrap();
        gateway.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let mut gateway = gateway.spawn().unwrap();
        let health = format!("{}:8080", self.address);
        while tokio::net::TcpStream::connect(&health).await.is_err() {
            let log = || fs::read_to_string(self.folder.join("gateway.log")).unwrap();
            assert!(gateway.try_wait().unwrap().is_none(), "{}", log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        gateway
    }
}
