//! Names of arguments that the interfaces of models accept.
//!
//! Some interfaces refuse a whole request if one of its tools has an argument with an illegal name, such as `include[]`.
//! Such an argument is published under another name, and renamed again in each call.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::Value;

use crate::error::{ErrorCode, ToolError};
use crate::json::{Json, Object};
use crate::names::hash;
use crate::tool::Tool;

/// Maximum length of a legal name, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Keywords with a list of schemas for the arguments themselves.
const COMBINING: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Keywords with one schema for the arguments themselves.
const CONDITIONAL: [&str; 4] = ["not", "if", "then", "else"];

/// Returns `true` for a name that the interfaces of models accept: `^[a-zA-Z0-9_.-]{1,64}$`.
#[must_use]
pub fn is_legal(name: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_legal)
}

/// The published names of arguments, by the server's own names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ArgumentNames(BTreeMap<String, String>);

/// A tool whose arguments have legal names, as far as possible.
#[derive(Debug)]
pub struct RenamedTool {
    /// The tool with its published names.
    pub tool: Arc<Tool>,
    /// The renamed arguments.
    pub names: Arc<ArgumentNames>,
}

impl RenamedTool {
    /// Returns `None` if no argument is renamed.
    pub(crate) fn of(tool: &Tool) -> Option<Self> {
        let schema = tool.input_schema()?;
        if !may_have_illegal_names(schema) {
            return None;
        }
        let names = ArgumentNames::of(&schema.to_value());
        if names.is_empty() {
            return None;
        }
        let describe = |definition: &mut Object| {
            let text = definition.get_str("description").and_then(|text| names.text(&text));
            if let Some(text) = text {
                definition.set("description", Json::string(&text));
            }
        };
        let changed = tool.changed(describe, |schema| names.schema(schema));
        let manual = tool.manual().map(|text| names.text(text).unwrap_or_else(|| text.to_owned()));
        let tool = changed.with_manual(manual.as_deref());
        Some(Self { tool: Arc::new(tool), names: Arc::new(names) })
    }
}

/// Returns `false` if no argument of the schema has an illegal name, without a look into nested schemas.
fn may_have_illegal_names(schema: &Json) -> bool {
    let Ok(schema) = schema.to_object() else { return false };
    let properties = schema.get("properties").and_then(|properties| properties.to_object().ok());
    properties.is_some_and(|properties| properties.iter().any(|(name, _)| !is_legal(&name)))
        || COMBINING.iter().any(|keyword| schema.get(keyword).is_some())
}

/// Returns the number of arguments with illegal names.
pub(crate) fn count_illegal(tool: &Tool) -> usize {
    let Some(schema) = tool.input_schema().filter(|schema| may_have_illegal_names(schema)) else { return 0 };
    let schema = schema.to_value();
    let mut survey = NameSurvey::of(&schema);
    survey.described.retain(|name| !is_legal(name));
    survey.described.len()
}

/// The names of arguments that a schema contains.
struct NameSurvey<'s> {
    root: &'s Value,
    /// Names with a schema.
    described: BTreeSet<&'s str>,
    /// All names.
    mentioned: BTreeSet<&'s str>,
    /// Names in definitions, which nested values may use as well.
    shared: BTreeSet<&'s str>,
    visited: HashSet<&'s str>,
}

impl<'s> NameSurvey<'s> {
    fn of(root: &'s Value) -> Self {
        let mut survey = Self {
            root,
            described: BTreeSet::new(),
            mentioned: BTreeSet::new(),
            shared: BTreeSet::new(),
            visited: HashSet::new(),
        };
        // A list instead of recursion: a chain of references can be longer than the stack is deep.
        let mut pending = vec![(root, false)];
        while let Some((schema, is_shared)) = pending.pop() {
            survey.add(schema, is_shared, &mut pending);
        }
        survey
    }

