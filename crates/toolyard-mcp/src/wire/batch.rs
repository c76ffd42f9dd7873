//! Batches of messages, which exist in revision 2025-03-26 only (2025-03-26, basic, batching).

use bytes::Bytes;
use toolyard_core::Json;

/// Maximum number of messages in a batch.
const MAX_MESSAGES: usize = 100;

/// Returns `true` if a text looks like a batch.
#[must_use]
pub fn is_array(text: &[u8]) -> bool {
    text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// Splits a batch into its messages.
///
/// # Errors
/// If the batch is empty or too large, or is no JSON array, with the fault.
pub fn split(text: Bytes) -> Result<Vec<Bytes>, &'static str> {
    let items = Json::parse(text).and_then(|batch| batch.to_items());
    let items = items.map_err(|_| "the batch is not a JSON array")?;
    match items.len() {
        1..=MAX_MESSAGES => Ok(items.iter().map(Json::bytes).collect()),
        0 => Err("the batch is empty"),
        _ => Err("the batch has more than 100 messages"),
    }
}
