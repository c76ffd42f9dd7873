//! Return types of tool handlers.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolyard_core::output_schema::STRUCTURED;
use toolyard_core::{CallOutput, Json as RawJson, Object, Outcome, ToolError};

use crate::content::Content;
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::input_required::InputRequired;
use crate::schema;

/// A value that a tool handler may return.
///
/// | type | answer |
/// | --- | --- |
/// | `String`, `&'static str`, `Cow<'static, str>` | one text |
/// | `()` | no content |
/// | [`Content`], `Vec<Content>` | texts, images, audio, resources |
/// | integers, floats, `bool` | their text |
/// | [`Json<T>`] | structured content with a published schema, repeated as text for clients that support only text |
/// | [`ToolReply`] | the reply as built |
/// | [`InputRequired`] | questions to the client; the handler is called again with the answers |
/// | `Result<R, E>` | `R`, or a result with `isError`; `E` is any error, see [`ToolFailure`] |
#[diagnostic::on_unimplemented(
    message = "a tool cannot answer with `{Self}`",
    label = "`{Self}` is not a reply",
    note = "a handler returns `String`, `&'static str`, a number, `bool`, `()`, `Content`, `Vec<Content>`, `Json<T>`, \
            `ToolReply`, `InputRequired`, or a `Result` of one of them",
    note = "for your own type, derive `Serialize` and `JsonSchema` and return `Json<{Self}>`"
)]
pub trait IntoToolReply {
    /// Converts the value into a reply.
    ///
    /// # Errors
    /// If the tool failed.
    fn into_reply(self) -> Result<ToolReply, ToolFailure>;

    /// The schema of the structured content, if there is one. If it does not describe an object, both the schema and
    /// the content are wrapped in the member `result` of one.
    #[must_use]
    fn output_schema() -> Option<Value> {
        None
    }
}

/// A result, built step by step.
///
/// ```
/// use serde_json::json;
/// use toolyard_sdk::{Content, ToolReply, ToolFailure};
///
/// fn chart() -> Result<ToolReply, ToolFailure> {
///     let reply = ToolReply::new()
///         .text("Sales have doubled.")
///         .content(Content::image(b"\x89PNG...", "image/png"))
///         .structured(&json!({"before": 21, "after": 42}))?
///         .meta("example.com/source", "ledger");
///     Ok(reply)
/// }
/// # chart().unwrap();
/// ```
#[derive(Debug, Default)]
pub struct ToolReply {
    content: Vec<Content>,
    structured: Option<RawJson>,
    meta: Object,
    is_error: bool,
    asks: Option<InputRequired>,
}

impl ToolReply {
    /// An empty result.
    ///
    /// ```
    /// # use toolyard_sdk::ToolReply;
    /// let done = ToolReply::new();
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text.
    ///
    /// ```
    /// # use toolyard_sdk::ToolReply;
    /// let reply = ToolReply::new().text("first").text("second");
    /// ```
    #[must_use]
    pub fn text(self, text: impl AsRef<str>) -> Self {
        self.content(Content::text(text))
    }

    /// Adds a content block.
    ///
    /// ```
    /// # use toolyard_sdk::{Content, ToolReply, ResourceLink};
    /// let reply = ToolReply::new()
    ///     .content(Content::audio(b"RIFF....", "audio/wav"))
    ///     .content(ResourceLink::new("file:///score.pdf", "score"));
    /// ```
    #[must_use]
    pub fn content(mut self, content: impl Into<Content>) -> Self {
        self.content.push(content.into());
        self
    }

    /// Sets the structured content. A reply without other content repeats it as text, for clients that do not support
    /// structured content. Clients of revisions up to 2025-11-25 accept only objects, so any other value `v` is sent as
    /// `{"result": v}`.
    ///
    /// ```
    /// # use toolyard_sdk::{ToolReply, ToolFailure};
    /// # use serde_json::json;
    /// # fn handler() -> Result<ToolReply, ToolFailure> {
    /// let reply = ToolReply::new().structured(&json!({"celsius": 21.5}))?;
    /// # Ok(reply) }
    /// # handler().unwrap();
    /// ```
    ///
    /// # Errors
    /// If the value cannot be serialized as JSON.
    pub fn structured<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self, ToolFailure> {
        self.structured = Some(RawJson::parse(serde_json::to_vec(value)?)?);
        Ok(self)
    }

