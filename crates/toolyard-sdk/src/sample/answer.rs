//! What the client's model said.

use std::fmt;

use serde_json::Value;
use toolyard_core::Json;

use crate::content::{Content, Role};
use crate::rounds::BadAnswer;

/// What the client's model said.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Sample {
    /// Which model it was.
    pub model: String,
    /// Who spoke: the assistant.
    pub role: Role,
    /// What it said.
    pub content: Vec<Content>,
    /// Why it stopped: `endTurn`, `stopSequence`, `maxTokens`, `toolUse`, or what its provider calls it.
    pub stop_reason: Option<String>,
    raw: Json,
}

/// A tool that a model wants to use.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolUse {
    /// By what its result is told from others.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// With what.
    pub input: Value,
}

/// Does not show the input: it may repeat what a user said.
impl fmt::Debug for ToolUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolUse").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

impl Sample {
    pub(super) fn read(answer: &Json) -> Result<Self, BadAnswer> {
        let bad = |why: &str| BadAnswer(why.to_owned());
        let raw = answer.to_object().map_err(|_| bad("it is no object"))?;
        let role = [Role::User, Role::Assistant]
            .into_iter()
            .find(|role| raw.get_str("role").as_deref() == Some(role.as_str()));
        let role = role.ok_or_else(|| bad("its `role` is none of user and assistant"))?;
        let content = raw.get("content").ok_or_else(|| bad("it has no content"))?;
        let blocks = content.to_items().unwrap_or_else(|_| vec![content.clone()]);
        let content = blocks.iter().map(Content::from_json).collect::<Result<_, _>>();
        Ok(Self {
            model: raw.get_str("model").unwrap_or_default().into_owned(),
            role,
            content: content.map_err(|_| bad("its content is none"))?,
            stop_reason: raw.get_str("stopReason").map(|reason| reason.into_owned()),
            raw: answer.clone(),
        })
    }

    /// All that is text in it.
    ///
    /// ```
    /// # use toolyard_sdk::Sample;
    /// fn answer(sample: &Sample) -> String {
    ///     sample.text().trim().to_owned()
    /// }
    /// ```
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect()
    }

    /// The tools that the model wants to use, of those that [`SampleRequest::tool`](crate::SampleRequest::tool) has
    /// offered.
    ///
    /// ```
    /// # use toolyard_sdk::Sample;
    /// fn wants_weather(sample: &Sample) -> bool {
    ///     sample.tool_uses().iter().any(|wanted| wanted.name == "weather")
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

    /// The whole answer as it came.
    ///
    /// ```
    /// # use toolyard_sdk::Sample;
    /// fn tokens(sample: &Sample) -> Option<u64> {
    ///     sample.raw()["_meta"]["usage"]["tokens"].as_u64()
    /// }
    /// ```
    #[must_use]
    pub fn raw(&self) -> Value {
        self.raw.to_value()
    }
}
