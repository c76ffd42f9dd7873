//! Peers of network policies.

use serde_json::{Value, json};

use crate::controller::{ClusterFacts, OperatorConfig};
use crate::labels;

/// Returns the pods of the operator, which lists tools and reads the status of gateways.
pub(crate) fn operator_pods(facts: ClusterFacts, config: &OperatorConfig) -> Value {
    // Earlier versions do not label namespaces with their names.
    let namespaces = match facts.labels_namespaces() {
        true => json!({"matchLabels": {"kubernetes.io/metadata.name": config.operator_namespace}}),
        false => json!({}),
    };
    json!({
        "namespaceSelector": namespaces,
        "podSelector": {"matchLabels": {labels::NAME: labels::MANAGER}},
    })
}
