//! Schemas of a description, as JSON Schema 2020-12.
//!
//! What is referred to becomes a definition (`$defs`), which is written once however many tools need it, so that recursion
//! is finite and a document with thousands of operations is read in a second. A definition is put into the schema of a
//! tool as text ([`prune`]).

mod all_of;
mod discriminator;
mod keywords;
mod prune;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

pub(crate) use self::all_of::{Flat, flat};
use crate::document::Node;
use crate::resolve::{At, Files};

/// What a schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// What a caller sends: without what is `readOnly`, and exact.
    Request,
    /// What a server answers: without what is `writeOnly`, and only the structure. Servers answer with `null` and without
    /// members where their documents allow neither, and clients refuse a result that does not fit its schema, after the
    /// call was made.
    Response,
}

/// Which words a document has for the same things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenAPI 2 and 3.0: nearly draft 4 of JSON Schema.
    Old,
    /// OpenAPI 3.1 and later: 2020-12 itself.
    New,
}

/// All schemas of a description that are referred to, in one direction.
pub(crate) struct Schemas<'d> {
    files: &'d Files<'d>,
    dialect: Dialect,
    direction: Direction,
    units: Vec<Unit<'d>>,
    by_identity: HashMap<usize, usize>,
    names: HashSet<String>,
    /// Whether inline objects become definitions as well, so that they can be left out one by one.
    hoists: bool,
}

/// A schema that has a definition of its own.
struct Unit<'d> {
    name: String,
    at: At<'d>,
    /// What stands for it where there is no room for it.
    open: String,
    written: Option<Written>,
}

/// A schema as text, and the definitions that it refers to.
#[derive(Default)]
struct Written {
    text: String,
    edges: Vec<Edge>,
}

/// A reference to a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edge {
    unit: usize,
    /// Whether every value has it: it is required, and so is all around it.
    required: bool,
}

/// A schema that is not part of a definition, and what it refers to.
#[derive(Debug, Default)]
pub(crate) struct Root {
    pub(crate) edges: Vec<Edge>,
}

impl<'d> Schemas<'d> {
    pub(crate) fn new(files: &'d Files<'d>, dialect: Dialect, direction: Direction) -> Self {
        Self {
            files,
            dialect,
            direction,
            units: Vec::new(),
            by_identity: HashMap::new(),
            names: HashSet::new(),
            hoists: false,
        }
    }

    /// Whether inline objects become definitions from now on; says whether they did.
    pub(crate) fn set_hoisting(&mut self, hoists: bool) -> bool {
        std::mem::replace(&mut self.hoists, hoists)
    }

    /// Writes a schema in another one. `required` as in [`Edge`].
    pub(crate) fn write(&mut self, at: At<'d>, required: bool, root: &mut Root) -> Value {
        Writer { schemas: self, edges: &mut root.edges }.schema(at, required)
    }

    /// Writes what a schema says, where it would be a reference otherwise.
    pub(crate) fn write_whole(&mut self, at: At<'d>, root: &mut Root) -> Value {
        Writer { schemas: self, edges: &mut root.edges }.described(at, true)
    }

    /// Writes the schema of a property.
    pub(crate) fn write_property(
        &mut self,
        name: &str,
        at: At<'d>,
        required: bool,
        root: &mut Root,
    ) -> Value {
        Writer { schemas: self, edges: &mut root.edges }.property(name, at, required)
    }

