//! Admission of resources: the validating webhook of the API server.
//!
//! - [`review`]: the answer to one request, as a pure function;
//! - [`problems`]: the problems of a resource;
//! - [`BoundWebhook`]: its listener; `certificate`: the certificate, which is renewed while it serves;
//! - [`configuration`]: the registration of the webhook at the API server.
//!
//! The schemas of the definitions refuse most of what is invalid. The webhook refuses the rest before it is stored, with
//! the same messages as the conditions of a stored resource have. It changes nothing: tools are injected by patching
//! workloads, so that no pod of the cluster depends on the operator.

mod certificate;
mod configuration;
mod listener;
mod review;

pub use certificate::{CertificateError, CertificateFiles};
pub use configuration::{WebhookClient, configuration};
pub use listener::{BoundWebhook, ObjectValidator, WebhookError, WebhookOptions};
pub use review::{REVIEW_BYTES, ReviewError, VALIDATE_PATH, review};

use serde_json::Value;

use crate::language_tool::{self, LanguageTool};
use crate::tool_registry;

/// Returns the problems of a resource of the operator, one text each; none for other kinds.
#[must_use]
pub fn problems(kind: &str, object: &Value) -> Vec<String> {
    match kind {
        "LanguageTool" => match serde_json::from_value::<LanguageTool>(object.clone()) {
            Ok(tool) => language_tool::problems(&tool).iter().map(ToString::to_string).collect(),
            Err(error) => vec![format!("spec: {error}")],
        },
        "ToolRegistry" => tool_registry::problems(object).iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}
