//! Sampling: questions to the client's model (MCP, client/sampling).

mod result;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde_json::Value;
use toolyard_core::{InputRequest, InputRequestKind, Json, Object};

use crate::content::{Content, Role};
use crate::context::number;
use crate::input_required::{
    BadAnswer, BadQuestion, ClientQuestion, PreparedQuestion, RequiredCapability, sealed,
};
use crate::schema::schema_of;

pub use result::{SampleResult, ToolUse};

/// Default limit on the tokens of a response.
const MAX_TOKENS: u32 = 1000;

/// A question to the client's model. The client chooses the model and its context, and its user may refuse.
///
/// Revision 2026-07-28 of the protocol deprecates sampling: new servers should call a model's provider directly.
///
/// ```
/// use toolyard_sdk::{Context, SampleRequest, ToolFailure};
///
/// async fn rhyme(ctx: Context) -> Result<String, ToolFailure> {
///     let question = SampleRequest::new()
///         .system_prompt("You are a poet.")
///         .user("What rhymes with orange?")
///         .model_hint("claude")
///         .max_tokens(200);
///     Ok(ctx.sample(question).await?.text())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct SampleRequest {
    messages: Vec<SampleMessage>,
    max_tokens: u32,
    preferences: Object,
    hints: Vec<Json>,
    stop_sequences: Vec<Json>,
    tools: Vec<Json>,
    /// Other parameters, as sent.
    other_params: Object,
}

#[derive(Debug, Clone)]
struct SampleMessage {
    role: Role,
    content: Vec<Json>,
    /// True for tool results, which must not be mixed with other content (client/sampling, message content
    /// constraints).
    results: bool,
}

/// The model's use of the offered tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// The model uses at least one tool.
    Required,
    /// The model uses no tool.
    None,
}

impl ToolChoice {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Required => "required",
            Self::None => "none",
        }
    }
}

impl Default for SampleRequest {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            max_tokens: MAX_TOKENS,
            preferences: Object::new(),
            hints: Vec::new(),
            stop_sequences: Vec::new(),
            tools: Vec::new(),
            other_params: Object::new(),
        }
    }
}

impl SampleRequest {
    /// A question without messages. The default limit is 1000 tokens.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("What is the capital of France?");
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message of the user: text, an image or audio.
    ///
    /// ```
    /// # use toolyard_sdk::{Content, SampleRequest};
    /// # let png = [0_u8];
    /// let question =
    ///     SampleRequest::new().user(Content::image(png, "image/png")).user("What is in the picture?");
    /// ```
    #[must_use]
    pub fn user(self, content: impl Into<Content>) -> Self {
        self.message(Role::User, vec![content.into().to_json()])
    }

    /// Adds a message of the model.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("Hello").assistant("Hi!").user("What did I say?");
    /// ```
    #[must_use]
    pub fn assistant(self, content: impl Into<Content>) -> Self {
        self.message(Role::Assistant, vec![content.into().to_json()])
    }

    /// Adds the model's answer to the previous question, to continue the conversation.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, SampleRequest, ToolFailure};
    /// async fn shorter(ctx: Context) -> Result<String, ToolFailure> {
    ///     let question = SampleRequest::new().user("Explain relativity.");
    ///     let answer = ctx.sample(question.clone()).await?;
    ///     Ok(ctx.sample(question.with_answer(&answer).user("Shorter, please.")).await?.text())
    /// }
    /// ```
    #[must_use]
    pub fn with_answer(self, answer: &SampleResult) -> Self {
        self.message(answer.role, answer.content.iter().map(Content::to_json).collect())
    }

