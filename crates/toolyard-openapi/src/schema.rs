//! Converts the schemas of a description to JSON Schema 2020-12.
//!
//! The target of a reference becomes a definition (`$defs`), which is written once for all tools, so that recursion is
//! finite and a document with thousands of operations takes a second. Definitions are inserted into the schema of a
//! tool as text ([`prune`]).

mod all_of;
mod alternatives;
mod closed;
mod discriminator;
mod examples;
mod keywords;
mod overlap;
mod pattern;
mod prune;
#[cfg(test)]
mod tests;
mod typed_values;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};
use toolyard_core::text::TextBounds;

pub(crate) use self::all_of::{FlatSchema, flatten};
pub(crate) use self::examples::{example_list, example_value};
pub(crate) use self::keywords::{count, types};
pub(crate) use self::pattern::to_ecmascript;
pub(crate) use self::typed_values::fit;
use crate::document::SpecNode;
use crate::resolve::{NodeRef, SpecFiles};

/// The purpose of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaDirection {
    /// Arguments of a caller: exact, without `readOnly` properties.
    Request,
    /// Responses of a server: only the structure, without `writeOnly` properties. Servers send `null` and omit members
    /// where their documents permit neither, and clients reject a result that does not match its schema after the call
    /// was made.
    Response,
}

/// The JSON Schema dialect of a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaDialect {
    /// OpenAPI 2 and 3.0: similar to draft 4 of JSON Schema.
    Old,
    /// OpenAPI 3.1 and later: JSON Schema 2020-12.
    New,
}

/// All referenced schemas of a description, for one direction.
pub(crate) struct SchemaRegistry<'d> {
    files: &'d SpecFiles<'d>,
    dialect: SchemaDialect,
    direction: SchemaDirection,
    definitions: Vec<SchemaDefinition<'d>>,
    by_identity: HashMap<usize, usize>,
    names: HashSet<String>,
    /// True if inline objects become definitions as well, so that they can be pruned one by one.
    hoists: bool,
    /// Maximum size of an example as JSON.
    example_bytes: usize,
    /// Closed parts of objects that are being written in open form.
    opened: Vec<usize>,
    searches: SearchBudget,
    comparisons: SearchBudget,
}

/// Steps that are left for searches through the alternatives of a description. Schemas that lead to each other many
/// times over would need exponentially many.
struct SearchBudget(Cell<usize>);

impl SearchBudget {
    /// More than all searches of the largest known descriptions need.
    const STEPS: usize = 50_000;

    /// Takes a step. Returns false once there are none left.
    fn step(&self) -> bool {
        self.take(1)
    }

    /// Takes several steps.
    fn take(&self, steps: usize) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(steps));
        left >= steps
    }
}

impl Default for SearchBudget {
    fn default() -> Self {
        Self(Cell::new(Self::STEPS))
    }
}

/// A schema with its own definition.
struct SchemaDefinition<'d> {
    name: String,
    at: NodeRef<'d>,
    /// Its replacement if it does not fit.
    open: String,
    body: Option<WrittenSchema>,
}

/// A schema as text, with its references to definitions.
#[derive(Default)]
struct WrittenSchema {
    text: String,
    references: Vec<DefinitionRef>,
}

/// A reference to a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DefinitionRef {
    definition: usize,
    /// True if every value contains it: it and everything around it is required.
    required: bool,
}

/// A schema that is not part of a definition, with its references.
#[derive(Debug, Default)]
pub(crate) struct RootSchema {
    pub(crate) references: Vec<DefinitionRef>,
}

impl<'d> SchemaRegistry<'d> {
    pub(crate) fn new(files: &'d SpecFiles<'d>, dialect: SchemaDialect, direction: SchemaDirection) -> Self {
        Self {
            files,
            dialect,
            direction,
            definitions: Vec::new(),
            by_identity: HashMap::new(),
            names: HashSet::new(),
            hoists: false,
            example_bytes: TextBounds::DEFAULT.example_bytes,
            opened: Vec::new(),
            searches: SearchBudget::default(),
            comparisons: SearchBudget::default(),
        }
    }

    /// Sets the maximum size of an example as JSON, in bytes: some are whole documents.
    pub(crate) fn with_example_bytes(self, example_bytes: usize) -> Self {
        Self { example_bytes, ..self }
    }

