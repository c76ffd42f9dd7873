//! What handlers of prompts may return.

use std::borrow::Cow;

use toolyard_core::{Json, Object, Outcome, Output, ToolError};

use crate::content::{Content, Role};
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::rounds::InputRequired;

/// What a handler of a prompt may return.
///
/// | type | is answered as |
/// | --- | --- |
/// | `String`, `&'static str`, `Cow<'static, str>` | one message of the user |
/// | [`Content`] | one message of the user |
/// | [`PromptMessage`], `Vec<PromptMessage>` | these messages |
/// | [`PromptReply`] | messages with a description |
/// | [`InputRequired`] | a question to the client; the handler is called again with the answers |
/// | `Result<R, E>` | `R`, or a JSON-RPC error; `E` is any error, see [`ToolFailure`] |
#[diagnostic::on_unimplemented(
    message = "a prompt cannot be filled in with `{Self}`",
    label = "`{Self}` is no prompt",
    note = "a handler of a prompt returns `String`, `&'static str`, `Content`, `PromptMessage`, \
            `Vec<PromptMessage>`, `PromptReply`, `InputRequired`, or a `Result` of one of them"
)]
pub trait IntoPrompt {
    /// Makes a result of it.
    ///
    /// # Errors
    /// When the prompt cannot be filled in.
    fn into_prompt(self) -> Result<PromptReply, ToolFailure>;
}

/// One message of a prompt.
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
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Content,
}

impl PromptMessage {
    /// Something that the user says.
    ///
    /// ```
    /// # use toolyard_sdk::PromptMessage;
    /// let message = PromptMessage::user("Please review this code.");
    /// ```
    pub fn user(content: impl Into<Content>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// Something that the model has said.
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

/// A prompt that is filled in, built piece by piece.
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
    /// One without messages yet.
    ///
    /// ```
    /// # use toolyard_sdk::PromptReply;
    /// let prompt = PromptReply::new().user("Hello!");
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says what it is.
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

    /// Adds something that the user says.
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

    /// Adds something that the model has said.
    ///
    /// ```
    /// # use toolyard_sdk::PromptReply;
    /// let prompt = PromptReply::new().user("Knock, knock.").assistant("Who is there?");
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

    /// Adds a member to `_meta`. Names with a prefix, such as `example.com/trace`, cannot clash with MCP's own.
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

    /// What the call came to.
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
        Ok(Outcome::Done(Output { body, is_error: false }))
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
