//! Collects the arguments of a tool.

use serde_json::{Map, Value, json};
use toolyard_core::Json;
use toolyard_core::argument_names::is_legal;

use crate::schema::{RootSchema, SchemaRegistry};

/// Maximum size of an argument schema, in bytes. Larger ones are pruned, as described in `schema::prune`.
pub(super) const MAX_INPUT_BYTES: usize = 64_000;

/// Maximum size of a result schema, in bytes. It is only informative, and costs models as much as the other.
pub(super) const MAX_RESULT_BYTES: usize = 8_000;

/// Maximum length of the note about a renamed argument without the name itself, and of the suffix of its new name.
const RENAMING_NOTE_BYTES: usize = 40;

/// Note in the description of a tool whose argument schema is pruned.
pub(super) const PRUNED_NOTE: &str = "\n\n(The schema is cut for size, to 64000 bytes: where it allows any object, see the service's documentation.)";

/// The arguments of a tool as one object.
#[derive(Default)]
pub(super) struct ArgumentSchema {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// Arguments that are required if any argument of the body is present.
    required_together: Vec<String>,
    /// Arguments of an optional body.
    body_arguments: Vec<String>,
    /// The argument of an optional body, with the members that it needs.
    pub(super) body_needs: Option<(String, BodyNeeds)>,
    /// Schema of additional arguments; `false` forbids them.
    pub(super) others: Option<Value>,
    pub(super) root: RootSchema,
    /// Security schemes whose configured keys fill parameters.
    pub(super) filled: Vec<String>,
    /// Texts of the body, for the description of the tool.
    pub(super) body_texts: Vec<String>,
    /// Whole texts of arguments whose descriptions are cut.
    pub(super) cut_texts: Vec<(String, String)>,
}

/// The members that an optional body needs.
#[derive(Default)]
pub(super) struct BodyNeeds {
    /// Members that it always needs.
    pub(super) always: Vec<String>,
    /// Further members, of which it needs all of one of these lists; empty if it needs no others.
    pub(super) alternatives: Vec<Vec<String>>,
}

impl BodyNeeds {
    fn note(&self, argument: &str) -> Option<String> {
        let alternatives: Vec<_> = self.alternatives.iter().map(|names| name_list(names)).collect();
        let needed = match (&*self.always, &*alternatives) {
            ([], []) => return None,
            ([], all) => format!("one of: {}", all.join("; ")),
            (always, []) => format!("the members {}", name_list(always)),
            (always, all) => format!("the members {}, and one of: {}", name_list(always), all.join("; ")),
        };
        Some(format!("\n\n`{argument}` needs {needed}."))
    }
}

/// Returns names as text.
fn name_list(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

impl ArgumentSchema {
    /// Adds an argument; `location` distinguishes it from another one with the same name.
    pub(super) fn add(&mut self, name: &str, location: &str, schema: Value, required: bool) -> String {
        let numbered = (2..).map(|number| format!("{name}_{location}_{number}"));
        let names = [name.to_owned(), format!("{name}_{location}")].into_iter().chain(numbered);
        let free = names.into_iter().find(|name| !self.properties.contains_key(name));
        let argument = free.unwrap_or_else(|| name.to_owned());
        self.properties.insert(argument.clone(), schema);
        if required {
            self.required.push(argument.clone());
        }
        argument
    }

    /// Adds a member of an optional body. If one is present, all required ones must be.
    pub(super) fn add_together(&mut self, name: &str, schema: Value, required: bool) -> String {
        let argument = self.add(name, "body", schema, false);
        if required {
            self.required_together.push(argument.clone());
        }
        self.body_arguments.push(argument.clone());
        argument
    }

    /// Returns a note about the members that an optional body needs: the documents of many operations forget that their
    /// body is required.
    pub(super) fn body_note(&self) -> Option<String> {
        match &self.body_needs {
            Some((argument, needs)) => needs.note(argument),
            _ if self.required_together.is_empty() => None,
            _ => Some(format!("\n\nThe body needs {}.", name_list(&self.required_together))),
        }
    }

    /// True if the schema without its definitions is too large.
    pub(super) fn is_too_large(&self) -> bool {
        serde_json::to_string(&self.properties).map_or(0, |text| text.len()) > MAX_INPUT_BYTES
    }

    /// Returns the schema, and true if it was pruned.
    pub(super) fn schema(mut self, schemas: &mut SchemaRegistry<'_>) -> (Json, bool) {
        let is_relaxed = self.relax_last();
        let Self { properties, required, required_together, body_arguments, others, root, .. } = self;
        let mut schema = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), Value::Object(properties)),
        ]);
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        if !required_together.is_empty() {
            let others =
                |name: &String| required_together.iter().filter(|other| *other != name).cloned().collect();
            let each = body_arguments.iter().map(|name| (name.clone(), others(name)));
            let each: Map<String, Value> = each
                .filter(|(_, others): &(_, Vec<String>)| !others.is_empty())
                .map(|(name, others)| (name, json!(others)))
                .collect();
            if !each.is_empty() {
                schema.insert("dependentRequired".to_owned(), Value::Object(each));
            }
        }
        if let Some(others) = others {
            schema.insert("additionalProperties".to_owned(), others);
        }
        let budget = MAX_INPUT_BYTES - renaming_bytes(&schema["properties"]);
        let (schema, is_pruned) = with_definitions(Value::Object(schema), &root, schemas, budget);
        (schema, is_pruned || is_relaxed)
    }

    /// Relaxes arguments that do not fit, last ones first: optional ones accept anything, and then required ones
    /// anything of their type. Returns true if there were any.
    fn relax_last(&mut self) -> bool {
        let size = |value: &Value| value.to_string().len();
        let mut over = size(&json!(self.properties)).saturating_sub(MAX_INPUT_BYTES * 15 / 16);
        let mut is_relaxed = false;
        for of_required in [false, true] {
            let required = &self.required;
            let those = self.properties.iter_mut().filter(|(name, _)| required.contains(name) == of_required);
            for (_, schema) in those.rev() {
                if over == 0 {
                    return is_relaxed;
                }
                over = over.saturating_sub(size(schema));
                let kind = schema.get("type").filter(|_| of_required);
                *schema = kind.map_or_else(|| json!({}), |kind| json!({"type": kind}));
                is_relaxed = true;
            }
        }
        is_relaxed
    }
}

/// Returns the bytes that illegal names of arguments take in descriptions when they are replaced, up to half of the
/// limit.
fn renaming_bytes(properties: &Value) -> usize {
    let illegal = properties.as_object().into_iter().flatten().map(|(name, _)| name);
    let bytes: usize =
        illegal.filter(|name| !is_legal(name)).map(|name| 2 * name.len() + RENAMING_NOTE_BYTES).sum();
    bytes.min(MAX_INPUT_BYTES / 2)
}

/// Returns a schema as text, with the definitions that it needs.
pub(super) fn with_definitions(
    schema: Value,
    root: &RootSchema,
    schemas: &mut SchemaRegistry<'_>,
    largest: usize,
) -> (Json, bool) {
    let mut text = schema.to_string();
    let budget = largest.saturating_sub(text.len() + r#","$defs":{}"#.len());
    let definitions = schemas.definitions(&root.references, budget);
    if !definitions.text.is_empty() && text.pop().is_some() {
        text.extend([r#","$defs":{"#, &definitions.text, "}}"]);
    }
    (
        Json::parse(text).unwrap_or_else(|_| Json::from_value(&json!({"type": "object"}))),
        definitions.is_pruned,
    )
}
