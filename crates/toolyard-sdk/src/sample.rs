//! Asking the client's model (MCP, client/sampling).

mod answer;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde_json::Value;
use toolyard_core::{Ask, AskKind, Json, Object};

use crate::content::{Content, Role};
use crate::context::number;
use crate::rounds::{BadAnswer, BadQuestion, Need, Prepared, Question, sealed};
use crate::schema::schema_of;

pub use answer::{Sample, ToolUse};

/// How much a model may say when nobody says how much.
const MAX_TOKENS: u32 = 1000;

/// A question to the client's model. The client decides which model it is and what it gets to see, and its user may
/// refuse.
///
/// The protocol has declared sampling deprecated with revision 2026-07-28: new servers should talk to a model's
/// provider by themselves.
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
    messages: Vec<Message>,
    max_tokens: u32,
    preferences: Object,
    hints: Vec<Json>,
    stop_sequences: Vec<Json>,
    tools: Vec<Json>,
    /// What else there is to say, as it is written.
    rest: Object,
}

#[derive(Debug, Clone)]
struct Message {
    role: Role,
    content: Vec<Json>,
    /// Whether it holds results of tools, which stand alone (client/sampling, message content constraints).
    results: bool,
}

/// Whether a model uses the tools that it is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChoice {
    /// It decides for itself.
    Auto,
    /// It uses one at least.
    Required,
    /// It uses none.
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
            rest: Object::new(),
        }
    }
}

impl SampleRequest {
    /// A question without messages yet. The model may say 1000 tokens if nothing else is said.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("What is the capital of France?");
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds something that the user says: a text, an image or audio.
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

    /// Adds something that the model has said.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("Hello").assistant("Hi!").user("What did I say?");
    /// ```
    #[must_use]
    pub fn assistant(self, content: impl Into<Content>) -> Self {
        self.message(Role::Assistant, vec![content.into().to_json()])
    }

    /// Adds what the model answered to the question before this one, so that it goes on from there.
    ///
    /// ```
    /// # use toolyard_sdk::{Context, SampleRequest, ToolFailure};
    /// async fn shorter(ctx: Context) -> Result<String, ToolFailure> {
    ///     let question = SampleRequest::new().user("Explain relativity.");
    ///     let answer = ctx.sample(question.clone()).await?;
    ///     Ok(ctx.sample(question.answered(&answer).user("Shorter, please.")).await?.text())
    /// }
    /// ```
    #[must_use]
    pub fn answered(self, answer: &Sample) -> Self {
        self.message(answer.role, answer.content.iter().map(Content::to_json).collect())
    }

    /// Adds what became of a tool that the model wanted to use. Each of [`Sample::tool_uses`] needs one, before
    /// anything else is said.
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
    ///         question = question.answered(&answer);
    ///         for wanted in answer.tool_uses() {
    ///             question = question.tool_result(&wanted.id, weather(serde_json::from_value(wanted.input)?));
    ///         }
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn tool_result(self, id: &str, content: impl Into<Content>) -> Self {
        self.result(id, content.into(), false)
    }

    /// As [`SampleRequest::tool_result`], for a tool that failed.
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
                self.messages.push(Message {
                    role: Role::User,
                    content: vec![block.to_json()],
                    results: true,
                });
            }
        }
        self
    }

    fn message(mut self, role: Role, content: Vec<Json>) -> Self {
        self.messages.push(Message { role, content, results: false });
        self
    }

    /// Says who the model is. The client may change or drop it.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().system_prompt("You are a helpful assistant.").user("Hello");
    /// ```
    #[must_use]
    pub fn system_prompt(self, text: impl AsRef<str>) -> Self {
        self.with("systemPrompt", Json::string(text.as_ref()))
    }

    /// How many tokens the model may say at most.
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

    /// How freely the model chooses its words: the range is the provider's. The client may change or drop it.
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

    /// Adds a text that ends the answer. The client may drop it.
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

    /// Adds a part of the name of a model that would be good, the best one first. The client may choose another.
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

    /// How important it is that the answer is cheap, from 0 to 1.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("Hello").cost_priority(0.9);
    /// ```
    #[must_use]
    pub fn cost_priority(self, priority: f64) -> Self {
        self.preferring("costPriority", priority)
    }

    /// How important it is that the answer comes soon, from 0 to 1.
    ///
    /// ```
    /// # use toolyard_sdk::SampleRequest;
    /// let question = SampleRequest::new().user("Hello").speed_priority(0.9);
    /// ```
    #[must_use]
    pub fn speed_priority(self, priority: f64) -> Self {
        self.preferring("speedPriority", priority)
    }

    /// How important it is that the model is a good one, from 0 to 1.
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

    /// Offers the model a tool that takes an `A`: not one of the server's, but one that the handler runs itself when
    /// [`Sample::tool_uses`] says so. Only for clients that have declared `sampling.tools`: others fail the call.
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

    /// As [`SampleRequest::tool`], with a schema of your own.
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

    /// Whether the model uses the tools.
    ///
    /// ```
    /// # use toolyard_sdk::{SampleRequest, ToolChoice};
    /// let question = SampleRequest::new().user("Now answer.").tool_choice(ToolChoice::None);
    /// ```
    #[must_use]
    pub fn tool_choice(self, choice: ToolChoice) -> Self {
        self.with("toolChoice", Object::new().with("mode", Json::string(choice.as_str())).to_json())
    }

    /// What else the model's provider is to be told, in its own words.
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
        self.rest.set(name, value);
        self
    }

    fn params(mut self) -> Object {
        let messages: Vec<_> = self.messages.iter().map(Message::to_json).collect();
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
        for (name, value) in self.rest.iter() {
            params.set(&name, value.clone());
        }
        params.with("maxTokens", Json::unsigned(self.max_tokens.into()))
    }
}

impl Message {
    /// Clients before revision 2025-11-25 know one piece a message, which is written without brackets.
    fn to_json(&self) -> Json {
        let content = match self.content.as_slice() {
            [one] => one.clone(),
            more => Json::array(more),
        };
        Object::new().with("role", Json::string(self.role.as_str())).with("content", content).to_json()
    }
}

impl sealed::Sealed for SampleRequest {}

impl Question for SampleRequest {
    type Answer = Sample;

    fn prepare(self) -> Result<Prepared, BadQuestion> {
        let with_tools = !self.tools.is_empty() || self.rest.get("toolChoice").is_some();
        let need = if with_tools { Need::SampleWithTools } else { Need::Sample };
        Ok(Prepared { ask: Ask { kind: AskKind::Sample, params: self.params() }, need })
    }

    fn read(answer: &Json) -> Result<Sample, BadAnswer> {
        Sample::read(answer)
    }
}
