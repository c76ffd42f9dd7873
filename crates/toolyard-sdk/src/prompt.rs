//! Prompts: messages that a user asks for by name (MCP, server/prompts).

mod handler;
mod reply;
#[cfg(test)]
mod tests;
pub(crate) mod texts;

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::backend::BoxHandler;
use crate::icon::Icon;
use crate::setters::setters;

pub use handler::{PromptArguments, PromptHandler, PromptParameters, PromptReturned};
pub use reply::{IntoPrompt, PromptMessage, PromptReply};

/// What is published of a prompt, for [`Server::register_prompt`](crate::Server::register_prompt).
///
/// What is `None` or empty is left out; arguments that are not given are the handler's.
///
/// ```
/// use toolyard_sdk::{Prompt, PromptArgument};
///
/// let prompt = Prompt::new("code_review", "Asks for a review of some code.")
///     .title("Review code")
///     .argument(PromptArgument::new("code").description("The code to review").required(true));
///
/// // The same, as a literal:
/// let prompt = Prompt {
///     name: "code_review".into(),
///     title: Some("Review code".into()),
///     description: "Asks for a review of some code.".into(),
///     arguments: vec![PromptArgument {
///         name: "code".into(),
///         description: Some("The code to review".into()),
///         required: true,
///         ..PromptArgument::default()
///     }],
///     ..Prompt::default()
/// };
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Prompt {
    /// What it is called by.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What a user should know before choosing it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What can be filled in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// Pictures for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// What else there is to say, under names with a prefix of your own.
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

/// Something that can be filled in. On the wire it is always a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PromptArgument {
    /// What it is called by.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What a user should enter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the prompt cannot do without it. A call that leaves it out never reaches the handler.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

impl Prompt {
    /// A prompt of this name. The description is for the user.
    ///
    /// ```
    /// # use toolyard_sdk::Prompt;
    /// let prompt = Prompt::new("greet", "Starts friendly.");
    /// ```
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), ..Self::default() }
    }

    setters! {
        /// Its name for people.
        ///
        /// ```
        /// # use toolyard_sdk::Prompt;
        /// let prompt = Prompt::new("greet", "Starts friendly.").title("A friendly start");
        /// ```
        text title;
    }

    /// One more thing that can be filled in. When this is used, the list is no longer the handler's.
    ///
    /// ```
    /// # use toolyard_sdk::{Prompt, PromptArgument};
    /// let prompt = Prompt::new("greet", "Starts friendly.").argument(PromptArgument::new("name"));
    /// ```
    #[must_use]
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.arguments.push(argument);
        self
    }

    setters! {
        /// One more picture for it.
        ///
        /// ```
        /// # use toolyard_sdk::{Icon, Prompt};
        /// let prompt = Prompt::new("greet", "Starts friendly.").icon(Icon::new("https://example.com/hand.svg"));
        /// ```
        icon;

        /// Adds a member to `_meta`. Names with a prefix, such as `example.com/owner`, cannot clash with MCP's own.
        ///
        /// ```
        /// # use toolyard_sdk::Prompt;
        /// let prompt = Prompt::new("greet", "Starts friendly.").meta("example.com/owner", "team-hello");
        /// ```
        meta;
    }
}

impl PromptArgument {
    /// Something that need not be filled in.
    ///
    /// ```
    /// # use toolyard_sdk::PromptArgument;
    /// let argument = PromptArgument::new("language");
    /// ```
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    setters! {
        /// Its name for people.
        ///
        /// ```
        /// # use toolyard_sdk::PromptArgument;
        /// let argument = PromptArgument::new("lang").title("Language");
        /// ```
        text title;

        /// What a user should enter.
        ///
        /// ```
        /// # use toolyard_sdk::PromptArgument;
        /// let argument = PromptArgument::new("lang").description("The language to answer in");
        /// ```
        text description;
    }

    /// Whether the prompt cannot do without it.
    ///
    /// ```
    /// # use toolyard_sdk::PromptArgument;
    /// let argument = PromptArgument::new("code").required(true);
    /// ```
    #[must_use]
    pub const fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }
}

/// What runs the calls of a prompt. Arguments that `prompt` does not name are the handler's from now on: publish it
/// after this.
pub(crate) fn handler<M>(prompt: &mut Prompt, handler: impl PromptHandler<M>) -> BoxHandler {
    if prompt.arguments.is_empty() {
        prompt.arguments = arguments_of(&handler);
    }
    let required = prompt.arguments.iter().filter(|argument| argument.required);
    let required: Arc<[String]> = required.map(|argument| argument.name.clone()).collect();
    Arc::new(move |call, context| match texts::missing(&call, &required) {
        None => handler.clone().call(call, context),
        Some(error) => Box::pin(std::future::ready(Err(error))),
    })
}

fn arguments_of<M, H: PromptHandler<M>>(_: &H) -> Vec<PromptArgument> {
    H::arguments()
}
