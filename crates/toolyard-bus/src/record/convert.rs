//! Conversions between records and the types of the gateway.

use toolyard_core::output_schema::STRUCTURED;
use toolyard_core::{Call, CallOutput, CallTarget, ErrorCode, Json, Object, Outcome, SESSION_META, Tool};

use super::wire::{ToolInvokeError, ToolInvokeRequest, ToolInvokeResponse, ToolRegistration, codes};

/// Prefix of session ids that are also the beginning of keys of working memory.
const SESSION_PREFIX: &str = "session/";

// === impl ToolRegistration ===

impl ToolRegistration {
    /// Returns the record of a tool. The source names its origin, such as `mcp:weather`.
    #[must_use]
    pub fn of(tool: &Tool, source: &str) -> Self {
        Self {
            name: tool.name.to_string(),
            description: tool.definition.get_str("description").unwrap_or_default().into_owned(),
            parameters_schema: tool.input_schema().map(|schema| schema.as_text().to_owned()),
            source: source.to_owned(),
        }
    }

    /// Returns the tool as the gateway publishes it.
    #[must_use]
    pub fn to_tool(&self) -> Tool {
        let rest = Object::new()
            .with("description", Json::string(&self.description))
            .with("inputSchema", self.schema());
        Tool::named(&self.name, rest)
    }

    /// Returns the function definition for the API of a model: name, description, parameters.
    #[must_use]
    pub fn to_llm_tool_definition(&self) -> Json {
        Object::new()
            .with("name", Json::string(&self.name))
            .with("description", Json::string(&self.description))
            .with("parameters", self.schema())
            .to_json()
    }

    /// Returns the schema of the arguments: that of any object if the record has none.
    fn schema(&self) -> Json {
        let schema = self.parameters_schema.as_deref().and_then(|text| Object::parse(text.to_owned()).ok());
        let any =
            || Object::new().with("type", Json::string("object")).with("properties", Object::new().to_json());
        schema.unwrap_or_else(any).to_json()
    }
}

// === impl ToolInvokeRequest ===

impl ToolInvokeRequest {
    /// Returns the record of a tool call; `None` for another call. The session is the one that the call names, because
    /// the id of a connection's session is known to its client only.
    #[must_use]
    pub fn of(call: &Call, tool_call_id: impl Into<String>) -> Option<Self> {
        let CallTarget::Tool(name) = &call.target else { return None };
        Some(Self {
            tool_call_id: tool_call_id.into(),
            tool_name: name.to_string(),
            arguments: call.arguments().map(|arguments| arguments.as_text().to_owned()),
            session_id: call.meta.get_str(SESSION_META).map(std::borrow::Cow::into_owned),
        })
    }

    /// Returns the call, without a caller: the executor sets it.
    ///
    /// # Errors
    /// Returns [`codes::INVALID_ARGUMENTS`] if the arguments are not a JSON object.
    pub fn to_call(&self) -> Result<Call, ToolInvokeError> {
        let mut call = Call::tool(&*self.tool_name, self.arguments()?.to_json());
        if let Some(session) = self.session() {
            call.meta.set(SESSION_META, Json::string(session));
        }
        Ok(call)
    }

    /// Returns the response to the request.
    ///
    /// # Errors
    /// Returns an error if the gateway refuses the call, or if the tool requests input or starts a task, which no
    /// record can represent.
    pub fn answer(
        &self,
        answer: Result<Outcome, toolyard_core::ToolError>,
    ) -> Result<ToolInvokeResponse, ToolInvokeError> {
        match answer {
            Ok(Outcome::Done(output)) => Ok(self.response(text_of(&output), output.is_error)),
            Ok(Outcome::NeedsInput(_) | Outcome::Task(_)) => Err(self.error(
                codes::EXECUTION_FAILED,
                "The tool requests input from its client or continues as a task, which a host does not support.",
            )),
            Err(error) => Err(self.refusal(&error)),
        }
    }

    /// Returns a response with this content.
    #[must_use]
    pub fn response(&self, content: Option<String>, is_error: bool) -> ToolInvokeResponse {
        let (tool_call_id, tool_name) = (self.tool_call_id.clone(), self.tool_name.clone());
        ToolInvokeResponse { tool_call_id, tool_name, content, is_error }
    }

    /// Returns the error for a tool that is not registered.
    #[must_use]
    pub fn not_registered(&self) -> ToolInvokeError {
        self.error(codes::TOOL_NOT_FOUND, format!("Tool '{}' is not registered.", self.tool_name))
    }

