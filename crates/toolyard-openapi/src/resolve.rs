//! Resolves references within a description.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use crate::document::SpecNode;
use crate::sources::join;

/// Maximum number of references in a chain.
pub(crate) const MAX_REFERENCE_CHAIN: usize = 32;

/// Maximum number of properties and keywords of all merged objects of a description. The largest descriptions have some
/// hundred thousand.
const MAX_MERGED_MEMBERS: usize = 2_000_000;

/// A value and its file, which its references are relative to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeRef<'d> {
    pub(crate) file: usize,
    pub(crate) node: &'d SpecNode<'d>,
}

/// All files of a description; the first is its root.
pub(crate) struct SpecFiles<'d> {
    files: &'d [(&'d str, SpecNode<'d>)],
    by_name: HashMap<&'d str, usize>,
    /// Resolved references. In a list of thousands of schemas each is searched once.
    resolved: RefCell<HashMap<(usize, &'d str), Option<NodeRef<'d>>>>,
    merge_budget: Cell<usize>,
}

impl<'d> NodeRef<'d> {
    /// Returns the member with a name, in the same file.
    pub(crate) fn get(self, name: &str) -> Option<Self> {
        self.node.get(name).map(|node| Self { node, ..self })
    }

    /// The items of a list member.
    pub(crate) fn list(self, name: &str) -> impl Iterator<Item = Self> {
        self.node.list(name).iter().map(move |node| Self { node, ..self })
    }

    /// The items of a list.
    pub(crate) fn items(self) -> impl Iterator<Item = Self> {
        self.node.items().iter().map(move |node| Self { node, ..self })
    }

    /// The members, in the same file.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'d str, Self)> {
        self.node.members().iter().map(move |(name, node)| (&**name, Self { node, ..self }))
    }

    /// Returns the identity of the value: equal values in different places differ.
    pub(crate) fn identity(self) -> usize {
        std::ptr::from_ref(self.node).addr()
    }

    /// Returns the reference, if the value is one.
    pub(crate) fn reference(self) -> Option<&'d str> {
        self.node.text("$ref")
    }
}

impl<'d> SpecFiles<'d> {
    pub(crate) fn new(files: &'d [(&'d str, SpecNode<'d>)]) -> Self {
        let by_name = files.iter().enumerate().map(|(index, (name, _))| (*name, index)).collect();
        Self { files, by_name, resolved: RefCell::default(), merge_budget: Cell::new(MAX_MERGED_MEMBERS) }
    }

    /// The root of the description.
    pub(crate) fn root(&self) -> NodeRef<'d> {
        NodeRef { file: 0, node: &self.files[0].1 }
    }

    /// The roots of all files.
    pub(crate) fn roots(&self) -> impl Iterator<Item = NodeRef<'d>> {
        self.files.iter().enumerate().map(|(file, (_, node))| NodeRef { file, node })
    }

    /// The remaining budget for merged objects. Without budget, their parts stay separate.
    pub(crate) fn merge_budget(&self) -> usize {
        self.merge_budget.get()
    }

    pub(crate) fn charge_merge(&self, members: usize) {
        self.merge_budget.set(self.merge_budget.get().saturating_sub(members));
    }

    /// The name of a file.
    pub(crate) fn name(&self, file: usize) -> &'d str {
        self.files[file].0
    }

    /// Returns the value itself or the target of its chain of references. `None` if a reference is unresolved or
    /// circular.
    pub(crate) fn resolve(&self, at: NodeRef<'d>) -> Option<NodeRef<'d>> {
        (0..MAX_REFERENCE_CHAIN)
            .try_fold(at, |at, _| match at.reference() {
                Some(reference) => self.find(at.file, reference).ok_or(None),
                None => Err(Some(at)),
            })
            .map_or_else(|target| target, |_| None)
    }

    /// Returns the target of a reference in a file.
    pub(crate) fn find(&self, file: usize, reference: &'d str) -> Option<NodeRef<'d>> {
        if let Some(target) = self.resolved.borrow().get(&(file, reference)) {
            return *target;
        }
        let target = self.search(file, reference);
        self.resolved.borrow_mut().insert((file, reference), target);
        target
    }

    /// True if a file has a value.
    pub(crate) fn is_usable(&self, file: usize) -> bool {
        self.files[file].1 != SpecNode::Null
    }

    /// Returns the file that a reference in a file leads to.
    pub(crate) fn target_file(&self, file: usize, reference: &str) -> Option<usize> {
        match reference.split('#').next().unwrap_or_default() {
            "" => Some(file),
            // The reference may name its own file.
            other => self.by_name.get(&*join(self.name(file), other)).copied(),
        }
    }

    fn search(&self, file: usize, reference: &str) -> Option<NodeRef<'d>> {
        let (_, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let file = self.target_file(file, reference)?;
        let node = &self.files[file].1;
        let fragment = percent_decoded(fragment);
        let node = match &*fragment {
            "" => node,
            pointer if pointer.starts_with('/') => node.pointer(pointer)?,
            anchor => find_anchor(node, anchor)?,
        };
        (!matches!(node, SpecNode::Null)).then_some(NodeRef { file, node })
    }
}

/// Finds the schema with an `$anchor` (JSON Schema 2020-12, section 8.2.2).
fn find_anchor<'d>(node: &'d SpecNode<'d>, anchor: &str) -> Option<&'d SpecNode<'d>> {
    if node.text("$anchor") == Some(anchor) || node.text("$dynamicAnchor") == Some(anchor) {
        return Some(node);
    }
    let members = node.members().iter().map(|(_, value)| value);
    members.chain(node.items()).find_map(|inside| find_anchor(inside, anchor))
}

/// Decodes the fragment of a URI. Invalid escapes stay.
fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at], escape) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve() {
        let parse = |text| SpecNode::parse(text).unwrap();
        let root = "a: {$ref: '#/b'}\nb: {$ref: 'x/other.yaml#/c%20d'}\nloop: {$ref: '#/loop'}\nself: {$ref: 'root.yaml#/e'}\n\
                    e: 5\nanchor: {$ref: '#Here'}\nf: {x: [{$anchor: Here, is: 6}]}\ndangling: {$ref: '#/no'}\ngone: {$ref: no.yaml}";
        let files = [("/root.yaml", parse(root)), ("/x/other.yaml", parse("c d: {$ref: '../root.yaml#/e'}"))];
        let files = SpecFiles::new(&files);
        let check = |name: &str, expected: Option<&str>| {
            let target = files.resolve(files.root().get(name).unwrap());
            assert_eq!(target.map(|at| at.node.to_value().to_string()).as_deref(), expected, "{name}");
        };
        check("a", Some("5"));
        check("e", Some("5"));
        check("self", Some("5"));
        check("anchor", Some(r#"{"$anchor":"Here","is":6}"#));
        check("loop", None);
        check("dangling", None);
        check("gone", None);
    }
}