    /// Adds a member to `_meta`. Names with a prefix, such as `example.com/trace`, cannot clash with MCP's own names.
    ///
    /// ```
    /// # use toolyard_sdk::ToolReply;
    /// let reply = ToolReply::new().text("done").meta("example.com/took-ms", 12);
    /// ```
    #[must_use]
    pub fn meta(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.meta.set(name, RawJson::from_value(&value.into()));
        self
    }

    /// Marks the result as a failure. [`ToolFailure`] is the usual way; this method keeps structured content and
    /// `_meta`.
    ///
    /// ```
    /// # use toolyard_sdk::ToolReply;
    /// let reply = ToolReply::new().text("three of four files were converted").error();
    /// ```
    #[must_use]
    pub const fn error(mut self) -> Self {
        self.is_error = true;
        self
    }

    pub(crate) fn failed(content: Vec<Content>) -> Self {
        Self { content, is_error: true, ..Self::default() }
    }

    /// The outcome of the call; see [`ToolReply::output`].
    pub(crate) fn outcome(mut self, context: &Context, wraps: bool) -> Result<Outcome, ToolError> {
        match self.asks.take() {
            Some(asks) => asks.outcome(context),
            None => Ok(Outcome::Done(self.output(wraps))),
        }
    }

    /// The result. With `wraps`, structured content is the member `result` of an object even if it is an object itself,
    /// as in the published schema.
    pub(crate) fn output(mut self, wraps: bool) -> CallOutput {
        if let (Some(structured), true) = (&self.structured, self.content.is_empty()) {
            self.content.push(Content::text(structured.as_text()));
        }
        let content: Vec<_> = self.content.iter().map(Content::to_json).collect();
        let mut body = Object::new().with("content", RawJson::array(&content));
        if let Some(structured) = self.structured {
            let wraps = wraps || !structured.is_object();
            let wrapped = || Object::new().with(schema::RESULT_MEMBER, structured.clone()).to_json();
            body.set(STRUCTURED, if wraps { wrapped() } else { structured });
        }
        if self.is_error {
            body.set("isError", RawJson::boolean(true));
        }
        if !self.meta.is_empty() {
            body.set("_meta", self.meta.to_json());
        }
        CallOutput { body, is_error: self.is_error }
    }
}

/// Structured content: the value as `structuredContent`, and its JSON as text.
///
/// The schema of `T` is published as the tool's output schema. MCP requires an object, so any other `T`, such as a
/// list, a number or an `Option`, is sent as `{"result": …}`, and its schema is wrapped accordingly; the text is the
/// JSON of the value itself. A [`serde_json::Value`] has no published schema.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Serialize;
/// use toolyard_sdk::{Json, Server};
///
/// #[derive(Serialize, JsonSchema)]
/// struct Weather {
///     /// Degrees Celsius
///     temperature: f64,
/// }
///
/// async fn weather() -> Json<Weather> {
///     Json(Weather { temperature: 21.5 })
/// }
///
/// # fn main() -> toolyard_sdk::Result<()> {
/// let server = Server::new("weather", "1.0.0").tool("weather", "Says how warm it is.", weather)?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema> IntoToolReply for Json<T> {
    fn into_reply(self) -> Result<ToolReply, ToolFailure> {
        ToolReply::new().structured(&self.0)
    }

    fn output_schema() -> Option<Value> {
        Some(schema::schema_of_result::<T>())
    }
}

impl<R: IntoToolReply, E: Into<ToolFailure>> IntoToolReply for Result<R, E> {
    fn into_reply(self) -> Result<ToolReply, ToolFailure> {
        self.map_err(Into::into)?.into_reply()
    }

    fn output_schema() -> Option<Value> {
        R::output_schema()
    }
}

impl IntoToolReply for ToolReply {
    fn into_reply(self) -> Result<ToolReply, ToolFailure> {
        Ok(self)
    }
}

impl IntoToolReply for () {
    fn into_reply(self) -> Result<ToolReply, ToolFailure> {
        Ok(ToolReply::new())
    }
}

