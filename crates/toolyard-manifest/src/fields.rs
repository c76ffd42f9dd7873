//! The fields of an object, read one after the other; the remaining fields are unknown.

use crate::{
    cursor::ValueCursor,
    problem::{ManifestProblem, choice_list, quoted},
    suggest,
    tree::ObjectMember,
};

/// An object whose fields have fixed names.
///
/// Read all possible fields, then call [`ObjectFields::finish`].
pub(crate) struct ObjectFields<'a> {
    object: ValueCursor<'a>,
    members: &'a [ObjectMember],
    /// The valid names, which messages about unknown fields list.
    allowed: Vec<&'static str>,
    /// The names that are handled but not listed in messages.
    ignored: Vec<&'static str>,
    /// Required names that are absent. They are reported at the end, without those that turn out to be misspelled.
    missing: Vec<&'static str>,
}

impl<'a> ObjectFields<'a> {
    pub(crate) fn new(object: ValueCursor<'a>, members: &'a [ObjectMember]) -> Self {
        Self { object, members, allowed: Vec::new(), ignored: Vec::new(), missing: Vec::new() }
    }

    pub(crate) fn required<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(ValueCursor<'a>) -> Option<T>,
    ) -> Option<T> {
        self.allowed.push(name);
        let Some(member) = self.find(name) else {
            self.missing.push(name);
            return None;
        };
        read(self.object.member(member))
    }

    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(ValueCursor<'a>) -> Option<T>,
    ) -> Option<T> {
        self.allowed.push(name);
        let value = self.object.member(self.find(name)?);
        if value.is_null() { None } else { read(value) }
    }

    pub(crate) fn with_default<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(ValueCursor<'a>) -> Option<T>,
        default: T,
    ) -> T {
        self.optional(name, read).unwrap_or(default)
    }

    /// Accepts fields without reading their values.
    pub(crate) fn allow(&mut self, names: &[&'static str]) {
        self.allowed.extend(names);
    }

    /// Accepts fields that software writes and people do not; messages do not list them.
    pub(crate) fn ignore(&mut self, names: &[&'static str]) {
        self.ignored.extend(names);
    }

    /// Rejects fields of the contract that this release does not support. Ignoring them would break a promise.
    pub(crate) fn reject_unsupported(&mut self, names: &[&'static str]) {
        self.reject(names, |name| (format!("{} is not yet supported", quoted(name)), None));
    }

    /// Rejects fields that are invalid next to another one, with a hint.
    pub(crate) fn reject_misplaced(&mut self, names: &[&'static str], reason: &str) {
        self.reject(names, |name| (format!("{} does not belong here", quoted(name)), Some(reason)));
    }

    fn reject<'h>(&mut self, names: &[&'static str], why: impl Fn(&str) -> (String, Option<&'h str>)) {
        for member in names.iter().filter_map(|name| self.find(name)) {
            let (message, hint) = why(&member.name);
            self.object.report(self.problem(member, message).maybe_hint(hint));
        }
        self.ignored.extend(names);
    }

    /// Reports missing and unknown fields.
    pub(crate) fn finish(mut self) {
        for member in self.members {
            let name = member.name.as_str();
            if !self.allowed.contains(&name) && !self.ignored.contains(&name) {
                let suggestion = suggest::nearest(name, self.allowed.iter().copied());
                self.missing.retain(|missing| Some(*missing) != suggestion);
                self.report_unknown(member, suggestion);
            }
        }
        self.finish_unread();
    }

    /// Reports missing fields and ignores the others, for an object of unknown kind.
    pub(crate) fn finish_unread(self) {
        for name in self.missing {
            let place = self.object.field_location(name, None);
            self.object.report(ManifestProblem::new(place, "this field is required"));
        }
    }

    fn report_unknown(&self, member: &ObjectMember, suggestion: Option<&str>) {
        let hint = match member.name.as_str() {
            "<<" => Some("YAML 1.2 has no merge keys: write the fields out".to_owned()),
            _ => suggestion.map(suggest::did_you_mean),
        };
        let problem =
            self.problem(member, "unknown field").expected(choice_list(self.allowed.iter().copied()));
        self.object.report(problem.maybe_hint(hint));
    }

    fn find(&self, name: &str) -> Option<&'a ObjectMember> {
        self.members.iter().find(|member| member.name == name)
    }

    fn problem(&self, member: &ObjectMember, message: impl Into<String>) -> ManifestProblem {
        ManifestProblem::new(self.object.field_location(&member.name, Some(member.position)), message)
    }
}
