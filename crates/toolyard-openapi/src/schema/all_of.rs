//! Objects that are made of several (`allOf`), as one, where that is exact.

use crate::document::Node;
use crate::resolve::{At, Files};

/// How deep such objects may be made of one another, and of how many parts.
const DEEPEST: usize = 16;
const MOST_PARTS: usize = 256;

/// A schema with its properties apart, in one piece where it was made of several.
#[derive(Default)]
pub(crate) struct Flat<'d> {
    pub(crate) properties: Vec<(&'d str, At<'d>)>,
    pub(crate) required: Vec<&'d str>,
    /// All other keywords.
    pub(crate) keywords: Vec<(&'d str, At<'d>)>,
}

/// The schema, in one piece if it can be: then it has no `allOf`.
pub(crate) fn flat<'d>(files: &Files<'d>, at: At<'d>) -> Flat<'d> {
    let mut left = MOST_PARTS;
    merged(files, at, 0, &mut left).unwrap_or_else(|| own(at))
}

/// The one thing that a schema is, where all that it says itself is words: `allOf` is how they are put beside a reference
/// in OpenAPI 3.0.
pub(super) fn only_reference(at: At<'_>) -> Option<(At<'_>, &str)> {
    let mut branches = at.list("allOf");
    let (Some(branch), None) = (branches.next(), branches.next()) else { return None };
    let reference = branch.reference()?;
    let is_word = |(name, value): &(&str, At<'_>)| {
        matches!(
            *name,
            "allOf" | "nullable" | "default" | "example" | "readOnly" | "writeOnly" | "deprecated"
        ) || is_silent(name, value.node)
    };
    at.members().all(|member| is_word(&member)).then_some((branch, reference))
}

fn own(at: At<'_>) -> Flat<'_> {
    let mut flat = Flat::default();
    for (name, value) in at.members() {
        match (name, value.node) {
            ("properties", Node::Object(_)) => flat.properties.extend(value.members()),
            ("required", Node::List(names)) => flat.require(names),
            // Draft 3, and properties that say it of themselves.
            ("required", _) => {}
            _ => flat.keywords.push((name, value)),
        }
    }
    flat
}

fn merged<'d>(files: &Files<'d>, at: At<'d>, depth: usize, left: &mut usize) -> Option<Flat<'d>> {
    *left = left.checked_sub(1)?;
    let mut whole = own(at);
    let Some(all) = at.get("allOf") else { return Some(whole) };
    if depth > DEEPEST || all.node.items().is_empty() || whole.keywords.iter().any(is_closed) {
        return None;
    }
    whole.keywords.retain(|(name, _)| *name != "allOf");
    for branch in at.list("allOf") {
        let branch = files.resolve(branch)?;
        let part = merged(files, branch, depth + 1, left)?;
        whole.take(part)?;
    }
    Some(whole)
}

/// Whether a keyword is about properties that other parts know nothing of.
fn is_closed((name, value): &(&str, At<'_>)) -> bool {
    *name == "additionalProperties" && *value.node != Node::Bool(true)
}

/// Whether a keyword allows what is not there, so that another part need not have it.
fn is_silent(name: &str, value: &Node<'_>) -> bool {
    match name {
        "title" | "description" | "example" | "examples" | "externalDocs" | "xml" | "discriminator"
        | "deprecated" => true,
        "type" => value.as_str() == Some("object"),
        "additionalProperties" => *value == Node::Bool(true),
        name => name.starts_with("x-"),
    }
}

impl<'d> Flat<'d> {
    fn require(&mut self, names: &'d [Node<'d>]) {
        for name in names.iter().filter_map(Node::as_str) {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }

    /// Takes in another part; `None` where both together are not what they are one after the other.
    fn take(&mut self, part: Flat<'d>) -> Option<()> {
        for (name, value) in part.properties {
            match self.properties.iter().find(|(known, _)| *known == name) {
                // One of them is said again, in the same words.
                Some((_, known)) if known.node == value.node && known.file == value.file => {}
                Some(_) => return None,
                None => self.properties.push((name, value)),
            }
        }
        for name in part.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
        for (name, value) in part.keywords {
            if !is_silent(name, value.node) {
                return None;
            }
            if matches!(name, "type" | "description")
                && !self.keywords.iter().any(|(known, _)| *known == name)
            {
                self.keywords.push((name, value));
            }
        }
        Some(())
    }

    /// The value of a keyword.
    pub(crate) fn keyword(&self, name: &str) -> Option<At<'d>> {
        self.keywords.iter().find_map(|(known, value)| (*known == name).then_some(*value))
    }
}
