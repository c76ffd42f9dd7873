//! Push notifications: the URLs that an agent notifies of the changes of a task.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ProtocolVersion, or_default};

/// Name of the header with the token of a notification.
pub const TOKEN_HEADER: &str = "x-a2a-notification-token";

/// Media type of a notification.
pub const MEDIA_TYPE: &str = "application/a2a+json";

/// A URL that is notified of the changes of a task.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushConfig {
    /// Id, unique in its task.
    #[serde(default, deserialize_with = "or_default")]
    pub id: String,
    /// The task.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub task_id: String,
    /// The URL.
    pub url: String,
    /// Token that notifications repeat.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// Credentials of the notifications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<PushAuthentication>,
}

/// Credentials of notifications.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushAuthentication {
    /// Scheme of HTTP, such as `Bearer`.
    pub scheme: String,
    /// Credentials of the scheme.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub credentials: String,
}

impl PushConfig {
    /// Returns the configuration of a message, with the name of its member, in a version of the protocol. The token is also
    /// its credentials.
    #[must_use]
    pub fn of_message(url: &str, token: &str, version: ProtocolVersion) -> (&'static str, Value) {
        let credentials = |schemes: &str, scheme: Value| json!({schemes: scheme, "credentials": token});
        match version {
            ProtocolVersion::V1 => {
                let authentication = credentials("scheme", json!("Bearer"));
                let config = json!({"url": url, "token": token, "authentication": authentication});
                ("taskPushNotificationConfig", config)
            }
            ProtocolVersion::V03 => {
                let authentication = credentials("schemes", json!(["Bearer"]));
                let config = json!({"url": url, "token": token, "authentication": authentication});
                ("pushNotificationConfig", config)
            }
        }
    }
}

/// Shows the id. URL, token and credentials are secret.
impl fmt::Debug for PushConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushConfig")
            .field("id", &self.id)
            .field("task_id", &self.task_id)
            .finish_non_exhaustive()
    }
}

/// Shows the scheme.
impl fmt::Debug for PushAuthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushAuthentication").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}
