//! Faults of a document as a whole: duplicate keys, unresolved references, missing parts, invalid values.

mod invalid_values;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use super::{DescriptionFault, FaultLocation};
use crate::document::SpecNode;
use crate::resolve::{MAX_REFERENCE_CHAIN, NodeRef, SpecFiles};
use crate::sources::DescriptionSources;

/// Maximum number of faults of each kind.
const MAX_FAULTS: usize = 1000;

/// Maximum number of members that are compared with one another.
const MAX_SMALL_OBJECT: usize = 16;

/// Members whose own members have free names.
const MAPS: [&str; 21] = [
    "properties",
    "patternProperties",
    "definitions",
    "$defs",
    "schemas",
    "dependentSchemas",
    "responses",
    "parameters",
    "headers",
    "securitySchemes",
    "securityDefinitions",
    "links",
    "callbacks",
    "requestBodies",
    "pathItems",
    "paths",
    "webhooks",
    "content",
    "encoding",
    "variables",
    "mapping",
];

/// Members whose values are arbitrary.
const VALUES: [&str; 6] = ["example", "examples", "default", "enum", "const", "value"];

/// The parts of a document that references lead to.
const SECTIONS: [&str; 4] = ["components", "definitions", "parameters", "responses"];

/// The location of a value, from the innermost segment outwards.
#[derive(Clone, Copy)]
struct NodePath<'p> {
    parent: Option<&'p NodePath<'p>>,
    segment: Segment<'p>,
}

#[derive(Clone, Copy)]
enum Segment<'p> {
    File(&'p str),
    Name(&'p str),
    Index(usize),
}

impl<'p> NodePath<'p> {
    fn of(file: &'p str) -> Self {
        Self { parent: None, segment: Segment::File(file) }
    }

    fn at<'c>(&'c self, segment: Segment<'c>) -> NodePath<'c>
    where
        'p: 'c,
    {
        NodePath { parent: Some(self), segment }
    }

    fn location(&self) -> FaultLocation {
        let parent = self.parent.map(NodePath::location);
        match (parent, self.segment) {
            (Some(parent), Segment::Name(name)) => parent.at(name),
            (Some(parent), Segment::Index(index)) => parent.at(index),
            (parent, Segment::File(file)) => parent.unwrap_or_else(|| FaultLocation::of(file)),
            (None, _) => FaultLocation::of(""),
        }
    }

    /// True for a location that may have keywords of schemas: within a schema, a parameter or a header.
    fn has_keywords(&self) -> bool {
        self.is_in_schema()
            || matches!(self.segment, Segment::Name("parameters" | "headers"))
            || self.parent.is_some_and(NodePath::has_keywords)
    }

    /// True for a part of an `allOf`.
    fn is_part(&self) -> bool {
        self.parent.is_some_and(|parent| matches!(parent.segment, Segment::Name("allOf")))
    }

    /// True for a location within a schema.
    fn is_in_schema(&self) -> bool {
        let is_schema = |name| matches!(name, "schema" | "schemas" | "definitions" | "$defs");
        matches!(self.segment, Segment::Name(name) if is_schema(name))
            || self.parent.is_some_and(NodePath::is_in_schema)
    }
}

fn fault(location: &FaultLocation, problem: String) -> DescriptionFault {
    DescriptionFault { location: location.to_string(), problem }
}

/// Adds a fault to a list of the same kind, up to the limit.
fn push(faults: &mut Vec<DescriptionFault>, path: &NodePath<'_>, problem: String) {
    match faults.len() {
        0..MAX_FAULTS => faults.push(fault(&path.location(), problem)),
        MAX_FAULTS => {
            let problem = format!("more than {MAX_FAULTS} faults of this kind: the others are not listed");
            faults.push(fault(&path.location(), problem));
        }
        _ => {}
    }
}

/// Removes duplicate keys from a file, and adds them as faults. As in JSON parsers, the last value remains.
pub(super) fn remove_duplicates(file: &str, root: &mut SpecNode<'_>, faults: &mut Vec<DescriptionFault>) {
    remove_duplicates_at(root, &NodePath::of(file), faults);
}

fn remove_duplicates_at(node: &mut SpecNode<'_>, path: &NodePath<'_>, faults: &mut Vec<DescriptionFault>) {
    match node {
        SpecNode::Object(members) => {
            if has_duplicates(members) {
                let mut later = HashSet::with_capacity(members.len());
                let is_last: Vec<bool> =
                    members.iter().rev().map(|(name, _)| later.insert(name.clone())).collect();
                let mut is_last = is_last.into_iter().rev();
                members.retain(|(name, _)| {
                    let is_last = is_last.next().unwrap_or(true);
                    if !is_last {
                        let problem = "duplicate key: the last value is used".to_owned();
                        push(faults, &path.at(Segment::Name(name)), problem);
                    }
                    is_last
                });
            }
            for (name, value) in members {
                remove_duplicates_at(value, &path.at(Segment::Name(name)), faults);
            }
        }
        SpecNode::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                remove_duplicates_at(item, &path.at(Segment::Index(index)), faults);
            }
        }
        _ => {}
    }
}

