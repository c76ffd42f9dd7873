//! Definitions that MCP permits.
//!
//! Strict clients refuse a whole list because of one definition that the schema of MCP does not permit, and with it the
//! lists of all other servers. A definition is repaired where its meaning is clear; otherwise the broken optional member
//! is left out, or the item. A valid definition is published byte for byte.
//!
//! The rules are those of all revisions from 2025-06-18, and of JSON Schema for the keywords `properties` and `required`
//! at the root of a schema. Only [`legacy_schema`] is about the revisions before 2026-07-28.

mod schemas;
mod shapes;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::json::{Json, Object};
use crate::registry::EntryKind;

pub(crate) use schemas::legacy_schema;

/// Maximum number of repairs of one definition that are reported one by one.
const MAX_REPORTED: usize = 8;

/// A definition that was not valid, as it is published.
#[derive(Debug)]
pub(crate) struct RepairedDefinition {
    pub(crate) definition: Object,
    /// Repairs, for operators.
    pub(crate) report: Arc<str>,
}

/// The repairs of one definition.
#[derive(Default)]
struct RepairLog {
    text: String,
    count: usize,
}

impl RepairLog {
    fn add(&mut self, repair: impl std::fmt::Display) {
        self.count += 1;
        if self.count <= MAX_REPORTED {
            let separator = if self.count == 1 { "" } else { "; " };
            let _ = write!(self.text, "{separator}{repair}");
        }
    }

    fn finish(mut self) -> Option<Arc<str>> {
        if let Some(more @ 1..) = self.count.checked_sub(MAX_REPORTED) {
            let _ = write!(self.text, "; and {more} more");
        }
        (self.count > 0).then(|| self.text.into())
    }
}

/// Returns the definition as MCP permits it; `None` if it is valid as it is.
///
/// # Errors
/// The reason why the item cannot be published.
pub(crate) fn repair(kind: EntryKind, definition: &Object) -> Result<Option<RepairedDefinition>, Arc<str>> {
    let (mut repaired, mut log) = (Cow::Borrowed(definition), RepairLog::default());
    shapes::leave_out_broken(shapes::members(kind), &mut repaired, "", &mut log);
    match kind {
        EntryKind::Tools => schemas::repair(&mut repaired, &mut log)?,
        EntryKind::Prompts => {}
        EntryKind::Resources => name_by(&mut repaired, "uri", &mut log),
        EntryKind::Templates => name_by(&mut repaired, "uriTemplate", &mut log),
    }
    Ok(log.finish().map(|report| RepairedDefinition { definition: repaired.into_owned(), report }))
}

/// Adds the required `name` of a resource, which is its key if there is no other.
fn name_by(definition: &mut Cow<'_, Object>, key: &str, log: &mut RepairLog) {
    if definition.get("name").is_some() {
        return;
    }
    let name = definition.get("title").or_else(|| definition.get(key)).cloned();
    definition.to_mut().set("name", name.unwrap_or_else(|| Json::string("")));
    log.add("`name` is missing: added");
}

#[cfg(test)]
mod tests;
