//! A list of one kind, as it is given to readers.

use std::sync::Arc;

use super::Entry;
use crate::json::Json;
use crate::tokens;

/// Entries in the order of the manifest and of their owners, each with its definition under its published name, and the whole as
/// one text.
#[derive(Clone)]
pub struct Listing {
    pub(super) entries: Vec<Arc<Entry>>,
    /// How each of these is listed, in the same order.
    pub(super) definitions: Vec<Json>,
    list: Json,
}

impl Default for Listing {
    fn default() -> Self {
        Self { entries: Vec::new(), definitions: Vec::new(), list: Json::array([]) }
    }
}

impl Listing {
    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// Each entry with its definition.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<Entry>, &Json)> {
        self.entries.iter().zip(&self.definitions)
    }

    /// All definitions: an array, written once, so that a list of thousands costs a reader nothing but the sending.
    #[must_use]
    pub const fn json(&self) -> &Json {
        &self.list
    }

    /// How many tokens it has for a model, about.
    #[must_use]
    pub fn tokens(&self) -> usize {
        tokens::estimate(self.list.as_bytes().len())
    }

    /// Adds an entry behind the others. The array is to be written when all are there.
    pub(super) fn push(&mut self, entry: Arc<Entry>, definition: Json) {
        self.entries.push(entry);
        self.definitions.push(definition);
    }

    /// Writes the array.
    pub(super) fn write(&mut self) {
        self.list = Json::array(&self.definitions);
    }

    /// The same, with definitions that lack a member where that is to be left out, written.
    pub(super) fn without(&self, member: &str, leave_out: impl Fn(&Entry) -> bool) -> Self {
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

    /// Those entries that are to be kept, written.
    pub(super) fn only(&self, keep: impl Fn(&Entry) -> bool) -> Self {
        let mut fewer = Self::default();
        for (entry, definition) in self.iter().filter(|(entry, _)| keep(entry)) {
            fewer.push(entry.clone(), definition.clone());
        }
        fewer.write();
        fewer
    }
}
