//! Registries without a cluster: problems, the objects of a gateway, and statuses.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use insta::assert_snapshot;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolyard_operator::controller::{ClusterFacts, OperatorConfig};
use toolyard_operator::tool_registry::gateway::{GatewayIdentity, desired_objects};
use toolyard_operator::tool_registry::report::{GatewayReader, GatewayReport, HttpGatewayReader};
use toolyard_operator::tool_registry::resolution::{
    ResolvedRegistries, cluster_service, resolve, selects_in,
};
use toolyard_operator::tool_registry::status::{GatewayState, ListBounds, Observation, status};
use toolyard_operator::tool_registry::{ToolRegistry, ToolRegistryStatus, problems};

/// The complete example of the contract.
pub(crate) const COMPLETE_EXAMPLE: &str =
    include_str!("../../../toolyard-manifest/fixtures/complete-example.yaml");

const BOUNDS: ListBounds = ListBounds { tools: 500, bytes: 900_000 };

fn registry(name: &str, handlers: Value) -> ToolRegistry {
    let document = json!({
        "apiVersion": "omnia.altairalabs.ai/v1alpha1", "kind": "ToolRegistry",
        "metadata": {"name": name, "namespace": "agents", "uid": "1-2-3", "generation": 4},
        "spec": {"handlers": handlers},
    });
    serde_json::from_value(document).unwrap()
}

fn tool() -> Value {
    json!({"name": "get", "description": "Gets", "inputSchema": {"type": "object"}})
}

/// Handlers of every way to an address, with a secret of each field that refers to one.
fn handlers() -> Value {
    let secret = |name: &str, key: &str| json!({"name": name, "key": key});
    json!([
        {"name": "direct", "type": "http", "endpoint": {"url": "https://api.example.com/a"}, "tool": tool(),
         "auth": {"type": "bearer", "secretRef": secret("api", "token")}},
        {"name": "by-ref", "type": "http", "endpoint": {"serviceRef": {"name": "tool-service", "port": 8080}},
         "tool": tool(), "httpConfig": {"authType": "basic", "authSecretRef": secret("api", "login")}},
        {"name": "user-service", "type": "grpc",
         "endpoint": {"serviceRef": {"name": "user-grpc", "namespace": "internal", "port": 50051}},
         "tool": {"name": "get_user", "description": "Gets", "inputSchema": {"type": "object", "properties": {
            "secretRef": {"name": "not", "key": "this"}}}}},
        {"name": "platform-tools", "timeout": "5s",
         "selector": {"matchLabels": {"omnia.altairalabs.ai/tool": "true", "team": "platform"}}},
        {"name": "petstore", "type": "openapi", "openAPIConfig": {"specURL": "https://petstore.example/v2/swagger.json",
         "credentials": {"key": {"secretRef": secret("petstore", "api.key")}}}},
    ])
}

fn service(name: &str, labels: Value, annotations: Value, ports: Value) -> Service {
    let service = json!({
        "metadata": {"name": name, "namespace": "agents", "labels": labels, "annotations": annotations},
        "spec": {"ports": ports},
    });
    serde_json::from_value(service).unwrap()
}

/// Services of which two match the selector of [`handlers`], one of them without a port.
fn services() -> Vec<Service> {
    let labels = json!({"omnia.altairalabs.ai/tool": "true", "team": "platform"});
    let annotations = json!({
        "omnia.altairalabs.ai/tool-path": "/v1/weather?units=${u}",
        "omnia.altairalabs.ai/tool-description": "Get weather forecasts",
    });
    vec![
        service("weather-api", labels.clone(), annotations, json!([{"name": "http", "port": 80}])),
        service("portless", labels, json!({}), json!([])),
        service("other", json!({"team": "platform"}), json!({}), json!([{"port": 80}])),
    ]
}

fn resolved(registries: &[&ToolRegistry], services: &[Service]) -> ResolvedRegistries {
    let services: Vec<_> = services.iter().map(cluster_service).collect();
    resolve(registries, &services, "svc.cluster.local")
}

