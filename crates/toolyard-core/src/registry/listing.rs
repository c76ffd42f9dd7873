//! The listing of one kind of entries, encoded for readers.

use std::sync::Arc;

use super::RegistryEntry;
use crate::json::Json;
use crate::output_schema::{OutputForm, wrap_schema};
use crate::tokens;

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

    /// Returns an encoded copy in which selected definitions lack a member.
    pub(super) fn without(&self, member: &str, leave_out: impl Fn(&RegistryEntry) -> bool) -> Self {
        let mut changed = Self::default();
        for (entry, definition) in self.iter() {
            let mut object = definition.to_object().unwrap_or_default();
            let is_less = leave_out(entry) && object.remove(member).is_some();
            let definition = if is_less { object.to_json() } else { definition.clone() };
            changed.push(entry.clone(), definition);
        }
        changed.write();
        changed
    }

    /// Returns an encoded copy in which every output schema is about objects; `None` if that is so here.
    pub(super) fn with_object_results(&self) -> Option<Self> {
        let is_other = |entry: &RegistryEntry| {
            entry.tool.as_ref().is_some_and(|tool| tool.output_form() == OutputForm::Other)
        };
        if !self.entries.iter().any(|entry| is_other(entry)) {
            return None;
        }
        let mut changed = Self::default();
        for (entry, definition) in self.iter() {
            let mut object = is_other(entry).then(|| definition.to_object().ok()).flatten();
            if let Some(object) = &mut object
                && let Some(schema) = object.get("outputSchema")
            {
                object.set("outputSchema", wrap_schema(schema));
            }
            let definition = object.map_or_else(|| definition.clone(), |object| object.to_json());
            changed.push(entry.clone(), definition);
        }
        changed.write();
        Some(changed)
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
