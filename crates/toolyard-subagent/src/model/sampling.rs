//! The model of an MCP client, by sampling with tools (2025-11-25, client/sampling, multi-turn tool loop).

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use toolyard_core::{ClientSession, InputRequest, InputRequestError, InputRequestKind, Json, Object};

use super::{
    ChatMessage, ChatModel, ChatReply, ChatRequest, ChatTool, MAX_REPLY_BYTES, MAX_REQUESTS, ModelError,
    RequestedCall,
};

/// Maximum bytes of a request. The Python SDK reads events of at most 1 MiB, and a larger one ends its stream.
const MAX_REQUEST_BYTES: usize = 1_000_000;

/// The model of a client, as long as its session is open.
pub struct SamplingModel {
    session: Arc<dyn ClientSession>,
    /// Maximum tokens of a reply.
    reply_tokens: u64,
}

impl SamplingModel {
    /// Creates the model of a client whose replies have at most `reply_tokens`.
    #[must_use]
    pub fn new(session: Arc<dyn ClientSession>, reply_tokens: u64) -> Self {
        Self { session, reply_tokens }
    }

    async fn sample(&self, params: Object) -> Result<ChatReply, ModelError> {
        if params.to_json().as_bytes().len() > MAX_REQUEST_BYTES {
            let text = format!(
                "the conversation has more than {MAX_REQUEST_BYTES} bytes, the maximum of requests to a client"
            );
            return Err(ModelError::new(text));
        }
        let ask = InputRequest { kind: InputRequestKind::Sample, params };
        let result = self.session.ask(ask).await.map_err(unanswered)?;
        read(&result)
    }
}

impl ChatModel for SamplingModel {
    fn complete<'a>(&'a self, request: ChatRequest<'a>) -> BoxFuture<'a, Result<ChatReply, ModelError>> {
        self.sample(params(request, self.reply_tokens)).boxed()
    }

    fn lost(&self) -> BoxFuture<'_, ModelError> {
        self.session.ended().map(|()| unanswered(InputRequestError::Gone)).boxed()
    }
}

fn unanswered(error: InputRequestError) -> ModelError {
    let text = match &error {
        InputRequestError::Gone => {
            "the session of the client has ended, and with it the use of its model".to_owned()
        }
        InputRequestError::TooLate => "the model of the client did not answer in time".to_owned(),
        other => format!("the model of the client cannot be used: {other}"),
    };
    ModelError::new(text).caused_by(error)
}

/// Returns the parameters of `sampling/createMessage`.
fn params(request: ChatRequest<'_>, reply_tokens: u64) -> Object {
    let system: Vec<_> = request.messages.iter().filter_map(instructions).collect();
    let tools: Vec<_> = request.tools.iter().map(tool).collect();
    let mut params = Object::new().with("messages", Json::array(&messages(request.messages)));
    if !system.is_empty() {
        params.set("systemPrompt", Json::string(&system.join("\n\n")));
    }
    params
        .with("tools", Json::array(&tools))
        .with("toolChoice", Object::new().with("mode", Json::string("auto")).to_json())
        .with("maxTokens", Json::unsigned(reply_tokens))
}

fn instructions(message: &ChatMessage) -> Option<&str> {
    match message {
        ChatMessage::System(text) => Some(text),
        _ => None,
    }
}

/// Returns the messages in their order. Consecutive results are one message: it must have the results of all requests
/// of the message before, and nothing else.
fn messages(conversation: &[ChatMessage]) -> Vec<Json> {
    let mut messages = Vec::new();
    let mut results = Vec::new();
    for message in conversation {
        if let ChatMessage::ToolResult { request, text } = message {
            let content = Json::array([&text_block(text)]);
            let block =
                block("tool_result").with("toolUseId", Json::string(request)).with("content", content);
            results.push(block.to_json());
            continue;
        }
        messages.extend(results_message(&mut results));
        match message {
            ChatMessage::User(text) => messages.push(role("user", text_block(text))),
            ChatMessage::Model { text, requests } => {
                let texts = (!text.is_empty()).then(|| text_block(text));
                let blocks: Vec<_> = texts.into_iter().chain(requests.iter().map(tool_use)).collect();
                messages.push(role("assistant", Json::array(&blocks)));
            }
            ChatMessage::System(_) | ChatMessage::ToolResult { .. } => {}
        }
    }
    messages.extend(results_message(&mut results));
    messages
}

fn results_message(results: &mut Vec<Json>) -> Option<Json> {
    let results = std::mem::take(results);
    (!results.is_empty()).then(|| role("user", Json::array(&results)))
}

fn role(role: &str, content: Json) -> Json {
    Object::new().with("role", Json::string(role)).with("content", content).to_json()
}

fn block(kind: &str) -> Object {
    Object::new().with("type", Json::string(kind))
}

fn text_block(text: &str) -> Json {
    block("text").with("text", Json::string(text)).to_json()
}

fn tool_use(request: &RequestedCall) -> Json {
    // The text was an object when it came from the client.
    let input = Json::parse(request.arguments.clone()).unwrap_or_else(|_| Json::empty_object());
    let block = block("tool_use").with("id", Json::string(&request.id));
    block.with("name", Json::string(&request.name)).with("input", input).to_json()
}

fn tool(tool: &ChatTool) -> Json {
    let ChatTool { name, description, parameters } = tool;
    Object::new()
        .with("name", Json::string(name))
        .with("description", Json::string(description))
        .with("inputSchema", Json::from_value(parameters))
        .to_json()
}

/// Reads the result of a client.
fn read(result: &Json) -> Result<ChatReply, ModelError> {
    let malformed = || ModelError::new("the reply of the client's model is malformed");
    if result.as_bytes().len() > MAX_REPLY_BYTES {
        return Err(ModelError::new(format!("the reply has more than {MAX_REPLY_BYTES} bytes")));
    }
    let content =
        result.to_object().map_err(|_| malformed())?.get("content").cloned().ok_or_else(malformed)?;
    let blocks =
        if content.is_object() { vec![content] } else { content.to_items().map_err(|_| malformed())? };
    let mut reply = ChatReply::default();
    for block in blocks {
        let block = block.to_object().map_err(|_| malformed())?;
        match block.get_str("type").as_deref() {
            Some("text") => reply.text.push_str(&block.get_str("text").ok_or_else(malformed)?),
            Some("tool_use") => reply.requests.push(requested(&block).ok_or_else(malformed)?),
            // Nothing reads pictures and sounds.
            Some(_) => {}
            None => return Err(malformed()),
        }
    }
    match reply.requests.len() > MAX_REQUESTS {
        true => Err(ModelError::new(format!("the reply requests more than {MAX_REQUESTS} calls at once"))),
        false => Ok(reply),
    }
}

fn requested(block: &Object) -> Option<RequestedCall> {
    let text = |name: &str| block.get_str(name).map(|text| text.into_owned());
    let input = block.get("input").filter(|input| input.is_object())?;
    Some(RequestedCall { id: text("id")?, name: text("name")?, arguments: input.as_text().to_owned() })
}

#[cfg(test)]
mod tests;
