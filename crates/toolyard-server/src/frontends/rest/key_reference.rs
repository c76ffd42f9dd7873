//! The key that something belongs to, in a response.

use serde::Serialize;

use super::RestState;

/// A key by its id.
#[derive(Serialize)]
pub(super) struct KeyReference<'a> {
    id: &'a str,
    /// Missing if the key was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl<'a> KeyReference<'a> {
    /// Returns the reference to the key of this id.
    pub(super) fn of(rest: &RestState, id: &'a str) -> Self {
        Self { id, name: rest.keys.id_and_name(id).map(|key| key.1.to_string()) }
    }
}
