//! The arguments of the tools.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::memory::error::MemoryError;
use crate::memory::reading::{MAX_CONTEXT, PartError, PartRequest};

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SaveMemoryArgs {
    /// Such as "customer-list"
    pub(super) key: String,
    /// Text; other values are saved as JSON
    pub(super) data: SavedData,
    /// 5 by default
    #[serde(default)]
    pub(super) ttl_minutes: Option<f64>,
    /// Such as "research/prices"
    #[serde(default)]
    pub(super) category: Option<String>,
    /// Separated by commas, or a list
    #[serde(default)]
    pub(super) tags: TagList,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GetMemoryArgs {
    /// Your key, or a full path such as "session/abc123/tool-search-a1b2c3-chunk0"
    pub(super) key: String,
    /// "120-180", "first 20" or "last 20"
    #[serde(default)]
    pub(super) lines: Option<LinesArg>,
    /// Only lines that match this regular expression
    #[serde(default)]
    pub(super) grep: Option<String>,
    /// Lines around each match
    #[serde(default)]
    pub(super) context: Option<f64>,
    /// For `grep`
    #[serde(default)]
    pub(super) ignore_case: Option<bool>,
}

impl GetMemoryArgs {
    pub(super) fn part(&self) -> Result<PartRequest, PartError> {
        let context = self.context.unwrap_or_default().clamp(0.0, MAX_CONTEXT as f64) as usize;
        let lines = self.lines.as_ref().map(LinesArg::text);
        PartRequest::parse(
            lines.as_deref(),
            self.grep.as_deref(),
            self.ignore_case.unwrap_or_default(),
            context,
        )
    }
}

/// Lines as a text, or the number of one line.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a string or an integer")]
pub(super) enum LinesArg {
    Text(String),
    Number(i64),
}

impl LinesArg {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Number(number) => Cow::Owned(number.to_string()),
        }
    }
}

impl JsonSchema for LinesArg {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Lines".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "integer"]})
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DeleteMemoryArgs {
    /// Your key, or a full path
    pub(super) key: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SearchMemoryArgs {
    /// Words to look for
    #[serde(default)]
    pub(super) query: Option<String>,
    /// Only this category and those below it
    #[serde(default)]
    pub(super) category: Option<String>,
    /// Only with all of these
    #[serde(default)]
    pub(super) tags: TagList,
    /// Your own by default
    #[serde(default)]
    pub(super) namespace: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListMemoryArgs {
    /// Your own by default
    #[serde(default)]
    pub(super) namespace: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct QueryMemoryArgs {
    /// Of an entry, or of the index or any chunk of a large result
    pub(super) key: String,
    /// Numbers stand in backticks
    pub(super) expression: String,
}

/// The value to save. A value that is not a text is saved as the JSON text that the model sent, with all digits of its
/// numbers.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct SavedData(Box<RawValue>);

impl SavedData {
    pub(super) fn into_text(self) -> String {
        let raw = self.0.get();
        serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned())
    }
}

impl JsonSchema for SavedData {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Data".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}

/// Tags in one text, separated by commas, or as a list.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
pub(crate) enum TagList {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl JsonSchema for TagList {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Tags".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
    }
}

/// Returns the different tags.
pub(crate) fn tags(tags: TagList) -> Vec<String> {
    let texts = match tags {
        TagList::None => Vec::new(),
        TagList::One(text) => vec![text],
        TagList::Many(texts) => texts,
    };
    let mut tags = Vec::new();
    for tag in texts.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|tag| !tag.is_empty()) {
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    tags
}

/// Parses a time to live; `None` if it is absent.
pub(super) fn ttl(minutes: Option<f64>) -> Result<Option<Duration>, MemoryError> {
    /// One year, which exceeds the maximum of any memory.
    const MAX_MINUTES: f64 = 525_600.0;
    match minutes {
        None => Ok(None),
        Some(minutes) if minutes > 0.0 => Ok(Some(Duration::from_secs_f64(minutes.min(MAX_MINUTES) * 60.0))),
        Some(_) => Err(MemoryError::BadKey("`ttl_minutes` must be positive")),
    }
}

/// Returns the trimmed text, or `None` if it is blank.
pub(crate) fn non_blank(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}
