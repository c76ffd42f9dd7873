//! One value of a document on its way to a type of ours.
//!
//! A reader is a function `Cursor -> Option<T>`. `None` means that the value is not a `T` and that the report
//! says why; the caller goes on with the next value.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use crate::{
    expand::{Outside, expand},
    fields::Fields,
    forms::{self, Invalid, Listen},
    handler::Secret,
    problem::{FieldPath, Place, Position, Problem, one_of, quoted},
    report::Report,
    suggest,
    tree::{Content, Member, Node},
};

/// A value, the way to it, and where to report what is wrong with it.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    node: &'a Node,
    source: &'a str,
    path: FieldPath,
    report: &'a Report<'a>,
}

/// The words that a field takes, and those that it will take one day.
pub(crate) struct Choice<T: 'static> {
    /// What the words name, for messages.
    pub(crate) noun: &'static str,
    pub(crate) words: &'static [(&'static str, T)],
    pub(crate) not_yet: &'static [&'static str],
}

// === places and problems ===

impl<'a> Cursor<'a> {
    pub(crate) fn document(source: &'a str, node: &'a Node, report: &'a Report<'a>) -> Self {
        Self { node, source, path: FieldPath::default(), report }
    }

    pub(crate) fn member(&self, member: &'a Member) -> Self {
        Self { node: &member.value, path: self.path.field(&member.name), ..*self }
    }

    /// The value as it stands in its document.
    pub(crate) const fn node(&self) -> &'a Node {
        self.node
    }

    /// What the document has here.
    pub(crate) fn content(&self) -> &'a Content {
        &self.node.content
    }

    fn item(&self, index: usize, node: &'a Node) -> Self {
        Self { node, path: self.path.item(index), ..*self }
    }

    pub(crate) fn place(&self) -> Place {
        self.place_of(self.path.clone(), self.node.position)
    }

    /// The place of a field of this object, which may be absent.
    pub(crate) fn field_place(&self, name: &str, position: Option<Position>) -> Place {
        self.place_of(self.path.field(name), position.unwrap_or(self.node.position))
    }

    fn place_of(&self, path: FieldPath, position: Position) -> Place {
        Place { path, ..Place::at(self.source, position) }
    }

    pub(crate) fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(self.place(), message)
    }

    pub(crate) fn report(&self, problem: Problem) {
        self.report.add(problem);
    }

    /// Reports this value if another of the same noun and name stands before it.
    pub(crate) fn declare(&self, noun: &'static str, name: &str) {
        self.report.declare(noun, name, self.place());
    }

    /// Notes that this names the key of a mounted secret.
    pub(crate) fn needs_secrets(&self) {
        self.report.key(self.place());
    }

    /// What references stood for that were read since this was last asked for.
    pub(crate) fn take_from_outside(&self) -> Vec<Secret> {
        self.report.take_from_outside().into_iter().map(Secret::new).collect()
    }

    /// Whether the field is there in name only, which means what its absence means, as it does for
    /// Kubernetes.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.node.content, Content::Null)
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.node.content, Content::List(_))
    }

    pub(crate) fn wrong_kind(&self, expected: &str, hint: Option<&str>) {
        let found = format!("found {}", self.node.content.noun());
        self.report(self.problem(found).expected(expected).maybe_hint(hint));
    }
}

// === collections ===

