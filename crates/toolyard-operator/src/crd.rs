//! Definitions of the resources.
//!
//! `structural` converts the JSON Schema of manifests into the dialect of Kubernetes.

pub mod structural;

use serde_json::Value;

use crate::{language_tool, tool_registry};

/// Returns the `CustomResourceDefinition`s of the operator.
#[must_use]
pub fn definitions() -> Vec<Value> {
    // Serializing the type of Kubernetes cannot fail.
    let language_tools = serde_json::to_value(language_tool::definition()).unwrap_or_default();
    vec![language_tools, tool_registry::definition()]
}

/// Returns the definitions as YAML. `deploy/kubernetes/crds.yaml` is a copy.
#[must_use]
pub fn yaml() -> String {
    const HEAD: &str = "# Definitions of the operator's resources, written by `cargo xtask reference`.\n";
    let documents: Vec<_> = definitions().iter().map(toolyard_manifest::to_yaml).collect();
    format!("{HEAD}{}", documents.join("---\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_definitions_are_current() {
        let committed = include_str!("../../../deploy/kubernetes/crds.yaml");
        assert!(
            committed == yaml(),
            "deploy/kubernetes/crds.yaml is out of date: run `cargo xtask reference`"
        );
    }
}
