//! The fields of an object, taken one after the other; what is left at the end is unknown.

use crate::{
    cursor::Cursor,
    problem::{Problem, one_of, quoted},
    suggest,
    tree::Member,
};

/// An object whose fields have fixed names.
///
/// Take every field that may be there, then call [`Fields::finish`].
pub(crate) struct Fields<'a> {
    object: Cursor<'a>,
    members: &'a [Member],
    /// The names that are right here: a message about an unknown field offers them.
    known: Vec<&'static str>,
    /// The names that were dealt with and are not offered.
    dealt_with: Vec<&'static str>,
    /// Required names that are not there. They are reported at the end, when it is known which were only
    /// misspelt.
    missing: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(object: Cursor<'a>, members: &'a [Member]) -> Self {
        Self { object, members, known: Vec::new(), dealt_with: Vec::new(), missing: Vec::new() }
    }

    pub(crate) fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Cursor<'a>) -> Option<T>,
    ) -> Option<T> {
        self.known.push(name);
        let Some(member) = self.find(name) else {
            self.missing.push(name);
            return None;
        };
        read(self.object.member(member))
    }

    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Cursor<'a>) -> Option<T>,
    ) -> Option<T> {
        self.known.push(name);
        let value = self.object.member(self.find(name)?);
        if value.is_null() { None } else { read(value) }
    }

    pub(crate) fn with_default<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Cursor<'a>) -> Option<T>,
        default: T,
    ) -> T {
        self.optional(name, read).unwrap_or(default)
    }

    /// Fields that are right here and whose values do not matter.
    pub(crate) fn accept(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// Fields that software writes and people do not: they are not read, and not offered either.
    pub(crate) fn ignore(&mut self, names: &[&'static str]) {
        self.dealt_with.extend(names);
    }

    /// Fields of the contract that this release cannot honour. To ignore them would be to break a promise.
    pub(crate) fn not_yet(&mut self, names: &[&'static str]) {
        self.refuse(names, |name| (format!("{} is not yet supported", quoted(name)), None));
    }

    /// Fields that make no sense beside another one, as `reason` says.
    pub(crate) fn misplaced(&mut self, names: &[&'static str], reason: &str) {
        self.refuse(names, |name| (format!("{} does not belong here", quoted(name)), Some(reason)));
    }

    fn refuse<'h>(&mut self, names: &[&'static str], why: impl Fn(&str) -> (String, Option<&'h str>)) {
        for member in names.iter().filter_map(|name| self.find(name)) {
            let (message, hint) = why(&member.name);
            self.object.report(self.problem(member, message).maybe_hint(hint));
        }
        self.dealt_with.extend(names);
    }

    /// Reports what is missing, and every field that nobody asked for.
    pub(crate) fn finish(mut self) {
        for member in self.members {
            let name = member.name.as_str();
            if !self.known.contains(&name) && !self.dealt_with.contains(&name) {
                let meant = suggest::nearest(name, self.known.iter().copied());
                self.missing.retain(|missing| Some(*missing) != meant);
                self.report_unknown(member, meant);
            }
        }
        self.abandon();
    }

    /// Reports what is missing and leaves the other fields alone, for an object of which nothing is known.
    pub(crate) fn abandon(self) {
        for name in self.missing {
            let place = self.object.field_place(name, None);
            self.object.report(Problem::new(place, "this field is required"));
        }
    }

    fn report_unknown(&self, member: &Member, meant: Option<&str>) {
        let hint = match member.name.as_str() {
            "<<" => Some("YAML 1.2 has no merge keys: write the fields out".to_owned()),
            _ => meant.map(suggest::did_you_mean),
        };
        let problem = self.problem(member, "unknown field").expected(one_of(self.known.iter().copied()));
        self.object.report(problem.maybe_hint(hint));
    }

    fn find(&self, name: &str) -> Option<&'a Member> {
        self.members.iter().find(|member| member.name == name)
    }

    fn problem(&self, member: &Member, message: impl Into<String>) -> Problem {
        Problem::new(self.object.field_place(&member.name, Some(member.position)), message)
    }
}
