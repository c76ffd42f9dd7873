//! The listing of one kind of entries, encoded for readers.

use std::sync::Arc;

use super::RegistryEntry;
use crate::json::Json;
use crate::tokens;

/// The name of output schemas in definitions.
const OUTPUT_SCHEMA: &str = "outputSchema";

/// A change of an output schema.
pub(super) enum SchemaChange {
    Keep,
    Remove,
    Replace(Json),
}

/// Entries in the order of the manifest and of their servers, each with its published definition, and all of them
/// encoded as one text.
#[derive(Clone)]
pub struct EncodedListing {
    pub(super) entries: Vec<Arc<RegistryEntry>>,
    /// Published definitions in the same order.
    pub(super) definitions: Vec<Json>,
    list: Json,
}

impl Default for EncodedListing {
    fn default() -> Self {
        Self { entries: Vec::new(), definitions: Vec::new(), list: Json::array([]) }
    }
}

impl EncodedListing {
    /// Returns the entries.
    #[must_use]
    pub fn entries(&self) -> &[Arc<RegistryEntry>] {
        &self.entries
    }

    /// Returns each entry with its definition.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<RegistryEntry>, &Json)> {
        self.entries.iter().zip(&self.definitions)
    }

    /// Returns all definitions as an array. It is encoded once, so that a list of thousands costs readers only the
    /// sending.
    #[must_use]
    pub const fn json(&self) -> &Json {
        &self.list
    }

    /// Returns the estimated number of tokens for a model.
    #[must_use]
    pub fn tokens(&self) -> usize {
        tokens::estimate(self.list.as_bytes().len())
    }

    /// Adds an entry at the end. The array is encoded when all entries are added.
    pub(super) fn push(&mut self, entry: Arc<RegistryEntry>, definition: Json) {
        self.entries.push(entry);
        self.definitions.push(definition);
    }

    /// Encodes the array.
    pub(super) fn write(&mut self) {
        self.list = Json::array(&self.definitions);
    }

    /// Returns an encoded copy with other output schemas; `None` if none changes. `change` receives each entry whose tool
    /// has an output schema.
    pub(super) fn with_output_schemas(
        &self,
        change: impl Fn(&RegistryEntry, &Json) -> SchemaChange,
    ) -> Option<Self> {
        self.with_definitions(|entry, definition| changed_definition(entry, definition, &change))
    }

    /// Returns an encoded copy with other definitions; `None` if none changes.
    pub(super) fn with_definitions(
        &self,
        change: impl Fn(&RegistryEntry, &Json) -> Option<Json>,
    ) -> Option<Self> {
        let mut changed = Self::default();
        let mut differs = false;
        for (entry, definition) in self.iter() {
            let other = change(entry, definition);
            differs |= other.is_some();
            changed.push(entry.clone(), other.unwrap_or_else(|| definition.clone()));
        }
        differs.then(|| {
            changed.write();
            changed
        })
    }

    /// Returns an encoded copy with the selected entries.
    pub(super) fn only(&self, keep: impl Fn(&RegistryEntry) -> bool) -> Self {
        let mut fewer = Self::default();
        for (entry, definition) in self.iter().filter(|(entry, _)| keep(entry)) {
            fewer.push(entry.clone(), definition.clone());
        }
        fewer.write();
        fewer
    }
}

/// Returns a definition with another output schema; `None` if it stays as it is.
fn changed_definition(
    entry: &RegistryEntry,
    definition: &Json,
    change: impl Fn(&RegistryEntry, &Json) -> SchemaChange,
) -> Option<Json> {
    entry.tool.as_ref()?.output_schema()?;
    let mut object = definition.to_object().ok()?;
    match change(entry, object.get(OUTPUT_SCHEMA)?) {
        SchemaChange::Keep => return None,
        SchemaChange::Remove => drop(object.remove(OUTPUT_SCHEMA)),
        SchemaChange::Replace(schema) => object.set(OUTPUT_SCHEMA, schema),
    }
    Some(object.to_json())
}