    /// Returns an error that is not retryable.
    pub(crate) fn error(&self, code: &str, message: impl Into<String>) -> ToolInvokeError {
        ToolInvokeError {
            tool_call_id: self.tool_call_id.clone(),
            tool_name: self.tool_name.clone(),
            code: code.to_owned(),
            message: message.into(),
            is_retryable: false,
        }
    }

    /// Returns the error of a call that the gateway refuses.
    #[must_use]
    pub fn refusal(&self, error: &toolyard_core::ToolError) -> ToolInvokeError {
        if error.code() == ErrorCode::ToolNotFound {
            return self.not_registered();
        }
        // The message of the upstream server is for the caller.
        let peer = error.peer().and_then(|peer| peer.to_object().ok());
        let peer = peer.as_ref().and_then(|peer| peer.get_str("message"));
        let message = peer.map_or_else(|| error.message().to_owned(), std::borrow::Cow::into_owned);
        let is_retryable = error.code().row().retryable;
        ToolInvokeError { is_retryable, ..self.error(record_code(error.code()), message) }
    }

    /// Returns the arguments. An absent value, `null` and the empty text mean no arguments.
    fn arguments(&self) -> Result<Object, ToolInvokeError> {
        match self.arguments.as_deref().map(str::trim) {
            None | Some("" | "null") => Ok(Object::new()),
            Some(text) => Object::parse(text.to_owned()).map_err(|_| {
                self.error(
                    codes::INVALID_ARGUMENTS,
                    "`arguments` must be a string that contains a JSON object",
                )
            }),
        }
    }

    /// Returns the name of the session without its prefix.
    fn session(&self) -> Option<&str> {
        let session = self.session_id.as_deref()?.trim();
        Some(session.strip_prefix(SESSION_PREFIX).unwrap_or(session)).filter(|session| !session.is_empty())
    }
}

// === impl ToolInvokeResponse, ToolInvokeError ===

impl ToolInvokeResponse {
    /// Returns the result of the gateway.
    #[must_use]
    pub fn to_output(&self) -> CallOutput {
        let text = self.content.as_deref().unwrap_or_default();
        if self.is_error { CallOutput::failure(text) } else { CallOutput::text(text) }
    }
}

impl From<ToolInvokeError> for toolyard_core::ToolError {
    fn from(error: ToolInvokeError) -> Self {
        let code = match (&*error.code, error.is_retryable) {
            (codes::TOOL_NOT_FOUND, _) => ErrorCode::ToolNotFound,
            (codes::INVALID_ARGUMENTS, _) => ErrorCode::InvalidArguments,
            (codes::TIMEOUT, _) => ErrorCode::Timeout,
            (_, true) => ErrorCode::Unavailable,
            (_, false) => ErrorCode::ExecutionFailed,
        };
        Self::new(code, error.message)
    }
}

/// Returns `true` if a call of the tool may run twice, by its annotations.
pub(crate) fn is_repeatable(tool: &Tool) -> bool {
    let annotations = tool.definition.get("annotations").and_then(|annotations| annotations.to_object().ok());
    let is_set = |name: &&str| annotations.as_ref()?.get(name)?.to_bool();
    ["readOnlyHint", "idempotentHint"].iter().any(|name| is_set(name) == Some(true))
}

/// Maps an error code to one of the four codes of records.
const fn record_code(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::ToolNotFound => codes::TOOL_NOT_FOUND,
        ErrorCode::InvalidArguments => codes::INVALID_ARGUMENTS,
        ErrorCode::Timeout => codes::TIMEOUT,
        _ => codes::EXECUTION_FAILED,
    }
}

/// Returns the text blocks of a result, one per line, or else its structured content. Leaves out other blocks.
pub(crate) fn text_of(output: &CallOutput) -> Option<String> {
    let blocks = output.body.get("content").and_then(|content| content.to_items().ok()).unwrap_or_default();
    let texts: Vec<_> = blocks.iter().filter_map(text_of_block).collect();
    if texts.is_empty() {
        return output.body.get(STRUCTURED).map(|structured| structured.as_text().to_owned());
    }
    Some(texts.join("\n"))
}

fn text_of_block(block: &Json) -> Option<String> {
    let block = block.to_object().ok()?;
    let is_text = block.get_str("type").as_deref() == Some("text");
    block.get_str("text").filter(|_| is_text).map(std::borrow::Cow::into_owned)
}
