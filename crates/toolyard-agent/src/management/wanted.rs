//! A server that a model wants to add, from either of the two forms in which it may say so.

use serde_json::Value;

use super::args::{Args, server_name, shown};
use super::port::{NewServer, Reach, Transport};
use toolyard_sdk::ToolFailure;

/// Everything that may be said of one.
const KNOWN: [&str; 12] = [
    "server_name",
    "name",
    "command",
    "arguments",
    "args",
    "url",
    "type",
    "transport",
    "env",
    "display_name",
    "description",
    "displayName",
];

/// How much may be said.
const MOST_ARGS: usize = 64;
const MOST_VARIABLES: usize = 32;
/// In bytes: of an argument, of a value and of a URL.
const LONGEST: usize = 4096;
/// In characters.
const LONGEST_DISPLAY_NAME: usize = 100;
const LONGEST_DESCRIPTION: usize = 500;

/// Reads what is wanted.
///
/// # Errors
/// What is missing, or cannot be.
pub(super) fn wanted(args: &Args) -> Result<NewServer, ToolFailure> {
    let name = server_name(&args.required(&["server_name", "name"])?);
    if let Some(unknown) = args.unknown(&KNOWN) {
        return Err(ToolFailure::new(format!("Unknown parameter: {}", shown(unknown))));
    }
    let reach = reach(args).map_err(ToolFailure::new)?;
    let line = |names: &[&str], longest: usize| {
        let text = args.text(names)?;
        let words: Vec<_> = text.split_whitespace().collect();
        Some(words.join(" ").chars().take(longest).collect::<String>())
    };
    Ok(NewServer {
        name,
        reach,
        display_name: line(&["display_name", "displayName"], LONGEST_DISPLAY_NAME),
        description: line(&["description"], LONGEST_DESCRIPTION),
    })
}

fn reach(args: &Args) -> Result<Reach, String> {
    let kind = args.text(&["type", "transport"]).map(|kind| kind.to_lowercase().replace('_', "-"));
    let (command, url) = (args.text(&["command"]), args.text(&["url"]));
    let transport = match kind.as_deref() {
        None => None,
        Some("stdio") => Some(None),
        Some("sse") => Some(Some(Transport::Sse)),
        Some("http" | "streamable-http" | "streamablehttp") => Some(Some(Transport::StreamableHttp)),
        Some(other) => {
            return Err(format!("type: '{}' is none of stdio, sse, http, streamable-http", shown(other)));
        }
    };
    match (command, url, transport) {
        (Some(_), Some(_), _) => Err("Give `command` for a program, or `url` for a server that is reached by HTTP, not both".to_owned()),
        (Some(command), None, None | Some(None)) => program(args, command),
        (None, Some(url), None | Some(Some(_))) => remote(url, transport.flatten()),
        (None, None, None) => Err("Missing required parameter: command (of a program), or url (of a server that is reached by HTTP)".to_owned()),
        (_, None, Some(Some(_))) => Err("Missing required parameter: url".to_owned()),
        (None, _, Some(None)) => Err("Missing required parameter: command".to_owned()),
    }
}

fn remote(url: String, transport: Option<Transport>) -> Result<Reach, String> {
    bounded("url", &url)?;
    let looks_like_sse = url.ends_with("/sse");
    let usual = if looks_like_sse { Transport::Sse } else { Transport::StreamableHttp };
    Ok(Reach::Url { url, transport: transport.unwrap_or(usual) })
}

fn program(args: &Args, command: String) -> Result<Reach, String> {
    bounded("command", &command)?;
    let given = match args.value(&["arguments", "args"]) {
        None => Vec::new(),
        Some(Value::Array(items)) => items.iter().map(argument).collect::<Result<_, _>>()?,
        Some(Value::String(text)) => split(text)?,
        Some(_) => return Err("arguments: is neither a list of texts nor a text".to_owned()),
    };
    if given.len() > MOST_ARGS {
        return Err(format!("arguments: are more than {MOST_ARGS}"));
    }
    given.iter().try_for_each(|argument| bounded("arguments", argument))?;
    Ok(Reach::Program { command, args: given, env: env(args)? })
}

fn argument(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err("arguments: an item is no text".to_owned()),
    }
}

fn env(args: &Args) -> Result<Vec<(String, String)>, String> {
    let variables = match args.value(&["env"]) {
        None => return Ok(Vec::new()),
        Some(Value::Object(variables)) => variables,
        Some(_) => return Err("env: is no object with names and values".to_owned()),
    };
    if variables.len() > MOST_VARIABLES {
        return Err(format!("env: has more than {MOST_VARIABLES} variables"));
    }
    let variable = |(name, value): (&String, &Value)| match value {
        Value::Array(_) | Value::Object(_) => Err(format!("env: the value of '{}' is no text", shown(name))),
        value => {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            bounded("env", &value)?;
            Ok((name.clone(), value))
        }
    };
    // A null is a variable that is not set.
    variables.iter().filter(|(_, value)| !value.is_null()).map(variable).collect()
}

fn bounded(what: &str, text: &str) -> Result<(), String> {
    if text.contains('\0') {
        return Err(format!("{what}: has a character that no program can be given"));
    }
    if text.len() > LONGEST {
        return Err(format!("{what}: is longer than {LONGEST} bytes"));
    }
    Ok(())
}

/// A text as a list of arguments: a JSON list, or words between blanks, where quotes keep words together. Nothing else of
/// what a shell does is done.
fn split(text: &str) -> Result<Vec<String>, String> {
    if text.trim_start().starts_with('[')
        && let Ok(items) = serde_json::from_str::<Vec<Value>>(text)
    {
        return items.iter().map(argument).collect();
    }
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if quote.is_some() { Err("arguments: a quote is not closed".to_owned()) } else { Ok(words) }
}
