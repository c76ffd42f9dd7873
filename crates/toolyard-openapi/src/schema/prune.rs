//! Inserts the definitions that a schema needs, as text, within a size limit.
//!
//! If the schema is too large, optional definitions are replaced by open objects, deepest first, until the rest fits.
//! Required definitions, with everything that is required in them, are replaced last, and keep the names of their
//! required members.

use std::collections::{BTreeMap, HashSet};

use serde_json::json;

use super::{DefinitionRef, SchemaDirection, SchemaRegistry};
use crate::document::SpecNode;

/// The definitions of one schema.
#[derive(Debug, Default)]
pub(crate) struct PrunedDefinitions {
    /// The members of `$defs`, without the braces.
    pub(crate) text: String,
    /// True if some definitions are open objects because of the limit.
    pub(crate) is_pruned: bool,
}

/// The form of a definition in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DefinitionForm {
    Whole,
    Open,
}

/// The selected definitions, and the remaining budget in bytes.
struct DefinitionSelection {
    forms: BTreeMap<usize, DefinitionForm>,
    budget: usize,
}

impl DefinitionSelection {
    /// Selects new definitions as open objects.
    fn reserve(&mut self, cost: usize, definitions: &[usize]) {
        self.budget = self.budget.saturating_sub(cost);
        for definition in definitions {
            self.forms.entry(*definition).or_insert(DefinitionForm::Open);
        }
    }
}

impl SchemaRegistry<'_> {
    /// Returns all definitions that these references need, directly or indirectly, in at most `room` bytes if possible.
    pub(crate) fn definitions(&mut self, references: &[DefinitionRef], room: usize) -> PrunedDefinitions {
        let mut selection = DefinitionSelection { forms: BTreeMap::new(), budget: room };
        let required: Vec<usize> = references
            .iter()
            .filter(|reference| reference.required)
            .map(|reference| reference.definition)
            .collect();
        let all: Vec<usize> = references.iter().map(|reference| reference.definition).collect();
        let open = self.open_cost(&all, &selection);
        selection.reserve(open, &all);
        self.select_layers(required, true, room, &mut selection);
        self.select_layers(all, false, room, &mut selection);
        let mut out = PrunedDefinitions::default();
        for (definition, form) in selection.forms {
            if !out.text.is_empty() {
                out.text.push(',');
            }
            let body = self.definitions[definition].body.as_ref().filter(|_| form == DefinitionForm::Whole);
            let text = body.map_or(self.open(definition), |body| &body.text);
            out.is_pruned |= form == DefinitionForm::Open;
            // Names contain no characters that JSON escapes.
            out.text.extend(["\"", &self.definitions[definition].name, "\":", text]);
        }
        out
    }

    /// Selects definitions layer by layer, until one does not fit. This one and the following ones stay open.
    fn select_layers(
        &mut self,
        first: Vec<usize>,
        only_required: bool,
        largest: usize,
        selection: &mut DefinitionSelection,
    ) {
        let mut layer = first;
        let mut seen: HashSet<usize> = layer.iter().copied().collect();
        let mut is_full = false;
        while !layer.is_empty() {
            let mut next = Vec::new();
            for definition in layer {
                if selection.forms.get(&definition) != Some(&DefinitionForm::Whole) {
                    is_full = is_full || !self.select(definition, largest, selection);
                    if is_full {
                        continue;
                    }
                }
                let references = self.written_definition(definition, largest).references.iter();
                let further = references
                    .filter(|reference| reference.required || !only_required)
                    .map(|reference| reference.definition);
                next.extend(further.filter(|definition| seen.insert(*definition)));
            }
            layer = next;
        }
    }

    /// Selects a definition if it fits, together with the definitions that it refers to as open objects.
    fn select(&mut self, definition: usize, largest: usize, selection: &mut DefinitionSelection) -> bool {
        let body = self.written_definition(definition, largest);
        let (size, further) = (
            body.text.len(),
            body.references.iter().map(|reference| reference.definition).collect::<Vec<_>>(),
        );
        let cost = (size + self.open_cost(&further, selection)).saturating_sub(self.open(definition).len());
        if cost > selection.budget {
            return false;
        }
        selection.reserve(cost, &further);
        selection.forms.insert(definition, DefinitionForm::Whole);
        true
    }

    /// Returns the size of the new ones of these definitions as open objects, in bytes.
    fn open_cost(&self, definitions: &[usize], selection: &DefinitionSelection) -> usize {
        let new: HashSet<&usize> =
            definitions.iter().filter(|definition| !selection.forms.contains_key(definition)).collect();
        // Two quotes, a colon and a comma.
        new.into_iter()
            .map(|definition| self.open(*definition).len() + self.definitions[*definition].name.len() + 4)
            .sum()
    }

    /// Returns the open form of a definition.
    fn open(&self, definition: usize) -> &str {
        &self.definitions[definition].open
    }
}

/// Returns an open object with the required names; for other types a schema that allows anything.
pub(super) fn open_form(node: &SpecNode<'_>, direction: SchemaDirection) -> String {
    let is_object = node.text("type") == Some("object") || node.get("properties").is_some();
    if !is_object {
        return "{}".to_owned();
    }
    let properties = node.get("properties");
    let is_closed = node.get("additionalProperties") == Some(&SpecNode::Bool(false));
    let is_sent = |name: &&str| match properties.and_then(|properties| properties.get(name)) {
        Some(property) => !property.is_true("readOnly"),
        None => !is_closed || node.get("patternProperties").is_some(),
    };
    let required: Vec<&str> =
        node.list("required").iter().filter_map(SpecNode::as_str).filter(is_sent).collect();
    match required.is_empty() || direction == SchemaDirection::Response {
        true => r#"{"type":"object"}"#.to_owned(),
        false => json!({"type": "object", "required": required}).to_string(),
    }
}
