//! `toolyard add http`: adds a tool that sends an HTTP request.

use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use toolyard_manifest::HandlerName;

use super::{AddTarget, add_handler, parse_pair};
use crate::BadInput;
use crate::output::OutputFormat;
use crate::tool_arguments::read_argument;

/// Add a tool that sends an HTTP request
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toolyard add http https://api.example.com/orders --description 'Creates an order' --arg product --arg count:integer
  toolyard add http 'https://api.example.com/orders/{id}' --method get --description 'Returns an order'
  toolyard add http https://api.example.com/search --method get --description 'Finds orders' --optional-arg query
  toolyard add http https://api.example.com/x --description 'Does x' --schema @schema.json --header 'X-Key: ${KEY}'

Arguments in braces are part of the URL; others are the query of a GET request, or the JSON body of another one.
docs/manifest.md describes the mapping in full. Shows the change and asks for confirmation.")]
pub(super) struct AddHttpArgs {
    /// URL of the request; `{name}` is an argument of the tool
    #[arg(value_name = "URL")]
    url: String,

    /// Description of the tool for models
    #[arg(long, value_name = "TEXT")]
    description: String,

    /// Name of the handler and the tool (default: derived from the URL)
    #[arg(long, value_parser = HandlerName::parse)]
    name: Option<HandlerName>,

    /// Method of the request
    #[arg(long, value_enum, ignore_case = true, default_value_t = MethodArg::Post)]
    method: MethodArg,

    /// Required argument: a name, and a type other than `string`; repeatable
    #[arg(long = "arg", value_name = "NAME[:TYPE]")]
    required: Vec<ArgumentSpec>,

    /// Optional argument; repeatable
    #[arg(long = "optional-arg", value_name = "NAME[:TYPE]")]
    optional: Vec<ArgumentSpec>,

    /// Schema of the arguments as JSON, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "SCHEMA", conflicts_with_all = ["required", "optional"], allow_hyphen_values = true)]
    schema: Option<String>,

    /// Header of every request; repeatable
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,

    #[command(flatten)]
    target: AddTarget,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MethodArg {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// The types of arguments (JSON Schema).
const TYPES: [&str; 6] = ["string", "integer", "number", "boolean", "object", "array"];

#[derive(Clone)]
struct ArgumentSpec {
    name: String,
    r#type: String,
}

impl std::str::FromStr for ArgumentSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, kind) = text.split_once(':').unwrap_or((text, TYPES[0]));
        match (name.is_empty(), TYPES.contains(&kind)) {
            (true, _) => Err("expected a name".to_owned()),
            (_, false) => Err(format!("unknown type {kind:?}: expected one of {}", TYPES.join(", "))),
            _ => Ok(Self { name: name.to_owned(), r#type: kind.to_owned() }),
        }
    }
}

pub(super) fn run(args: &AddHttpArgs, format: OutputFormat) -> anyhow::Result<ExitCode> {
    let schema = args.schema()?;
    let config = args.config()?;
    add_handler(&args.target, args.name.as_ref(), &name_of_url(&args.url), format, |name| {
        let tool =
            json!({"name": name.replace('-', "_"), "description": args.description, "inputSchema": schema});
        json!({"name": name, "type": "http", "tool": tool, "httpConfig": config})
    })
}

impl AddHttpArgs {
    fn config(&self) -> Result<Value, BadInput> {
        let url = if self.placeholders().next().is_some() { "urlTemplate" } else { "endpoint" };
        let method = self.method.to_possible_value().map(|method| method.get_name().to_uppercase());
        let mut config = json!({url: self.url, "method": method});
        let mut headers = Map::new();
        for header in &self.header {
            let (name, value) = parse_pair(header, ':')
                .ok_or_else(|| BadInput(format!("invalid header: expected `NAME: VALUE`, got {header:?}")))?;
            headers.insert(name, value.into());
        }
        if !headers.is_empty() {
            config["headers"] = headers.into();
        }
        Ok(config)
    }

    /// Returns the schema of the arguments, which include those in the URL.
    fn schema(&self) -> Result<Value, BadInput> {
        if let Some(schema) = &self.schema {
            let text = read_argument(schema)?;
            return serde_json::from_str(&text).map_err(|error| BadInput(format!("--schema: {error}")));
        }
        let mut properties = Map::new();
        let mut required = Vec::new();
        for name in self.placeholders() {
            properties.insert(name.to_owned(), json!({"type": "string"}));
            required.push(name);
        }
        for argument in &self.required {
            properties.insert(argument.name.clone(), json!({"type": argument.r#type}));
            if !required.contains(&argument.name.as_str()) {
                required.push(&argument.name);
            }
        }
        for argument in &self.optional {
            properties.insert(argument.name.clone(), json!({"type": argument.r#type}));
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        Ok(schema)
    }

    /// The arguments in the URL. `${NAME}` is a variable.
    fn placeholders(&self) -> impl Iterator<Item = &str> {
        let parts = self.url.split('{').collect::<Vec<_>>();
        let pairs: Vec<_> = parts.windows(2).map(|pair| (pair[0], pair[1])).collect();
        pairs
            .into_iter()
            .filter(|(before, _)| !before.ends_with('$'))
            .filter_map(|(_, inside)| inside.split_once('}').map(|(name, _)| name))
    }
}

/// Derives a name from a URL: its last constant segment, or else its host.
fn name_of_url(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let is_plain = |part: &&str| !part.is_empty() && !part.contains(['{', '$']);
    path.split('/').rev().find(is_plain).unwrap_or("tool").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_derived_from_urls() {
        let check = |url: &str, expected: &str| assert_eq!(name_of_url(url), expected, "{url}");
        check("https://api.example.com/orders", "orders");
        check("https://api.example.com/orders/{id}?x={y}", "orders");
        check("https://api.example.com", "api.example.com");
        check("${URL}", "tool");
    }
}
