//! The fields of a client's object, read one after the other by any of their names.

use crate::{
    cursor::ValueCursor,
    import::ImportNote,
    problem::quoted,
    tree::{NodeContent, ObjectMember},
};

pub(super) struct EntryFields<'a> {
    /// The object, and those in it whose fields count as its own.
    objects: Vec<(ValueCursor<'a>, &'a [ObjectMember])>,
    consumed: Vec<&'a ObjectMember>,
}

impl<'a> EntryFields<'a> {
    /// Opens an object; reports any other value.
    pub(super) fn of(object: &ValueCursor<'a>) -> Option<Self> {
        let NodeContent::Object(members) = object.content() else {
            object.report_wrong_type("an object", None);
            return None;
        };
        Some(Self { objects: vec![(object.clone(), members)], consumed: Vec::new() })
    }

    /// Adds the fields of these fields that are objects, such as `transport: {type, url}`.
    pub(super) fn unfold(&mut self, names: &[&str]) {
        let (object, members) = self.objects[0].clone();
        for member in members.iter().filter(|member| names.contains(&&*member.name)) {
            if let NodeContent::Object(inner) = &member.value.content {
                self.consumed.push(member);
                self.objects.push((object.member(member), inner));
            }
        }
    }

    /// Returns the first of these fields that is present and was not read. Null counts as absent.
    pub(super) fn take(&mut self, names: &[&str]) -> Option<ValueCursor<'a>> {
        let (object, member) = self.left().find(|(_, member)| names.contains(&&*member.name))?;
        let value = object.member(member);
        self.consumed.push(member);
        Some(value).filter(|value| !value.is_null())
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
        let names: Vec<_> = self.left().map(|(_, member)| quoted(&member.name)).collect();
        if !names.is_empty() {
            notes.push(ImportNote::at(&self.objects[0].0, format!("not imported: {}", names.join(", "))));
        }
    }

    fn left(&self) -> impl Iterator<Item = (&ValueCursor<'a>, &'a ObjectMember)> {
        let all = self.objects.iter().flat_map(|(object, members)| members.iter().map(move |m| (object, m)));
        all.filter(|(_, member)| !self.consumed.iter().any(|read| std::ptr::eq(*read, *member)))
    }
}