fn config() -> OperatorConfig {
    OperatorConfig { gateway_image: "toolyard:0.1.0".to_owned(), ..OperatorConfig::default() }
}

fn owner(name: &str) -> OwnerReference {
    OwnerReference {
        api_version: "omnia.altairalabs.ai/v1alpha1".to_owned(),
        kind: "ToolRegistry".to_owned(),
        name: name.to_owned(),
        uid: "1-2-3".to_owned(),
        controller: Some(true),
        ..OwnerReference::default()
    }
}

#[test]
fn gateway_has_four_objects() {
    let registry = registry("agent-tools", handlers());
    let resolved = resolved(&[&registry], &services());
    let gateway = GatewayIdentity::of("agent-tools", "agents", &config());
    let facts = ClusterFacts { minor: 29 };
    let mut objects = desired_objects(&gateway, &resolved, &[owner("agent-tools")], facts, &config());
    let manifests = objects.config_map["data"].take();
    assert_snapshot!(manifests["registries.yaml"].as_str().unwrap());
    assert_snapshot!(manifests["toolyard.yaml"].as_str().unwrap());
    assert_snapshot!(toolyard_manifest::to_yaml(&objects.config_map));
    assert_snapshot!(toolyard_manifest::to_yaml(&objects.deployment));
    assert_snapshot!(toolyard_manifest::to_yaml(&objects.service));
    assert_snapshot!(toolyard_manifest::to_yaml(&objects.network_policy.unwrap()));
    assert_eq!(gateway.endpoint(&config()), "http://agent-tools-gateway.agents.svc.cluster.local:8080/mcp");
}

#[test]
fn pods_depend_on_secrets_and_settings_only() {
    let pods = |handlers: Value, services: &[Service]| {
        let registry = registry("a", handlers);
        let resolved = resolved(&[&registry], services);
        let gateway = GatewayIdentity::of("a", "agents", &config());
        desired_objects(&gateway, &resolved, &[], ClusterFacts { minor: 29 }, &config()).deployment
    };
    let before = pods(handlers(), &services());
    assert_eq!(pods(handlers(), &[]), before);
    let mut edited = handlers();
    edited[0]["endpoint"]["url"] = json!("https://other.example.com/");
    assert_eq!(pods(edited.clone(), &services()), before);
    edited[0]["auth"]["secretRef"]["key"] = json!("other");
    assert_ne!(pods(edited, &services()), before);
}