    /// Sets whether inline objects become definitions, and returns the previous setting.
    pub(crate) fn set_hoisting(&mut self, hoists: bool) -> bool {
        std::mem::replace(&mut self.hoists, hoists)
    }

    /// Writes a schema within another one. `required` has the meaning of [`DefinitionRef`].
    pub(crate) fn write(&mut self, at: NodeRef<'d>, required: bool, root: &mut RootSchema) -> Value {
        SchemaWriter { schemas: self, references: &mut root.references }.schema(at, required)
    }

    /// Writes a schema inline instead of as a reference.
    pub(crate) fn write_whole(&mut self, at: NodeRef<'d>, root: &mut RootSchema) -> Value {
        SchemaWriter { schemas: self, references: &mut root.references }.inline(at, true)
    }

    /// Writes the schema of a property.
    pub(crate) fn write_property(
        &mut self,
        name: &str,
        at: NodeRef<'d>,
        required: bool,
        root: &mut RootSchema,
    ) -> Value {
        SchemaWriter { schemas: self, references: &mut root.references }.property(name, at, required)
    }

    /// True if a caller never sends this property, or a server never returns it.
    pub(crate) fn is_omitted(&self, at: NodeRef<'d>) -> bool {
        let word = match self.direction {
            SchemaDirection::Request => "readOnly",
            SchemaDirection::Response => "writeOnly",
        };
        at.node.is_true(word) || self.files.resolve(at).is_some_and(|at| at.node.is_true(word))
    }

    /// Returns the properties of a nested object that this direction has. A `readOnly` one stays, without being required,
    /// if another part of an `allOf` requires it: such an object may refer to another one by its identifier.
    fn visible_properties(&self, flat: &FlatSchema<'d>) -> Vec<(&'d str, NodeRef<'d>)> {
        let is_visible = |(name, at): &&(&'d str, NodeRef<'d>)| {
            let is_needed =
                self.direction == SchemaDirection::Request && flat.required_elsewhere.contains(name);
            is_needed || !self.is_omitted(*at)
        };
        flat.properties.iter().filter(is_visible).copied().collect()
    }

    /// Returns the names of the required members of a nested object: without those that this direction omits
    /// (`required` of a `readOnly` member is about responses: OpenAPI 3.0, section 4.7.24.2), and those that a closed
    /// object cannot have.
    fn required_names(&self, flat: &FlatSchema<'d>) -> Vec<&'d str> {
        let described = |name: &str| flat.properties.iter().find(|(known, _)| *known == name);
        let is_required = |name: &&&'d str| match described(name) {
            Some((_, at)) => !self.is_omitted(*at),
            None => !self.lacks_undescribed(flat),
        };
        flat.required.iter().filter(is_required).copied().collect()
    }

    /// Returns the definition for the target of a reference, with a similar name.
    fn definition(&mut self, at: NodeRef<'d>, name: &str) -> usize {
        if let Some(definition) = self.by_identity.get(&at.identity()) {
            return *definition;
        }
        let name = self.free_name(name);
        let open = prune::open_form(at.node, self.direction);
        self.definitions.push(SchemaDefinition { name, at, open, body: None });
        self.by_identity.insert(at.identity(), self.definitions.len() - 1);
        self.definitions.len() - 1
    }

    fn free_name(&mut self, preferred: &str) -> String {
        let legal = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let preferred: String = preferred.chars().map(legal).collect();
        let numbered = (2..).map(|number| format!("{preferred}_{number}"));
        let free = std::iter::once(preferred.clone()).chain(numbered).find(|name| !self.names.contains(name));
        let free = free.unwrap_or(preferred);
        self.names.insert(free.clone());
        free
    }

    /// Returns a definition, which is written on first use.
    fn written_definition(&mut self, definition: usize, largest: usize) -> &WrittenSchema {
        if self.definitions[definition].body.is_none() {
            let at = self.definitions[definition].at;
            let mut schema = self.write_definition(at);
            if schema.text.len() > largest {
                let before = self.set_hoisting(true);
                schema = self.write_definition(at);
                self.set_hoisting(before);
            }
            self.definitions[definition].body = Some(schema);
        }
        self.definitions[definition].body.get_or_insert_default()
    }

