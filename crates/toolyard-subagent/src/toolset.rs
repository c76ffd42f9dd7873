//! The tools of an agent: those of its caller, and its own.

use std::borrow::Cow;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toolyard_core::registry::EntryKind;
use toolyard_core::{CallOutput, Json, NestedCalls, Registry, RegistryEntry, ToolError};

use crate::model::{ChatTool, RequestedCall};

/// Maximum length of a tool's name that endpoints accept.
const MAX_NAME_LENGTH: usize = 64;

/// Tools of an agent itself, which the gateway does not have.
pub trait OwnTools: Send + Sync {
    /// Returns the definitions of the tools.
    fn definitions(&self) -> Vec<ChatTool>;

    /// Runs a tool; `None` if there is none of this name. The result is a text, also that of a failure.
    fn call<'a>(&'a self, name: &'a str, arguments: &'a Json) -> Option<BoxFuture<'a, ToolText>>;
}

/// The result of a tool as a model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolText {
    /// Text of the result.
    pub text: String,
    /// True if the tool failed.
    pub is_error: bool,
}

/// An agent without tools of its own.
pub struct NoOwnTools;

impl OwnTools for NoOwnTools {
    fn definitions(&self) -> Vec<ChatTool> {
        Vec::new()
    }

    fn call<'a>(&'a self, _: &'a str, _: &'a Json) -> Option<BoxFuture<'a, ToolText>> {
        None
    }
}

/// The tools that an agent may use.
#[derive(Debug, Clone, Copy)]
pub enum ToolChoice<'a> {
    /// Those of the caller, or only those with which others are found and called, if there are more than `most`.
    OfCaller {
        /// Maximum number of listed tools.
        most: usize,
        /// Published names of the tools that find and call others.
        finders: &'a [&'a str],
    },
    /// Those of these published names, as far as the caller has them.
    Named(&'a [String]),
}

/// The tools of a running agent.
pub(crate) struct Toolset<'a> {
    pub(crate) definitions: Vec<ChatTool>,
    own: &'a dyn OwnTools,
    calls: &'a NestedCalls,
    /// Maximum characters of a result.
    max_chars: usize,
    /// True if the agent may use the listed tools only.
    is_closed: bool,
}

impl<'a> Toolset<'a> {
    /// Chooses the tools of an agent.
    ///
    /// # Errors
    /// If the caller has lost its rights, or the gateway stops.
    pub(crate) async fn choose(
        choice: ToolChoice<'_>,
        own: &'a dyn OwnTools,
        calls: &'a NestedCalls,
        max_chars: usize,
    ) -> Result<Self, ToolError> {
        let registry = calls.registry().await?;
        let mut definitions = own.definitions();
        definitions.extend(chosen(&registry, choice).into_iter().map(definition));
        let is_closed = matches!(choice, ToolChoice::Named(_));
        Ok(Self { definitions, own, calls, max_chars, is_closed })
    }

    /// Runs a requested call. A failure is a text as well, from which the model can learn.
    pub(crate) async fn call(&self, request: &RequestedCall) -> ToolText {
        let ToolText { text, is_error } = self.run(request).await;
        ToolText { text: shortened(text, self.max_chars), is_error }
    }

    async fn run(&self, request: &RequestedCall) -> ToolText {
        let text = request.arguments.trim();
        let arguments = Json::parse(if text.is_empty() { "{}".to_owned() } else { text.to_owned() });
        let arguments = match arguments {
            Ok(arguments) if arguments.is_object() => arguments,
            Ok(_) => return failure("the arguments are not a JSON object"),
            Err(error) => return failure(&format!("the arguments are not JSON: {error}")),
        };
        if let Some(call) = self.own.call(&request.name, &arguments) {
            return call.await;
        }
        if self.is_closed && !self.definitions.iter().any(|tool| tool.name == request.name) {
            return failure("there is no tool of this name: use one of those that are listed");
        }
        match self.calls.call(&request.name, arguments, None).await {
            Ok(output) => ToolText { text: output_text(&output), is_error: output.is_error },
            Err(error) => failure(error.message()),
        }
    }
}

/// Returns the tools of a caller that an agent gets, in the order of the registry.
fn chosen<'a>(registry: &'a Registry, choice: ToolChoice<'_>) -> Vec<&'a RegistryEntry> {
    let all: Vec<_> = registry
        .entries(EntryKind::Tools)
        .iter()
        .map(|entry| &**entry)
        .filter(|entry| is_legal(&entry.name))
        .collect();
    let named =
        |names: &dyn Fn(&str) -> bool| all.iter().copied().filter(|entry| names(&entry.name)).collect();
    match choice {
        ToolChoice::Named(names) => named(&|name| names.iter().any(|wanted| wanted == name)),
        ToolChoice::OfCaller { most, finders } if all.len() > most => {
            let found: Vec<_> = named(&|name| finders.contains(&name));
            match found.is_empty() {
                true => all.into_iter().take(most).collect(),
                false => found,
            }
        }
        ToolChoice::OfCaller { .. } => all,
    }
}

/// Returns true for a name that endpoints accept.
fn is_legal(name: &str) -> bool {
    name.len() <= MAX_NAME_LENGTH
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

fn definition(entry: &RegistryEntry) -> ChatTool {
    let tool = entry.tool.as_ref();
    let description = tool.and_then(|tool| tool.definition.get_str("description")).map(Cow::into_owned);
    let parameters = tool.and_then(|tool| tool.input_schema()).map(Json::to_value).filter(Value::is_object);
    ChatTool {
        name: entry.name.to_string(),
        description: description.unwrap_or_default(),
        parameters: parameters.unwrap_or_else(|| json!({"type": "object"})),
    }
}

fn failure(text: &str) -> ToolText {
    ToolText { text: text.to_owned(), is_error: true }
}

/// Returns the texts of a result; what a model cannot read as text is named.
fn output_text(output: &CallOutput) -> String {
    let body = output.body.to_json().to_value();
    let blocks = body["content"].as_array().map_or(&[][..], Vec::as_slice);
    let mut texts: Vec<String> = blocks
        .iter()
        .map(|block| {
            match (block["text"].as_str(), block["resource"]["text"].as_str(), block["uri"].as_str()) {
                (Some(text), ..) | (_, Some(text), _) => text.to_owned(),
                (.., Some(uri)) => format!("[resource {uri}]"),
                _ => format!("[{} is not shown]", block["type"].as_str().unwrap_or("a part of the result")),
            }
        })
        .collect();
    if texts.is_empty() && !body["structuredContent"].is_null() {
        texts.push(body["structuredContent"].to_string());
    }
    if texts.is_empty() { "(no output)".to_owned() } else { texts.join("\n") }
}

/// Cuts a text that is too long for the conversation.
fn shortened(text: String, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text,
        Some((end, _)) => {
            let left = text[end..].chars().count();
            format!("{}\n[{left} more characters were cut off: request a part]", &text[..end])
        }
    }
}