    /// Adds the result of a tool that the model used. Each of [`SampleResult::tool_uses`] needs one before the next
    /// message.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, SampleRequest, ToolFailure};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Place { city: String }
    /// # fn weather(_place: Place) -> String { String::new() }
    /// async fn forecast(ctx: Context) -> Result<String, ToolFailure> {
    ///     let mut question = SampleRequest::new()
    ///         .user("What is the weather in Paris and in London?")
    ///         .tool::<Place>("weather", "Says how the weather is.");
    ///     loop {
    ///         let answer = ctx.sample(question.clone()).await?;
    ///         if answer.tool_uses().is_empty() {
    ///             return Ok(answer.text());
    ///         }
    ///         question = question.with_answer(&answer);
    ///         for tool_use in answer.tool_uses() {
    ///             question = question.tool_result(&tool_use.id, weather(serde_json::from_value(tool_use.input)?));
    ///         }
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn tool_result(self, id: &str, content: impl Into<Content>) -> Self {
        self.result(id, content.into(), false)
    }

    /// Like [`SampleRequest::tool_result`], for a tool that failed.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// # let question = SampleRequest::new();
    /// let question = question.tool_error("call_1", "There is no such city.");
    /// ```
    #[must_use]
    pub fn tool_error(self, id: &str, content: impl Into<Content>) -> Self {
        self.result(id, content.into(), true)
    }

    fn result(mut self, id: &str, content: Content, failed: bool) -> Self {
        let mut block = Object::new()
            .with("type", Json::string("tool_result"))
            .with("toolUseId", Json::string(id))
            .with("content", Json::array([&content.to_json()]));
        if failed {
            block.set("isError", Json::boolean(true));
        }
        match self.messages.last_mut().filter(|last| last.results) {
            Some(last) => last.content.push(block.to_json()),
            None => {
                self.messages.push(SampleMessage {
                    role: Role::User,
                    content: vec![block.to_json()],
                    results: true,
                });
            }
        }
        self
    }

    fn message(mut self, role: Role, content: Vec<Json>) -> Self {
        self.messages.push(SampleMessage { role, content, results: false });
        self
    }

    /// Sets the system prompt. The client may change or drop it.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().system_prompt("You are a helpful assistant.").user("Hello");
    /// ```
    #[must_use]
    pub fn system_prompt(self, text: impl AsRef<str>) -> Self {
        self.with("systemPrompt", Json::string(text.as_ref()))
    }

    /// Sets the limit on the tokens of the response.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("Tell me a story.").max_tokens(5000);
    /// ```
    #[must_use]
    pub const fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// Sets the temperature, in the range that the provider allows. The client may change or drop it.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("Name a color.").temperature(1.0);
    /// ```
    #[must_use]
    pub fn temperature(self, temperature: f64) -> Self {
        match number(temperature) {
            Some(temperature) => self.with("temperature", temperature),
            None => self,
        }
    }

    /// Adds a stop sequence. The client may drop it.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("Count.").stop_sequence("ten");
    /// ```
    #[must_use]
    pub fn stop_sequence(mut self, text: impl AsRef<str>) -> Self {
        self.stop_sequences.push(Json::string(text.as_ref()));
        self
    }

    /// Adds a part of a preferred model's name, the best one first. The client may choose another model.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("Hello").model_hint("claude-sonnet").model_hint("claude");
    /// ```
    #[must_use]
    pub fn model_hint(mut self, name: impl AsRef<str>) -> Self {
        self.hints.push(Object::new().with("name", Json::string(name.as_ref())).to_json());
        self
    }

    /// Sets the importance of a low price, from 0 to 1.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("Hello").cost_priority(0.9);
    /// ```
    #[must_use]
    pub fn cost_priority(self, priority: f64) -> Self {
        self.preferring("costPriority", priority)
    }

    /// Sets the importance of a fast response, from 0 to 1.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("Hello").speed_priority(0.9);
    /// ```
    #[must_use]
    pub fn speed_priority(self, priority: f64) -> Self {
        self.preferring("speedPriority", priority)
    }

    /// Sets the importance of a capable model, from 0 to 1.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("Prove it.").intelligence_priority(1.0);
    /// ```
    #[must_use]
    pub fn intelligence_priority(self, priority: f64) -> Self {
        self.preferring("intelligencePriority", priority)
    }

