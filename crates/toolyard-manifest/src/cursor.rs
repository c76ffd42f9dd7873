//! Reads one value of a document into a typed value.
//!
//! A reader is a function `ValueCursor -> Option<T>`. It returns `None` for an invalid value and reports the reason;
//! the caller continues with the next value.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use crate::{
    document::REDACTED,
    expand::{ReferenceScope, expand},
    fields::ObjectFields,
    formats::{self, FormatError, ListenAddress},
    handler::SecretString,
    problem::{FieldPath, ManifestProblem, SourceLocation, SourcePosition, choice_list, quoted},
    report::ProblemReport,
    suggest,
    tree::{NodeContent, ObjectMember, TreeNode},
};

/// A value with its path and the report for its problems.
#[derive(Clone)]
pub(crate) struct ValueCursor<'a> {
    node: &'a TreeNode,
    source: &'a str,
    path: FieldPath,
    report: &'a ProblemReport<'a>,
}

/// The keywords of a field, and those that a later release will support.
pub(crate) struct KeywordChoice<T: 'static> {
    /// The noun for the keywords in messages.
    pub(crate) noun: &'static str,
    pub(crate) words: &'static [(&'static str, T)],
    pub(crate) unsupported: &'static [&'static str],
}

// === locations and problems ===

impl<'a> ValueCursor<'a> {
    pub(crate) fn document(source: &'a str, node: &'a TreeNode, report: &'a ProblemReport<'a>) -> Self {
        Self { node, source, path: FieldPath::default(), report }
    }

    pub(crate) fn member(&self, member: &'a ObjectMember) -> Self {
        Self { node: &member.value, path: self.path.field(&member.name), ..*self }
    }

    /// The path to the value.
    pub(crate) const fn path(&self) -> &FieldPath {
        &self.path
    }

    /// The tree node of the value.
    pub(crate) const fn node(&self) -> &'a TreeNode {
        self.node
    }

    /// The content of the value.
    pub(crate) fn content(&self) -> &'a NodeContent {
        &self.node.content
    }

    fn item(&self, index: usize, node: &'a TreeNode) -> Self {
        Self { node, path: self.path.item(index), ..*self }
    }

    pub(crate) fn location(&self) -> SourceLocation {
        self.location_of(self.path.clone(), self.node.position)
    }

    /// The location of a field of this object, which may be absent.
    pub(crate) fn field_location(&self, name: &str, position: Option<SourcePosition>) -> SourceLocation {
        self.location_of(self.path.field(name), position.unwrap_or(self.node.position))
    }

    fn location_of(&self, path: FieldPath, position: SourcePosition) -> SourceLocation {
        SourceLocation { path, ..SourceLocation::at(self.source, position) }
    }

    pub(crate) fn problem(&self, message: impl Into<String>) -> ManifestProblem {
        ManifestProblem::new(self.location(), message)
    }

    pub(crate) fn report(&self, problem: ManifestProblem) {
        self.report.add(problem);
    }

    /// Registers a name, and reports this value if the same noun and name exist already.
    pub(crate) fn declare(&self, noun: &'static str, name: &str) {
        self.report.declare(noun, name, self.location());
    }

    /// Records that this value refers to a mounted secret.
    pub(crate) fn require_secrets_dir(&self) {
        self.report.add_secret_reference(self.location());
    }

    /// Records that this value needs a message bus.
    pub(crate) fn require_bus(&self) {
        self.report.add_bus_user(self.location());
    }

    /// Records that this value needs a language model.
    pub(crate) fn require_llm(&self) {
        self.report.add_llm_user(self.location());
    }

    /// Marks this value, and everything in it, as secret for display.
    pub(crate) fn mark_secret(&self) {
        self.report.add_secret_path(self.path.clone());
    }

    /// Returns the paths of values that may be secret since the last call.
    pub(crate) fn take_secret_paths(&self) -> HashSet<FieldPath> {
        self.report.take_secret_paths()
    }

    /// Returns the values of all references since the last call.
    pub(crate) fn take_reference_values(&self) -> Vec<SecretString> {
        self.report.take_reference_values().into_iter().map(SecretString::new).collect()
    }

    /// True if the field is null, which means the same as absent, as in Kubernetes.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.node.content, NodeContent::Null)
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self.node.content, NodeContent::List(_))
    }

    /// True for an object or a list without content.
    pub(crate) fn is_empty_collection(&self) -> bool {
        match &self.node.content {
            NodeContent::List(items) => items.is_empty(),
            NodeContent::Object(members) => members.is_empty(),
            _ => false,
        }
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self.node.content, NodeContent::Text(_))
    }

    pub(crate) fn report_wrong_type(&self, expected: &str, hint: Option<&str>) {
        let message = format!("found {}", self.node.content.noun());
        self.report(self.problem(message).expected(expected).maybe_hint(hint));
    }
}

// === collections ===