    /// Whether a caller never sends this, or a server never answers it.
    pub(crate) fn leaves_out(&self, at: At<'d>) -> bool {
        let word = match self.direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
        };
        at.node.is(word) || self.files.resolve(at).is_some_and(|at| at.node.is(word))
    }

    /// The definition of what a reference names, which is called after it.
    fn unit(&mut self, at: At<'d>, name: &str) -> usize {
        if let Some(unit) = self.by_identity.get(&at.identity()) {
            return *unit;
        }
        let name = self.free_name(name);
        let open = prune::opened(at.node, self.direction);
        self.units.push(Unit { name, at, open, written: None });
        self.by_identity.insert(at.identity(), self.units.len() - 1);
        self.units.len() - 1
    }

    fn free_name(&mut self, wanted: &str) -> String {
        let legal = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let wanted: String = wanted.chars().map(legal).collect();
        let numbered = (2..).map(|number| format!("{wanted}_{number}"));
        let free = std::iter::once(wanted.clone()).chain(numbered).find(|name| !self.names.contains(name));
        let free = free.unwrap_or(wanted);
        self.names.insert(free.clone());
        free
    }

    /// A definition, which is written when it is first needed.
    fn written(&mut self, unit: usize, largest: usize) -> &Written {
        if self.units[unit].written.is_none() {
            let at = self.units[unit].at;
            let mut written = self.write_unit(at);
            if written.text.len() > largest {
                let before = self.set_hoisting(true);
                written = self.write_unit(at);
                self.set_hoisting(before);
            }
            self.units[unit].written = Some(written);
        }
        self.units[unit].written.get_or_insert_default()
    }

    fn write_unit(&mut self, at: At<'d>) -> Written {
        let mut edges = Vec::new();
        let value = Writer { schemas: self, edges: &mut edges }.described(at, true);
        Written { text: value.to_string(), edges }
    }
}

/// Writes one schema, and notes what it refers to.
struct Writer<'w, 'd> {
    schemas: &'w mut Schemas<'d>,
    edges: &'w mut Vec<Edge>,
}

impl<'d> Writer<'_, 'd> {
    fn schema(&mut self, at: At<'d>, required: bool) -> Value {
        match at.reference() {
            Some(reference) => self.reference(at, reference, required),
            None => self.described(at, required),
        }
    }

    /// A schema that stands where it is used.
    fn described(&mut self, at: At<'d>, required: bool) -> Value {
        // Clients know objects only.
        match at.node {
            Node::Bool(true) => return json!({}),
            Node::Bool(false) => return json!({"not": {}}),
            _ => {}
        }
        if let Some(reference) = at.reference() {
            // A definition that is nothing but a reference.
            return self.reference(at, reference, required);
        }
        match all_of::only_reference(at) {
            Some((branch, reference)) => {
                let mut value = self.reference(branch, reference, required);
                self.annotate(at, &mut value);
                value
            }
            None => self.keywords(&flat(self.schemas.files, at), required),
        }
    }

    /// A reference to the definition of what `at` refers to. What leads nowhere allows anything.
    fn reference(&mut self, at: At<'d>, reference: &'d str, required: bool) -> Value {
        let Some(target) = self.schemas.files.find(at.file, reference) else { return json!({}) };
        if self.schemas.files.resolve(target).is_none() {
            return json!({});
        }
        let name = reference.rsplit(['/', '#']).find(|name| !name.is_empty()).unwrap_or("schema");
        let mut value = self.refer(target, name, required);
        self.annotate(at, &mut value);
        value
    }

    fn refer(&mut self, target: At<'d>, name: &str, required: bool) -> Value {
        let unit = self.schemas.unit(target, name);
        self.edges.push(Edge { unit, required });
        json!({"$ref": format!("#/$defs/{}", self.schemas.units[unit].name)})
    }

    /// What stands beside a reference. In 2020-12 all of it counts; in older dialects only words are taken, and `null`,
    /// which their authors mean though the reference would hide it.
    fn annotate(&mut self, at: At<'d>, value: &mut Value) {
        let mut beside = Map::new();
        if self.schemas.dialect == Dialect::New {
            let mut own = flat(self.schemas.files, at);
            own.keywords.retain(|(name, _)| *name != "$ref" && *name != "allOf");
            if let Value::Object(keywords) = self.keywords(&own, false) {
                beside = keywords;
            }
        } else {
            for word in ["title", "description"] {
                if let Some(text) = at.node.text(word) {
                    beside.insert(word.to_owned(), text.into());
                }
            }
        }
        if let Value::Object(members) = value {
            for (name, word) in beside {
                members.entry(name).or_insert(word);
            }
        }
        if keywords::is_nullable(at.node) && at.reference().is_none() {
            keywords::or_null(value);
        }
    }
}
