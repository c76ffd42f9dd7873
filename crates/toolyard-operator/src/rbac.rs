//! The rights of the operator in the cluster: each one is used, and no other is needed.
//!
//! The chart and the manifests contain the texts of [`RuleSet::yaml`]; tests compare them, and run the controllers with
//! these rights alone.

use serde_json::{Value, json};

/// A right of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessRule {
    /// Group of the API; empty for the core.
    pub group: &'static str,
    /// The resources.
    pub resources: &'static [&'static str],
    /// Names of the objects; empty for all.
    pub names: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
}

const fn rule(
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
) -> AccessRule {
    AccessRule { group, resources, names: &[], verbs }
}

/// Rights on objects that the operator creates. Server-side apply is `patch`, and `create` for a new object.
const OWNED: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];

/// Rights in all namespaces of the cluster, or in the one that is watched.
const NAMESPACED: &[AccessRule] = &[
    // The resources of the operator. `patch` sets the finalizer.
    rule("langop.io", &["languagetools"], &["list", "patch", "watch"]),
    rule("omnia.altairalabs.ai", &["toolregistries"], &["list", "watch"]),
    rule("langop.io", &["languagetools/status"], &["patch"]),
    rule("omnia.altairalabs.ai", &["toolregistries/status"], &["patch"]),
    // Objects of tools, of gateways and of injections. Deployments are injected into as well.
    rule("apps", &["deployments"], OWNED),
    rule("", &["configmaps", "services"], OWNED),
    rule("networking.k8s.io", &["networkpolicies"], OWNED),
    rule("autoscaling", &["horizontalpodautoscalers"], &["create", "delete", "get", "patch"]),
    rule("events.k8s.io", &["events"], &["create", "patch"]),
];

/// Rights in the same namespaces that only the injection into agents needs.
const INJECTION: &[AccessRule] = &[
    // Agents, and workloads that are injected into. Of workloads only the metadata is watched.
    rule("langop.io", &["languageagents"], &["list", "watch"]),
    rule("apps", &["statefulsets"], &["get", "list", "patch", "watch"]),
    // A pod with a tool as sidecar, to ask it for its tools.
    rule("", &["pods"], &["list"]),
];

const fn definitions(names: &'static [&'static str]) -> AccessRule {
    AccessRule {
        group: "apiextensions.k8s.io",
        resources: &["customresourcedefinitions"],
        names,
        verbs: &["get", "list", "watch"],
    }
}

/// Rights on the definitions that the operator waits for.
const DEFINITIONS: &[AccessRule] =
    &[definitions(&["languagetools.langop.io", "toolregistries.omnia.altairalabs.ai"])];

/// Rights on the definition that only the injection into agents waits for.
const INJECTION_DEFINITIONS: &[AccessRule] = &[definitions(&["languageagents.langop.io"])];

/// Rights in the namespace of the operator.
const ELECTION: &[AccessRule] = &[rule("coordination.k8s.io", &["leases"], &["create", "get", "update"])];

/// Rights that are granted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleSet {
    /// In all namespaces, or in the one that is watched.
    Namespaced,
    /// There, for the injection into agents.
    Injection,
    /// In the cluster.
    Definitions,
    /// In the cluster, for the injection into agents.
    InjectionDefinitions,
    /// In the namespace of the operator.
    Election,
}

impl RuleSet {
    /// All sets.
    pub const ALL: [Self; 5] =
        [Self::Namespaced, Self::Injection, Self::Definitions, Self::InjectionDefinitions, Self::Election];

    /// The rights of this set.
    #[must_use]
    pub const fn rules(self) -> &'static [AccessRule] {
        match self {
            Self::Namespaced => NAMESPACED,
            Self::Injection => INJECTION,
            Self::Definitions => DEFINITIONS,
            Self::InjectionDefinitions => INJECTION_DEFINITIONS,
            Self::Election => ELECTION,
        }
    }

    /// Returns `true` for a set that only the injection into agents needs.
    #[must_use]
    pub const fn is_for_injection(self) -> bool {
        matches!(self, Self::Injection | Self::InjectionDefinitions)
    }

    /// The rights as `rules` of a role.
    #[must_use]
    pub fn objects(self) -> Vec<Value> {
        let object = |rule: &AccessRule| {
            let mut object = json!({"apiGroups": [rule.group], "resources": rule.resources});
            if !rule.names.is_empty() {
                object["resourceNames"] = json!(rule.names);
            }
            object["verbs"] = json!(rule.verbs);
            object
        };
        self.rules().iter().map(object).collect()
    }

    /// The rights as YAML, without a final line end.
    #[must_use]
    pub fn yaml(self) -> String {
        let rule = |rule: &Value| {
            let members = rule.as_object().into_iter().flatten();
            let lines: Vec<_> = members.map(|(name, list)| format!("{name}: {list}")).collect();
            format!("- {}", lines.join("\n  "))
        };
        self.objects().iter().map(rule).collect::<Vec<_>>().join("\n")
    }
}

