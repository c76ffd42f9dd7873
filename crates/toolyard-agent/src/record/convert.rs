//! What the records are in the yard, and back.

use toolyard_core::{Call, Code, Json, Object, Outcome, Output, Target, Tool};

use super::wire::{ToolError, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration, codes};
use crate::memory::SESSION_META;

/// What the ids of sessions begin with where they are the beginning of keys of working memory, too.
const SESSION_PREFIX: &str = "session/";

// === impl ToolRegistration ===

impl ToolRegistration {
    /// A tool of the yard. The source says whose it is: `mcp:weather`.
    #[must_use]
    pub fn of(tool: &Tool, source: &str) -> Self {
        Self {
            name: tool.name.to_string(),
            description: tool.definition.get_str("description").unwrap_or_default().into_owned(),
            parameters_schema: tool.input_schema().map(|schema| schema.as_text().to_owned()),
            source: source.to_owned(),
        }
    }

    /// The tool as the yard publishes it.
    #[must_use]
    pub fn to_tool(&self) -> Tool {
        let rest = Object::new()
            .with("description", Json::string(&self.description))
            .with("inputSchema", self.schema());
        Tool::named(&self.name, rest)
    }

    /// What the API of a model takes for a function: name, description, parameters.
    #[must_use]
    pub fn to_llm_tool_definition(&self) -> Json {
        Object::new()
            .with("name", Json::string(&self.name))
            .with("description", Json::string(&self.description))
            .with("parameters", self.schema())
            .to_json()
    }

    /// The schema of the arguments: any object, where the record has none.
    fn schema(&self) -> Json {
        let said = self.parameters_schema.as_deref().and_then(|text| Object::parse(text.to_owned()).ok());
        let any =
            || Object::new().with("type", Json::string("object")).with("properties", Object::new().to_json());
        said.unwrap_or_else(any).to_json()
    }
}

// === impl ToolInvokeRequest ===

impl ToolInvokeRequest {
    /// The record of a call of a tool; `None` for a call of something else. The session is the one that the call names: the id of
    /// a connection's session is known to nobody but its client.
    #[must_use]
    pub fn of(call: &Call, tool_call_id: impl Into<String>) -> Option<Self> {
        let Target::Tool(name) = &call.target else { return None };
        Some(Self {
            tool_call_id: tool_call_id.into(),
            tool_name: name.to_string(),
            arguments: call.arguments().map(|arguments| arguments.as_text().to_owned()),
            session_id: call.meta.get_str(SESSION_META).map(std::borrow::Cow::into_owned),
        })
    }

    /// The call, by nobody in particular: whoever makes it says for whom.
    ///
    /// # Errors
    /// [`codes::INVALID_ARGUMENTS`] where the arguments are not a JSON object.
    pub fn to_call(&self) -> Result<Call, ToolError> {
        let mut call = Call::tool(&*self.tool_name, self.arguments()?.to_json());
        if let Some(session) = self.session() {
            call.meta.set(SESSION_META, Json::string(session));
        }
        Ok(call)
    }

    /// The answer to it.
    ///
    /// # Errors
    /// Where the yard says no, or the tool wants to ask its client or to go on later, which no record can say.
    pub fn answer(
        &self,
        answer: Result<Outcome, toolyard_core::ToolError>,
    ) -> Result<ToolInvokeResponse, ToolError> {
        match answer {
            Ok(Outcome::Done(output)) => Ok(self.response(text_of(&output), output.is_error)),
            Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => Err(self.error(
                codes::EXECUTION_FAILED,
                "The tool has questions for its client, or goes on later: nobody waits for it here.",
            )),
            Err(error) => Err(self.refusal(&error)),
        }
    }

    /// What the tool says.
    #[must_use]
    pub fn response(&self, content: Option<String>, is_error: bool) -> ToolInvokeResponse {
        let (tool_call_id, tool_name) = (self.tool_call_id.clone(), self.tool_name.clone());
        ToolInvokeResponse { tool_call_id, tool_name, content, is_error }
    }

