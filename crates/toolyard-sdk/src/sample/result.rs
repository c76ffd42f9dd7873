//! Responses of the client's model.

use std::fmt;

use serde_json::Value;
use toolyard_core::Json;

use crate::content::{Content, Role};
use crate::input_required::BadAnswer;

/// A response of the client's model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SampleResult {
    /// The name of the model.
    pub model: String,
    /// The speaker: the assistant.
    pub role: Role,
    /// The content blocks.
    pub content: Vec<Content>,
    /// The reason to stop: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or a value of the provider.
    pub stop_reason: Option<String>,
    raw: Json,
}

/// A use of a tool that the model requests.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolUse {
    /// The id that its result refers to.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments.
    pub input: Value,
}

/// Leaves out the input: it may repeat user input.
impl fmt::Debug for ToolUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolUse").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

impl SampleResult {
    pub(super) fn read(answer: &Json) -> Result<Self, BadAnswer> {
        let bad = |reason: &str| BadAnswer(reason.to_owned());
        let raw = answer.to_object().map_err(|_| bad("it is not an object"))?;
        let role = [Role::User, Role::Assistant]
            .into_iter()
            .find(|role| raw.get_str("role").as_deref() == Some(role.as_str()));
        let role = role.ok_or_else(|| bad("its `role` is not `user` or `assistant`"))?;
        let content = raw.get("content").ok_or_else(|| bad("it has no content"))?;
        let blocks = content.to_items().unwrap_or_else(|_| vec![content.clone()]);
        let content = blocks.iter().map(Content::from_json).collect::<Result<_, _>>();
        Ok(Self {
            model: raw.get_str("model").unwrap_or_default().into_owned(),
            role,
            content: content.map_err(|_| bad("its content is invalid"))?,
            stop_reason: raw.get_str("stopReason").map(|reason| reason.into_owned()),
            raw: answer.clone(),
        })
    }

    /// The text of all content blocks.
    ///
    /// ```
    /// # use toolyard_sdk::SampleResult;
    /// fn answer(sample: &SampleResult) -> String {
    ///     sample.text().trim().to_owned()
    /// }
    /// ```
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect()
    }

    /// The requested uses of the tools that [`SampleRequest::tool`](crate::SampleRequest::tool) offered.
    ///
    /// ```
    /// # use toolyard_sdk::SampleResult;
    /// fn wants_weather(sample: &SampleResult) -> bool {
    ///     sample.tool_uses().iter().any(|tool_use| tool_use.name == "weather")
    /// }
    /// ```
    #[must_use]
    pub fn tool_uses(&self) -> Vec<ToolUse> {
        let uses = self.content.iter().filter(|content| content.kind() == "tool_use");
        let read = |content: &Content| {
            let block = content.to_json().to_object().ok()?;
            let text = |name| Some(block.get_str(name)?.into_owned());
            let input = block.get("input").map(Json::to_value);
            Some(ToolUse { id: text("id")?, name: text("name")?, input: input.unwrap_or_default() })
        };
        uses.filter_map(read).collect()
    }

    /// The whole response in MCP's JSON.
    ///
    /// ```
    /// # use toolyard_sdk::SampleResult;
    /// fn tokens(sample: &SampleResult) -> Option<u64> {
    ///     sample.raw()["_meta"]["usage"]["tokens"].as_u64()
    /// }
    /// ```
    #[must_use]
    pub fn raw(&self) -> Value {
        self.raw.to_value()
    }
}
