//! The reference of manifests: `schema/toolyard.json`, which `toolyard schema` prints from the declarations of the
//! sections, the tables in `docs/manifest.md`, generated from the schemas, and the definitions of the operator's resources,
//! which `toolyard crd` prints.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Stdio;

use anyhow::{Context, ensure};
use serde_json::{Map, Value};
use xtask_support::process;

/// The schema of `ToolRegistry` documents.
const REGISTRY_SCHEMA: &str = "schema/toolregistry.json";

/// A copy of the schema of `Toolyard` documents, for editors.
const TOOLYARD_SCHEMA: &str = "schema/toolyard.json";

/// A copy of the definitions of the operator's resources.
const DEFINITIONS: &str = "deploy/kubernetes/crds.yaml";

/// The page with the tables. The text around them is written by hand.
const PAGE: &str = "docs/manifest.md";
const BEGIN: &str = "<!-- The tables are written by `cargo xtask reference`. -->\n";
const END: &str = "<!-- End of the tables. -->\n";

pub(crate) fn run() -> anyhow::Result<()> {
    let schema = output_of(&["schema", "toolyard"])?;
    fs::write(xtask_support::root().join(TOOLYARD_SCHEMA), schema).context("write the schema")?;
    let definitions = output_of(&["crd"])?;
    fs::write(xtask_support::root().join(DEFINITIONS), definitions).context("write the definitions")?;
    let page = page()?;
    let new = with_current_tables(&page)?;
    fs::write(xtask_support::root().join(PAGE), new).context("write the page")
}

/// The output of the program with these arguments: xtask does not link the crates that it serves.
fn output_of(args: &[&str]) -> anyhow::Result<Vec<u8>> {
    let mut cargo = process::cargo();
    cargo.args(["run", "--package", "toolyard", "--"]).args(args);
    let output = cargo.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "`toolyard {}` failed: {}", args.join(" "), output.status);
    Ok(output.stdout)
}

fn page() -> anyhow::Result<String> {
    fs::read_to_string(xtask_support::root().join(PAGE)).context("read the page")
}

/// The page with tables of the current schemas.
fn with_current_tables(page: &str) -> anyhow::Result<String> {
    let (before, rest) = page.split_once(BEGIN).context("no beginning of the tables in the page")?;
    let (_, behind) = rest.split_once(END).context("no end of the tables in the page")?;
    let mut tables = String::new();
    for path in [REGISTRY_SCHEMA, TOOLYARD_SCHEMA] {
        let schema = fs::read_to_string(xtask_support::root().join(path)).context("read the schema")?;
        tables.push_str(&SchemaReference::of(&serde_json::from_str(&schema)?));
    }
    Ok(format!("{before}{BEGIN}{tables}{END}{behind}"))
}

/// The tables of one schema, as far as they are written.
struct SchemaReference<'a> {
    root: &'a Value,
    text: String,
    /// Definitions with a table: several fields may have the same one.
    written_definitions: HashSet<&'a str>,
}

impl<'a> SchemaReference<'a> {
    fn of(root: &'a Value) -> String {
        let mut reference = Self { root, text: String::new(), written_definitions: HashSet::new() };
        let title = text(root, "title");
        reference.table(title, "", root);
        reference.text
    }

    /// Writes a table of the fields of an object, then those of nested objects.
    fn table(&mut self, title: &str, path: &str, object: &'a Value) {
        let required: Vec<_> = object["required"].as_array().into_iter().flatten().collect();
        let fields = object["properties"].as_object().into_iter().flat_map(Map::iter);
        let fields: Vec<_> = fields.filter(|(_, field)| definition(field) != Some("written")).collect();
        let heading = if path.is_empty() { format!("## {title}") } else { format!("### {title}: `{path}`") };
        let _ =
            writeln!(self.text, "\n{heading}\n\n| field | holds | default | |\n| --- | --- | --- | --- |");
        for (name, field) in &fields {
            let is_required = required.iter().any(|word| word.as_str() == Some(name));
            self.row(name, field, is_required);
        }
        for (name, field) in fields {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.nested_table(title, path, field);
        }
    }

    fn row(&mut self, name: &str, field: &Value, is_required: bool) {
        let default = match field.get("default") {
            _ if is_required => "required".to_owned(),
            None => String::new(),
            Some(Value::String(text)) => format!("`{text}`"),
            Some(default) => format!("`{default}`"),
        };
        let described = text(field, "description");
        let described =
            if described.is_empty() { text(self.resolve(field), "description") } else { described };
        let kind = self.value_kind(field);
        let _ = writeln!(self.text, "| `{name}` | {kind} | {default} | {described} |");
    }

    fn nested_table(&mut self, title: &str, path: String, field: &'a Value) {
        let (path, field) = match (&field["items"], &field["additionalProperties"]) {
            (items @ Value::Object(_), _) => (path + "[]", items),
            (_, values @ Value::Object(_)) => (path + ".*", values),
            _ => (path, field),
        };
        let Some(name) = definition(field) else { return };
        let object = self.resolve(field);
        if object["properties"].is_object() && self.written_definitions.insert(name) {
            self.table(title, &path, object);
        }
    }

    /// The kind of value of a field.
    fn value_kind(&self, field: &Value) -> String {
        match definition(field) {
            Some("duration") => return "duration".to_owned(),
            Some("count") => return "number from 1".to_owned(),
            Some("size") => return "size".to_owned(),
            Some("url") => return "URL".to_owned(),
            Some("label" | "fileName") => return "name".to_owned(),
            _ => {}
        }
        let schema = self.resolve(field);
        if let Some(words) = schema["anyOf"][0]["enum"].as_array() {
            let words: Vec<_> =
                words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
            return words.join(", ");
        }
        match schema["type"].as_str() {
            Some("array") => format!("list: {}", self.value_kind(&schema["items"])),
            Some("object") if schema["additionalProperties"].is_object() => {
                format!("map: {}", self.value_kind(&schema["additionalProperties"]))
            }
            Some("integer") => match (&schema["minimum"], &schema["maximum"]) {
                (least, Value::Null) => format!("number from {least}"),
                (least, most) => format!("number from {least} to {most}"),
            },
            Some(kind) => kind.to_owned(),
            None if schema["type"].is_array() => {
                let kinds: Vec<_> =
                    schema["type"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                kinds.join(" or ")
            }
            // Only sizes have several forms.
            None if schema["anyOf"].is_array() => "size".to_owned(),
            None => "anything".to_owned(),
        }
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        definition(schema).map_or(schema, |name| &self.root["$defs"][name])
    }
}

fn definition(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn text<'a>(schema: &'a Value, field: &str) -> &'a str {
    schema[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_matches_the_schemas() {
        let page = page().unwrap();
        assert!(
            with_current_tables(&page).unwrap() == page,
            "{PAGE} is out of date: run `cargo xtask reference`"
        );
    }
}