    fn preferring(mut self, name: &str, priority: f64) -> Self {
        if let Some(priority) = number(priority.clamp(0.0, 1.0)) {
            self.preferences.set(name, priority);
        }
        self
    }

    /// Offers the model a tool that takes an `A`. It is not one of the server's tools: the handler runs it itself for
    /// each of [`SampleResult::tool_uses`]. The call fails if the client does not declare `sampling.tools`.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Place {
    ///     city: String,
    /// }
    ///
    /// let question =
    ///     SampleRequest::new().user("Is it raining in Paris?").tool::<Place>("weather", "Says how the weather is.");
    /// ```
    #[must_use]
    pub fn tool<A: JsonSchema>(self, name: &str, description: &str) -> Self {
        self.tool_with_schema(name, description, &schema_of::<A>())
    }

    /// Like [`SampleRequest::tool`], with a schema of your own.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// # use serde_json::json;
    /// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    /// let question = SampleRequest::new().user("Hello").tool_with_schema("weather", "Says how it is.", &schema);
    /// ```
    #[must_use]
    pub fn tool_with_schema(mut self, name: &str, description: &str, schema: &Value) -> Self {
        let tool = Object::new()
            .with("name", Json::string(name))
            .with("description", Json::string(description))
            .with("inputSchema", Json::from_value(schema));
        self.tools.push(tool.to_json());
        self
    }

    /// Sets the model's use of the tools.
    ///
    /// ```
    /// # use toolyard_sdk::{SampleRequest, ToolChoice};
    /// let question = SampleRequest::new().user("Now answer.").tool_choice(ToolChoice::None);
    /// ```
    #[must_use]
    pub fn tool_choice(self, choice: ToolChoice) -> Self {
        self.with("toolChoice", Object::new().with("mode", Json::string(choice.as_str())).to_json())
    }

    /// Sets metadata for the model's provider.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// # use serde_json::json;
    /// let question = SampleRequest::new().user("Hello").metadata(&json!({"seed": 7}));
    /// ```
    #[must_use]
    pub fn metadata(self, metadata: &Value) -> Self {
        self.with("metadata", Json::from_value(metadata))
    }

    fn with(mut self, name: &str, value: Json) -> Self {
        self.other_params.set(name, value);
        self
    }

    fn params(mut self) -> Object {
        let messages: Vec<_> = self.messages.iter().map(SampleMessage::to_json).collect();
        let mut params = Object::new().with("messages", Json::array(&messages));
        if !self.hints.is_empty() {
            self.preferences.set("hints", Json::array(&self.hints));
        }
        if !self.preferences.is_empty() {
            params.set("modelPreferences", self.preferences.to_json());
        }
        for (name, items) in [("stopSequences", &self.stop_sequences), ("tools", &self.tools)] {
            if !items.is_empty() {
                params.set(name, Json::array(items));
            }
        }
        for (name, value) in self.other_params.iter() {
            params.set(&name, value.clone());
        }
        params.with("maxTokens", Json::unsigned(self.max_tokens.into()))
    }
}

impl SampleMessage {
    /// Writes a single content block without brackets, because clients before revision 2025-11-25 accept one block per
    /// message.
    fn to_json(&self) -> Json {
        let content = match self.content.as_slice() {
            [one] => one.clone(),
            more => Json::array(more),
        };
        Object::new().with("role", Json::string(self.role.as_str())).with("content", content).to_json()
    }
}

impl sealed::Sealed for SampleRequest {}

impl ClientQuestion for SampleRequest {
    type Answer = SampleResult;

    fn prepare(self) -> Result<PreparedQuestion, BadQuestion> {
        let with_tools = !self.tools.is_empty() || self.other_params.get("toolChoice").is_some();
        let need = if with_tools { RequiredCapability::SampleWithTools } else { RequiredCapability::Sample };
        Ok(PreparedQuestion {
            ask: InputRequest { kind: InputRequestKind::Sample, params: self.params() },
            need,
        })
    }

    fn read(answer: &Json) -> Result<SampleResult, BadAnswer> {
        SampleResult::read(answer)
    }
}
