//! Return types of prompt handlers.

use std::borrow::Cow;

use toolyard_core::{CallOutput, Json, Object, Outcome, ToolError};

use crate::content::{Content, Role};
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::input_required::InputRequired;

/// A value that a prompt handler may return.
///
/// | type | answer |
/// | --- | --- |
/// | `String`, `&'static str`, `Cow<'static, str>` | one message of the user |
/// | [`Content`] | one message of the user |
/// | [`PromptMessage`], `Vec<PromptMessage>` | these messages |
/// | [`PromptReply`] | messages with a description |
/// | [`InputRequired`] | questions to the client; the handler is called again with the answers |
/// | `Result<R, E>` | `R`, or a JSON-RPC error; `E` is any error, see [`ToolFailure`] |
#[diagnostic::on_unimplemented(
    message = "a prompt cannot be filled in with `{Self}`",
    label = "`{Self}` is not a prompt",
    note = "a prompt handler returns `String`, `&'static str`, `Content`, `PromptMessage`, \
            `Vec<PromptMessage>`, `PromptReply`, `InputRequired`, or a `Result` of one of them"
)]
pub trait IntoPrompt {
    /// Converts the value into a reply.
    ///
    /// # Errors
    /// If the prompt cannot be filled in.
    fn into_prompt(self) -> Result<PromptReply, ToolFailure>;
}

/// A message of a prompt.
///
/// ```
/// use toolyard_sdk::{Content, PromptMessage};
///
/// let prompt = vec![
///     PromptMessage::user(Content::embedded_text("doc:///style", "text/markdown", "Be brief.")),
///     PromptMessage::user("Follow the guide above."),
///     PromptMessage::assistant("I will."),
/// ];
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptMessage {
    /// The speaker.
    pub role: Role,
    /// The content of the message.
    pub content: Content,
}

impl PromptMessage {
    /// A message of the user.
    ///
    /// ```
    /// # use toolyard_sdk::PromptMessage;
    /// let message = PromptMessage::user("Please review this code.");
    /// ```
    pub fn user(content: impl Into<Content>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// A message of the model.
    ///
    /// ```
    /// # use toolyard_sdk::PromptMessage;
    /// let message = PromptMessage::assistant("Which language is it?");
    /// ```
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
    }

    fn to_json(&self) -> Json {
        let role = Json::string(self.role.as_str());
        Object::new().with("role", role).with("content", self.content.to_json()).to_json()
    }
}

/// The messages of a prompt, built step by step.
///
/// ```
/// use toolyard_sdk::PromptReply;
///
/// fn review() -> PromptReply {
///     PromptReply::new().description("A review").user("Please review this.").assistant("With pleasure.")
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct PromptReply {
    description: Option<String>,
    messages: Vec<PromptMessage>,
    meta: Object,
    asks: Option<InputRequired>,
}

impl PromptReply {
    /// A reply without messages.
    ///
    /// ```
    /// # use toolyard_sdk::PromptReply;
    /// let prompt = PromptReply::new().user("Hello!");
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the description.
    ///
    /// ```
    /// # use toolyard_sdk::PromptReply;
    /// let prompt = PromptReply::new().description("A greeting in French").user("Bonjour !");
    /// ```
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds a message of the user.
    ///
    /// ```
    /// # use toolyard_sdk::{Content, PromptReply};
    /// # let png = [0_u8];
    /// let prompt = PromptReply::new().user(Content::image(png, "image/png")).user("What is this?");
    /// ```
    #[must_use]
    pub fn user(self, content: impl Into<Content>) -> Self {
        self.message(PromptMessage::user(content))
    }

    /// Adds a message of the model.
    ///
    /// ```
    /// # use toolyard_sdk::PromptReply;
    /// let prompt = PromptReply::new().user("Hello!").assistant("How can I help?");
    /// ```
    #[must_use]
    pub fn assistant(self, content: impl Into<Content>) -> Self {
        self.message(PromptMessage::assistant(content))
    }

    /// Adds a message.
    ///
    /// ```
    /// # use toolyard_sdk::{PromptMessage, PromptReply};
    /// let prompt = PromptReply::new().message(PromptMessage::user("Hello!"));
    /// ```
    #[must_use]
    pub fn message(mut self, message: PromptMessage) -> Self {
        self.messages.push(message);
        self
    }

    /// Adds a member to `_meta`. Names with a prefix, such as `example.com/trace`, cannot clash with MCP's own names.
    ///
    /// ```
    /// # use toolyard_sdk::PromptReply;
    /// let prompt = PromptReply::new().user("Hello!").meta("example.com/version", 3);
    /// ```
    #[must_use]
    pub fn meta(mut self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.meta.set(name, Json::from_value(&value.into()));
        self
    }

    /// The outcome of the call.
    pub(crate) fn outcome(self, context: &Context) -> Result<Outcome, ToolError> {
        if let Some(asks) = self.asks {
            return asks.outcome(context);
        }
        let mut body = Object::new();
        if let Some(description) = self.description {
            body.set("description", Json::string(&description));
        }
        let messages: Vec<_> = self.messages.iter().map(PromptMessage::to_json).collect();
        body.set("messages", Json::array(&messages));
        if !self.meta.is_empty() {
            body.set("_meta", self.meta.to_json());
        }
        Ok(Outcome::Done(CallOutput { body, is_error: false }))
    }
}

impl<R: IntoPrompt, E: Into<ToolFailure>> IntoPrompt for Result<R, E> {
    fn into_prompt(self) -> Result<PromptReply, ToolFailure> {
        self.map_err(Into::into)?.into_prompt()
    }
}

impl IntoPrompt for PromptReply {
    fn into_prompt(self) -> Result<PromptReply, ToolFailure> {
        Ok(self)
    }
}

impl IntoPrompt for String {
    fn into_prompt(self) -> Result<PromptReply, ToolFailure> {
        Ok(PromptReply::new().user(self))
    }
}

impl IntoPrompt for &'static str {
    fn into_prompt(self) -> Result<PromptReply, ToolFailure> {
        Ok(PromptReply::new().user(self))
    }
}

impl IntoPrompt for Cow<'static, str> {
    fn into_prompt(self) -> Result<PromptReply, ToolFailure> {
        Ok(PromptReply::new().user(&*self))
    }
}

impl IntoPrompt for Content {
    fn into_prompt(self) -> Result<PromptReply, ToolFailure> {
        Ok(PromptReply::new().user(self))
    }
}

impl IntoPrompt for PromptMessage {
    fn into_prompt(self) -> Result<PromptReply, ToolFailure> {
        Ok(PromptReply::new().message(self))
    }
}

impl IntoPrompt for Vec<PromptMessage> {
    fn into_prompt(self) -> Result<PromptReply, ToolFailure> {
        Ok(PromptReply { messages: self, ..PromptReply::default() })
    }
}

impl IntoPrompt for InputRequired {
    fn into_prompt(self) -> Result<PromptReply, ToolFailure> {
        Ok(self.into())
    }
}

impl From<InputRequired> for PromptReply {
    fn from(asks: InputRequired) -> Self {
        Self { asks: Some(asks), ..Self::default() }
    }
}
