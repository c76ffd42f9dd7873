//! The number of pods of a Deployment, and its hand-over to an autoscaler or to the user.
//!
//! The server resets a field to its default when its last manager releases it: a Deployment that the operator had scaled to
//! ten pods would have one until the autoscaler looks at it again. A manager of its own therefore takes the current number
//! over before the operator releases it. The next one that scales the Deployment takes it from that manager.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::controller::{Context, ControllerError};

/// Suffix of the field manager that keeps a number of pods.
const MANAGER_SUFFIX: &str = "-replicas";

/// Removes the bookkeeping of other field managers than the operator.
pub(super) fn keep_own_fields(deployment: &mut Deployment, manager: &str) {
    if let Some(entries) = &mut deployment.metadata.managed_fields {
        entries.retain(|entry| entry.manager.as_deref() == Some(manager));
    }
}

/// Returns the number of pods that is to be kept: the operator has set it, and the desired Deployment has none.
fn released_replicas(desired: &Deployment, observed: &Deployment, manager: &str) -> Option<i32> {
    if desired.spec.replicas.is_some() {
        return None;
    }
    let mut entries = observed.metadata.managed_fields.iter().flatten();
    let is_set = entries.any(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0["f:spec"]["f:replicas"]);
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some("Apply")
            && fields.is_some_and(|replicas| !replicas.is_null())
    });
    observed.spec.replicas.filter(|_| is_set)
}

/// Keeps the current number of pods if the operator is about to release it.
///
/// # Errors
/// If the server refuses the request.
pub(super) async fn hand_over(
    context: &Context,
    desired: &Deployment,
    observed: &Deployment,
) -> Result<(), ControllerError> {
    let manager = &context.config.manager;
    let Some(replicas) = released_replicas(desired, observed, manager) else { return Ok(()) };
    let (name, namespace) = (observed.name_any(), observed.namespace().unwrap_or_default());
    let patch = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "uid": observed.metadata.uid},
        "spec": {"replicas": replicas},
    });
    let params = PatchParams::apply(&format!("{manager}{MANAGER_SUFFIX}")).force();
    let deployments = Api::<Deployment>::namespaced(context.client.clone(), &namespace);
    deployments.patch(&name, &params, &Patch::Apply(&patch)).await?;
    context.metrics.count_write("Deployment", "apply");
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn deployment(replicas: Option<i32>, managed_fields: Value) -> Deployment {
        let object = json!({
            "metadata": {"name": "a", "managedFields": managed_fields},
            "spec": {"replicas": replicas, "selector": {}, "template": {}},
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn number_of_pods_is_kept_if_the_operator_releases_it() {
        let entry = |manager: &str, fields: Value| json!({"manager": manager, "operation": "Apply", "fieldsV1": fields});
        let replicas = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
        let check = |name: &str, desired: Option<i32>, fields: Value, expected: Option<i32>| {
            let mut observed = deployment(Some(7), fields);
            keep_own_fields(&mut observed, "operator");
            let released = released_replicas(&deployment(desired, json!([])), &observed, "operator");
            assert_eq!(released, expected, "{name}");
        };
        check("set by the operator", None, json!([entry("operator", replicas.clone())]), Some(7));
        check("still desired", Some(3), json!([entry("operator", replicas.clone())]), None);
        check("set by another manager", None, json!([entry("kubectl", replicas.clone())]), None);
        check("of other fields", None, json!([entry("operator", json!({"f:spec": {"f:paused": {}}}))]), None);
        let mut update = entry("operator", replicas);
        update["operation"] = "Update".into();
        check("updated", None, json!([update]), None);
        check("nothing", None, json!([]), None);
    }
}
