use serde_json::json;

use super::*;
use crate::agent_injection::{OwnedFields, WORKSPACE_PATH};

/// An agent with one container, whose pod is changed by `edit`.
fn agent(tools: &str, edit: impl FnOnce(&mut Value)) -> InjectedAgent {
    let mut workload =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "a:1"}]}}}});
    edit(&mut workload["spec"]["template"]["spec"]);
    InjectedAgent {
        kind: WorkloadKind::Deployment,
        name: "helper".to_owned(),
        namespace: "team".to_owned(),
        uid: "1-2-3".to_owned(),
        references: AgentReferences::of_annotation(tools),
        pod: AgentPod::observed(&workload, &OwnedFields::default(), WORKSPACE_PATH),
    }
}

fn service(namespace: &str, name: &str) -> (ToolKey, InjectedTool) {
    let endpoint = format!("http://{name}.{namespace}.svc.cluster.local:8080");
    let key = ToolKey { namespace: namespace.to_owned(), name: name.to_owned() };
    (key, InjectedTool { endpoint, sidecar: None, refusal: None })
}

fn sidecar(name: &str, port: u16, deployment: Value) -> (ToolKey, InjectedTool) {
    let tool = SidecarTool { image: format!("{name}:1"), port, deployment };
    let key = ToolKey { namespace: "team".to_owned(), name: name.to_owned() };
    (key, InjectedTool { endpoint: String::new(), sidecar: Some(tool), refusal: None })
}

fn tools() -> BTreeMap<ToolKey, InjectedTool> {
    BTreeMap::from([
        service("team", "memory"),
        service("team", "search"),
        service("other", "memory"),
        service("team", "404"),
        sidecar("shell", 9000, json!({})),
        sidecar("files", 9000, json!({})),
        sidecar("cache", 9001, json!({"volumes": [{"name": "data", "emptyDir": {}}]})),
        sidecar("index", 9002, json!({"volumes": [{"name": "data", "emptyDir": {}}]})),
        sidecar("a-name-that-is-much-longer-than-the-names-of-containers-may-be", 9003, json!({})),
    ])
}