#[test]
fn shared_gateway_serves_all_registries_of_its_namespace() {
    let config = OperatorConfig { shared_gateway: true, ..config() };
    let sse = |name: &str| json!([{"name": name, "type": "mcp", "mcpConfig": {"transport": "sse", "endpoint": "http://a/sse"}}]);
    let (one, two, clash) =
        (registry("one", sse("a")), registry("two", sse("b")), registry("three", sse("a")));
    let invalid = registry("four", json!([{"name": "c"}]));
    let resolved = resolved(&[&one, &two, &clash, &invalid], &[]);
    let found: BTreeMap<_, _> = resolved
        .problems
        .iter()
        .map(|(name, problems)| {
            (name, problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        })
        .collect();
    assert_snapshot!(format!("{found:#?}"), @r#"
    {
        "four": "spec.handlers[0].type: this field is required",
        "three": "spec.handlers: the registry `one` of the same gateway has a handler `a` already (rename the handler)",
    }
    "#);
    let gateway = GatewayIdentity::of("one", "agents", &config);
    assert_eq!(gateway, GatewayIdentity::of("two", "agents", &config));
    let objects = desired_objects(&gateway, &resolved, &[], ClusterFacts { minor: 20 }, &config);
    assert_eq!(objects.config_map["metadata"]["name"], "toolyard-shared-gateway");
    assert_snapshot!(objects.config_map["data"]["registries.yaml"].as_str().unwrap(), @"
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: one
      namespace: agents
    spec:
      handlers:
        - name: a
          type: mcp
          mcpConfig:
            transport: sse
            endpoint: http://a/sse
    ---
    apiVersion: omnia.altairalabs.ai/v1alpha1
    kind: ToolRegistry
    metadata:
      name: two
      namespace: agents
    spec:
      handlers:
        - name: b
          type: mcp
          mcpConfig:
            transport: sse
            endpoint: http://a/sse
    ");
    assert_snapshot!(objects.network_policy.unwrap()["spec"]["ingress"][0]["from"], @r#"[{"podSelector":{}},{"namespaceSelector":{},"podSelector":{"matchLabels":{"app.kubernetes.io/name":"toolyard-operator"}}}]"#);
}

#[test]
fn gateway_has_no_policy_if_the_operator_applies_none() {
    let registry = registry("a", handlers());
    let resolved = resolved(&[&registry], &[]);
    let gateway = GatewayIdentity::of("a", "agents", &config());
    let config = OperatorConfig { network_policies: false, ..config() };
    let objects = desired_objects(&gateway, &resolved, &[], ClusterFacts { minor: 29 }, &config);
    assert_eq!(objects.network_policy, None);
}

/// The ConfigMap is a valid manifest for a gateway with the variables and secrets that it refers to.
#[test]
fn manifests_are_valid_for_a_gateway() {
    let registry = registry("agent-tools", handlers());
    let gateway = GatewayIdentity::of("agent-tools", "agents", &config());
    let resolved = resolved(&[&registry], &services());
    let objects = desired_objects(&gateway, &resolved, &[], ClusterFacts { minor: 29 }, &config());
    let data = objects.config_map["data"].as_object().unwrap();
    let sources: Vec<_> = data
        .iter()
        .map(|(name, text)| toolyard_manifest::ManifestSource {
            name: name.clone(),
            text: text.as_str().unwrap().to_owned(),
        })
        .collect();
    let manifest =
        toolyard_manifest::parse_with(&sources, &|_| None).unwrap_or_else(|problems| panic!("{problems}"));
    let handlers: Vec<_> =
        manifest.handlers.iter().map(|handler| format!("{} {}", handler.name, handler.endpoint())).collect();
    assert_snapshot!(handlers.join("\n"), @"
    direct https://api.example.com/a
    by-ref http://tool-service.agents.svc.cluster.local:8080/
    user-service user-grpc.internal.svc.cluster.local:50051
    platform-tools-weather-api http://weather-api.agents.svc.cluster.local:80/v1/weather
    petstore https://petstore.example/v2/swagger.json
    ");
    assert!(manifest.process.allow_unauthenticated);
    // A gateway reads the files of the mounted ConfigMap.
    let folder = tempfile::tempdir().unwrap();
    for source in &sources {
        std::fs::write(folder.path().join(&source.name), &source.text).unwrap();
    }
    let loaded = toolyard_manifest::load(&[folder.path().to_owned()]).unwrap();
    assert_eq!(loaded.digest, objects.manifest_digest());
}

#[test]
fn selectors_have_a_namespace() {
    let selecting = |selector: Value| registry("a", json!([{"name": "a", "selector": selector}]));
    assert!(selects_in(&selecting(json!({"matchLabels": {"a": "b"}})), "agents"));
    assert!(!selects_in(&selecting(json!({"matchLabels": {"a": "b"}})), "tools"));
    assert!(selects_in(&selecting(json!({"matchLabels": {"a": "b"}, "namespace": "tools"})), "tools"));
    assert!(!selects_in(&registry("a", json!([])), "agents"));
}

/// Changes a registry, and returns the problems of the result.
fn problems_of(change: impl FnOnce(&mut Value)) -> String {
    let mut registry = explicit_handlers();
    change(&mut registry);
    let mut text = String::new();
    for problem in problems(&registry) {
        writeln!(text, "{problem}").unwrap();
    }
    text
}

/// A registry with explicit handlers, as JSON.
fn explicit_handlers() -> Value {
    let mut handlers = handlers();
    handlers.as_array_mut().unwrap().truncate(3);
    let registry = registry("agent-tools", handlers);
    registry.document()
}

#[test]
fn valid_resources_have_no_problems() {
    assert_eq!(problems(&registry("agent-tools", handlers()).document()), []);
    let referring = json!([{"name": "a", "type": "mcp", "mcpConfig": {"transport": "sse", "endpoint": "http://${HOST}/sse"}}]);
    assert_eq!(problems(&registry("agent-tools", referring).document()), []);
    // As a server stores it.
    let mut stored = serde_json::to_value(registry("agent-tools", handlers())).unwrap();
    stored["metadata"]["managedFields"] = json!([{"manager": "kubectl"}]);
    stored["status"] = json!({"phase": "Ready"});
    assert_eq!(problems(&stored), []);
}

#[test]
fn problems_name_the_field_and_the_remedy() {
    assert_snapshot!(problems_of(|registry| registry["spec"]["handlers"][0]["timeuot"] = json!("5s")), @"spec.handlers[0].timeuot: unknown field, expected one of name, selector, type, endpoint, tool, httpConfig, auth, retryPolicy, retries, timeout, prefix, overrides, pin, price, displayName, description, chunk, chunkThreshold, renameArguments (did you mean `timeout`?)");
    assert_snapshot!(problems_of(|registry| registry["spec"]["handlers"][0]["timeout"] = json!("5 parsecs")), @"spec.handlers[0].timeout: `5 parsecs` is not a duration, expected a duration such as 500ms, 30s, 1m30s or 2h (the units are h, m, s, ms, us and ns, without spaces)");
    assert_snapshot!(problems_of(|registry| registry["spec"]["handlers"][1]["name"] = json!("direct")), @"spec.handlers[1].name: duplicate handler name (first defined at agent-tools:1:152: spec.handlers[0].name)");
    assert_snapshot!(problems_of(|registry| registry["spec"]["handlers"][0]["auth"]["token"] = json!("file:/etc/passwd")), @"spec.handlers[0].auth.token: `token` does not belong here (`secretRef` already refers to the secret)");
    assert_snapshot!(problems_of(|registry| {
        registry["spec"]["handlers"][0] = json!({"name": "a", "selector": {"matchLabels": {"a": "${B}"}}});
    }), @"spec.handlers[0].selector: references to variables are not available here (write the labels out)");
    assert_snapshot!(problems_of(|registry| registry["spec"] = json!({})), @"spec.handlers: this field is required");
}

/// A report of a gateway: handlers with their phases, and tools of them.
fn report(handlers: &[(&str, &str)], tools: &[(&str, &str, &str)]) -> GatewayState {
    let handlers: Vec<_> = handlers
        .iter()
        .map(|(name, phase)| {
            let error = (*phase == "Unavailable").then(|| json!({"message": "connection refused"}));
            json!({"name": name, "phase": phase, "endpoint": "http://x", "lastError": error, "registry": "a"})
        })
        .collect();
    let tools: Vec<_> = tools
        .iter()
        .map(|(handler, name, status)| json!({"handlerName": handler, "name": name, "status": status, "endpoint": "http://x"}))
        .collect();
    let report = json!({"handlers": handlers, "discoveredTools": tools, "version": "0.1.0"});
    GatewayState::Reported(serde_json::from_value::<GatewayReport>(report).unwrap())
}

/// Computes a status, and describes its phase, counts, conditions and tools.
fn describe(registry: &ToolRegistry, services: &[Service], gateway: &GatewayState) -> String {
    let next = status_of(registry, services, gateway, None, "2026-11-24T00:00:00.000Z", BOUNDS);
    let mut text = format!("{} {}/{}", next.phase, next.available_tools_count, next.discovered_tools_count);
    for condition in &next.conditions {
        write!(
            text,
            "\n{}={} {} {}",
            condition.r#type, condition.status, condition.reason, condition.message
        )
        .unwrap();
    }
    for tool in &next.discovered_tools {
        write!(text, "\n- {} {} {} {}", tool.handler_name, tool.name, tool.status, tool.endpoint).unwrap();
    }
    text
}

fn status_of(
    registry: &ToolRegistry,
    services: &[Service],
    gateway: &GatewayState,
    previous: Option<&ToolRegistryStatus>,
    now: &str,
    bounds: ListBounds,
) -> ToolRegistryStatus {
    let resolved = resolved(&[registry], services);
    let name = registry.metadata.name.as_deref().unwrap();
    let observed = Observation {
        generation: registry.metadata.generation,
        problems: resolved.problems.get(name).map(Vec::as_slice).unwrap_or_default(),
        handlers: resolved.handlers.get(name).map(Vec::as_slice).unwrap_or_default(),
        gateway,
        endpoint: None,
    };
    status(&observed, previous, now, bounds)
}

fn two_handlers() -> ToolRegistry {
    registry(
        "a",
        json!([
            {"name": "one", "type": "http", "endpoint": {"url": "http://one/"}, "tool": tool()},
            {"name": "two", "type": "mcp", "mcpConfig": {"transport": "sse", "endpoint": "http://two/sse"}},
        ]),
    )
}

#[test]
fn phase_follows_the_handlers() {
    let starting = GatewayState::Starting("the gateway has no ready pod yet".to_owned());
    let failed = GatewayState::Failed("the gateway does not start: quota".to_owned());
    let check = |gateway: &GatewayState, expected: &str| {
        let text = describe(&two_handlers(), &[], gateway);
        assert_eq!(text.lines().next().unwrap(), expected, "{text}");
    };
    let tools = [("one", "get", "Available"), ("two", "read", "Available")];
    check(&starting, "Pending 0/0");
    check(&failed, "Failed 0/0");
    check(&report(&[("one", "Ready"), ("two", "Ready")], &tools), "Ready 2/2");
    check(&report(&[("one", "Ready"), ("two", "Pending")], &tools[..1]), "Pending 1/1");
    check(&report(&[("one", "Ready"), ("two", "Installing")], &tools[..1]), "Pending 1/1");
    check(&report(&[("one", "Ready"), ("two", "Unavailable")], &tools[..1]), "Degraded 1/1");
    check(&report(&[("one", "Unavailable"), ("two", "Pending")], &[]), "Degraded 0/0");
    check(
        &report(&[("one", "Unavailable"), ("two", "Unavailable")], &[("one", "get", "Unavailable")]),
        "Failed 0/1",
    );
    // The gateway has not read the resource yet, or serves more.
    check(
        &report(
            &[("one", "Ready"), ("old", "Ready")],
            &[("one", "get", "Available"), ("old", "x", "Available")],
        ),
        "Pending 1/1",
    );
}

#[test]
fn statuses() {
    let degraded = report(&[("one", "Ready"), ("two", "Unavailable")], &[("one", "get", "Available")]);
    assert_snapshot!(describe(&two_handlers(), &[], &degraded), @"
    Degraded 1/1
    HandlersAvailable=True HandlerReady 1 of 2 handlers are ready; two: connection refused
    AllHandlersReady=False SomeNotReady 1 of 2 handlers are ready; two: connection refused
    ToolsDiscovered=True ToolsFound 1 tools are known
    HandlersValid=True Valid the resource is valid
    - one get Available http://x
    ");
    let starting = GatewayState::Starting("the gateway has no ready pod yet".to_owned());
    assert_snapshot!(describe(&two_handlers(), &[], &starting), @"
    Pending 0/0
    HandlersAvailable=False NoHandlerReady the gateway has no ready pod yet
    AllHandlersReady=False SomeNotReady the gateway has no ready pod yet
    ToolsDiscovered=False NoTools 0 tools are known
    HandlersValid=True Valid the resource is valid
    ");
    let invalid = registry("a", json!([{"name": "one", "type": "smtp"}]));
    assert_snapshot!(describe(&invalid, &[], &starting), @"
    Failed 0/0
    HandlersAvailable=False NoHandlerReady the gateway has no ready pod yet
    AllHandlersReady=False SomeNotReady the gateway has no ready pod yet
    ToolsDiscovered=False NoTools 0 tools are known
    HandlersValid=False Invalid spec.handlers[0].type: `smtp` is not a known handler type, expected one of mcp, http, grpc, openapi, function, cortexone, bus
    ");
}

#[test]
fn status_is_not_ready_until_the_gateway_serves_the_manifest() {
    let ready = report(
        &[("one", "Ready"), ("two", "Ready")],
        &[("one", "get", "Available"), ("two", "read", "Available")],
    );
    let GatewayState::Reported(mut report) = ready else { unreachable!("it is a report") };
    let state = |report: &GatewayReport| GatewayState::of_report(report.clone(), "sha256:b");
    let first_line = |report: &GatewayReport| {
        describe(&two_handlers(), &[], &state(report)).lines().next().unwrap().to_owned()
    };
    // Gateways of an earlier version report no digest.
    assert_eq!(first_line(&report), "Ready 2/2");
    report.manifest_digest = Some("sha256:b".to_owned());
    assert_eq!(first_line(&report), "Ready 2/2");
    report.manifest_digest = Some("sha256:a".to_owned());
    assert_snapshot!(describe(&two_handlers(), &[], &state(&report)), @"
    Pending 2/2
    HandlersAvailable=True HandlerReady the gateway serves the manifest before the last edit, with 2 of 2 handlers ready
    AllHandlersReady=False ManifestNotServed the gateway serves the manifest before the last edit, with 2 of 2 handlers ready
    ToolsDiscovered=True ToolsFound 2 tools are known from the manifest before the last edit
    HandlersValid=True Valid the resource is valid
    - one get Available http://x
    - two read Available http://x
    ");
    let edit = json!({"lastEdit": {"applied": false, "message": "`secretsDir` has changed"}});
    report.last_edit = serde_json::from_value::<GatewayReport>(edit).unwrap().last_edit;
    assert_snapshot!(describe(&two_handlers(), &[], &state(&report)), @"
    Failed 2/2
    HandlersAvailable=True HandlerReady the gateway serves the manifest before the last edit, with 2 of 2 handlers ready
    AllHandlersReady=False ManifestNotServed the gateway serves the manifest before the last edit, with 2 of 2 handlers ready
    ToolsDiscovered=True ToolsFound 2 tools are known from the manifest before the last edit
    HandlersValid=False Invalid the gateway refuses the manifest: `secretsDir` has changed
    - one get Available http://x
    - two read Available http://x
    ");
}

#[test]
fn selected_services_are_reported_under_their_selector() {
    let selecting =
        registry("a", json!([{"name": "platform", "selector": {"matchLabels": {"team": "platform"}}}]));
    let served = report(
        &[("platform-other", "Ready"), ("platform-weather-api", "Ready")],
        &[("platform-other", "other", "Available"), ("platform-weather-api", "weather_api", "Available")],
    );
    assert_snapshot!(describe(&selecting, &services(), &served), @"
    Ready 2/2
    HandlersAvailable=True HandlerReady 1 of 1 handlers are ready; platform: the Service portless: it has no port
    AllHandlersReady=True AllReady 1 of 1 handlers are ready; platform: the Service portless: it has no port
    ToolsDiscovered=True ToolsFound 2 tools are known
    HandlersValid=True Valid the resource is valid
    - platform other Available http://x
    - platform weather_api Available http://x
    ");
    assert_snapshot!(describe(&selecting, &[], &report(&[], &[])), @"
    Failed 0/1
    HandlersAvailable=False NoHandlerReady 0 of 1 handlers are ready; platform: no Service matches the selector
    AllHandlersReady=False SomeNotReady 0 of 1 handlers are ready; platform: no Service matches the selector
    ToolsDiscovered=True ToolsFound 1 tools are known
    HandlersValid=True Valid the resource is valid
    - platform platform Unavailable selector://agents/team=platform
    ");
}

#[test]
fn times_are_kept_while_nothing_changes() {
    let (monday, friday) = ("2026-11-23T00:00:00.000Z", "2026-11-27T00:00:00.000Z");
    let ready = report(&[("one", "Ready"), ("two", "Ready")], &[("one", "get", "Available")]);
    let first = status_of(&two_handlers(), &[], &ready, None, monday, BOUNDS);
    assert_eq!(status_of(&two_handlers(), &[], &ready, Some(&first), friday, BOUNDS), first);
    let degraded = report(&[("one", "Ready"), ("two", "Unavailable")], &[("one", "get", "Available")]);
    let next = status_of(&two_handlers(), &[], &degraded, Some(&first), friday, BOUNDS);
    let times: Vec<_> = next
        .conditions
        .iter()
        .map(|condition| (&*condition.r#type, &*condition.last_transition_time))
        .collect();
    assert_eq!(
        times,
        [
            ("HandlersAvailable", monday),
            ("AllHandlersReady", friday),
            ("ToolsDiscovered", monday),
            ("HandlersValid", monday),
        ]
    );
    assert_eq!(next.last_discovery_time.as_deref(), Some(monday));
    let more = report(
        &[("one", "Ready"), ("two", "Ready")],
        &[("one", "get", "Available"), ("two", "x", "Available")],
    );
    let next = status_of(&two_handlers(), &[], &more, Some(&next), friday, BOUNDS);
    assert_eq!(next.last_discovery_time.as_deref(), Some(friday));
}

#[test]
fn long_list_of_tools_is_cut() {
    let names: Vec<_> = (0..3000).map(|number| format!("tool_{number}_{}", "x".repeat(600))).collect();
    let tools: Vec<_> = names.iter().map(|name| ("one", &**name, "Available")).collect();
    let many = report(&[("one", "Ready"), ("two", "Ready")], &tools);
    let check = |bounds: ListBounds, expected: usize| {
        let next = status_of(&two_handlers(), &[], &many, None, "", bounds);
        assert_eq!((next.discovered_tools.len(), next.discovered_tools_count), (expected, 3000));
        assert_eq!(
            next.conditions[2].message,
            format!("3000 tools are known; the list has the first {expected}")
        );
        assert!(serde_json::to_string(&next).unwrap().len() < bounds.bytes + 10_000);
    };
    check(BOUNDS, 500);
    check(ListBounds { tools: 10_000, bytes: 900_000 }, 1315);
    check(ListBounds { tools: 10_000, bytes: 0 }, 0);
}

/// Reads the report of a gateway that sends this response to one request, or none.
async fn read_report(response: Option<&'static str>) -> Result<GatewayReport, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let server = async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            stream.read_buf(&mut request).await.unwrap();
        }
        assert!(request.starts_with(b"GET /api/v1/status HTTP/1.1\r\n"));
        match response {
            Some(response) => stream.write_all(response.as_bytes()).await.unwrap(),
            None => std::future::pending().await,
        }
    };
    let reader = HttpGatewayReader { timeout: Duration::from_millis(300) };
    let (report, _) =
        tokio::join!(reader.read(&authority), tokio::time::timeout(Duration::from_millis(600), server));
    report
}

#[tokio::test]
async fn report_is_read_over_http() {
    let report = read_report(Some(
        "HTTP/1.1 200 OK\r\ncontent-length: 62\r\n\r\n{\"handlers\": [{\"name\": \"a\", \"phase\": \"Ready\"}], \"new\": true  }",
    ));
    assert_eq!(report.await.unwrap().handlers[0].name, "a");
    let check = async |response: Option<&'static str>, expected: &str| {
        let error = read_report(response).await.unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    };
    check(
        Some("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"),
        "the gateway responds with the status 401",
    )
    .await;
    check(Some("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[1"), "the report of the gateway is invalid")
        .await;
    check(Some("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"), "the report of the gateway breaks off")
        .await;
    check(Some("220 mail\r\n\r\n"), "the connection to the gateway broke").await;
    check(None, "the gateway does not respond in time").await;
}

#[tokio::test]
async fn unreachable_gateway_has_no_report() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let reader = HttpGatewayReader { timeout: Duration::from_secs(5) };
    let error = reader.read(&closed).await.unwrap_err();
    assert!(error.starts_with("the gateway cannot be reached"), "{error}");
}
