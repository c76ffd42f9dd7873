//! Arguments of calls in records: their digest, or the arguments without secrets.

use std::borrow::Cow;

use serde_json::Value;
use sha2::{Digest, Sha256};
use toolyard_core::Json;
use toolyard_core::secrets::{REDACTED, hide_sealed_ids};

use crate::keys::key::hex;

/// Returns the digest of the text as sent. Another order of members gives another digest.
pub(super) fn digest(arguments: &Json) -> String {
    format!("sha256:{}", hex(&Sha256::digest(arguments.as_bytes())))
}

/// Returns the arguments without the values of members of these names, in lower case, and without sealed ids.
pub(super) fn redacted_value(arguments: &Json, redact: &[String]) -> Value {
    let mut value = arguments.to_value();
    redact_value(&mut value, redact);
    value
}

fn redact_value(value: &mut Value, redact: &[String]) {
    match value {
        Value::Object(members) => {
            for (name, mut value) in std::mem::take(members) {
                match redact.contains(&name.to_lowercase()) {
                    true => value = Value::from(REDACTED),
                    false => redact_value(&mut value, redact),
                }
                members.insert(hide_sealed_ids(&name).into_owned(), value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(item, redact)),
        Value::String(text) => {
            if let Cow::Owned(hidden) = hide_sealed_ids(text) {
                *text = hidden;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_ids_are_not_recorded() {
        let arguments = serde_json::json!({
            "key": "session/tyid_AAAA/tool-a-1",
            "arguments": {"keys": ["tyid_BBBB"], "password": "x", "text": "{\"key\": \"tyid_CCCC\"}"},
            "tyid_DDDD": 1,
        });
        let recorded = redacted_value(&Json::from_value(&arguments), &["password".to_owned()]);
        let expected = serde_json::json!({
            "key": "session/[REDACTED]/tool-a-1",
            "arguments": {"keys": ["[REDACTED]"], "password": "[REDACTED]", "text": "{\"key\": \"[REDACTED]\"}"},
            "[REDACTED]": 1,
        });
        assert_eq!(recorded, expected);
    }
}
