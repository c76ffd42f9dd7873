//! The fields of a client's object, taken one after the other by any of their names.

use crate::{
    cursor::Cursor,
    import::Note,
    problem::quoted,
    tree::{Content, Member},
};

pub(super) struct Entry<'a> {
    object: Cursor<'a>,
    members: &'a [Member],
    taken: Vec<&'a str>,
}

impl<'a> Entry<'a> {
    /// The fields of an object; what is none is reported.
    pub(super) fn of(object: &Cursor<'a>) -> Option<Self> {
        let Content::Object(members) = object.content() else {
            object.wrong_kind("an object", None);
            return None;
        };
        Some(Self { object: object.clone(), members, taken: Vec::new() })
    }

    /// The first of these fields that is there. A null is as good as nothing.
    pub(super) fn take(&mut self, names: &[&str]) -> Option<Cursor<'a>> {
        let member = self.members.iter().find(|member| names.contains(&&*member.name))?;
        self.taken.push(&member.name);
        Some(self.object.member(member)).filter(|value| !value.is_null())
    }

    /// A field that is a string; what is none is reported.
    pub(super) fn take_text(&mut self, names: &[&str]) -> Option<&'a str> {
        self.take(names)?.literal()
    }

    /// Whether a field is true.
    pub(super) fn take_flag(&mut self, names: &[&str]) -> Option<bool> {
        self.take(names)?.flag()
    }

    /// Notes which fields nobody has taken.
    pub(super) fn finish(self, notes: &mut Vec<Note>) {
        let left = self.members.iter().filter(|member| !self.taken.contains(&&*member.name));
        let names: Vec<_> = left.map(|member| quoted(&member.name)).collect();
        if !names.is_empty() {
            notes.push(Note::at(&self.object, format!("not taken over: {}", names.join(", "))));
        }
    }
}