impl IntoToolReply for String {
    fn into_reply(self) -> Result<ToolReply, ToolFailure> {
        Ok(ToolReply::new().text(self))
    }
}

impl IntoToolReply for &'static str {
    fn into_reply(self) -> Result<ToolReply, ToolFailure> {
        Ok(ToolReply::new().text(self))
    }
}

impl IntoToolReply for Cow<'static, str> {
    fn into_reply(self) -> Result<ToolReply, ToolFailure> {
        Ok(ToolReply::new().text(self))
    }
}

macro_rules! texts {
    ($($kind:ty),*) => {
        $(impl IntoToolReply for $kind {
            fn into_reply(self) -> Result<ToolReply, ToolFailure> {
                Ok(ToolReply::new().text(self.to_string()))
            }
        })*
    };
}

texts!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64, bool);

impl IntoToolReply for Content {
    fn into_reply(self) -> Result<ToolReply, ToolFailure> {
        Ok(ToolReply::new().content(self))
    }
}

impl IntoToolReply for Vec<Content> {
    fn into_reply(self) -> Result<ToolReply, ToolFailure> {
        Ok(ToolReply { content: self, ..ToolReply::default() })
    }
}

impl IntoToolReply for InputRequired {
    fn into_reply(self) -> Result<ToolReply, ToolFailure> {
        Ok(self.into())
    }
}

impl From<InputRequired> for ToolReply {
    fn from(asks: InputRequired) -> Self {
        Self { asks: Some(asks), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(reply: impl IntoToolReply, expect: &str) {
        let output = reply.into_reply().unwrap().output(false);
        assert_eq!(output.body.to_json().as_text(), expect);
        assert_eq!(output.is_error, expect.contains("isError"));
    }

    #[derive(Serialize, JsonSchema)]
    struct Sum {
        sum: i32,
    }

    #[test]
    fn values_become_results() {
        check("a", r#"{"content":[{"type":"text","text":"a"}]}"#);
        check("a".to_owned(), r#"{"content":[{"type":"text","text":"a"}]}"#);
        check(Cow::Borrowed("a"), r#"{"content":[{"type":"text","text":"a"}]}"#);
        check((), r#"{"content":[]}"#);
        check(-5_i64, r#"{"content":[{"type":"text","text":"-5"}]}"#);
        check(0.1_f32, r#"{"content":[{"type":"text","text":"0.1"}]}"#);
        check(true, r#"{"content":[{"type":"text","text":"true"}]}"#);
        check(Ok::<_, std::io::Error>("a"), r#"{"content":[{"type":"text","text":"a"}]}"#);
        check(
            vec![Content::image(b"abc", "image/png"), Content::text("b").priority(2.0)],
            r#"{"content":[{"type":"image","data":"YWJj","mimeType":"image/png"},{"type":"text","text":"b","annotations":{"priority":1.0}}]}"#,
        );
        check(
            Json(Sum { sum: 4 }),
            r#"{"content":[{"type":"text","text":"{\"sum\":4}"}],"structuredContent":{"sum":4}}"#,
        );
        check(
            ToolReply::new().text("no").structured(&json!({"sum": 4})).unwrap().meta("a/b", 1).error(),
            r#"{"content":[{"type":"text","text":"no"}],"structuredContent":{"sum":4},"isError":true,"_meta":{"a/b":1}}"#,
        );
    }

    #[test]
    fn structured_content_is_wrapped_in_an_object() {
        check(
            ToolReply::new().text("two").structured(&[1, 2]).unwrap(),
            r#"{"content":[{"type":"text","text":"two"}],"structuredContent":{"result":[1,2]}}"#,
        );
        check(
            Json("a"),
            r#"{"content":[{"type":"text","text":"\"a\""}],"structuredContent":{"result":"a"}}"#,
        );
        let wrapped = Json(Sum { sum: 4 }).into_reply().unwrap().output(true);
        assert_eq!(
            wrapped.body.to_json().as_text(),
            r#"{"content":[{"type":"text","text":"{\"sum\":4}"}],"structuredContent":{"result":{"sum":4}}}"#
        );
        assert_eq!(<Result<Json<Sum>, ToolFailure>>::output_schema().unwrap()["required"], json!(["sum"]));
    }
}
