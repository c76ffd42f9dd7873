//! Schemas of tools: the root of `inputSchema` and `outputSchema`.
//!
//! What is nested in a schema stays as it is: MCP does not restrict it, and `null` may be a value there (`default`,
//! `const`, `enum`).

use std::borrow::Cow;
use std::sync::Arc;

use super::RepairLog;
use crate::json::{Json, Object};

const INPUT: &str = "inputSchema";
const OUTPUT: &str = "outputSchema";
const OBJECT: &str = "object";

/// Repairs the schemas of a tool.
///
/// # Errors
/// The reason why the tool cannot be published.
pub(super) fn repair(definition: &mut Cow<'_, Object>, log: &mut RepairLog) -> Result<(), Arc<str>> {
    if let Some(schema) = input_schema(definition.get(INPUT), log)? {
        definition.to_mut().set(INPUT, schema);
    }
    let Some(schema) = definition.get(OUTPUT) else { return Ok(()) };
    if !schema.is_object() {
        log.add("`outputSchema` is not an object: left out");
        definition.to_mut().remove(OUTPUT);
        return Ok(());
    }
    let mut root = SchemaRoot::open(schema, OUTPUT, log);
    root.repair(log);
    if root.members.get("type").is_some_and(Json::is_null) {
        root.leave_out("type", "null", log);
    }
    if let Some(schema) = root.changed() {
        definition.to_mut().set(OUTPUT, schema);
    }
    Ok(())
}

/// Returns another input schema if this one is not permitted. Arguments are objects in any case, so that a schema
/// without a type loses nothing by `type: object`, not even a union of several forms.
fn input_schema(schema: Option<&Json>, log: &mut RepairLog) -> Result<Option<Json>, Arc<str>> {
    let schema = match schema {
        Some(schema) if schema.is_object() => schema,
        None => return Ok(Some(any_arguments("missing", log))),
        Some(schema) if schema.is_null() => return Ok(Some(any_arguments("null", log))),
        Some(schema) if schema.to_bool() == Some(true) => return Ok(Some(any_arguments("`true`", log))),
        Some(_) => return Err("`inputSchema` is not an object".into()),
    };
    let mut root = SchemaRoot::open(schema, INPUT, log);
    root.repair(log);
    let is_object = |kind: &Json| kind.to_str().as_deref() == Some(OBJECT);
    match root.members.get("type") {
        Some(kind) if is_object(kind) => {}
        None => root.set_type("is missing", log),
        Some(kind) if kind.is_null() => root.set_type("is null", log),
        Some(kind) if kind.to_items().is_ok_and(|kinds| kinds.iter().any(is_object)) => {
            root.set_type("is a list", log);
        }
        Some(_) => return Err("`inputSchema.type` is not `object`".into()),
    }
    Ok(root.changed())
}

fn any_arguments(instead_of: &str, log: &mut RepairLog) -> Json {
    log.add(format_args!("`inputSchema` is {instead_of}: any arguments are allowed"));
    Object::new().with("type", Json::string(OBJECT)).to_json()
}

/// The members of a schema at its root.
struct SchemaRoot {
    path: &'static str,
    members: Object,
    is_changed: bool,
}

impl SchemaRoot {
    fn open(schema: &Json, path: &'static str, log: &mut RepairLog) -> Self {
        if let Ok(members) = schema.to_object() {
            return Self { path, members, is_changed: false };
        }
        log.add(format_args!("`{path}` has a member twice: the last one counts"));
        let members = Json::from_value(&schema.to_value()).to_object().unwrap_or_default();
        Self { path, members, is_changed: true }
    }

    /// Returns the schema if it was changed.
    fn changed(self) -> Option<Json> {
        self.is_changed.then(|| self.members.to_json())
    }

    fn set(&mut self, keyword: &str, value: Json) {
        self.members.set(keyword, value);
        self.is_changed = true;
    }

    fn set_type(&mut self, problem: &str, log: &mut RepairLog) {
        log.add(format_args!("`{}.type` {problem}: `object` is meant", self.path));
        self.set("type", Json::string(OBJECT));
    }

