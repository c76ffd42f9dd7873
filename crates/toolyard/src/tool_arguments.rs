//! Arguments of a tool on the command line: `toolyard call` and `toolyard test`.

use std::borrow::Cow;

use serde_json::Value;
use toolyard_core::{Json, Object};

use crate::BadInput;

/// Arguments of a tool, as pairs or as one object.
#[derive(clap::Args)]
pub(crate) struct ToolArguments {
    /// Arguments of the tool
    #[arg(value_name = "KEY=VALUE", conflicts_with = "json")]
    arguments: Vec<String>,

    /// All arguments as one JSON object: the object itself, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "OBJECT", allow_hyphen_values = true)]
    json: Option<String>,
}

impl ToolArguments {
    /// Adds a pair before the others.
    pub(crate) fn insert_first(&mut self, pair: String) {
        self.arguments.insert(0, pair);
    }

    /// Returns the arguments as an object. Pairs are typed by the input schema; without one (`null`), a value is JSON if
    /// it parses as JSON.
    ///
    /// # Errors
    /// If the object is invalid, or a pair has no `=`.
    pub(crate) fn parse(&self, schema: &Value) -> Result<Json, BadInput> {
        match &self.json {
            Some(json) => parse_object(&read_argument(json)?),
            None => parse_pairs(&self.arguments, schema),
        }
    }
}

/// Returns the text of an argument: of a file after `@`, of standard input for `-`, or the argument itself.
///
/// # Errors
/// If the file or standard input cannot be read.
pub(crate) fn read_argument(text: &str) -> Result<Cow<'_, str>, BadInput> {
    let (what, read) = match (text, text.strip_prefix('@')) {
        ("-", _) => ("standard input", std::io::read_to_string(std::io::stdin())),
        (_, Some(path)) => (path, std::fs::read_to_string(path)),
        (text, None) => return Ok(text.into()),
    };
    read.map(Cow::Owned).map_err(|error| BadInput(format!("cannot read {what}: {error}")))
}

/// Parses arguments from one JSON object.
fn parse_object(json: &str) -> Result<Json, BadInput> {
    let object = Object::parse(json.to_owned()).map_err(|error| BadInput(format!("--json: {error}")))?;
    Ok(object.to_json())
}

/// Parses arguments from `KEY=VALUE` pairs, typed by the schema of the tool.
fn parse_pairs(pairs: &[String], schema: &Value) -> Result<Json, BadInput> {
    let mut arguments = Object::new();
    for pair in pairs {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(BadInput(format!("invalid argument {pair:?}: expected KEY=VALUE")));
        };
        arguments.set(key, parse_value(value, &schema["properties"][key]["type"]));
    }
    Ok(arguments.to_json())
}

/// Returns a string if the type permits one, or else the JSON value if the text parses as JSON.
fn parse_value(value: &str, kind: &Value) -> Json {
    let is_text = kind == "string" || kind.as_array().is_some_and(|kinds| kinds.contains(&"string".into()));
    let json = (!is_text).then(|| Json::parse(value.to_owned()).ok()).flatten();
    json.unwrap_or_else(|| Json::string(value))
}