    /// What is said where no tool of this name is registered.
    #[must_use]
    pub fn not_registered(&self) -> ToolError {
        self.error(codes::TOOL_NOT_FOUND, format!("Tool '{}' is not registered.", self.tool_name))
    }

    /// An error that the same call would meet again.
    fn error(&self, code: &str, message: impl Into<String>) -> ToolError {
        ToolError {
            tool_call_id: self.tool_call_id.clone(),
            tool_name: self.tool_name.clone(),
            code: code.to_owned(),
            message: message.into(),
            is_retryable: false,
        }
    }

    fn refusal(&self, error: &toolyard_core::ToolError) -> ToolError {
        if error.code() == Code::ToolNotFound {
            return self.not_registered();
        }
        // What a server has said of the call is for whoever made it.
        let peer = error.peer().and_then(|peer| peer.to_object().ok());
        let peer = peer.as_ref().and_then(|peer| peer.get_str("message"));
        let message = peer.map_or_else(|| error.message().to_owned(), std::borrow::Cow::into_owned);
        let is_retryable = error.code().row().retryable;
        ToolError { is_retryable, ..self.error(written(error.code()), message) }
    }

    /// None is said by leaving them out, by `null`, and by the empty text.
    fn arguments(&self) -> Result<Object, ToolError> {
        match self.arguments.as_deref().map(str::trim) {
            None | Some("" | "null") => Ok(Object::new()),
            Some(text) => Object::parse(text.to_owned()).map_err(|_| {
                self.error(codes::INVALID_ARGUMENTS, "arguments: is not a text with a JSON object in it")
            }),
        }
    }

    /// The name of the session by itself.
    fn session(&self) -> Option<&str> {
        let session = self.session_id.as_deref()?.trim();
        Some(session.strip_prefix(SESSION_PREFIX).unwrap_or(session)).filter(|session| !session.is_empty())
    }
}

// === impl ToolInvokeResponse, ToolError ===

impl ToolInvokeResponse {
    /// The result as the yard has it.
    #[must_use]
    pub fn to_output(&self) -> Output {
        let text = self.content.as_deref().unwrap_or_default();
        if self.is_error { Output::failure(text) } else { Output::text(text) }
    }
}

impl From<ToolError> for toolyard_core::ToolError {
    fn from(error: ToolError) -> Self {
        let code = match (&*error.code, error.is_retryable) {
            (codes::TOOL_NOT_FOUND, _) => Code::ToolNotFound,
            (codes::INVALID_ARGUMENTS, _) => Code::InvalidArguments,
            (codes::TIMEOUT, _) => Code::Timeout,
            (_, true) => Code::Unavailable,
            (_, false) => Code::ExecutionFailed,
        };
        Self::new(code, error.message)
    }
}

/// A code as records write it: they have four.
const fn written(code: Code) -> &'static str {
    match code {
        Code::ToolNotFound => codes::TOOL_NOT_FOUND,
        Code::InvalidArguments => codes::INVALID_ARGUMENTS,
        Code::Timeout => codes::TIMEOUT,
        _ => codes::EXECUTION_FAILED,
    }
}

/// The text of a result: that of its blocks, one in a line of its own, else its structured content. What is no text is left out.
fn text_of(output: &Output) -> Option<String> {
    let blocks = output.body.get("content").and_then(|content| content.to_items().ok()).unwrap_or_default();
    let texts: Vec<_> = blocks.iter().filter_map(text_of_block).collect();
    if texts.is_empty() {
        return output.body.get("structuredContent").map(|structured| structured.as_text().to_owned());
    }
    Some(texts.join("\n"))
}

fn text_of_block(block: &Json) -> Option<String> {
    let block = block.to_object().ok()?;
    let is_text = block.get_str("type").as_deref() == Some("text");
    block.get_str("text").filter(|_| is_text).map(std::borrow::Cow::into_owned)
}