    /// Adds the names of a schema for the arguments themselves, and lists the schemas that it applies to them as well.
    fn add(&mut self, schema: &'s Value, is_shared: bool, pending: &mut Vec<(&'s Value, bool)>) {
        let members = |keyword: &str| schema[keyword].as_object().into_iter().flatten();
        for (name, _) in members("properties") {
            if !is_shared {
                self.described.insert(name);
            }
            self.mention(name, is_shared);
        }
        let required = schema["required"].as_array().into_iter().flatten();
        let dependent = members("dependentRequired").flat_map(|(_, names)| names.as_array()).flatten();
        for name in required.chain(dependent).filter_map(Value::as_str) {
            self.mention(name, is_shared);
        }
        for keyword in ["dependentRequired", "dependentSchemas"] {
            members(keyword).for_each(|(name, _)| self.mention(name, is_shared));
        }
        let combined = COMBINING.iter().flat_map(|keyword| schema[*keyword].as_array()).flatten();
        let conditional = CONDITIONAL.iter().filter_map(|keyword| schema.get(*keyword));
        let dependent = members("dependentSchemas").map(|(_, schema)| schema);
        pending.extend(combined.chain(conditional).chain(dependent).map(|schema| (schema, is_shared)));
        let pointer = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        if let Some(pointer) = pointer.filter(|pointer| self.visited.insert(pointer))
            && let Some(target) = self.root.pointer(pointer)
        {
            pending.push((target, true));
        }
    }

    fn mention(&mut self, name: &'s str, is_shared: bool) {
        self.mentioned.insert(name);
        if is_shared {
            self.shared.insert(name);
        }
    }
}

impl ArgumentNames {
    /// Assigns a legal name to each argument that needs one. Arguments in definitions keep their names.
    fn of(schema: &Value) -> Self {
        let survey = NameSurvey::of(schema);
        let is_renamed = |name: &&&str| !is_legal(name) && !survey.shared.contains(*name);
        let illegal: Vec<&str> = survey.described.iter().filter(is_renamed).copied().collect();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for name in &illegal {
            *counts.entry(legal_form(name)).or_default() += 1;
        }
        let mut assigned: BTreeSet<String> = BTreeSet::new();
        let assign = |name: &&str| {
            let legal = legal_form(name);
            let is_free = |name: &str| is_legal(name) && !survey.mentioned.contains(name);
            let published = match counts[&legal] == 1 && is_free(&legal) {
                true => legal,
                // The suffix depends on the name alone, so that other arguments do not change it.
                false => (1..)
                    .map(|attempt| with_suffix(&legal, name, attempt))
                    .find(|candidate| is_free(candidate) && !assigned.contains(candidate))?,
            };
            assigned.insert(published.clone());
            Some(((*name).to_owned(), published))
        };
        Self(illegal.iter().filter_map(assign).collect())
    }

    /// Returns the number of renamed arguments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if no argument is renamed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Renames the arguments of a call to the server's own names.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArguments`] if an argument is present with both names.
    pub fn restore(&self, arguments: &mut Object) -> Result<(), ToolError> {
        for (own, published) in &self.0 {
            let Some(value) = arguments.remove(published) else { continue };
            if arguments.get(own).is_some() {
                let problem = format!("Invalid arguments: `{published}` and `{own}` are the same argument");
                return Err(ToolError::new(ErrorCode::InvalidArguments, problem));
            }
            arguments.set(own, value);
        }
        Ok(())
    }

    /// Renames the arguments in a schema for the arguments themselves.
    fn schema(&self, schema: &Json) -> Json {
        // `true` and `false` are schemas too.
        let Ok(mut schema) = schema.to_object() else { return schema.clone() };
        self.change(&mut schema, "properties", |json| {
            self.members(json, |names, name, value| {
                if names.0.contains_key(name) { described(value, name) } else { value.clone() }
            })
        });
        self.change(&mut schema, "required", |json| self.list(json));
        self.change(&mut schema, "dependentRequired", |json| {
            self.members(json, |names, _, list| names.list(list))
        });
        self.change(&mut schema, "dependentSchemas", |json| {
            self.members(json, |names, _, schema| names.schema(schema))
        });
        for keyword in COMBINING {
            self.change(&mut schema, keyword, |json| match json.to_items() {
                Ok(schemas) => {
                    Json::array(&schemas.iter().map(|schema| self.schema(schema)).collect::<Vec<_>>())
                }
                Err(_) => json.clone(),
            });
        }
        for keyword in CONDITIONAL {
            self.change(&mut schema, keyword, |json| self.schema(json));
        }
        schema.to_json()
    }

    fn change(&self, schema: &mut Object, keyword: &str, change: impl Fn(&Json) -> Json) {
        if let Some(value) = schema.get(keyword) {
            let changed = change(value);
            schema.set(keyword, changed);
        }
    }

