//! Security contexts of the pods that the operator describes: those of the *restricted* standard of Kubernetes.

use serde_json::{Value, json};

/// User of tools that name none.
pub(crate) const TOOL_USER: i64 = 1000;

/// Returns the security context of a container.
pub(crate) fn restricted_container() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
    })
}

/// Returns the security context of a pod whose processes have this user. The members are valid for a container as well.
pub(crate) fn restricted_pod(user: i64) -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}
