//! Parses the arguments of `mcp_register_server`, in either of the two forms that models use.

use serde_json::Value;

use super::args::{ManagementArgs, excerpt, server_name};
use super::manager::{HttpTransportKind, NewServer, ServerAddress};
use toolyard_sdk::ToolFailure;

/// All accepted parameters.
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

/// Maximum numbers of arguments and of environment variables.
const MAX_ARGS: usize = 64;
const MAX_VARIABLES: usize = 32;
/// Maximum length of an argument, a value and a URL, in bytes.
const MAX_LENGTH: usize = 4096;
/// Maximum lengths of the name for people and of the description, in characters.
const MAX_DISPLAY_NAME_LENGTH: usize = 100;
const MAX_DESCRIPTION_LENGTH: usize = 500;

/// Parses the server to add.
///
/// # Errors
/// Returns an error if a parameter is missing or invalid.
pub(super) fn parse_new_server(args: &ManagementArgs) -> Result<NewServer, ToolFailure> {
    let name = server_name(&args.required(&["server_name", "name"])?);
    args.refuse_unknown(&KNOWN)?;
    let address = server_address(args).map_err(ToolFailure::new)?;
    let line = |names: &[&str], longest: usize| {
        let text = args.text(names)?;
        let words: Vec<_> = text.split_whitespace().collect();
        Some(words.join(" ").chars().take(longest).collect::<String>())
    };
    Ok(NewServer {
        name,
        address,
        display_name: line(&["display_name", "displayName"], MAX_DISPLAY_NAME_LENGTH),
        description: line(&["description"], MAX_DESCRIPTION_LENGTH),
    })
}

fn server_address(args: &ManagementArgs) -> Result<ServerAddress, String> {
    let kind = args.text(&["type", "transport"]).map(|kind| kind.to_lowercase().replace('_', "-"));
    let (command, url) = (args.text(&["command"]), args.text(&["url"]));
    let transport = match kind.as_deref() {
        None => None,
        Some("stdio") => Some(None),
        Some("sse") => Some(Some(HttpTransportKind::Sse)),
        Some("http" | "streamable-http" | "streamablehttp") => Some(Some(HttpTransportKind::StreamableHttp)),
        Some(other) => {
            return Err(format!("type: '{}' is none of stdio, sse, http, streamable-http", excerpt(other)));
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

fn remote(url: String, transport: Option<HttpTransportKind>) -> Result<ServerAddress, String> {
    check_text("url", &url)?;
    let looks_like_sse = url.ends_with("/sse");
    let usual = if looks_like_sse { HttpTransportKind::Sse } else { HttpTransportKind::StreamableHttp };
    Ok(ServerAddress::Url { url, transport: transport.unwrap_or(usual) })
}

fn program(args: &ManagementArgs, command: String) -> Result<ServerAddress, String> {
    check_text("command", &command)?;
    let program_args = match args.value(&["arguments", "args"]) {
        None => Vec::new(),
        Some(Value::Array(items)) => items.iter().map(argument).collect::<Result<_, _>>()?,
        Some(Value::String(text)) => split(text)?,
        Some(_) => return Err("arguments: expected a list of strings or a string".to_owned()),
    };
    if program_args.len() > MAX_ARGS {
        return Err(format!("arguments: more than {MAX_ARGS}"));
    }
    program_args.iter().try_for_each(|argument| check_text("arguments", argument))?;
    Ok(ServerAddress::Program { command, args: program_args, env: env(args)? })
}

fn argument(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err("arguments: an item is not a string".to_owned()),
    }
}

fn env(args: &ManagementArgs) -> Result<Vec<(String, String)>, String> {
    let variables = match args.value(&["env"]) {
        None => return Ok(Vec::new()),
        Some(Value::Object(variables)) => variables,
        Some(_) => return Err("env: expected an object with names and values".to_owned()),
    };
    if variables.len() > MAX_VARIABLES {
        return Err(format!("env: has more than {MAX_VARIABLES} variables"));
    }
    let variable = |(name, value): (&String, &Value)| match value {
        Value::Array(_) | Value::Object(_) => {
            Err(format!("env: the value of '{}' is no text", excerpt(name)))
        }
        value => {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            check_text("env", &value)?;
            Ok((name.clone(), value))
        }
    };
    // A null value means that the variable is not set.
    variables.iter().filter(|(_, value)| !value.is_null()).map(variable).collect()
}

fn check_text(what: &str, text: &str) -> Result<(), String> {
    if text.contains('\0') {
        return Err(format!("{what}: contains a NUL character"));
    }
    if text.len() > MAX_LENGTH {
        return Err(format!("{what}: is longer than {MAX_LENGTH} bytes"));
    }
    Ok(())
}

/// Splits a text into arguments: a JSON list, or words separated by blanks, with quotes that keep words together. Other
/// shell syntax has no meaning.
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