/// True if two members have the same name. Nearly all objects are small, and need no set for this.
fn has_duplicates(members: &[(Cow<'_, str>, SpecNode<'_>)]) -> bool {
    if members.len() > MAX_SMALL_OBJECT {
        let mut seen = HashSet::with_capacity(members.len());
        return !members.iter().all(|(name, _)| seen.insert(&**name));
    }
    let is_repeated = |(index, (name, _)): (usize, &(Cow<'_, str>, SpecNode<'_>))| {
        members[..index].iter().any(|(other, _)| other == name)
    };
    members.iter().enumerate().any(is_repeated)
}

/// Returns the faults of references and of incomplete documents. Locations that are in `known` are omitted.
pub(super) fn find(
    files: &SpecFiles<'_>,
    sources: &DescriptionSources,
    known: &[DescriptionFault],
) -> Vec<DescriptionFault> {
    let locations = known.iter().map(|fault| &*fault.location).collect();
    let mut search = ReferenceSearch {
        files,
        known: locations,
        faults: Vec::new(),
        invalid: Vec::new(),
        unusable: HashSet::new(),
        missing: BTreeMap::new(),
    };
    let mut incomplete: Vec<_> = without_paths(files).into_iter().collect();
    for root in files.roots() {
        let file = files.name(root.file);
        search.visit(root, &NodePath::of(file), false);
        incomplete.extend(unfinished_text(file, sources.text(file), root.node));
    }
    for ((file, section), references) in search.missing {
        let lead = if references == 1 { "reference leads" } else { "references lead" };
        let problem =
            format!("missing, although {references} {lead} there: the document seems to be incomplete");
        incomplete.push(fault(&FaultLocation::of(files.name(file)).at(section), problem));
    }
    incomplete.extend(search.faults);
    incomplete.extend(search.invalid);
    incomplete
}

/// Returns a fault if a document has no `paths`. Since OpenAPI 3.1, webhooks or components may stand for them (section
/// 4.8.1).
fn without_paths(files: &SpecFiles<'_>) -> Option<DescriptionFault> {
    let root = files.root();
    let is_early = ["2.", "3.0"].iter().any(|early| {
        let version = root.node.text("openapi").or(root.node.text("swagger"));
        version.is_some_and(|version| version.starts_with(early))
    });
    let parts: &[&str] = if is_early { &["paths"] } else { &["paths", "webhooks", "components"] };
    let is_missing = parts.iter().all(|part| root.get(part).is_none());
    let location = FaultLocation::of(files.name(root.file)).at("paths");
    is_missing.then(|| fault(&location, "missing: the document seems to be incomplete".to_owned()))
}

/// Returns a fault if the text ends between a key and its value.
fn unfinished_text(file: &str, text: &str, root: &SpecNode<'_>) -> Option<DescriptionFault> {
    let mut location = FaultLocation::of(file);
    let mut node = root;
    while let Some((name, value)) = node.members().last() {
        if VALUES.contains(&&**name) {
            return None;
        }
        location = location.at(name);
        node = value;
    }
    let is_unfinished = *node == SpecNode::Null && text.ends_with(':');
    let problem = "the text ends without a value: the document seems to be incomplete";
    is_unfinished.then(|| fault(&location, problem.to_owned()))
}

