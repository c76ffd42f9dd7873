//! Prompts: message templates that a user selects by name (MCP, server/prompts).

mod handler;
mod reply;
#[cfg(test)]
mod tests;
pub(crate) mod text_values;

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::backend::BoxHandler;
use crate::icon::Icon;
use crate::setters::setters;

pub use handler::{PromptArguments, PromptHandler, PromptOutput, PromptParameters};
pub use reply::{IntoPrompt, PromptMessage, PromptReply};

/// The definition of a prompt, for [`Server::register_prompt`](crate::Server::register_prompt).
///
/// Members that are `None` or empty are left out. If `arguments` is empty, the handler's arguments are used.
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
    /// The name for requests.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The arguments that the user can fill in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// Icons of the prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Additional metadata, under names with a prefix of your own.
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
}

/// An argument of a prompt. In MCP it is always a string.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PromptArgument {
    /// The name in requests.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description of the expected value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// True if the argument is required. A call without it never reaches the handler.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

impl Prompt {
    /// A prompt with a name and a description for the user.
    ///
    /// ```
    /// # use toolyard_sdk::Prompt;
    /// let prompt = Prompt::new("greet", "Starts friendly.");
    /// ```
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), ..Self::default() }
    }

    setters! {
        /// Sets the display name.
        ///
        /// ```
        /// # use toolyard_sdk::Prompt;
        /// let prompt = Prompt::new("greet", "Starts friendly.").title("A friendly start");
        /// ```
        text title;
    }

    /// Adds an argument. Explicit arguments replace those of the handler.
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
        /// Adds an icon.
        ///
        /// ```
        /// # use toolyard_sdk::{Icon, Prompt};
        /// let prompt = Prompt::new("greet", "Starts friendly.").icon(Icon::new("https://example.com/hand.svg"));
        /// ```
        icon;

        /// Adds a member to `_meta`. Names with a prefix, such as `example.com/owner`, cannot clash with MCP's own
        /// names.
        ///
        /// ```
        /// # use toolyard_sdk::Prompt;
        /// let prompt = Prompt::new("greet", "Starts friendly.").meta("example.com/owner", "team-hello");
        /// ```
        meta;
    }
}

impl PromptArgument {
    /// An optional argument.
    ///
    /// ```
    /// # use toolyard_sdk::PromptArgument;
    /// let argument = PromptArgument::new("language");
    /// ```
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    setters! {
        /// Sets the display name.
        ///
        /// ```
        /// # use toolyard_sdk::PromptArgument;
        /// let argument = PromptArgument::new("lang").title("Language");
        /// ```
        text title;

        /// Sets the description of the expected value.
        ///
        /// ```
        /// # use toolyard_sdk::PromptArgument;
        /// let argument = PromptArgument::new("lang").description("The language to answer in");
        /// ```
        text description;
    }

    /// Sets whether the argument is required.
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

/// Returns the handler of a prompt. If `prompt` has no arguments, it gets those of the handler: serialize it after this
/// call.
pub(crate) fn handler<M>(prompt: &mut Prompt, handler: impl PromptHandler<M>) -> BoxHandler {
    if prompt.arguments.is_empty() {
        prompt.arguments = arguments_of(&handler);
    }
    let required = prompt.arguments.iter().filter(|argument| argument.required);
    let required: Arc<[String]> = required.map(|argument| argument.name.clone()).collect();
    Arc::new(move |call, context| match text_values::missing(&call, &required) {
        None => handler.clone().call(call, context),
        Some(error) => Box::pin(std::future::ready(Err(error))),
    })
}

fn arguments_of<M, H: PromptHandler<M>>(_: &H) -> Vec<PromptArgument> {
    H::arguments()
}
