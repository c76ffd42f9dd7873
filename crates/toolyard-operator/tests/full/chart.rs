//! The chart: linted and rendered by Helm's own library.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use toolyard_testing::peers::peer;
use toolyard_testing::process::bound_to_thread;

/// The name of releases in tests, and their namespace.
pub(crate) const NAME: &str = "toolyard";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs an action of `helm.py` and returns its result, or the message of Helm.
pub(crate) fn helm(action: &str, values: &Value, kubeconfig: Option<&Path>) -> Result<Value, String> {
    let request = json!({
        "action": action, "chart": root().join("deploy/helm/toolyard"), "name": NAME, "namespace": NAME,
        "values": values, "kubeconfig": kubeconfig,
    });
    let mut python = bound_to_thread(peer("helm/bin/python"));
    python.arg("-c").arg(include_str!("chart/helm.py"));
    let home = tempfile::tempdir().unwrap();
    python.env("HOME", home.path()).env_remove("KUBECONFIG");
    let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    match result["error"].as_str() {
        Some(error) => Err(error.to_owned()),
        None => Ok(result),
    }
}

/// Returns the rendered documents, in the order of the files.
fn rendered(values: &Value) -> Vec<String> {
    let result = helm("render", values, None).unwrap();
    let files = result["files"].as_object().unwrap();
    let mut files: Vec<_> = files.iter().filter(|(name, _)| name.ends_with(".yaml")).collect();
    files.sort_by_key(|(name, _)| name.as_str());
    let texts = files.iter().flat_map(|(_, text)| documents(text.as_str().unwrap()));
    texts.map(str::to_owned).collect()
}

/// Splits a manifest into its documents.
pub(crate) fn documents(manifest: &str) -> impl Iterator<Item = &str> {
    let texts = manifest.split("\n---\n").map(|text| text.trim_start_matches("---\n").trim());
    texts.filter(|text| text.lines().any(|line| line.starts_with("kind:")))
}

/// Returns the value of the first line with a key.
pub(crate) fn value<'a>(document: &'a str, key: &str) -> &'a str {
    document.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim()
}

fn kinds(values: &Value) -> String {
    let name = |text: &String| {
        format!("{} {} {}", value(text, "apiVersion:"), value(text, "kind:"), value(text, "  name:"))
    };
    rendered(values).iter().map(name).collect::<Vec<_>>().join("\n")
}

fn everything() -> Value {
    json!({
        "operator": {"namespace": "team", "sharedGateway": true, "extraArgs": ["--concurrency=4"]},
        "webhook": {"certManager": {"enabled": true}},
        "gateway": {
            "enabled": true,
            "manifests": {"tools.yaml": "kind: ToolRegistry\n"},
            "settings": {"store": {"url": "postgres://toolyard:${DB_PASSWORD}@db/toolyard"}},
            "clusterKeySecret": "toolyard-cluster",
            "autoscaling": {"enabled": true, "cpu": 70},
        },
        "openrouterMcp": {"enabled": true, "baseUrl": "https://router.example.com/api/v1"},
        "secrets": {"openRouter": {"apiKey": "sk-or-v1-key"}},
    })
}

#[test]
fn chart_has_no_lint() {
    for values in [json!({}), everything(), json!({"operator": {"enabled": false}})] {
        let report = helm("lint", &values, None).unwrap();
        let is_severe = |message: &&Value| !message.as_str().unwrap().starts_with(['0', '1']);
        let severe: Vec<_> = report["messages"].as_array().unwrap().iter().filter(is_severe).collect();
        assert_eq!((severe, &report["errors"]), (vec![], &json!([])), "{values}");
    }
}

