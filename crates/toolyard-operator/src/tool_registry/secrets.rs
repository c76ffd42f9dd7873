//! The secrets that a registry refers to. Only their names and keys are read, never their content.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Keys of secrets, by the names of the secrets.
pub(super) type SecretKeys = BTreeMap<String, BTreeSet<String>>;

/// Fields with free content, in which a member that looks like a reference is none.
const FREE_CONTENT: [&str; 7] =
    ["inputSchema", "outputSchema", "spec", "staticBody", "env", "headers", "overrides"];

/// Adds the secrets that a handler refers to.
pub(super) fn add_secrets(handler: &Value, secrets: &mut SecretKeys) {
    let Some(members) = handler.as_object() else { return };
    for (name, value) in members.iter().filter(|(name, _)| !FREE_CONTENT.contains(&name.as_str())) {
        if !name.to_ascii_lowercase().ends_with("secretref") {
            add_secrets(value, secrets);
        } else if let (Some(secret), Some(key)) = (value["name"].as_str(), value["key"].as_str()) {
            secrets.entry(secret.to_owned()).or_default().insert(key.to_owned());
        }
    }
}