/// The account of the operator, and the namespaces of its rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RbacConfig {
    /// Name of the account, the roles and the bindings.
    pub name: String,
    /// Namespace of the operator.
    pub namespace: String,
    /// The only namespace that is watched; `None` for all.
    pub watched_namespace: Option<String>,
    /// Grants the rights for the injection into agents.
    pub injection: bool,
}

/// Returns the account, the roles and their bindings.
#[must_use]
pub fn objects(config: &RbacConfig) -> Vec<Value> {
    let RbacConfig { name, namespace, watched_namespace, injection } = config;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace},
    });
    let watched = watched_namespace.as_deref();
    let mut objects = vec![account];
    for (sets, suffix, namespace) in [
        (&[RuleSet::Namespaced, RuleSet::Injection][..], "", watched),
        (&[RuleSet::Definitions, RuleSet::InjectionDefinitions], "-definitions", None),
        (&[RuleSet::Election], "-election", Some(namespace.as_str())),
    ] {
        let granted = sets.iter().filter(|set| *injection || !set.is_for_injection());
        let rules: Vec<_> = granted.flat_map(|set| set.objects()).collect();
        objects.extend(role(config, &format!("{name}{suffix}"), namespace, &rules));
    }
    objects
}

/// Returns a role and its binding, of the cluster or of a namespace.
fn role(config: &RbacConfig, name: &str, namespace: Option<&str>, rules: &[Value]) -> [Value; 2] {
    const API: &str = "rbac.authorization.k8s.io";
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    let version = format!("{API}/v1");
    let subject = json!({"kind": "ServiceAccount", "name": config.name, "namespace": config.namespace});
    [
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": API, "kind": kind, "name": name},
            "subjects": [subject],
        }),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn chart_file(set: RuleSet) -> PathBuf {
        let name = match set {
            RuleSet::Namespaced => "namespaced",
            RuleSet::Injection => "injection",
            RuleSet::Definitions => "definitions",
            RuleSet::InjectionDefinitions => "injection-definitions",
            RuleSet::Election => "election",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../deploy/helm/toolyard/rbac/{name}.yaml"))
    }

    #[test]
    fn rules_of_the_chart_are_current() {
        for set in RuleSet::ALL {
            let (path, text) = (chart_file(set), format!("{}\n", set.yaml()));
            if std::env::var_os("TOOLYARD_WRITE_MANIFESTS").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(
                committed == text,
                "{} is out of date: run this test with TOOLYARD_WRITE_MANIFESTS=1",
                path.display()
            );
        }
    }

    #[test]
    fn secrets_and_wildcards_are_no_rights() {
        for rule in RuleSet::ALL.iter().flat_map(|set| set.rules()) {
            let all = [rule.resources, rule.verbs, rule.names].concat();
            assert!(all.iter().all(|name| !name.contains('*') && *name != "secrets"), "{rule:?}");
        }
    }

    #[test]
    fn operator_of_one_namespace_has_a_role_there() {
        let config = RbacConfig {
            name: "toolyard-operator".to_owned(),
            namespace: "toolyard".to_owned(),
            watched_namespace: Some("team".to_owned()),
            injection: true,
        };
        let line = |object: &Value| {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("-");
            format!("{} {} {namespace}", object["kind"].as_str().unwrap(), object["metadata"]["name"])
        };
        let lines: Vec<_> = objects(&config).iter().map(line).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        ServiceAccount "toolyard-operator" toolyard
        Role "toolyard-operator" team
        RoleBinding "toolyard-operator" team
        ClusterRole "toolyard-operator-definitions" -
        ClusterRoleBinding "toolyard-operator-definitions" -
        Role "toolyard-operator-election" toolyard
        RoleBinding "toolyard-operator-election" toolyard
        "#);
    }

    #[test]
    fn operator_without_injection_has_no_right_on_agents_and_their_workloads() {
        let granted = |injection: bool| {
            let config = RbacConfig {
                name: "toolyard-operator".to_owned(),
                namespace: "toolyard".to_owned(),
                watched_namespace: None,
                injection,
            };
            let objects = objects(&config);
            let rules: Vec<_> =
                objects.iter().filter_map(|object| object["rules"].as_array()).flatten().collect();
            let texts: Vec<_> = rules.iter().map(ToString::to_string).collect();
            ["languageagents\"", "languageagents.langop.io", "statefulsets", "pods"]
                .map(|name| texts.iter().any(|text| text.contains(name)))
        };
        assert_eq!(granted(true), [true; 4]);
        assert_eq!(granted(false), [false; 4]);
    }
}