impl<'a> Cursor<'a> {
    pub(crate) fn fields(self) -> Option<Fields<'a>> {
        match &self.node.content {
            Content::Object(members) => Some(Fields::new(self, members)),
            _ => {
                self.wrong_kind("an object", None);
                None
            }
        }
    }

    /// The items that `read` makes something of.
    pub(crate) fn list<T>(self, read: impl Fn(Cursor<'a>) -> Option<T>) -> Option<Vec<T>> {
        let Content::List(items) = &self.node.content else {
            let single = matches!(self.node.content, Content::Text(_));
            self.wrong_kind("a list", single.then_some("a list of one item is written `[item]`"));
            return None;
        };
        Some(items.iter().enumerate().filter_map(|(index, node)| read(self.item(index, node))).collect())
    }

    pub(crate) fn non_empty_list<T>(self, read: impl Fn(Cursor<'a>) -> Option<T>) -> Option<Vec<T>> {
        if matches!(&self.node.content, Content::List(items) if items.is_empty()) {
            self.report(self.problem("this list is empty").expected("at least one item"));
            return None;
        }
        self.list(read)
    }

    /// The members of an object whose names are the author's own. `name` says which names there may be.
    pub(crate) fn entries<T>(
        self,
        name: fn(&str) -> Result<(), Invalid>,
        read: impl Fn(Cursor<'a>) -> Option<T>,
    ) -> Option<Vec<(String, T)>> {
        let Content::Object(members) = &self.node.content else {
            self.wrong_kind("an object", None);
            return None;
        };
        let entry = |member: &'a Member| {
            if let Err(invalid) = name(&member.name) {
                let place = self.field_place(&member.name, Some(member.position));
                self.report(invalid.problem(place, &quoted(&member.name)));
            }
            Some((member.name.clone(), read(self.member(member))?))
        };
        Some(members.iter().filter_map(entry).collect())
    }
}

// === scalars ===

impl<'a> Cursor<'a> {
    pub(crate) fn flag(self) -> Option<bool> {
        match &self.node.content {
            Content::Bool(flag) => Some(*flag),
            Content::Text(_) => self.refuse("true or false", "a boolean has no quotes, and `yes` is not one"),
            _ => self.refuse("true or false", None),
        }
    }

    /// A number of things: at least one, because none would make the gateway useless.
    pub(crate) fn count(self) -> Option<usize> {
        self.number(1, 1_000_000_000).and_then(|count| usize::try_from(count).ok())
    }

    /// A whole number.
    pub(crate) fn number(self, least: u32, most: u32) -> Option<u32> {
        let expected = format!("a whole number from {least} to {most}");
        match &self.node.content {
            Content::Integer(number) => {
                let number = u32::try_from(*number).ok().filter(|number| (least..=most).contains(number));
                if number.is_none() {
                    self.report(self.problem("this number is out of range").expected(expected));
                }
                number
            }
            Content::Text(_) => self.refuse(&expected, "a number has no quotes"),
            _ => self.refuse(&expected, None),
        }
    }

    /// A part of a whole: from 0 for nothing to 1 for all of it.
    pub(crate) fn share(self) -> Option<f64> {
        const EXPECTED: &str = "a number from 0 to 1, such as 0.1";
        let share = match &self.node.content {
            Content::Integer(number) => f64::from(i32::try_from(*number).unwrap_or(-1)),
            Content::Float(number) => *number,
            Content::Text(_) => return self.refuse(EXPECTED, "a number has no quotes"),
            _ => return self.refuse(EXPECTED, None),
        };
        if !(0.0..=1.0).contains(&share) {
            self.report(self.problem("this number is out of range").expected(EXPECTED));
            return None;
        }
        Some(share)
    }

    /// A number of bytes, at least `least`.
    pub(crate) fn size(self, least: usize) -> Option<usize> {
        let size = match &self.node.content {
            Content::Integer(size) => usize::try_from(*size).unwrap_or(0),
            Content::Text(_) => self.clone().parse(forms::size)?,
            _ => return self.refuse(forms::SIZE, None),
        };
        if size < least {
            self.report(self.problem("this is too small").expected(format!("a size of {least} or more")));
            return None;
        }
        Some(size)
    }

    /// A share of processors, in thousandths of one.
    pub(crate) fn cpu(self) -> Option<u32> {
        match &self.node.content {
            Content::Integer(whole) => {
                let share = forms::cpu(&whole.to_string());
                share.map_err(|invalid| self.report(invalid.problem(self.place(), &self.written()))).ok()
            }
            Content::Text(_) => self.parse(forms::cpu),
            _ => self.refuse(forms::CPU, "quotes make a text of a number with decimals"),
        }
    }

    /// A span of time, which may be zero.
    pub(crate) fn duration(self) -> Option<Duration> {
        match &self.node.content {
            Content::Integer(_) | Content::Float(_) => {
                self.refuse(forms::DURATION, "add a unit, as in `30s`")
            }
            _ => self.parse(forms::duration),
        }
    }

    /// A span of time in which something has to happen: zero would forbid it.
    pub(crate) fn timeout(self) -> Option<Duration> {
        let duration = self.clone().duration()?;
        if duration.is_zero() {
            self.report(self.problem("this is zero").expected("a duration above zero"));
            return None;
        }
        Some(duration)
    }

    /// A place to listen on.
    pub(crate) fn listen(self) -> Option<Listen> {
        match &self.node.content {
            Content::Integer(_) => self.refuse(forms::LISTEN, None),
            _ => self.parse(Listen::from_str),
        }
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(self, choice: &Choice<T>) -> Option<T> {
        let text = self.clone().text()?;
        if let Some((_, value)) = choice.words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let words = choice.words.iter().map(|(word, _)| *word);
        let problem = if choice.not_yet.contains(&text.as_str()) {
            self.problem(format!("{} {} is not yet supported", choice.noun, self.written()))
        } else {
            let problem = self.problem(format!("{} is not a known {}", self.written(), choice.noun));
            problem.maybe_hint(suggest::nearest(&text, words.clone()).map(suggest::did_you_mean))
        };
        self.report(problem.expected(one_of(words)));
        None
    }

    /// A string that may be secret.
    pub(crate) fn secret(self) -> Option<Secret> {
        self.text().map(Secret::new)
    }

    /// A string in one of our forms.
    pub(crate) fn parse<T>(self, parse: fn(&str) -> Result<T, Invalid>) -> Option<T> {
        let written = self.written();
        self.parse_as(&written, parse)
    }

    /// The same for what may hold a secret, even as it is written: a problem does not repeat it.
    pub(crate) fn parse_secret<T>(self, parse: fn(&str) -> Result<T, Invalid>) -> Option<T> {
        self.parse_as("this", parse)
    }

    fn parse_as<T>(self, shown: &str, parse: fn(&str) -> Result<T, Invalid>) -> Option<T> {
        let text = self.clone().text()?;
        parse(&text).map_err(|invalid| self.report(invalid.problem(self.place(), shown))).ok()
    }

    /// A string, with references to the environment replaced.
    pub(crate) fn text(self) -> Option<String> {
        let text = self.literal()?;
        let outside = Outside { environment: self.report.environment, folder: self.folder() };
        let bad = match expand(text, outside) {
            // No string of ours survives one: not a process's arguments, not a header, not a path.
            Ok(expanded) if expanded.text.contains('\0') => {
                return self.refuse("a string without a NUL character", None);
            }
            Ok(expanded) => {
                self.report.came_from_outside(expanded.from_outside);
                return Some(expanded.text);
            }
            Err(bad) => bad,
        };
        for reference in bad.into_iter().filter(|reference| !self.report.forgives(reference)) {
            self.report(self.problem(reference.to_string()).hint(reference.hint()));
        }
        None
    }

    /// The path of a file as it is written here: from the folder of the manifest, unless it is absolute.
    pub(crate) fn path_from_here(&self, path: &str) -> PathBuf {
        self.folder().join(path)
    }

    /// The folder of the document.
    fn folder(&self) -> &'a Path {
        Path::new(self.source).parent().unwrap_or(Path::new(""))
    }

    /// A string as it is written.
    pub(crate) fn literal(&self) -> Option<&'a str> {
        let hint = match &self.node.content {
            Content::Text(text) => return Some(text),
            Content::Bool(_) | Content::Integer(_) | Content::Float(_) => Some("put it in quotes"),
            Content::Null | Content::List(_) | Content::Object(_) => None,
        };
        self.wrong_kind("a string", hint);
        None
    }

    fn written(&self) -> String {
        match &self.node.content {
            Content::Text(text) => quoted(text),
            _ => "this".to_owned(),
        }
    }

    fn refuse<'h, T>(&self, expected: &str, hint: impl Into<Option<&'h str>>) -> Option<T> {
        self.wrong_kind(expected, hint.into());
        None
    }
}
