//! The arguments of a tool, while they are gathered.

use serde_json::{Map, Value, json};
use toolyard_core::Json;

use crate::schema::{Root, Schemas};

/// The largest schema of arguments, in bytes. A larger one is pruned, as `schema::prune` says.
pub(super) const LARGEST: usize = 64_000;

/// The largest schema of a result, in bytes. It is there to know what to expect, and costs as much as the other.
pub(super) const LARGEST_OF_RESULT: usize = 8_000;

/// Said in the description of a tool whose arguments are not described as a whole.
pub(super) const PRUNED: &str =
    "\n\n(The schema is cut for size: where it allows any object, see the service's documentation.)";

/// Arguments in one object.
#[derive(Default)]
pub(super) struct Input {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// What has to be there where any of them is.
    together: Vec<String>,
    /// Those of a body that may be left out.
    of_body: Vec<String>,
    /// What other arguments have to be: `false` where there are none.
    pub(super) others: Option<Value>,
    pub(super) root: Root,
}

impl Input {
    /// Adds an argument; `location` tells it from another one of the same name.
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

    /// Adds a member of a body that may be left out: if it is there, all that is required of it is.
    pub(super) fn add_together(&mut self, name: &str, schema: Value, required: bool) -> String {
        let argument = self.add(name, "body", schema, false);
        if required {
            self.together.push(argument.clone());
        }
        self.of_body.push(argument.clone());
        argument
    }

    /// How large it is without its definitions, in bytes.
    pub(super) fn is_too_large(&self) -> bool {
        serde_json::to_string(&self.properties).map_or(0, |text| text.len()) > LARGEST
    }

    /// The schema, and whether it was pruned.
    pub(super) fn schema(mut self, schemas: &mut Schemas<'_>) -> (Json, bool) {
        let is_opened = self.open_last();
        let Self { properties, required, together, of_body, others, root } = self;
        let mut schema = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), Value::Object(properties)),
        ]);
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        if !together.is_empty() {
            let others = |name: &String| together.iter().filter(|other| *other != name).cloned().collect();
            let each = of_body.iter().map(|name| (name.clone(), others(name)));
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
        let (schema, is_pruned) = with_definitions(Value::Object(schema), &root, schemas, LARGEST);
        (schema, is_pruned || is_opened)
    }

    /// Of more arguments than fit, the last that are not required take anything; and if that is not enough, the last of
    /// the others, anything of their type. Says whether there were any.
    fn open_last(&mut self) -> bool {
        let size = |value: &Value| value.to_string().len();
        let mut over = size(&json!(self.properties)).saturating_sub(LARGEST * 15 / 16);
        let mut is_opened = false;
        for of_required in [false, true] {
            let required = &self.required;
            let those = self.properties.iter_mut().filter(|(name, _)| required.contains(name) == of_required);
            for (_, schema) in those.rev() {
                if over == 0 {
                    return is_opened;
                }
                over = over.saturating_sub(size(schema));
                let kind = schema.get("type").filter(|_| of_required);
                *schema = kind.map_or_else(|| json!({}), |kind| json!({"type": kind}));
                is_opened = true;
            }
        }
        is_opened
    }
}

/// A schema as text, with the definitions that it needs.
pub(super) fn with_definitions(
    schema: Value,
    root: &Root,
    schemas: &mut Schemas<'_>,
    largest: usize,
) -> (Json, bool) {
    let mut text = schema.to_string();
    let room = largest.saturating_sub(text.len() + r#","$defs":{}"#.len());
    let definitions = schemas.definitions(&root.edges, room);
    if !definitions.text.is_empty() && text.pop().is_some() {
        text.extend([r#","$defs":{"#, &definitions.text, "}}"]);
    }
    (
        Json::parse(text).unwrap_or_else(|_| Json::from_value(&json!({"type": "object"}))),
        definitions.is_pruned,
    )
}
