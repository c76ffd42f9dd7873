//! Problems of a specification that its schema cannot express.

use std::collections::BTreeSet;

use super::network::is_cidr;
use super::resource::{DeploymentMode, LanguageTool, NetworkPeer, NetworkRule};
use super::workload::reserved_labels;
use crate::agent_injection::MAX_NAME as MAX_SIDECAR_NAME;
use crate::text::is_dns_label;

/// A problem of a specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecProblem {
    /// Path of the field.
    pub field: String,
    /// The fault and the remedy.
    pub message: String,
}

impl std::fmt::Display for SpecProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Maximum length of a label.
const LABEL: usize = 63;

/// Returns the problems of a specification. An object with problems is not deployed.
#[must_use]
pub fn problems(tool: &LanguageTool) -> Vec<SpecProblem> {
    let mut list = ProblemList::default();
    list.check_name(tool);
    list.check_pods(tool);
    if let Some(rules) = &tool.spec.network_policies {
        for (index, rule) in rules.ingress.iter().enumerate() {
            list.check_rule(&format!("spec.networkPolicies.ingress[{index}]"), rule, true);
        }
        for (index, rule) in rules.egress.iter().enumerate() {
            list.check_rule(&format!("spec.networkPolicies.egress[{index}]"), rule, false);
        }
    }
    list.problems
}

#[derive(Default)]
struct ProblemList {
    problems: Vec<SpecProblem>,
}

impl ProblemList {
    fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.problems.push(SpecProblem { field: field.into(), message: message.into() });
    }

    fn check_name(&mut self, tool: &LanguageTool) {
        let name = tool.metadata.name.as_deref().unwrap_or_default();
        if !is_service_name(name) {
            let message = format!(
                "`{name}` is not a name of a Service: use at most {LABEL} lower-case letters, digits and `-`, a letter first"
            );
            self.add("metadata.name", message);
        } else if tool.spec.deployment_mode == DeploymentMode::Sidecar && name.len() > MAX_SIDECAR_NAME {
            let message = format!(
                "the name of a sidecar has at most {MAX_SIDECAR_NAME} characters, this one has {}: its container is `tool-NAME`",
                name.len()
            );
            self.add("metadata.name", message);
        }
        if tool.spec.image.chars().any(char::is_whitespace) || tool.spec.image.is_empty() {
            self.add("spec.image", "not a reference of an image, such as `registry.example.com/tool:1.0`");
        }
    }

    fn check_pods(&mut self, tool: &LanguageTool) {
        let Some(deployment) = &tool.spec.deployment else { return };
        if let Some(scaling) = &deployment.autoscaling {
            let minimum = scaling.min_replicas.unwrap_or(1);
            if scaling.max_replicas.is_some_and(|maximum| maximum < minimum) {
                let message = format!("less than `minReplicas`, which is {minimum}");
                self.add("spec.deployment.autoscaling.maxReplicas", message);
            }
        }
        for label in deployment.pod_labels.keys().filter(|label| reserved_labels().contains(&label.as_str()))
        {
            let message = format!("`{label}` is set by the operator: remove it");
            self.add("spec.deployment.podLabels", message);
        }
        let mut names = BTreeSet::from(["tool"]);
        for (index, container) in deployment.init_containers.iter().enumerate() {
            let field = format!("spec.deployment.initContainers[{index}]");
            if !names.insert(&container.name) {
                let message =
                    format!("another container of the pod is named `{}`: rename it", container.name);
                self.add(format!("{field}.name"), message);
            }
            // A sidecar of the tool's own shares the ports of its pod.
            let mut ports = container.ports.iter().flatten();
            if ports.any(|port| port.container_port == tool.spec.port) {
                let message =
                    format!("port {} is the tool's own, `spec.port`: choose another", tool.spec.port);
                self.add(format!("{field}.ports"), message);
            }
        }
        let volumes: BTreeSet<_> = deployment.volumes.iter().map(|volume| volume.name.as_str()).collect();
        for (index, mount) in deployment.volume_mounts.iter().enumerate() {
            if !volumes.contains(mount.name.as_str()) {
                let message =
                    format!("no volume is named `{}`: add it to `spec.deployment.volumes`", mount.name);
                self.add(format!("spec.deployment.volumeMounts[{index}].name"), message);
            }
        }
    }

    fn check_rule(&mut self, field: &str, rule: &NetworkRule, is_ingress: bool) {
        let (peer, name, other, other_name) = match is_ingress {
            true => (&rule.from, "from", &rule.to, "to"),
            false => (&rule.to, "to", &rule.from, "from"),
        };
        if other.is_some() {
            let direction = if is_ingress { "ingress" } else { "egress" };
            let message = format!("not for {direction}: use `{name}`");
            self.add(format!("{field}.{other_name}"), message);
        }
        if let Some(peer) = peer {
            self.check_peer(&format!("{field}.{name}"), peer, is_ingress);
        }
    }

    fn check_peer(&mut self, field: &str, peer: &NetworkPeer, is_ingress: bool) {
        if *peer == NetworkPeer::default() {
            let message = "empty: set `group`, `cidr`, `dns`, `service`, `namespaceSelector` or `podSelector`, or remove it to admit any peer";
            self.add(field, message);
        }
        if let Some(cidr) = peer.cidr.as_deref().filter(|cidr| !is_cidr(cidr)) {
            let message = format!("`{cidr}` is not a block of addresses, such as `10.0.0.0/8`");
            self.add(format!("{field}.cidr"), message);
        }
        if is_ingress && !peer.dns.is_empty() {
            let message = "names are for egress only: the source of traffic is an address";
            self.add(format!("{field}.dns"), message);
        }
        for (index, name) in peer.dns.iter().enumerate().filter(|(_, name)| !is_dns_pattern(name)) {
            let message =
                format!("`{name}` is not a name, such as `api.example.com`, `*.example.com` or `*`");
            self.add(format!("{field}.dns[{index}]"), message);
        }
    }
}

/// Returns `true` for labels of RFC 1035, which the names of Services are.
fn is_service_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase()) && is_dns_label(name)
}

fn is_dns_pattern(name: &str) -> bool {
    let host = name.strip_prefix("*.").unwrap_or(name);
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    name == "*" || (host.len() <= 253 && host.split('.').all(|label| is_dns_label(&label.replace('_', "a"))))
}
