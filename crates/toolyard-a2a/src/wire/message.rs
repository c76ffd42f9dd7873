//! Messages and their parts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{ProtocolVersion, or_default};

/// Sender of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The client.
    #[serde(rename = "ROLE_USER", alias = "user")]
    User,
    /// The agent.
    #[serde(rename = "ROLE_AGENT", alias = "agent")]
    Agent,
    /// Unknown.
    #[default]
    #[serde(rename = "ROLE_UNSPECIFIED", other)]
    Unspecified,
}

/// A message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Id, which its sender has chosen.
    #[serde(default, deserialize_with = "or_default")]
    pub message_id: String,
    /// Conversation that the message belongs to.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub context_id: String,
    /// Task that the message belongs to.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub task_id: String,
    /// Sender.
    #[serde(default, deserialize_with = "or_default")]
    pub role: Role,
    /// Content.
    #[serde(default, deserialize_with = "or_default")]
    pub parts: Vec<Part>,
    /// Further values by name.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// A part of a message or of an artifact: one of `text`, `raw`, `url` and `data`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Part {
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Bytes of a file in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// URL of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Name of a file.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub filename: String,
    /// Media type of the content.
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// A file of version 0.3.
    #[serde(default, skip_serializing)]
    pub file: Option<FilePart>,
}

/// A file of version 0.3.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FilePart {
    /// URL of the file.
    pub uri: Option<String>,
    /// Name of the file.
    pub name: Option<String>,
    /// Media type of the file.
    pub mime_type: Option<String>,
}

impl Part {
    /// Returns a part with this text.
    #[must_use]
    pub fn of_text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), media_type: "text/plain".to_owned(), ..Self::default() }
    }

    /// Returns a part with this JSON value.
    #[must_use]
    pub fn of_data(data: Value) -> Self {
        Self { data: Some(data), media_type: "application/json".to_owned(), ..Self::default() }
    }

    /// Returns the part as a model reads it: a text as it is, data as JSON, and a file by its name and URL.
    #[must_use]
    pub fn to_text(&self) -> String {
        if let Some(text) = &self.text {
            return text.clone();
        }
        if let Some(data) = &self.data {
            return data.to_string();
        }
        let file = self.file.clone().unwrap_or_default();
        let name = (!self.filename.is_empty()).then(|| self.filename.clone()).or(file.name);
        let kind = (!self.media_type.is_empty()).then(|| self.media_type.clone()).or(file.mime_type);
        let url = self.url.clone().or(file.uri);
        let words = ["file".to_owned()].into_iter().chain(name).chain(kind).chain(url);
        format!("[{}]", words.collect::<Vec<_>>().join(" "))
    }
}

impl Message {
    /// Returns a message of a client with this text.
    #[must_use]
    pub fn of_user(id: String, text: impl Into<String>) -> Self {
        Self { message_id: id, role: Role::User, parts: vec![Part::of_text(text)], ..Self::default() }
    }

    /// Returns a message of an agent with this text.
    #[must_use]
    pub fn of_agent(id: String, text: impl Into<String>) -> Self {
        Self { role: Role::Agent, ..Self::of_user(id, text) }
    }

    /// Returns the parts as a model reads them.
    #[must_use]
    pub fn to_text(&self) -> String {
        parts_text(&self.parts)
    }

    /// Returns the JSON of the message in a version of the protocol.
    #[must_use]
    pub fn to_json(&self, version: ProtocolVersion) -> Value {
        let mut message = serde_json::to_value(self).unwrap_or_default();
        if version == ProtocolVersion::V03 {
            message["kind"] = json!("message");
            message["role"] = json!(if self.role == Role::Agent { "agent" } else { "user" });
            let parts = self.parts.iter().map(|part| match &part.data {
                Some(data) => json!({"kind": "data", "data": data}),
                None => json!({"kind": "text", "text": part.to_text()}),
            });
            message["parts"] = parts.collect();
        }
        message
    }
}

/// Returns parts as a model reads them, each on lines of its own.
#[must_use]
pub fn parts_text(parts: &[Part]) -> String {
    parts.iter().map(Part::to_text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_all_versions_are_read() {
        let check = |part: Value, expected: &str| {
            let part: Part = serde_json::from_value(part).expect("a part");
            assert_eq!(part.to_text(), expected);
        };
        check(json!({"text": "a"}), "a");
        check(json!({"kind": "text", "text": "a", "metadata": {}}), "a");
        check(json!({"data": {"n": 1}}), r#"{"n":1}"#);
        check(json!({"kind": "data", "data": [1]}), "[1]");
        check(
            json!({"url": "http://a/x.png", "filename": "x.png", "mediaType": "image/png"}),
            "[file x.png image/png http://a/x.png]",
        );
        check(json!({"raw": "AAAA", "filename": "x"}), "[file x]");
        check(
            json!({"kind": "file", "file": {"uri": "http://a", "mimeType": "text/csv", "name": "a.csv"}}),
            "[file a.csv text/csv http://a]",
        );
        check(json!({"kind": "new"}), "[file]");
    }

    #[test]
    fn messages_are_written_in_both_versions() {
        let check = |version, expected: Value| {
            assert_eq!(Message::of_user("m1".to_owned(), "hi").to_json(version), expected);
        };
        check(
            ProtocolVersion::V1,
            json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi", "mediaType": "text/plain"}]}),
        );
        check(
            ProtocolVersion::V03,
            json!({"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "hi"}]}),
        );
    }
}
