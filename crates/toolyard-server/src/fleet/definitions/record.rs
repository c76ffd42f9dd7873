//! Stored definitions: digests, and the definitions themselves if they are held.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolyard_core::{Json, Tool};
use toolyard_manifest as manifest;
use toolyard_manifest::DefinitionPin;

use super::{AcceptedDefinition, DefinitionDigest, HandlerDefinitions, PendingDefinition};

/// Maximum bytes of stored definitions per handler. Others are stored as digests only: if they change while the gateway
/// is stopped, they are not served until accepted.
const MAX_DEFINITION_BYTES: usize = 4 << 20;

#[derive(Serialize, Deserialize)]
struct DefinitionRecord {
    tools: BTreeMap<Arc<str>, StoredDefinition>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pending: BTreeMap<Arc<str>, StoredPending>,
}

#[derive(Serialize, Deserialize)]
struct StoredDefinition {
    digest: DefinitionDigest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<Box<RawValue>>,
}

#[derive(Serialize, Deserialize)]
struct StoredPending {
    digest: DefinitionDigest,
    /// Milliseconds since 1970.
    time: u64,
}

pub(super) fn encode(definitions: &HandlerDefinitions, pin: DefinitionPin) -> Bytes {
    let mut remaining_bytes = MAX_DEFINITION_BYTES;
    let mut stored = |accepted: &AcceptedDefinition| {
        let tool = accepted.tool.as_ref().filter(|_| pin == DefinitionPin::Hold);
        let text = tool.map(|tool| tool.definition.to_json().as_text().to_owned());
        let text = text.filter(|text| text.len() <= remaining_bytes);
        remaining_bytes -= text.as_ref().map_or(0, String::len);
        let definition = text.and_then(|text| RawValue::from_string(text).ok());
        StoredDefinition { digest: accepted.digest.clone(), definition }
    };
    let tools =
        definitions.accepted.iter().map(|(tool, accepted)| (tool.clone(), stored(accepted))).collect();
    let stored_pending = |pending: &PendingDefinition| {
        let time = pending.time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        StoredPending {
            digest: pending.digest.clone(),
            time: u64::try_from(time.as_millis()).unwrap_or_default(),
        }
    };
    let pending =
        definitions.pending.iter().map(|(tool, pending)| (tool.clone(), stored_pending(pending))).collect();
    // Serializing a record cannot fail.
    Bytes::from(serde_json::to_vec(&DefinitionRecord { tools, pending }).unwrap_or_default())
}

/// Decodes a record. A damaged one is logged and ignored.
pub(super) fn decode(handler: &manifest::HandlerConfig, record: &Bytes) -> Option<HandlerDefinitions> {
    let parsed = serde_json::from_slice::<DefinitionRecord>(record);
    let DefinitionRecord { tools, pending } = parsed
        .inspect_err(|error| {
            tracing::error!(
                error = error as &dyn std::error::Error,
                handler = handler.name.as_str(),
                "cannot detect tools that changed since the last run: the record of their definitions is damaged"
            );
        })
        .ok()?;
    let accepted = |StoredDefinition { digest, definition }: StoredDefinition| {
        let json = definition.and_then(|definition| Json::parse(definition.get().to_owned()).ok());
        let tool = json.and_then(|json| Tool::from_definition(&json).ok()).map(Arc::new);
        AcceptedDefinition { digest, tool }
    };
    let stored_pending = |StoredPending { digest, time }: StoredPending| {
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(time));
        PendingDefinition { digest, time: time.unwrap_or(SystemTime::UNIX_EPOCH) }
    };
    Some(HandlerDefinitions {
        accepted: tools.into_iter().map(|(tool, stored)| (tool, accepted(stored))).collect(),
        pending: pending.into_iter().map(|(tool, stored)| (tool, stored_pending(stored))).collect(),
        ..HandlerDefinitions::default()
    })
}