#[test]
fn operator_and_webhook_are_installed_by_default() {
    insta::assert_snapshot!(kinds(&json!({})), @"
    networking.k8s.io/v1 NetworkPolicy toolyard-operator
    apps/v1 Deployment toolyard-operator
    v1 ServiceAccount toolyard-operator
    rbac.authorization.k8s.io/v1 ClusterRole toolyard-operator
    rbac.authorization.k8s.io/v1 ClusterRoleBinding toolyard-operator
    rbac.authorization.k8s.io/v1 ClusterRole toolyard-operator-definitions
    rbac.authorization.k8s.io/v1 ClusterRoleBinding toolyard-operator-definitions
    rbac.authorization.k8s.io/v1 Role toolyard-operator-election
    rbac.authorization.k8s.io/v1 RoleBinding toolyard-operator-election
    v1 Service toolyard-operator-webhook
    v1 Secret toolyard-operator-webhook
    admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration toolyard-operator-webhook
    ");
    assert_eq!(kinds(&json!({"operator": {"enabled": false}})), "");
}

#[test]
fn every_part_can_be_enabled() {
    insta::assert_snapshot!(kinds(&everything()), @"
    v1 ConfigMap toolyard-gateway
    v1 Service toolyard-gateway
    apps/v1 Deployment toolyard-gateway
    autoscaling/v2 HorizontalPodAutoscaler toolyard-gateway
    policy/v1 PodDisruptionBudget toolyard-gateway
    v1 Secret rockbot-openrouter-mcp
    v1 Service rockbot-openrouter-mcp
    apps/v1 Deployment rockbot-openrouter-mcp
    networking.k8s.io/v1 NetworkPolicy rockbot-openrouter-mcp
    networking.k8s.io/v1 NetworkPolicy toolyard-operator
    apps/v1 Deployment toolyard-operator
    v1 ServiceAccount toolyard-operator
    rbac.authorization.k8s.io/v1 Role toolyard-operator
    rbac.authorization.k8s.io/v1 RoleBinding toolyard-operator
    rbac.authorization.k8s.io/v1 ClusterRole toolyard-operator-definitions
    rbac.authorization.k8s.io/v1 ClusterRoleBinding toolyard-operator-definitions
    rbac.authorization.k8s.io/v1 Role toolyard-operator-election
    rbac.authorization.k8s.io/v1 RoleBinding toolyard-operator-election
    v1 Service toolyard-operator-webhook
    cert-manager.io/v1 Issuer toolyard-operator-webhook
    cert-manager.io/v1 Certificate toolyard-operator-webhook
    admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration toolyard-operator-webhook
    ");
    let mut deployments =
        rendered(&everything()).into_iter().filter(|text| text.contains("kind: Deployment"));
    let operator = deployments.next_back().unwrap();
    let arguments = operator.lines().map(str::trim).filter(|line| line.starts_with("- --"));
    insta::assert_snapshot!(arguments.collect::<Vec<_>>().join("\n"), @"
    - --health=0.0.0.0:8081
    - --lease=toolyard-operator
    - --gateway-image=toolyard:0.1.0
    - --namespace=team
    - --shared-gateway
    - --webhook=0.0.0.0:8443
    - --webhook-certificate=/etc/toolyard/webhook/tls.crt
    - --webhook-key=/etc/toolyard/webhook/tls.key
    ");
}

/// Returns the rules of ingress of the operator's network policy.
fn operator_ingress(values: &Value) -> String {
    let is_policy =
        |text: &String| value(text, "kind:") == "NetworkPolicy" && text.contains("name: toolyard-operator");
    let policy = rendered(values).into_iter().find(is_policy).unwrap_or_default();
    policy.split_once("  ingress:\n").map(|(_, rules)| rules.to_owned()).unwrap_or_default()
}

#[test]
fn policy_of_the_operator_admits_its_namespace_and_the_api_server() {
    insta::assert_snapshot!(operator_ingress(&json!({})), @"
    - from:
        - podSelector: {}
      ports:
        - {port: health, protocol: TCP}
    - ports:
        - {port: webhook, protocol: TCP}
    ");
    let peers = json!({
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"team": "metrics"}}}],
        "webhookFrom": [{"ipBlock": {"cidr": "10.0.0.10/32"}}],
    });
    insta::assert_snapshot!(operator_ingress(&json!({"operator": {"networkPolicy": peers}})), @"
    - from:
        - podSelector: {}
        - namespaceSelector:
            matchLabels:
              team: metrics
      ports:
        - {port: health, protocol: TCP}
    - from:
        - ipBlock:
            cidr: 10.0.0.10/32
      ports:
        - {port: webhook, protocol: TCP}
    ");
    insta::assert_snapshot!(operator_ingress(&json!({"webhook": {"enabled": false}})), @"
    - from:
        - podSelector: {}
      ports:
        - {port: health, protocol: TCP}
    ");
    assert_eq!(operator_ingress(&json!({"operator": {"networkPolicy": {"enabled": false}}})), "");
}

#[test]
fn operator_without_injection_has_fewer_rights() {
    let text = |values: Value| rendered(&values).join("\n");
    let has = |text: &str| {
        ["statefulsets", "languageagents\"]", "languageagents.langop.io", "\"pods\"", "--no-injection"]
            .map(|name| text.contains(name))
    };
    assert_eq!(has(&text(json!({}))), [true, true, true, true, false]);
    let without = json!({"operator": {"injection": false}});
    assert_eq!(has(&text(without)), [false, false, false, false, true]);
}

/// Values of the OpenRouter MCP server without the other parts.
fn openrouter(key: Value) -> Value {
    json!({"operator": {"enabled": false}, "openrouterMcp": {"enabled": true}, "secrets": {"openRouter": key}})
}

#[test]
fn openrouter_server_gets_its_key_from_a_secret() {
    let values = openrouter(json!({"apiKey": "sk-or-v1-key"}));
    let documents = rendered(&values);
    // The key is in the Secret only.
    let has_key = |text: &String| text.contains("c2stb3ItdjEta2V5") || text.contains("sk-or-v1-key");
    let with_key: Vec<_> = documents.iter().filter(|text| has_key(text)).collect();
    assert_eq!(with_key.iter().map(|text| value(text, "kind:")).collect::<Vec<_>>(), ["Secret"]);
    let deployment = documents.iter().find(|text| value(text, "kind:") == "Deployment").unwrap();
    let arguments = |text: &str| {
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| line.starts_with("- --") || line.starts_with("secret: "));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    insta::assert_snapshot!(arguments(deployment), @"
    - --listen=0.0.0.0:8080
    - --allow-unauthenticated
    - --allowed-host=rockbot-openrouter-mcp
    - --allowed-host=rockbot-openrouter-mcp.toolyard
    - --allowed-host=rockbot-openrouter-mcp.toolyard.svc
    - --allowed-host=rockbot-openrouter-mcp.toolyard.svc.cluster.local
    - --key-file=/etc/toolyard/openrouter/api-key
    secret: {secretName: rockbot-openrouter-mcp}
    ");
    let existing = openrouter(json!({"existingSecret": "mine", "existingSecretKey": "token"}));
    insta::assert_snapshot!(kinds(&existing), @"
    v1 Service rockbot-openrouter-mcp
    apps/v1 Deployment rockbot-openrouter-mcp
    networking.k8s.io/v1 NetworkPolicy rockbot-openrouter-mcp
    ");
    let documents = rendered(&existing);
    let deployment = documents.iter().find(|text| value(text, "kind:") == "Deployment").unwrap();
    let of_key = arguments(deployment);
    let of_key = of_key.lines().filter(|line| line.contains("key-file") || line.contains("secret:"));
    assert_eq!(
        of_key.collect::<Vec<_>>(),
        ["- --key-file=/etc/toolyard/openrouter/token", "secret: {secretName: mine}"]
    );
}

#[test]
fn invalid_values_are_refused() {
    let check = |values: Value, expected: &str| {
        let error = helm("render", &values, None).map(|_| ()).unwrap_err();
        assert!(error.contains(expected), "{values}: {error}");
    };
    check(json!({"opertor": {}}), "additional properties 'opertor' not allowed");
    check(json!({"webhook": {"failurePolicy": "Maybe"}}), "/webhook/failurePolicy");
    check(json!({"gateway": {"service": {"port": 0}}}), "/gateway/service/port");
    check(json!({"gateway": {"manifests": {"../x": ""}}}), "'../x' does not match pattern");
    check(
        json!({"gateway": {"enabled": true, "replicas": 2}}),
        "several gateways need a common store: set `gateway.settings.store.url`",
    );
    let no_key = "the OpenRouter MCP server needs a key: set `secrets.openRouter.apiKey`";
    check(openrouter(json!({})), no_key);
    let two_keys = "`secrets.openRouter` has two keys";
    check(openrouter(json!({"apiKey": "k", "existingSecret": "mine"})), two_keys);
    check(openrouter(json!({"apiKey": "two words"})), "/secrets/openRouter/apiKey");
    check(json!({"openrouterMcp": {"baseUrl": "openrouter.ai"}}), "/openrouterMcp/baseUrl");
    check(json!({"webhook": {"existingSecret": "mine"}}), "`webhook.caBundle` is required");
}

#[test]
fn plain_manifests_are_the_rendered_chart() {
    const HEAD: &str = "# The operator without its webhook, rendered from deploy/helm/toolyard. Definitions are in crds.yaml.\n";
    let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAME}");
    let is_label_of_helm = |line: &&str| {
        !line.contains("app.kubernetes.io/managed-by: Helm")
            && !line.contains("helm.sh/chart:")
            && !line.starts_with("# Source:")
    };
    let documents: Vec<_> = rendered(&json!({"webhook": {"enabled": false}}))
        .iter()
        .map(|text| text.lines().filter(is_label_of_helm).collect::<Vec<_>>().join("\n"))
        .collect();
    let text = format!("{HEAD}{namespace}\n---\n{}\n", documents.join("\n---\n"));
    let path = root().join("deploy/kubernetes/operator.yaml");
    if std::env::var_os("TOOLYARD_WRITE_MANIFESTS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "deploy/kubernetes/operator.yaml is out of date: run this test with TOOLYARD_WRITE_MANIFESTS=1"
    );
}
