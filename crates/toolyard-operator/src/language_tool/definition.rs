//! The definition of the resource, as it is installed in a cluster.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Value, json};

use super::LanguageTool;

/// Name of the definition.
pub const DEFINITION: &str = "languagetools.langop.io";

/// Levels of the schema of the specification that keep their descriptions. Those of Kubernetes' own types below would
/// make the definition too large for `kubectl apply`.
const DESCRIBED_LEVELS: usize = 3;

/// Start of Kubernetes' description of quantities, which also may be numbers.
const QUANTITY: &str = "Quantity is a fixed-point representation";

/// Returns the definition of the resource.
#[must_use]
pub fn definition() -> CustomResourceDefinition {
    let mut definition = LanguageTool::crd();
    for version in &mut definition.spec.versions {
        let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut())
        else {
            continue;
        };
        let Ok(mut value) = serde_json::to_value(&*schema) else { continue };
        value["description"] = "An MCP server in the cluster.".into();
        value["properties"]["metadata"] = metadata();
        rewrite(&mut value["properties"]["spec"], DESCRIBED_LEVELS);
        rewrite(&mut value["properties"]["status"], DESCRIBED_LEVELS);
        if let Ok(rewritten) = serde_json::from_value(value) {
            *schema = rewritten;
        }
    }
    definition
}

/// Restricts names to those of Services, which the operator creates with them.
fn metadata() -> Value {
    json!({"type": "object", "properties": {"name": {
        "type": "string", "maxLength": 63, "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$",
    }}})
}

/// Admits numbers as quantities, and removes the descriptions of Kubernetes' own types. The depth is that of the types
/// of Kubernetes.
fn rewrite(schema: &mut Value, levels: usize) {
    let Value::Object(members) = schema else { return };
    let is_quantity =
        members.get("description").and_then(Value::as_str).is_some_and(|text| text.starts_with(QUANTITY));
    if is_quantity {
        members.remove("type");
        members.insert("x-kubernetes-int-or-string".to_owned(), true.into());
    }
    if levels == 0 || is_quantity {
        members.remove("description");
    }
    for (name, value) in members {
        match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(|property| rewrite(property, levels.saturating_sub(1)));
            }
            ("items" | "additionalProperties", value) => rewrite(value, levels),
            _ => {}
        }
    }
}