    fn leave_out(&mut self, keyword: &str, problem: &str, log: &mut RepairLog) {
        log.add(format_args!("`{}.{keyword}` is {problem}: left out", self.path));
        self.members.remove(keyword);
        self.is_changed = true;
    }

    /// Repairs the keywords that MCP restricts, apart from `type`.
    fn repair(&mut self, log: &mut RepairLog) {
        self.unfold(log);
        if self.members.get("$schema").is_some_and(|schema| !schema.is_string()) {
            self.leave_out("$schema", "not a string", log);
        }
        self.repair_properties(log);
        self.repair_required(log);
    }

    /// Unfolds a schema that stands as the value of `properties`, a common mistake: no property has a schema that is
    /// the text `object`.
    fn unfold(&mut self, log: &mut RepairLog) {
        let Some(Ok(inner)) = self.members.get("properties").map(Json::to_object) else { return };
        let is_schema = inner.get_str("type").as_deref() == Some(OBJECT)
            && inner.get("properties").is_some_and(Json::is_object);
        if !is_schema {
            return;
        }
        log.add(format_args!("`{}.properties` is a schema: unfolded", self.path));
        for (keyword, value) in inner.iter() {
            self.set(&keyword, value.clone());
        }
    }

    fn repair_properties(&mut self, log: &mut RepairLog) {
        const KEYWORD: &str = "properties";
        let Some(value) = self.members.get(KEYWORD) else { return };
        let mut properties = match value.to_object() {
            Ok(properties) => properties,
            Err(_) if value.is_object() => {
                log.add(format_args!("`{}.properties` has a member twice: the last one counts", self.path));
                let last = Json::from_value(&value.to_value());
                self.set(KEYWORD, last.clone());
                last.to_object().unwrap_or_default()
            }
            // An empty map of PHP.
            Err(_) if value.to_items().is_ok_and(|items| items.is_empty()) => {
                log.add(format_args!("`{}.properties` is a list: no properties are meant", self.path));
                return self.set(KEYWORD, Json::empty_object());
            }
            Err(_) => return self.leave_out(KEYWORD, "not an object", log),
        };
        let is_schema = |value: &Json| value.is_object() || value.to_bool().is_some();
        let broken: Vec<_> = properties.iter().filter(|(_, value)| !is_schema(value)).collect();
        let broken: Vec<_> = broken.into_iter().map(|(name, _)| name.into_owned()).collect();
        for name in &broken {
            log.add(format_args!(
                "the schema of the property `{}` is not one: any value is allowed",
                name.chars().take(MAX_NAME_CHARS).collect::<String>()
            ));
            properties.set(name, Json::empty_object());
        }
        if !broken.is_empty() {
            self.set(KEYWORD, properties.to_json());
        }
    }

    fn repair_required(&mut self, log: &mut RepairLog) {
        const KEYWORD: &str = "required";
        let Some(required) = self.members.get(KEYWORD) else { return };
        let Ok(names) = required.to_items() else {
            return self.leave_out(KEYWORD, "not a list", log);
        };
        let known: Vec<_> = names.iter().filter(|name| name.is_string()).collect();
        if known.len() < names.len() {
            log.add(format_args!("`{}.required` has items that are not strings: left out", self.path));
            let known = Json::array(known);
            self.set(KEYWORD, known);
        }
    }
}

/// Maximum number of characters of a property's name in a report.
const MAX_NAME_CHARS: usize = 64;

/// Returns a schema for the revisions before 2026-07-28, where each property at the root has an object as its schema:
/// `true` and `false` become equivalent ones. `None` if it stays as it is.
pub(crate) fn legacy_schema(schema: &Json) -> Option<Json> {
    let mut schema = schema.to_object().ok()?;
    let mut properties = schema.get("properties")?.to_object().ok()?;
    let booleans = properties.iter().filter_map(|(name, value)| Some((name.into_owned(), value.to_bool()?)));
    let booleans: Vec<_> = booleans.collect();
    if booleans.is_empty() {
        return None;
    }
    for (name, is_allowed) in booleans {
        let nothing = || Object::new().with("not", Json::empty_object()).to_json();
        properties.set(&name, if is_allowed { Json::empty_object() } else { nothing() });
    }
    schema.set("properties", properties.to_json());
    Some(schema.to_json())
}
