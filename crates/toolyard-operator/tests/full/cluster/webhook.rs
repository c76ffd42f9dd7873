//! Admission of resources by the webhook, at a real API server.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use kube::Client;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use toolyard_operator::webhook::{
    self, BoundWebhook, CertificateFiles, WebhookClient, WebhookOptions, configuration,
};
use toolyard_operator::{language_tool, tool_registry};

use super::agent_injection::{eventually, remove};
use super::rbac::{apply_object, try_apply};
use super::server::Server;

/// Writes a certificate of a new authority for this machine, and returns the authority in Base64 of PEM.
fn write_certificate(folder: &Path, name: &str) -> String {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.subject_alt_names.push(SanType::IpAddress(std::net::Ipv4Addr::LOCALHOST.into()));
    let certificate = params.signed_by(&key, &authority).unwrap();
    std::fs::write(folder.join("tls.crt"), certificate.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    base64::prelude::BASE64_STANDARD.encode(authority.pem())
}

/// Applies a LanguageTool, and returns the message of a refusal.
async fn refusal(admin: &Client, name: &str, spec: &Value) -> Option<String> {
    let tool = json!({
        "apiVersion": "langop.io/v1alpha1", "kind": "LanguageTool",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    });
    let path = format!(
        "/apis/langop.io/v1alpha1/namespaces/default/languagetools/{name}?fieldManager=test&force=true"
    );
    let request = http::Request::patch(path).header("content-type", "application/apply-patch+yaml");
    let request = request.body(tool.to_string().into_bytes()).unwrap();
    match admin.request::<Value>(request).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(status.message.clone()),
        Err(error) => Some(error.to_string()),
    }
}

/// Specifications that the schema refuses, and the field that the message names.
const REFUSED_BY_THE_SCHEMA: [(&str, &str); 6] = [
    ("{}", "spec.image"),
    (r#"{"image": ""}"#, "spec.image"),
    (r#"{"image": "a:1", "port": 0}"#, "spec.port"),
    (r#"{"image": "a:1", "port": 65536}"#, "spec.port"),
    (r#"{"image": "a:1", "type": "rest"}"#, "spec.type"),
    (r#"{"image": "a:1", "deploymentMode": "pod"}"#, "spec.deploymentMode"),
];

/// Opens more connections than the webhook keeps, and sends nothing.
async fn idle_connections(address: SocketAddr) -> Vec<TcpStream> {
    futures_util::future::join_all(
        (0..100).map(|_| async move { TcpStream::connect(address).await.unwrap() }),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_tools_are_refused_and_certificates_renewed() {
    let server = Server::start().await;
    let admin = server.admin().await;
    let folder = tempfile::tempdir().unwrap();
    let authority = write_certificate(folder.path(), "first");
    let files =
        CertificateFiles { certificate: folder.path().join("tls.crt"), key: folder.path().join("tls.key") };
    let options = WebhookOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        files,
        certificate_check: Duration::from_millis(50),
    };
    let bound = BoundWebhook::bind(options).await.unwrap();
    let address = bound.address();
    let client = WebhookClient::Url(format!("https://{address}"));
    let serving = tokio::spawn(bound.serve(webhook::problems));

    apply_object(&admin, &serde_json::to_value(language_tool::definition()).unwrap()).await;
    let image = json!({"image": "a:1"});
    eventually("the definition is served", || async {
        refusal(&admin, "early", &image).await.is_none().then_some(())
    })
    .await;
    apply_object(&admin, &configuration("tools", &client, &authority)).await;
    // The server may admit it until it knows the webhook, which looks at changes only.
    let attempts = AtomicUsize::new(0);
    let peer = || {
        let image = format!("a:{}", attempts.fetch_add(1, Ordering::Relaxed));
        json!({"image": image, "networkPolicies": {"egress": [{"to": {"cidr": "10.0.0.0/40"}}]}})
    };
    let first = eventually("the webhook refuses", || async { refusal(&admin, "tool", &peer()).await }).await;
    assert_eq!(
        first,
        "admission webhook \"resources.toolyard.dev\" denied the request: spec.networkPolicies.egress[0].to.cidr: \
         `10.0.0.0/40` is not a block of addresses, such as `10.0.0.0/8`"
    );

    let check = async |name: &str, spec: Value, expected: &str| {
        let refused = refusal(&admin, name, &spec).await.unwrap_or_default();
        assert!(refused.contains(expected), "{name} {spec}: {refused:?}");
    };
    check("tool", image.clone(), "").await;
    assert_eq!(refusal(&admin, "tool", &image).await, None);
    check("a.b", image.clone(), "metadata.name").await;
    let scaling =
        json!({"image": "a:1", "deployment": {"autoscaling": {"minReplicas": 3, "maxReplicas": 2}}});
    check("tool", scaling, "spec.deployment.autoscaling.maxReplicas: less than `minReplicas`").await;
    for (spec, field) in REFUSED_BY_THE_SCHEMA {
        check("tool", serde_json::from_str(spec).unwrap(), field).await;
    }

    // Connections without a request do not keep reviews waiting: they would be refused after 5 s.
    let _idle = idle_connections(address).await;
    check("tool", peer(), "is not a block of addresses").await;

    // Registries have the messages of manifests.
    let registry = |handlers: Value| {
        json!({
            "apiVersion": "omnia.altairalabs.ai/v1alpha1", "kind": "ToolRegistry",
            "metadata": {"name": "tools", "namespace": "default"}, "spec": {"handlers": handlers},
        })
    };
    apply_object(&admin, &tool_registry::definition()).await;
    let config = json!({"transport": "streamable-http", "endpoint": "http://a/mcp"});
    let handler = json!({"name": "one", "type": "mcp", "mcpConfig": config});
    eventually("the definition is served", || async {
        try_apply(&admin, &registry(json!([handler]))).await.is_ok().then_some(())
    })
    .await;
    let selecting = json!({"name": "two", "selector": {"matchLabels": {"team": "${TEAM}"}}});
    let message = try_apply(&admin, &registry(json!([handler, selecting]))).await.unwrap_err();
    let expected =
        "denied the request: spec.handlers[1].selector: references to variables are not available here";
    assert!(message.contains(expected), "{message}");

    // Another authority: the API server trusts it only after the webhook has its certificate.
    let renewed = write_certificate(folder.path(), "second");
    apply_object(&admin, &configuration("tools", &client, &renewed)).await;
    let again = eventually("the renewed certificate is served", || async {
        refusal(&admin, "tool", &peer()).await.filter(|message| message.contains("denied the request"))
    })
    .await;
    assert_eq!(again, first);

    // Without a webhook nothing is stored.
    serving.abort();
    let other = json!({"image": "a:2"});
    let message = eventually("the webhook is gone", || refusal(&admin, "tool", &other)).await;
    assert!(message.contains("failed calling webhook"), "{message}");
    remove(&admin, "LanguageTool", "tool").await;
}