fn injected(agent: &InjectedAgent) -> DesiredInjection {
    injection(agent, &tools(), InjectionFacts::default())
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// Formats the fields that are injected into pods, one container or volume a line.
fn pod(desired: &DesiredInjection) -> String {
    let spec = &desired.workload["spec"]["template"]["spec"];
    let mut lines = Vec::new();
    for (list, items) in spec.as_object().into_iter().flatten() {
        lines.extend(items.as_array().unwrap().iter().map(|item| format!("{list} {item}")));
    }
    lines.join("\n")
}

fn problems(desired: &DesiredInjection) -> String {
    desired.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[test]
fn tools_with_services_are_injected_as_variable_and_file() {
    let desired = injected(&agent("memory, search", |_| {}));
    insta::assert_snapshot!(pretty(&desired.workload), @r#"
    {
      "apiVersion": "apps/v1",
      "kind": "Deployment",
      "metadata": {
        "name": "helper",
        "namespace": "team"
      },
      "spec": {
        "template": {
          "metadata": {
            "annotations": {
              "langop.io/tools-hash": "8114d042b31b8a41"
            },
            "labels": {
              "toolyard.dev/uses-tools": "true"
            }
          },
          "spec": {
            "containers": [
              {
                "name": "agent",
                "env": [
                  {
                    "name": "MCP_SERVERS",
                    "value": "http://memory.team.svc.cluster.local:8080,http://search.team.svc.cluster.local:8080"
                  }
                ],
                "volumeMounts": [
                  {
                    "name": "langop-agent-config",
                    "mountPath": "/etc/agent",
                    "readOnly": true
                  }
                ]
              }
            ],
            "volumes": [
              {
                "name": "langop-agent-config",
                "configMap": {
                  "name": "helper-agent"
                }
              }
            ]
          }
        }
      }
    }
    "#);
    insta::assert_snapshot!(pretty(desired.config_map.as_ref().unwrap()), @r#"
    {
      "apiVersion": "v1",
      "kind": "ConfigMap",
      "metadata": {
        "name": "helper-agent",
        "namespace": "team",
        "labels": {
          "app.kubernetes.io/managed-by": "toolyard-operator",
          "langop.io/kind": "LanguageAgent",
          "app.kubernetes.io/name": "helper"
        },
        "ownerReferences": [
          {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "helper",
            "uid": "1-2-3",
            "controller": true
          }
        ]
      },
      "data": {
        "config.yaml": "tools:\n  memory:\n    endpoint: http://memory.team.svc.cluster.local:8080\n    protocol: mcp\n  search:\n    endpoint: http://search.team.svc.cluster.local:8080\n    protocol: mcp\n"
      }
    }
    "#);
    assert_eq!(desired.problems, []);
}

#[test]
fn sidecars_are_containers_with_the_workspace() {
    let agent = agent("shell", |spec| {
        spec["volumes"] = json!([{"name": "work", "emptyDir": {}}]);
        let mount = json!({"name": "work", "mountPath": "/workspace", "subPath": "a"});
        spec["containers"][0]["volumeMounts"] = json!([mount]);
        spec["initContainers"] = json!([{"name": "prepare", "image": "p:1"}]);
    });
    insta::assert_snapshot!(pod(&injected(&agent)), @r#"
    containers {"name":"agent","env":[{"name":"MCP_SERVERS","value":"http://localhost:9000"}],"volumeMounts":[{"name":"langop-agent-config","mountPath":"/etc/agent","readOnly":true}]}
    containers {"name":"tool-shell","image":"shell:1","ports":[{"name":"mcp","containerPort":9000,"protocol":"TCP"}],"resources":{"requests":{"cpu":"50m","memory":"128Mi"},"limits":{"cpu":"500m","memory":"1Gi"}},"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true,"runAsNonRoot":true,"runAsUser":1000,"seccompProfile":{"type":"RuntimeDefault"}},"readinessProbe":{"tcpSocket":{"port":"mcp"},"initialDelaySeconds":2,"periodSeconds":2,"timeoutSeconds":1,"failureThreshold":3},"volumeMounts":[{"name":"work","mountPath":"/workspace","subPath":"a"}]}
    initContainers {"name":"prepare","env":[{"name":"MCP_SERVERS","value":"http://localhost:9000"}],"volumeMounts":[{"name":"langop-agent-config","mountPath":"/etc/agent","readOnly":true}]}
    volumes {"name":"langop-agent-config","configMap":{"name":"helper-agent"}}
    "#);
    let facts = InjectionFacts { has_native_sidecars: true, ..InjectionFacts::default() };
    insta::assert_snapshot!(pod(&injection(&agent, &tools(), facts)), @r#"
    containers {"name":"agent","env":[{"name":"MCP_SERVERS","value":"http://localhost:9000"}],"volumeMounts":[{"name":"langop-agent-config","mountPath":"/etc/agent","readOnly":true}]}
    initContainers {"name":"prepare","env":[{"name":"MCP_SERVERS","value":"http://localhost:9000"}],"volumeMounts":[{"name":"langop-agent-config","mountPath":"/etc/agent","readOnly":true}]}
    initContainers {"name":"tool-shell","image":"shell:1","ports":[{"name":"mcp","containerPort":9000,"protocol":"TCP"}],"resources":{"requests":{"cpu":"50m","memory":"128Mi"},"limits":{"cpu":"500m","memory":"1Gi"}},"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true,"runAsNonRoot":true,"runAsUser":1000,"seccompProfile":{"type":"RuntimeDefault"}},"readinessProbe":{"tcpSocket":{"port":"mcp"},"initialDelaySeconds":2,"periodSeconds":2,"timeoutSeconds":1,"failureThreshold":3},"volumeMounts":[{"name":"work","mountPath":"/workspace","subPath":"a"}],"restartPolicy":"Always"}
    volumes {"name":"langop-agent-config","configMap":{"name":"helper-agent"}}
    "#);
}

#[test]
fn settings_of_a_tool_apply_to_its_sidecar() {
    let deployment = json!({
        "replicas": 3,
        "command": ["serve"],
        "env": [{"name": "MODE", "value": "x"}],
        "resources": {"limits": {"cpu": "1"}},
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": "mcp"}},
        "nodeSelector": {"disk": "ssd"},
    });
    let tools = BTreeMap::from([sidecar("shell", 9000, deployment)]);
    let desired = injection(&agent("shell", |_| {}), &tools, InjectionFacts::default());
    insta::assert_snapshot!(pod(&desired), @r#"
    containers {"name":"agent","env":[{"name":"MCP_SERVERS","value":"http://localhost:9000"}],"volumeMounts":[{"name":"langop-agent-config","mountPath":"/etc/agent","readOnly":true}]}
    containers {"name":"tool-shell","image":"shell:1","ports":[{"name":"mcp","containerPort":9000,"protocol":"TCP"}],"resources":{"limits":{"cpu":"1"}},"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true,"runAsNonRoot":true,"runAsUser":1000,"seccompProfile":{"type":"RuntimeDefault"}},"command":["serve"],"env":[{"name":"MODE","value":"x"}],"volumeMounts":[{"name":"scratch","mountPath":"/tmp"}],"readinessProbe":{"httpGet":{"path":"/health","port":"mcp"}}}
    volumes {"name":"langop-agent-config","configMap":{"name":"helper-agent"}}
    volumes {"name":"scratch","emptyDir":{}}
    "#);
}

#[test]
fn values_of_the_workload_win() {
    let agent = agent("memory", |spec| {
        spec["containers"] = json!([
            {"name": "own-variable", "env": [{"name": "MCP_SERVERS", "value": "http://mine"}]},
            {"name": "own-mount", "volumeMounts": [{"name": "mine", "mountPath": "/etc/agent"}]},
            {"name": "both", "env": [{"name": "MCP_SERVERS", "value": ""}],
                "volumeMounts": [{"name": "mine", "mountPath": "/etc/agent"}]},
        ]);
    });
    let desired = injected(&agent);
    insta::assert_snapshot!(pod(&desired), @r#"
    containers {"name":"own-variable","volumeMounts":[{"name":"langop-agent-config","mountPath":"/etc/agent","readOnly":true}]}
    containers {"name":"own-mount","env":[{"name":"MCP_SERVERS","value":"http://memory.team.svc.cluster.local:8080"}]}
    volumes {"name":"langop-agent-config","configMap":{"name":"helper-agent"}}
    "#);
    insta::assert_snapshot!(problems(&desired), @"container `both` mounts a volume of its own at /etc/agent: the tools are only in MCP_SERVERS; container `own-mount` mounts a volume of its own at /etc/agent: the tools are only in MCP_SERVERS");
}

#[test]
fn configuration_names_tools_in_the_order_of_references() {
    let check = |tools: &str, servers: Option<&str>, config: &str| {
        let desired = injected(&agent(tools, |_| {}));
        let container = &desired.workload["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["env"][0]["value"].as_str(), servers, "{tools}");
        let config_map = desired.config_map.unwrap_or_default();
        assert_eq!(config_map["data"][CONFIG_FILE].as_str().unwrap_or_default(), config, "{tools}");
    };
    let memory = "http://memory.team.svc.cluster.local:8080";
    let search = "http://search.team.svc.cluster.local:8080";
    let entry =
        |name: &str, endpoint: &str| format!("  {name}:\n    endpoint: {endpoint}\n    protocol: mcp\n");
    check("", None, "");
    check("missing", None, "tools: {}\n");
    check(
        "search,missing,memory,search",
        Some(&format!("{search},{memory}")),
        &format!("tools:\n{}{}", entry("search", search), entry("memory", memory)),
    );
    let other = "http://memory.other.svc.cluster.local:8080";
    check("other/memory", Some(other), &format!("tools:\n{}", entry("memory", other)));
    let number = "http://404.team.svc.cluster.local:8080";
    check("404", Some(number), &format!("tools:\n{}", entry("\"404\"", number)));
    let local = "http://localhost:9000";
    check("shell", Some(local), &format!("tools:\n{}", entry("shell", local)));
}

#[test]
fn hash_changes_with_the_configuration_only() {
    let hash = |tools: &str, edit: fn(&mut Value)| {
        let desired = injected(&agent(tools, edit));
        let annotations = &desired.workload["spec"]["template"]["metadata"]["annotations"];
        annotations[HASH_ANNOTATION].as_str().map(str::to_owned)
    };
    let unchanged = hash("memory", |_| {});
    assert_eq!(unchanged.as_deref().map(str::len), Some(16));
    assert_eq!(hash("memory,missing", |_| {}), unchanged);
    assert_eq!(hash("memory", |spec| spec["containers"][0]["image"] = "a:2".into()), unchanged);
    assert_ne!(hash("memory,search", |_| {}), unchanged);
    assert_ne!(hash("search,memory", |_| {}), hash("memory,search", |_| {}));
    assert_eq!(hash("", |_| {}), None);
}

#[test]
fn references_that_cannot_be_injected_are_problems() {
    let check_pod = |tools: &str, edit: fn(&mut Value), expected: &str| {
        assert_eq!(problems(&injected(&agent(tools, edit))), expected, "{tools}");
    };
    let check = |tools: &str, expected: &str| check_pod(tools, |_| {}, expected);
    check("memory,shell", "");
    check(
        "missing",
        "LanguageTool `missing` does not exist in namespace `team`: create it, or remove the reference",
    );
    check(
        "memory,other/memory",
        "tool `memory` is named twice, in two namespaces: tools of an agent need names of their own",
    );
    check(
        "shell,files",
        "sidecar tool `files` listens on port 9000, as container `tool-shell` does: change `spec.port` of the tool",
    );
    check("cache,index", "sidecar tool `index` brings a volume `data`, which the pod already has: rename it");
    check(
        "a-name-that-is-much-longer-than-the-names-of-containers-may-be",
        "sidecar tool `a-name-that-is-much-longer-than-the-names-of-containers-may-be` has a name of more than \
         58 characters: rename it",
    );
    check_pod(
        "shell",
        |spec| spec["containers"][0]["ports"] = json!([{"containerPort": 9000}]),
        "sidecar tool `shell` listens on port 9000, as container `agent` does: change `spec.port` of the tool",
    );
    check_pod(
        "shell",
        |spec| spec["containers"][0]["name"] = "tool-shell".into(),
        "the pod already has a container `tool-shell`: rename it, or remove the reference to the tool",
    );
    check_pod(
        "cache",
        |spec| spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]),
        "sidecar tool `cache` brings a volume `data`, which the pod already has: rename it",
    );
}

#[test]
fn sidecar_of_another_namespace_is_refused() {
    let mut agent = agent("team/shell", |_| {});
    assert_eq!(injected(&agent).problems, []);
    agent.namespace = "elsewhere".to_owned();
    assert_eq!(injected(&agent).problems, [InjectionProblem::ForeignSidecar("shell".to_owned())]);
}

#[test]
fn foreign_config_map_is_not_mounted() {
    let facts = InjectionFacts { is_config_map_taken: true, ..InjectionFacts::default() };
    let desired = injection(&agent("memory", |_| {}), &tools(), facts);
    assert_eq!(desired.config_map, None);
    assert_eq!(desired.problems, [InjectionProblem::ConfigMapTaken("helper-agent".to_owned())]);
    insta::assert_snapshot!(pod(&desired), @r#"containers {"name":"agent","env":[{"name":"MCP_SERVERS","value":"http://memory.team.svc.cluster.local:8080"}]}"#);
}

#[test]
fn injected_parts_are_not_taken_for_the_workloads_own() {
    let first = injected(&agent("memory,shell,cache", |_| {}));
    // The server merges the fields into the workload, and notes their owner.
    let mut workload = first.workload.clone();
    workload["spec"]["template"]["spec"]["containers"][0]["image"] = "a:1".into();
    let pod = AgentPod::observed(&workload, &OwnedFields::applied_by(&first.workload), WORKSPACE_PATH);
    let again = InjectedAgent { pod, ..agent("memory,shell,cache", |_| {}) };
    assert_eq!(injected(&again), first);
}

#[test]
fn refused_sidecar_is_left_out() {
    let refused = |(key, tool): (ToolKey, InjectedTool)| {
        (key, InjectedTool { refusal: Some("images from docker.io are not admitted".to_owned()), ..tool })
    };
    let tools =
        BTreeMap::from([refused(sidecar("shell", 9000, json!({}))), refused(service("team", "memory"))]);
    let desired = injection(&agent("memory, shell", |_| {}), &tools, InjectionFacts::default());
    let problems: Vec<_> = desired.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["sidecar tool `shell` is refused: images from docker.io are not admitted"]);
    let config = &desired.config_map.unwrap()["data"][CONFIG_FILE];
    // The endpoint of a Service is injected regardless of the state of the tool.
    assert!(
        config.as_str().is_some_and(|text| text.contains("memory:") && !text.contains("shell:")),
        "{config}"
    );
}
