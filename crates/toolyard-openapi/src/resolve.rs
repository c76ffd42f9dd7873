//! References within a description, followed.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::document::Node;
use crate::sources::join;

/// How many references may lead to one another.
const LONGEST_CHAIN: usize = 32;

/// A value, and the file that it stands in, which its references are relative to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'d> {
    pub(crate) file: usize,
    pub(crate) node: &'d Node<'d>,
}

/// All files of a description; the first is where it begins.
pub(crate) struct Files<'d> {
    files: &'d [(&'d str, Node<'d>)],
    by_name: HashMap<&'d str, usize>,
    /// A list of thousands of schemas is searched once for each that is referred to.
    found: RefCell<HashMap<(usize, &'d str), Option<At<'d>>>>,
}

impl<'d> At<'d> {
    /// The member of that name, which stands in the same file.
    pub(crate) fn get(self, name: &str) -> Option<Self> {
        self.node.get(name).map(|node| Self { node, ..self })
    }

    /// The items of a member that is a list.
    pub(crate) fn list(self, name: &str) -> impl Iterator<Item = Self> {
        self.node.list(name).iter().map(move |node| Self { node, ..self })
    }

    /// The items, of a list.
    pub(crate) fn items(self) -> impl Iterator<Item = Self> {
        self.node.items().iter().map(move |node| Self { node, ..self })
    }

    /// The members, each in the same file.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'d str, Self)> {
        self.node.members().iter().map(move |(name, node)| (&**name, Self { node, ..self }))
    }

    /// Which value it is: two equal ones in different places are two.
    pub(crate) fn identity(self) -> usize {
        std::ptr::from_ref(self.node).addr()
    }

    /// What it refers to, if it does.
    pub(crate) fn reference(self) -> Option<&'d str> {
        self.node.text("$ref")
    }
}

impl<'d> Files<'d> {
    pub(crate) fn new(files: &'d [(&'d str, Node<'d>)]) -> Self {
        let by_name = files.iter().enumerate().map(|(index, (name, _))| (*name, index)).collect();
        Self { files, by_name, found: RefCell::default() }
    }

    /// Where the description begins.
    pub(crate) fn root(&self) -> At<'d> {
        At { file: 0, node: &self.files[0].1 }
    }

    /// The name of a file.
    pub(crate) fn name(&self, file: usize) -> &'d str {
        self.files[file].0
    }

    /// The value itself, or what it refers to, however many references there are between. `None` where they lead
    /// nowhere, or in a circle.
    pub(crate) fn resolve(&self, at: At<'d>) -> Option<At<'d>> {
        (0..LONGEST_CHAIN)
            .try_fold(at, |at, _| match at.reference() {
                Some(reference) => self.find(at.file, reference).ok_or(None),
                None => Err(Some(at)),
            })
            .map_or_else(|found| found, |_| None)
    }

    /// What a reference in a file names.
    pub(crate) fn find(&self, file: usize, reference: &'d str) -> Option<At<'d>> {
        if let Some(found) = self.found.borrow().get(&(file, reference)) {
            return *found;
        }
        let found = self.search(file, reference);
        self.found.borrow_mut().insert((file, reference), found);
        found
    }

    fn search(&self, file: usize, reference: &str) -> Option<At<'d>> {
        let (other, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let file = match other {
            "" => file,
            // Where it is this very file, or one that refers back to it.
            other => *self.by_name.get(&*join(self.name(file), other))?,
        };
        let node = &self.files[file].1;
        let fragment = percent_decoded(fragment);
        let node = match &*fragment {
            "" => node,
            pointer if pointer.starts_with('/') => node.pointer(pointer)?,
            anchor => anchored(node, anchor)?,
        };
        (!matches!(node, Node::Null)).then_some(At { file, node })
    }
}

/// The schema that is called so by `$anchor` (JSON Schema 2020-12, section 8.2.2).
fn anchored<'d>(node: &'d Node<'d>, anchor: &str) -> Option<&'d Node<'d>> {
    if node.text("$anchor") == Some(anchor) || node.text("$dynamicAnchor") == Some(anchor) {
        return Some(node);
    }
    let members = node.members().iter().map(|(_, value)| value);
    members.chain(node.items()).find_map(|inside| anchored(inside, anchor))
}

/// A fragment as it was before it became part of a URI. What is no escape stays.
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
    fn references_lead_to_values() {
        let parse = |text| Node::parse(text).unwrap();
        let root = "a: {$ref: '#/b'}\nb: {$ref: 'x/other.yaml#/c%20d'}\nloop: {$ref: '#/loop'}\nself: {$ref: 'root.yaml#/e'}\n\
                    e: 5\nanchor: {$ref: '#Here'}\nf: {x: [{$anchor: Here, is: 6}]}\ndangling: {$ref: '#/no'}\ngone: {$ref: no.yaml}";
        let files = [("/root.yaml", parse(root)), ("/x/other.yaml", parse("c d: {$ref: '../root.yaml#/e'}"))];
        let files = Files::new(&files);
        let check = |name: &str, expected: Option<&str>| {
            let found = files.resolve(files.root().get(name).unwrap());
            assert_eq!(found.map(|at| at.node.to_value().to_string()).as_deref(), expected, "{name}");
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