    fn write_definition(&mut self, at: NodeRef<'d>) -> WrittenSchema {
        let mut references = Vec::new();
        let value = SchemaWriter { schemas: self, references: &mut references }.inline(at, true);
        WrittenSchema { text: value.to_string(), references }
    }
}

/// Writes one schema and records its references.
struct SchemaWriter<'w, 'd> {
    schemas: &'w mut SchemaRegistry<'d>,
    references: &'w mut Vec<DefinitionRef>,
}

impl<'d> SchemaWriter<'_, 'd> {
    fn schema(&mut self, at: NodeRef<'d>, required: bool) -> Value {
        match at.reference() {
            Some(reference) => self.reference(at, reference, required),
            None => self.inline(at, required),
        }
    }

    /// Writes a schema inline.
    fn inline(&mut self, at: NodeRef<'d>, required: bool) -> Value {
        // Clients only accept objects.
        match at.node {
            SpecNode::Bool(true) => return json!({}),
            SpecNode::Bool(false) => return json!({"not": {}}),
            _ => {}
        }
        if let Some(reference) = at.reference() {
            // A definition that only consists of a reference.
            return self.reference(at, reference, required);
        }
        match all_of::only_reference(at) {
            Some((branch, reference)) => {
                let mut value = self.reference(branch, reference, required);
                self.annotate(at, self.schemas.files.resolve(branch), &mut value);
                value
            }
            None => self.keywords(&flatten(self.schemas.files, at), required),
        }
    }

    /// Writes a reference to a definition. An unresolved reference allows anything.
    fn reference(&mut self, at: NodeRef<'d>, reference: &'d str, required: bool) -> Value {
        let Some(target) = self.schemas.files.find(at.file, reference) else { return json!({}) };
        let resolved = self.schemas.files.resolve(target);
        if resolved.is_none() {
            return json!({});
        }
        let name = reference.rsplit(['/', '#']).find(|name| !name.is_empty()).unwrap_or("schema");
        let mut value = self.refer(target, name, required);
        self.annotate(at, resolved, &mut value);
        value
    }

    fn refer(&mut self, target: NodeRef<'d>, name: &str, required: bool) -> Value {
        let definition = self.schemas.definition(target, name);
        self.references.push(DefinitionRef { definition, required });
        json!({"$ref": format!("#/$defs/{}", self.schemas.definitions[definition].name)})
    }

    /// Adds the siblings of a reference to `target`. In 2020-12 all of them apply. In older dialects only annotations and `null`
    /// are added: authors mean them, though the reference would hide them.
    fn annotate(&mut self, at: NodeRef<'d>, target: Option<NodeRef<'d>>, value: &mut Value) {
        let mut beside = Map::new();
        if self.schemas.dialect == SchemaDialect::New {
            let mut own = flatten(self.schemas.files, at);
            own.keywords.retain(|(name, _)| *name != "$ref" && *name != "allOf");
            if let Value::Object(keywords) = self.keywords(&own, false) {
                beside = keywords;
            }
            if beside.get("additionalProperties") == Some(&Value::Bool(false)) {
                // The members of the target are not additional.
                beside.remove("additionalProperties");
                beside.insert("unevaluatedProperties".to_owned(), Value::Bool(false));
            }
        } else {
            for (name, value) in at.members() {
                let written = match (name, value.node) {
                    ("title" | "description", SpecNode::Text(text)) => Some((name, text.as_ref().into())),
                    ("default" | "example" | "deprecated", _) => {
                        self.constraint(name, value, &FlatSchema::default())
                    }
                    _ => None,
                };
                beside.extend(written.map(|(name, value)| (name.to_owned(), value)));
            }
        }
        if let Some(types) = target.and_then(|target| keywords::types(target.get("type")?.node)) {
            typed_values::fit_annotations(&mut beside, types);
        }
        if let Value::Object(members) = value {
            for (name, word) in beside {
                members.entry(name).or_insert(word);
            }
        }
        // In a response, the target accepts `null` itself.
        let is_wrapped = at.reference().is_none() || self.schemas.direction == SchemaDirection::Request;
        if is_wrapped && keywords::is_nullable(at.node) {
            keywords::or_null(value);
        }
    }
}
