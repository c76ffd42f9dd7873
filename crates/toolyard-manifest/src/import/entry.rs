//! The fields of a client's object, read one after the other by any of their names.

use crate::{
    cursor::ValueCursor,
    import::ImportNote,
    problem::quoted,
    tree::{NodeContent, ObjectMember},
};

pub(super) struct EntryFields<'a> {
    object: ValueCursor<'a>,
    members: &'a [ObjectMember],
    consumed: Vec<&'a str>,
}

impl<'a> EntryFields<'a> {
    /// Opens an object; reports any other value.
    pub(super) fn of(object: &ValueCursor<'a>) -> Option<Self> {
        let NodeContent::Object(members) = object.content() else {
            object.report_wrong_type("an object", None);
            return None;
        };
        Some(Self { object: object.clone(), members, consumed: Vec::new() })
    }

    /// Returns the first of these fields that is present. Null counts as absent.
    pub(super) fn take(&mut self, names: &[&str]) -> Option<ValueCursor<'a>> {
        let member = self.members.iter().find(|member| names.contains(&&*member.name))?;
        self.consumed.push(&member.name);
        Some(self.object.member(member)).filter(|value| !value.is_null())
    }

    /// Returns a string field; reports any other value.
    pub(super) fn take_text(&mut self, names: &[&str]) -> Option<&'a str> {
        self.take(names)?.literal_text()
    }

    /// Returns a boolean field; reports any other value.
    pub(super) fn take_flag(&mut self, names: &[&str]) -> Option<bool> {
        self.take(names)?.flag()
    }

    /// Adds a note about the fields that were not read.
    pub(super) fn finish(self, notes: &mut Vec<ImportNote>) {
        let left = self.members.iter().filter(|member| !self.consumed.contains(&&*member.name));
        let names: Vec<_> = left.map(|member| quoted(&member.name)).collect();
        if !names.is_empty() {
            notes.push(ImportNote::at(&self.object, format!("not imported: {}", names.join(", "))));
        }
    }
}
