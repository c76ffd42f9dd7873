//! The network policy of a tool.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::{Value, json};

use super::resource::{LanguageTool, NetworkPeer, NetworkRule};
use super::workload::{labels, selector_labels, to_object};
use crate::controller::{ClusterFacts, OperatorConfig};
use crate::labels as names;
use crate::network_peers::operator_pods;

/// Label of a group of pods.
const GROUP: &str = "langop.io/group";

/// Ports of collectors of OpenTelemetry.
const TELEMETRY_PORTS: [u16; 2] = [4317, 4318];

/// Addresses of the names in a specification. A name without addresses is left out: nothing is admitted that is not
/// known.
pub type ResolvedNames = BTreeMap<String, BTreeSet<IpAddr>>;

/// Returns the names of a specification that have to be resolved.
#[must_use]
pub fn names_to_resolve(tool: &LanguageTool) -> BTreeSet<String> {
    let rules = tool.spec.network_policies.iter().flat_map(|rules| &rules.egress);
    let names = rules.filter_map(|rule| rule.to.as_ref()).flat_map(|peer| &peer.dns);
    names.filter(|name| *name != "*").map(|name| host_of(name).to_owned()).collect()
}

/// Returns the name that is looked up for a pattern.
fn host_of(pattern: &str) -> &str {
    pattern.strip_prefix("*.").unwrap_or(pattern)
}

/// Returns the policy: agents reach the port, and the pods reach what is listed.
pub(super) fn network_policy(
    tool: &LanguageTool,
    facts: ClusterFacts,
    config: &OperatorConfig,
    resolved: &ResolvedNames,
) -> Option<NetworkPolicy> {
    let rules = tool.spec.network_policies.clone().unwrap_or_default();
    let mut ingress = vec![json!({
        "from": clients(facts, config),
        "ports": [{"protocol": "TCP", "port": tool.spec.port}],
    })];
    ingress.extend(
        rules.ingress.iter().filter_map(|rule| user_rule("from", rule, rule.from.as_ref(), resolved)),
    );
    let mut egress = default_egress(config);
    egress.extend(rules.egress.iter().filter_map(|rule| user_rule("to", rule, rule.to.as_ref(), resolved)));
    to_object(json!({
        "metadata": {
            "name": tool.metadata.name, "namespace": tool.metadata.namespace, "labels": labels(tool),
        },
        "spec": {
            "podSelector": {"matchLabels": selector_labels(tool)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": ingress,
            "egress": egress,
        },
    }))
}

/// Returns the pods that call tools: agents of the namespace, and the operator, which lists the tools.
fn clients(facts: ClusterFacts, config: &OperatorConfig) -> Value {
    json!([
        {"podSelector": {"matchLabels": {names::LANGOP_KIND: names::LANGUAGE_AGENT}}},
        {"podSelector": {"matchLabels": {names::USES_TOOLS: "true"}}},
        operator_pods(facts, config),
    ])
}

fn default_egress(config: &OperatorConfig) -> Vec<Value> {
    let mut egress = vec![
        json!({"to": [{"podSelector": {}}]}),
        json!({
            "to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}],
            "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
        }),
    ];
    if !config.telemetry_env.is_empty() {
        egress.push(json!({"ports": TELEMETRY_PORTS.map(|port| json!({"protocol": "TCP", "port": port}))}));
    }
    let api_server = |address: &SocketAddr| {
        json!({
            "to": [{"ipBlock": {"cidr": single_address(address.ip())}}],
            "ports": [{"protocol": "TCP", "port": address.port()}],
        })
    };
    egress.extend(config.api_server.iter().map(api_server));
    egress
}

/// Returns a rule of the specification, or `None` if none of its peers is known: a rule without peers would admit all.
fn user_rule(
    member: &str,
    rule: &NetworkRule,
    peer: Option<&NetworkPeer>,
    resolved: &ResolvedNames,
) -> Option<Value> {
    let mut object = json!({});
    if let Some(peer) = peer {
        let peers = peers(peer, resolved);
        if peers.is_empty() {
            return None;
        }
        object[member] = peers.into();
    }
    let ports = rule.ports.iter().map(|port| json!({"protocol": port.protocol.name(), "port": port.port}));
    let ports: Vec<_> = ports.collect();
    if !ports.is_empty() {
        object["ports"] = ports.into();
    }
    Some(object)
}

fn peers(peer: &NetworkPeer, resolved: &ResolvedNames) -> Vec<Value> {
    let mut peers = Vec::new();
    if let Some(group) = &peer.group {
        peers.push(json!({"podSelector": {"matchLabels": {GROUP: group}}}));
    }
    if let Some(cidr) = &peer.cidr {
        peers.push(json!({"ipBlock": {"cidr": cidr}}));
    }
    for name in &peer.dns {
        match name.as_str() {
            "*" => peers.extend(["0.0.0.0/0", "::/0"].map(|cidr| json!({"ipBlock": {"cidr": cidr}}))),
            name => {
                let addresses = resolved.get(host_of(name)).into_iter().flatten();
                peers.extend(addresses.map(|address| json!({"ipBlock": {"cidr": single_address(*address)}})));
            }
        }
    }
    if let Some(service) = &peer.service {
        let mut object = json!({"podSelector": {"matchLabels": {names::NAME: service.name}}});
        if let Some(namespace) = &service.namespace {
            object["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
        }
        peers.push(object);
    }
    if peer.namespace_selector.is_some() || peer.pod_selector.is_some() {
        let mut object = json!({});
        if let Some(selector) = &peer.namespace_selector {
            object["namespaceSelector"] = json!(selector);
        }
        if let Some(selector) = &peer.pod_selector {
            object["podSelector"] = json!(selector);
        }
        peers.push(object);
    }
    peers
}

fn single_address(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("{address}/32"),
        IpAddr::V6(address) => format!("{address}/128"),
    }
}

/// Returns `true` for a block of addresses, such as `10.0.0.0/8`.
pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let maximum = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.parse::<u8>().is_ok_and(|length| length <= maximum)
}
