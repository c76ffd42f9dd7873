//! Merges `allOf` into one object if the result is equivalent.

use crate::document::SpecNode;
use crate::resolve::{NodeRef, SpecFiles};

/// Maximum depth of such objects, and maximum number of their parts, and of their properties and keywords.
const MAX_DEPTH: usize = 16;
const MAX_PARTS: usize = 256;
const MAX_MEMBERS: usize = 2048;

/// A schema with separate properties, merged from its `allOf` if possible.
#[derive(Default)]
pub(crate) struct FlatSchema<'d> {
    pub(crate) properties: Vec<(&'d str, NodeRef<'d>)>,
    pub(crate) required: Vec<&'d str>,
    /// Required members that another part describes.
    pub(crate) required_elsewhere: Vec<&'d str>,
    /// All other keywords.
    pub(crate) keywords: Vec<(&'d str, NodeRef<'d>)>,
}

/// Flattens a schema. If its `allOf` can be merged, the result has none.
pub(crate) fn flatten<'d>(files: &SpecFiles<'d>, at: NodeRef<'d>) -> FlatSchema<'d> {
    if at.get("allOf").is_none() {
        return own(at);
    }
    let members = MAX_MEMBERS.min(files.merge_budget());
    let mut merging = AllOfMerge { files, parts: MAX_PARTS, members, seen: Vec::new() };
    let whole = merging.merge(at, 0);
    files.charge_merge(members - merging.members);
    whole.unwrap_or_else(|| own(at))
}

/// The state of one merge, with its remaining limits: a few parts that many objects share could exhaust the memory.
struct AllOfMerge<'f, 'd> {
    files: &'f SpecFiles<'d>,
    parts: usize,
    members: usize,
    /// Parts that are already merged. Merging one again changes nothing.
    seen: Vec<usize>,
}

/// Returns the only branch of an `allOf` whose siblings are annotations: OpenAPI 3.0 adds annotations to references in
/// this way.
pub(super) fn only_reference(at: NodeRef<'_>) -> Option<(NodeRef<'_>, &str)> {
    let mut branches = at.list("allOf");
    let (Some(branch), None) = (branches.next(), branches.next()) else { return None };
    let reference = branch.reference()?;
    let is_word = |(name, value): &(&str, NodeRef<'_>)| {
        matches!(
            *name,
            "allOf" | "nullable" | "default" | "example" | "readOnly" | "writeOnly" | "deprecated"
        ) || is_annotation(name, value.node)
    };
    at.members().all(|member| is_word(&member)).then_some((branch, reference))
}

fn own(at: NodeRef<'_>) -> FlatSchema<'_> {
    let mut flat = FlatSchema::default();
    for (name, value) in at.members() {
        match (name, value.node) {
            ("properties", SpecNode::Object(_)) => flat.properties.extend(value.members()),
            ("required", SpecNode::List(names)) => flat.require(names),
            // Draft 3, and properties with a flag of their own.
            ("required", _) => {}
            _ => flat.keywords.push((name, value)),
        }
    }
    flat
}

impl<'d> AllOfMerge<'_, 'd> {
    fn merge(&mut self, at: NodeRef<'d>, depth: usize) -> Option<FlatSchema<'d>> {
        self.parts = self.parts.checked_sub(1)?;
        let mut whole = own(at);
        let members = whole.properties.len() + whole.required.len() + whole.keywords.len();
        self.members = self.members.checked_sub(members)?;
        let Some(all) = at.get("allOf") else { return Some(whole) };
        if depth > MAX_DEPTH
            || all.node.items().is_empty()
            || whole.keywords.iter().any(depends_on_properties)
        {
            return None;
        }
        whole.keywords.retain(|(name, _)| *name != "allOf");
        for branch in at.list("allOf") {
            let branch = self.files.resolve(branch)?;
            if self.seen.contains(&branch.identity()) {
                continue;
            }
            let part = self.merge(branch, depth + 1)?;
            whole.absorb(part)?;
            self.seen.push(branch.identity());
        }
        Some(whole)
    }
}

/// True for a keyword that depends on the properties of other parts. `additionalProperties: false` does so as well, but
/// means an object that is closed around the properties of all parts: none could have any value otherwise.
fn depends_on_properties((name, value): &(&str, NodeRef<'_>)) -> bool {
    *name == "additionalProperties" && !matches!(value.node, SpecNode::Bool(_))
}

/// True for a keyword that does not restrict absent members, so that other parts need not have it.
fn is_annotation(name: &str, value: &SpecNode<'_>) -> bool {
    match name {
        "title" | "description" | "example" | "examples" | "externalDocs" | "xml" | "discriminator"
        | "deprecated" => true,
        "type" => value.as_str() == Some("object"),
        "additionalProperties" => *value == SpecNode::Bool(true),
        name => name.starts_with("x-"),
    }
}

impl<'d> FlatSchema<'d> {
    fn require(&mut self, names: &'d [SpecNode<'d>]) {
        for name in names.iter().filter_map(SpecNode::as_str) {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }

    /// Merges another part; `None` if the result is not equivalent to both parts.
    fn absorb(&mut self, part: FlatSchema<'d>) -> Option<()> {
        let mut elsewhere = part.required_elsewhere.clone();
        elsewhere.extend(self.required.iter().filter(|name| part.is_described_only_here(name, self)));
        elsewhere.extend(part.required.iter().filter(|name| self.is_described_only_here(name, &part)));
        self.required_elsewhere.extend(elsewhere);
        for (name, value) in part.properties {
            match self.properties.iter().find(|(known, _)| *known == name) {
                // The same property with the same schema.
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
            if name == "additionalProperties" && *value.node == SpecNode::Bool(false) {
                self.keywords.retain(|(known, _)| *known != name);
                self.keywords.push((name, value));
                continue;
            }
            if !is_annotation(name, value.node) {
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

    fn is_described_only_here(&self, name: &str, other: &Self) -> bool {
        let is_in = |flat: &Self| flat.properties.iter().any(|(known, _)| *known == name);
        is_in(self) && !is_in(other)
    }

    /// True if the object has no members but those that are described.
    pub(crate) fn is_closed(&self) -> bool {
        self.keyword("additionalProperties").is_some_and(|at| *at.node == SpecNode::Bool(false))
    }

    /// Returns the value of a keyword.
    pub(crate) fn keyword(&self, name: &str) -> Option<NodeRef<'d>> {
        self.keywords.iter().find_map(|(known, value)| (*known == name).then_some(*value))
    }
}