    /// Renames the members of an object, and changes their values.
    fn members(&self, json: &Json, change: impl Fn(&Self, &str, &Json) -> Json) -> Json {
        let Ok(object) = json.to_object() else { return json.clone() };
        let mut renamed = Object::new();
        for (name, value) in object.iter() {
            renamed.set(self.published(&name), change(self, &name, value));
        }
        renamed.to_json()
    }

    fn list(&self, json: &Json) -> Json {
        let Ok(names) = json.to_items() else { return json.clone() };
        let rename = |name: &Json| match name.to_str() {
            Some(text) => Json::string(self.published(&text)),
            None => name.clone(),
        };
        Json::array(&names.iter().map(rename).collect::<Vec<_>>())
    }

    /// Renames the arguments that a text names in backticks. `None` if it names none of the renamed ones.
    fn text(&self, text: &str) -> Option<String> {
        let mut parts: Vec<&str> = text.split('`').collect();
        let last = parts.len() - 1;
        let mut is_renamed = false;
        for quoted in parts[..last].iter_mut().skip(1).step_by(2) {
            if let Some(published) = self.0.get(*quoted) {
                *quoted = published;
                is_renamed = true;
            }
        }
        is_renamed.then(|| parts.join("`"))
    }

    /// Returns the published name of an argument.
    #[must_use]
    pub fn published<'n>(&'n self, name: &'n str) -> &'n str {
        self.0.get(name).map_or(name, String::as_str)
    }
}

/// Adds the name of an argument in requests to its description.
fn described(schema: &Json, name: &str) -> Json {
    let mut schema = match schema.to_bool() {
        // Equivalent to an empty object.
        Some(true) => Object::new(),
        _ => match schema.to_object() {
            Ok(object) => object,
            Err(_) => return schema.clone(),
        },
    };
    let description = match schema.get_str("description").filter(|text| !text.trim().is_empty()) {
        Some(text) => format!("{text} (Sent as `{name}`.)"),
        None => format!("Sent as `{name}`."),
    };
    schema.set("description", Json::string(&description));
    schema.to_json()
}

/// Returns the name without its illegal characters. Between legal ones they become an underscore.
fn legal_form(name: &str) -> String {
    let mut legal = String::with_capacity(name.len());
    let mut has_gap = false;
    for character in name.chars() {
        match character {
            c if c.is_ascii_alphanumeric() || "_.-".contains(c) => {
                if has_gap && !legal.is_empty() && !legal.ends_with('_') && c != '_' {
                    legal.push('_');
                }
                legal.push(c);
                has_gap = false;
            }
            _ => has_gap = true,
        }
    }
    legal
}

