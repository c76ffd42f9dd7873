//! The digest of a definition.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;
use toolyard_core::Tool;

use crate::keys::key::hex;

/// The members that define a tool. Other members, such as `_meta`, may differ in each list.
const MEMBERS: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// The digest of a tool's definition, as `sha256:` and hexadecimal digits. Independent of whitespace and the order of
/// members.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DefinitionDigest(pub(super) Arc<str>);

impl DefinitionDigest {
    /// Computes the digest of an offered tool.
    pub(super) fn of(tool: &Tool) -> Self {
        let mut text = String::new();
        for member in MEMBERS {
            if let Some(value) = tool.definition.get(member) {
                text.push_str(member);
                text.push(':');
                match serde_json::from_str::<Value>(value.as_text()) {
                    Ok(value) => write(&value, &mut text),
                    // Parsing fails for values that are nested too deeply.
                    Err(_) => text.push_str(value.as_text()),
                }
                text.push('\n');
            }
        }
        let digest = <Sha256 as sha2::Digest>::digest(text.as_bytes());
        Self(format!("sha256:{}", hex(&digest)).into())
    }
}

impl fmt::Display for DefinitionDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Writes a value with its members in the order of their names.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (name, value) in members {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}
