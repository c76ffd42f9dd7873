//! Registration of the webhook.

use serde_json::{Value, json};

use super::VALIDATE_PATH;

/// Time limit of the API server for an answer, in seconds.
const TIMEOUT_SECONDS: u32 = 5;

/// The address at which the API server reaches the webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookClient {
    /// The Service of the operator.
    Service {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
        /// Its port.
        port: u16,
    },
    /// `https://HOST:PORT`, without a path.
    Url(String),
}

/// Returns the `ValidatingWebhookConfiguration` for both resources. `ca_bundle` is the certificate of the authority, in
/// Base64 of PEM.
#[must_use]
pub fn configuration(name: &str, client: &WebhookClient, ca_bundle: &str) -> Value {
    let mut config = match client {
        WebhookClient::Service { name, namespace, port } => {
            json!({"service": {"name": name, "namespace": namespace, "port": port, "path": VALIDATE_PATH}})
        }
        WebhookClient::Url(url) => json!({"url": format!("{url}{VALIDATE_PATH}")}),
    };
    config["caBundle"] = ca_bundle.into();
    let rule = |group: &str, plural: &str| {
        json!({
            "apiGroups": [group], "apiVersions": ["v1alpha1"], "operations": ["CREATE", "UPDATE"],
            "resources": [plural], "scope": "Namespaced",
        })
    };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "resources.toolyard.dev",
            "admissionReviewVersions": ["v1"],
            "clientConfig": config,
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "rules": [
                rule("langop.io", "languagetools"),
                rule("omnia.altairalabs.ai", "toolregistries"),
            ],
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT_SECONDS,
        }],
    })
}