/// Finds references that lead nowhere, and invalid values.
struct ReferenceSearch<'s, 'd> {
    files: &'s SpecFiles<'d>,
    known: HashSet<&'s str>,
    faults: Vec<DescriptionFault>,
    /// Invalid values.
    invalid: Vec<DescriptionFault>,
    /// Unusable files that a fault refers to.
    unusable: HashSet<usize>,
    /// Missing sections of files, with the number of references to each.
    missing: BTreeMap<(usize, &'static str), usize>,
}

impl<'d> ReferenceSearch<'_, 'd> {
    /// Visits a value. In a map the names of members are not keywords.
    fn visit(&mut self, at: NodeRef<'d>, path: &NodePath<'_>, is_map: bool) {
        if let Some(reference) = at.reference().filter(|_| !is_map) {
            self.check(at, reference, path);
        }
        for (name, value) in at.members() {
            self.check_value(name, value.node, path, is_map);
            let is_value = !is_map && (VALUES.contains(&name) || name.starts_with("x-"));
            if !is_value {
                self.visit(value, &path.at(Segment::Name(name)), !is_map && MAPS.contains(&name));
            }
        }
        let problem = invalid_values::problem_of_object(at.node).filter(|_| !is_map && path.is_in_schema());
        // Other parts of an `allOf` may describe the members.
        if let Some(problem) = problem.filter(|_| !path.is_part()) {
            push(&mut self.invalid, &path.at(Segment::Name("required")), problem);
        }
        for (index, item) in at.items().enumerate() {
            self.visit(item, &path.at(Segment::Index(index)), false);
        }
    }

    fn check_value(&mut self, name: &str, value: &SpecNode<'d>, path: &NodePath<'_>, is_map: bool) {
        let problem = match (is_map, path.segment) {
            (true, Segment::Name(map)) => invalid_values::problem_of_member(map, name, value),
            (true, _) => None,
            (false, _) => invalid_values::problem_of_keyword(name, value).filter(|_| path.has_keywords()),
        };
        let Some(problem) = problem else { return };
        let path = path.at(Segment::Name(name));
        if !self.known.contains(&*path.location().to_string()) {
            push(&mut self.invalid, &path, problem);
        }
    }

    fn check(&mut self, at: NodeRef<'d>, reference: &'d str, path: &NodePath<'_>) {
        if self.files.resolve(at).is_some() {
            return;
        }
        let problem = match self.files.find(at.file, reference) {
            None => format!("unresolved reference `{reference}`"),
            // Another reference in the chain is unresolved, which is a fault there.
            Some(_) if self.ends(at) => return,
            Some(_) => {
                format!("reference `{reference}` is circular or one of more than {MAX_REFERENCE_CHAIN}")
            }
        };
        // An unusable file has a fault of its own; one reference to it is enough.
        let target = self.files.target_file(at.file, reference);
        let is_usable = target.is_none_or(|target| self.files.is_usable(target));
        if !is_usable && target.is_some_and(|target| !self.unusable.insert(target)) {
            return;
        }
        let section = |section: &&&str| {
            let pointer = reference.strip_prefix("#/").unwrap_or_default();
            pointer.split('/').next() == Some(**section)
        };
        if let Some(section) = SECTIONS.iter().find(section)
            && self.files.find(at.file, pointer_of(section)).is_none()
        {
            *self.missing.entry((at.file, section)).or_default() += 1;
        }
        let location = path.location();
        if !self.known.contains(&*location.to_string()) {
            let cost = if path.is_in_schema() { "any value is accepted" } else { "it is ignored" };
            push(&mut self.faults, path, format!("{problem}: {cost}"));
        }
    }

    /// True if a chain of references ends at one that is unresolved.
    fn ends(&self, at: NodeRef<'d>) -> bool {
        let mut next = Some(at);
        for _ in 0..MAX_REFERENCE_CHAIN {
            let Some(at) = next else { return true };
            next = at.reference().and_then(|reference| self.files.find(at.file, reference));
        }
        next.is_none()
    }
}

/// Returns the JSON pointer of a section.
fn pointer_of(section: &str) -> &'static str {
    match section {
        "components" => "#/components",
        "definitions" => "#/definitions",
        "parameters" => "#/parameters",
        _ => "#/responses",
    }
}

#[cfg(test)]
mod tests;