impl<'a> ValueCursor<'a> {
    pub(crate) fn fields(self) -> Option<ObjectFields<'a>> {
        match &self.node.content {
            NodeContent::Object(members) => Some(ObjectFields::new(self, members)),
            _ => {
                self.report_wrong_type("an object", None);
                None
            }
        }
    }

    /// Reads the items, and skips those that `read` rejects.
    pub(crate) fn list<T>(self, read: impl Fn(ValueCursor<'a>) -> Option<T>) -> Option<Vec<T>> {
        let NodeContent::List(items) = &self.node.content else {
            let single = matches!(self.node.content, NodeContent::Text(_));
            self.report_wrong_type("a list", single.then_some("write a list of one item as `[item]`"));
            return None;
        };
        Some(items.iter().enumerate().filter_map(|(index, node)| read(self.item(index, node))).collect())
    }

    pub(crate) fn non_empty_list<T>(self, read: impl Fn(ValueCursor<'a>) -> Option<T>) -> Option<Vec<T>> {
        if matches!(&self.node.content, NodeContent::List(items) if items.is_empty()) {
            self.report(self.problem("this list is empty").expected("at least one item"));
            return None;
        }
        self.list(read)
    }

    /// Reads the members of an object whose names are free. `name` checks each name.
    pub(crate) fn entries<T>(
        self,
        name: fn(&str) -> Result<(), FormatError>,
        read: impl Fn(ValueCursor<'a>) -> Option<T>,
    ) -> Option<Vec<(String, T)>> {
        self.named_entries(name, |_, cursor| read(cursor))
    }

    /// Like [`Self::entries`], for values whose format depends on their names.
    pub(crate) fn named_entries<T>(
        self,
        name: fn(&str) -> Result<(), FormatError>,
        read: impl Fn(&str, ValueCursor<'a>) -> Option<T>,
    ) -> Option<Vec<(String, T)>> {
        let NodeContent::Object(members) = &self.node.content else {
            self.report_wrong_type("an object", None);
            return None;
        };
        let entry = |member: &'a ObjectMember| {
            if let Err(invalid) = name(&member.name) {
                let place = self.field_location(&member.name, Some(member.position));
                self.report(invalid.problem(place, &quoted(&member.name)));
            }
            Some((member.name.clone(), read(&member.name, self.member(member))?))
        };
        Some(members.iter().filter_map(entry).collect())
    }
}

// === scalars ===

impl<'a> ValueCursor<'a> {
    pub(crate) fn flag(self) -> Option<bool> {
        match &self.node.content {
            NodeContent::Bool(flag) => Some(*flag),
            NodeContent::Text(_) => self.reject("true or false", "write true or false, without quotes"),
            _ => self.reject("true or false", None),
        }
    }

    /// A positive count: zero would make the gateway useless.
    pub(crate) fn count(self) -> Option<usize> {
        self.number(1, 1_000_000_000).and_then(|count| usize::try_from(count).ok())
    }

    /// A whole number from `least` to `most`.
    pub(crate) fn number(self, least: u32, most: u32) -> Option<u32> {
        let expected = format!("a whole number from {least} to {most}");
        match &self.node.content {
            NodeContent::Integer(number) => {
                let number = u32::try_from(*number).ok().filter(|number| (least..=most).contains(number));
                if number.is_none() {
                    self.report(self.problem("this number is out of range").expected(expected));
                }
                number
            }
            NodeContent::Text(_) => self.reject(&expected, "write the number without quotes"),
            _ => self.reject(&expected, None),
        }
    }

    /// A fraction from 0 to 1.
    pub(crate) fn share(self) -> Option<f64> {
        const EXPECTED: &str = "a number from 0 to 1, such as 0.1";
        let share = match &self.node.content {
            NodeContent::Integer(number) => f64::from(i32::try_from(*number).unwrap_or(-1)),
            NodeContent::Float(number) => *number,
            NodeContent::Text(_) => return self.reject(EXPECTED, "write the number without quotes"),
            _ => return self.reject(EXPECTED, None),
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
            NodeContent::Integer(size) => usize::try_from(*size).unwrap_or(0),
            NodeContent::Text(_) => self.clone().parse(formats::size)?,
            _ => return self.reject(formats::SIZE, None),
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
            NodeContent::Integer(whole) => {
                let share = formats::cpu(&whole.to_string());
                share
                    .map_err(|invalid| self.report(invalid.problem(self.location(), &self.quoted_text())))
                    .ok()
            }
            NodeContent::Text(_) => self.parse(formats::cpu),
            _ => self.reject(formats::CPU, "put a number with decimals in quotes"),
        }
    }

    /// A duration, which may be zero.
    pub(crate) fn duration(self) -> Option<Duration> {
        match &self.node.content {
            NodeContent::Integer(_) | NodeContent::Float(_) => {
                self.reject(formats::DURATION, "add a unit, as in `30s`")
            }
            _ => self.parse(formats::duration),
        }
    }

    /// A time-out, which is never zero.
    pub(crate) fn timeout(self) -> Option<Duration> {
        let duration = self.clone().duration()?;
        if duration.is_zero() {
            self.report(self.problem("this is zero").expected("a duration above zero"));
            return None;
        }
        Some(duration)
    }

    /// An address to listen on.
    pub(crate) fn listen(self) -> Option<ListenAddress> {
        match &self.node.content {
            NodeContent::Integer(_) => self.reject(formats::LISTEN, None),
            _ => self.parse(ListenAddress::from_str),
        }
    }

    /// One of a fixed set of keywords.
    pub(crate) fn choice<T: Copy>(self, choice: &KeywordChoice<T>) -> Option<T> {
        let text = self.clone().text()?;
        if let Some((_, value)) = choice.words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let words = choice.words.iter().map(|(word, _)| *word);
        let problem = if choice.unsupported.contains(&text.as_str()) {
            self.problem(format!("{} {} is not yet supported", choice.noun, self.quoted_text()))
        } else {
            let problem = self.problem(format!("{} is not a known {}", self.quoted_text(), choice.noun));
            problem.maybe_hint(suggest::nearest(&text, words.clone()).map(suggest::did_you_mean))
        };
        self.report(problem.expected(choice_list(words)));
        None
    }

    /// A string that may be secret.
    pub(crate) fn secret(self) -> Option<SecretString> {
        self.mark_secret();
        self.text().map(SecretString::new)
    }

    /// A string in a fixed format.
    pub(crate) fn parse<T>(self, parse: fn(&str) -> Result<T, FormatError>) -> Option<T> {
        let quoted = self.quoted_text();
        self.parse_as(&quoted, parse)
    }

    /// Like [`Self::parse`], for values that may be secret even in the document: problems do not quote them.
    pub(crate) fn parse_secret<T>(self, parse: fn(&str) -> Result<T, FormatError>) -> Option<T> {
        self.mark_secret();
        self.parse_as("this", parse)
    }

    fn parse_as<T>(self, label: &str, parse: fn(&str) -> Result<T, FormatError>) -> Option<T> {
        let text = self.clone().text()?;
        if self.report.has_redacted && text.contains(REDACTED) {
            // A value that is unknown here is left out, as is one with a reference.
            return None;
        }
        parse(&text).map_err(|invalid| self.report(invalid.problem(self.location(), label))).ok()
    }

    /// A string with its references expanded.
    pub(crate) fn text(self) -> Option<String> {
        let text = self.literal_text()?;
        let outside = ReferenceScope {
            environment: self.report.environment,
            folder: self.folder(),
            has_files: self.report.has_files,
        };
        let errors = match expand(text, outside) {
            // No string of a manifest can contain NUL: not an argument of a process, not a header, not a path.
            Ok(expanded) if expanded.text.contains('\0') => {
                return self.reject("a string without a NUL character", None);
            }
            Ok(expanded) => {
                self.report.add_reference_values(expanded.reference_values);
                return Some(expanded.text);
            }
            Err(bad) => bad,
        };
        for reference in errors.into_iter().filter(|reference| !self.report.tolerates(reference)) {
            self.report(self.problem(reference.to_string()).hint(reference.hint()));
        }
        None
    }

    /// The value of an environment variable, unless it is unset or empty. It counts as the value of a reference.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let value = (self.report.environment)(name).filter(|value| !value.is_empty())?;
        self.report.add_reference_values(vec![value.clone()]);
        Some(value)
    }

    /// Parses a secret value that this field refers to. Problems do not quote it.
    pub(crate) fn check_secret<T>(
        &self,
        value: &str,
        parse: fn(&str) -> Result<T, FormatError>,
    ) -> Option<T> {
        let invalid =
            |invalid: FormatError| self.report(invalid.problem(self.location(), "the value of this"));
        parse(value).map_err(invalid).ok()
    }

    /// False if the document is for a gateway elsewhere, which has none of the files here.
    pub(crate) const fn has_files(&self) -> bool {
        self.report.has_files
    }

    /// Resolves a relative path against the folder of the manifest.
    pub(crate) fn resolve_path(&self, path: &str) -> PathBuf {
        self.folder().join(path)
    }

    /// The folder of the document.
    fn folder(&self) -> &'a Path {
        Path::new(self.source).parent().unwrap_or(Path::new(""))
    }

    /// A string exactly as in the document.
    pub(crate) fn literal_text(&self) -> Option<&'a str> {
        let hint = match &self.node.content {
            NodeContent::Text(text) => return Some(text),
            NodeContent::Bool(_) | NodeContent::Integer(_) | NodeContent::Float(_) => {
                Some("put it in quotes")
            }
            NodeContent::Null | NodeContent::List(_) | NodeContent::Object(_) => None,
        };
        self.report_wrong_type("a string", hint);
        None
    }

    fn quoted_text(&self) -> String {
        match &self.node.content {
            NodeContent::Text(text) => quoted(text),
            _ => "this".to_owned(),
        }
    }

    fn reject<'h, T>(&self, expected: &str, hint: impl Into<Option<&'h str>>) -> Option<T> {
        self.report_wrong_type(expected, hint.into());
        None
    }
}