fn with_suffix(legal: &str, name: &str, attempt: u32) -> String {
    let suffix = match attempt {
        1 => format!("_{}", hash(name)),
        attempt => format!("_{}", hash(&format!("{name} {attempt}"))),
    };
    let start = if legal.is_empty() { "argument" } else { legal };
    let start = &start[..start.len().min(MAX_NAME_BYTES - suffix.len())];
    format!("{}{suffix}", start.trim_end_matches('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    fn tool(schema: &str) -> Tool {
        Tool::from_definition(&json(&format!(r#"{{"name":"t","inputSchema":{schema}}}"#))).unwrap()
    }

    #[test]
    fn names_are_legal_stable_and_distinct() {
        let check = |names: &[&str], expected: &[&str]| {
            let properties = names.iter().map(|name| ((*name).to_owned(), serde_json::json!({}))).collect();
            let assigned = ArgumentNames::of(&serde_json::json!({"properties": Value::Object(properties)}));
            let published: Vec<_> = names.iter().map(|name| assigned.published(name)).collect();
            assert_eq!(published, expected);
            assert!(published.iter().all(|name| is_legal(name)), "{published:?}");
        };
        check(
            &["a.b-c_1", "include[]", "$top", "filter[a][b]", "First name", "_id[]", "a$_b"],
            &["a.b-c_1", "include", "top", "filter_a_b", "First_name", "_id", "a_b"],
        );
        check(&["include", "include[]", "include{}"], &["include", "include_608aaefe", "include_1d2e1096"]);
        check(&["x[]", "x{}"], &["x_1de24ff1", "x_aa21a031"]);
        check(&["\u{e4}", ""], &["argument_33e6d73f", "argument_e3b0c442"]);
        let long = "l".repeat(65);
        check(&[&long], &[&format!("{}_6cf9087d", "l".repeat(55))]);
    }

    #[test]
    fn names_in_the_description_are_renamed() {
        let check = |text: &str, expected: &str| {
            let schema = r#"{"properties":{"si ze":{},"$a":{},"b":{}}}"#;
            let text = Json::string(text);
            let definition =
                format!(r#"{{"name":"t","description":{},"inputSchema":{schema}}}"#, text.as_text());
            let tool = Tool::from_definition(&json(&definition)).unwrap();
            let renamed = tool.renamed().unwrap();
            assert_eq!(renamed.tool.definition.get_str("description").unwrap(), expected);
        };
        check("Needs `si ze`, `b` and `$a`.", "Needs `si_ze`, `b` and `a`.");
        check("Needs si ze and `$ab`.", "Needs si ze and `$ab`.");
        check("`b`$a`b`", "`b`$a`b`");
        check("`$a", "`$a");
    }

    #[test]
    fn schema_and_call_are_renamed() {
        let check = |schema: &str, expected: &str, arguments: &str, sent: &str| {
            let tool = tool(schema);
            let renamed = tool.renamed().unwrap();
            assert_eq!(renamed.tool.input_schema().unwrap().as_text(), expected);
            renamed.tool.check_arguments(Some(&json(arguments))).unwrap();
            let mut arguments = json(arguments).to_object().unwrap();
            renamed.names.restore(&mut arguments).unwrap();
            assert_eq!(arguments.to_json().as_text(), sent);
        };
        check(
            r#"{"properties":{"a[]":{"type" : "array","description":"All."},"$b":true,"c":{"properties":{"$b":{}}}},"required":["a[]","c"],"additionalProperties":false}"#,
            r#"{"properties":{"a":{"type":"array","description":"All. (Sent as `a[]`.)"},"b":{"description":"Sent as `$b`."},"c":{"properties":{"$b":{}}}},"required":["a","c"],"additionalProperties":false}"#,
            r#"{"c":{"$b":1},"b":1.10,"a":[]}"#,
            r#"{"c":{"$b":1},"$b":1.10,"a[]":[]}"#,
        );
        check(
            r#"{"allOf":[{"properties":{"$a":{}}}],"oneOf":[{"required":["$a"]},{"required":["b"]}],"dependentRequired":{"$a":["c"],"c":["$a"]}}"#,
            r#"{"allOf":[{"properties":{"a":{"description":"Sent as `$a`."}}}],"oneOf":[{"required":["a"]},{"required":["b"]}],"dependentRequired":{"a":["c"],"c":["a"]}}"#,
            r#"{"a":1,"c":2}"#,
            r#"{"c":2,"$a":1}"#,
        );
    }

    #[test]
    fn other_names_stay() {
        let check = |schema: &str, illegal: usize| {
            let tool = tool(schema);
            assert!(tool.renamed().is_none(), "{schema}");
            assert_eq!(tool.illegal_arguments(), illegal, "{schema}");
        };
        check(r#"{"properties":{"a":{"properties":{"$b":{}}}}}"#, 0);
        check("true", 0);
        check(r##"{"properties":{"$a":{}},"$ref":"#/$defs/x","$defs":{"x":{"required":["$a"]}}}"##, 1);
    }

    #[test]
    fn long_chain_of_references_is_surveyed() {
        const LINKS: usize = 100_000;
        let definitions = (0..LINKS)
            .map(|link| (link.to_string(), serde_json::json!({"$ref": format!("#/$defs/{}", link + 1)})));
        let mut definitions: serde_json::Map<_, _> = definitions.collect();
        definitions.insert(LINKS.to_string(), serde_json::json!({"properties": {"$b": {}}}));
        let schema = serde_json::json!({"properties": {"$a": {}}, "$ref": "#/$defs/0", "$defs": definitions});
        let names = ArgumentNames::of(&schema);
        assert_eq!((names.published("$a"), names.published("$b")), ("a", "$b"));
    }

    #[test]
    fn argument_with_both_names_is_refused() {
        let tool = tool(r#"{"properties":{"$a":{}}}"#);
        let mut both = json(r#"{"a":1,"$a":2}"#).to_object().unwrap();
        let error = tool.renamed().unwrap().names.restore(&mut both).unwrap_err();
        assert_eq!(error.message(), "Invalid arguments: `a` and `$a` are the same argument");
    }
}
