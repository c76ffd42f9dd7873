//! What handlers of tools may return.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolyard_core::{Json as RawJson, Object, Outcome, Output, ToolError};

use crate::content::Content;
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::rounds::InputRequired;
use crate::schema;

/// What a handler of a tool may return.
///
/// | type | is answered as |
/// | --- | --- |
/// | `String`, `&'static str`, `Cow<'static, str>` | one text |
/// | `()` | no content |
/// | [`Content`], `Vec<Content>` | texts, images, audio, resources |
/// | integers, floats, `bool` | their text |
/// | [`Json<T>`] | structured content, whose schema is published, and its text for clients that know only text |
/// | [`Reply`] | whatever it was built of |
/// | [`InputRequired`] | a question to the client; the handler is called again with the answers |
/// | `Result<R, E>` | `R`, or a result that says that the tool failed; `E` is any error, see [`ToolFailure`] |
#[diagnostic::on_unimplemented(
    message = "a tool cannot answer with `{Self}`",
    label = "`{Self}` is not a reply",
    note = "a handler returns `String`, `&'static str`, a number, `bool`, `()`, `Content`, `Vec<Content>`, `Json<T>`, \
            `Reply`, `InputRequired`, or a `Result` of one of them",
    note = "for your own type, derive `Serialize` and `JsonSchema` and return `Json<{Self}>`"
)]
pub trait IntoReply {
    /// Makes a result of it.
    ///
    /// # Errors
    /// When the tool failed.
    fn into_reply(self) -> Result<Reply, ToolFailure>;

    /// The schema of the structured content, where there is some. Where it is none of an object, both it and the
    /// content are published as the member `result` of one.
    #[must_use]
    fn output_schema() -> Option<Value> {
        None
    }
}

/// A whole result, built piece by piece.
///
/// ```
/// use serde_json::json;
/// use toolyard_sdk::{Content, Reply, ToolFailure};
///
/// fn chart() -> Result<Reply, ToolFailure> {
///     let reply = Reply::new()
///         .text("Sales have doubled.")
///         .content(Content::image(b"\x89PNG...", "image/png"))
///         .structured(&json!({"before": 21, "after": 42}))?
///         .meta("example.com/source", "ledger");
///     Ok(reply)
/// }
/// # chart().unwrap();
/// ```
#[derive(Debug, Default)]
pub struct Reply {
    content: Vec<Content>,
    structured: Option<RawJson>,
    meta: Object,
    is_error: bool,
    asks: Option<InputRequired>,
}

impl Reply {
    /// A result of nothing.
    ///
    /// ```
    /// # use toolyard_sdk::Reply;
    /// let done = Reply::new();
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text.
    ///
    /// ```
    /// # use toolyard_sdk::Reply;
    /// let reply = Reply::new().text("first").text("second");
    /// ```
    #[must_use]
    pub fn text(self, text: impl AsRef<str>) -> Self {
        self.content(Content::text(text))
    }

    /// Adds a piece of content.
    ///
    /// ```
    /// # use toolyard_sdk::{Content, Reply, ResourceLink};
    /// let reply = Reply::new()
    ///     .content(Content::audio(b"RIFF....", "audio/wav"))
    ///     .content(ResourceLink::new("file:///score.pdf", "score"));
    /// ```
    #[must_use]
    pub fn content(mut self, content: impl Into<Content>) -> Self {
        self.content.push(content.into());
        self
    }

    /// Sets the structured content. A reply without other content repeats it as text, for clients that do not
    /// know structured content. Clients of revisions up to 2025-11-25 take nothing but objects, so any other value
    /// `v` goes out as `{"result": v}`.
    ///
    /// ```
    /// # use toolyard_sdk::{Reply, ToolFailure};
    /// # use serde_json::json;
    /// # fn handler() -> Result<Reply, ToolFailure> {
    /// let reply = Reply::new().structured(&json!({"celsius": 21.5}))?;
    /// # Ok(reply) }
    /// # handler().unwrap();
    /// ```
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn structured<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self, ToolFailure> {
        self.structured = Some(RawJson::parse(serde_json::to_vec(value)?)?);
        Ok(self)
    }

    /// Adds a member to `_meta`. Names with a prefix, such as `example.com/trace`, cannot clash with MCP's own.
    ///
    /// ```
    /// # use toolyard_sdk::Reply;
    /// let reply = Reply::new().text("done").meta("example.com/took-ms", 12);
    /// ```
    #[must_use]
    pub fn meta(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.meta.set(name, RawJson::from_value(&value.into()));
        self
    }

    /// Says that the tool failed. [`ToolFailure`] is the usual way; this one keeps structured content and `_meta`.
    ///
    /// ```
    /// # use toolyard_sdk::Reply;
    /// let reply = Reply::new().text("three of four files were converted").error();
    /// ```
    #[must_use]
    pub const fn error(mut self) -> Self {
        self.is_error = true;
        self
    }

    pub(crate) fn failed(content: Vec<Content>) -> Self {
        Self { content, is_error: true, ..Self::default() }
    }

    /// What the call came to; see [`Reply::output`].
    pub(crate) fn outcome(mut self, context: &Context, wraps: bool) -> Result<Outcome, ToolError> {
        match self.asks.take() {
            Some(asks) => asks.outcome(context),
            None => Ok(Outcome::Done(self.output(wraps))),
        }
    }

    /// The result. With `wraps`, structured content is the member `result` of an object even where it is an object
    /// itself, because the published schema says so.
    pub(crate) fn output(mut self, wraps: bool) -> Output {
        if let (Some(structured), true) = (&self.structured, self.content.is_empty()) {
            self.content.push(Content::text(structured.as_text()));
        }
        let content: Vec<_> = self.content.iter().map(Content::to_json).collect();
        let mut body = Object::new().with("content", RawJson::array(&content));
        if let Some(structured) = self.structured {
            let wraps = wraps || !structured.is_object();
            let wrapped = || Object::new().with(schema::RESULT, structured.clone()).to_json();
            body.set("structuredContent", if wraps { wrapped() } else { structured });
        }
        if self.is_error {
            body.set("isError", RawJson::boolean(true));
        }
        if !self.meta.is_empty() {
            body.set("_meta", self.meta.to_json());
        }
        Output { body, is_error: self.is_error }
    }
}

/// A value that is answered as structured content: `structuredContent`, and the same JSON as text.
///
/// The schema of `T` is published as the tool's output schema. MCP wants an object there, so a `T` that is something
/// else, such as a list, a number or an `Option`, goes out as `{"result": …}`, and so does its schema; the text is the
/// value's own JSON all the same. Of a [`serde_json::Value`] no schema is published.
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

impl<T: Serialize + JsonSchema> IntoReply for Json<T> {
    fn into_reply(self) -> Result<Reply, ToolFailure> {
        Reply::new().structured(&self.0)
    }

    fn output_schema() -> Option<Value> {
        Some(schema::schema_of_result::<T>())
    }
}

impl<R: IntoReply, E: Into<ToolFailure>> IntoReply for Result<R, E> {
    fn into_reply(self) -> Result<Reply, ToolFailure> {
        self.map_err(Into::into)?.into_reply()
    }

    fn output_schema() -> Option<Value> {
        R::output_schema()
    }
}

impl IntoReply for Reply {
    fn into_reply(self) -> Result<Reply, ToolFailure> {
        Ok(self)
    }
}

impl IntoReply for () {
    fn into_reply(self) -> Result<Reply, ToolFailure> {
        Ok(Reply::new())
    }
}

impl IntoReply for String {
    fn into_reply(self) -> Result<Reply, ToolFailure> {
        Ok(Reply::new().text(self))
    }
}

impl IntoReply for &'static str {
    fn into_reply(self) -> Result<Reply, ToolFailure> {
        Ok(Reply::new().text(self))
    }
}

impl IntoReply for Cow<'static, str> {
    fn into_reply(self) -> Result<Reply, ToolFailure> {
        Ok(Reply::new().text(self))
    }
}

macro_rules! texts {
    ($($kind:ty),*) => {
        $(impl IntoReply for $kind {
            fn into_reply(self) -> Result<Reply, ToolFailure> {
                Ok(Reply::new().text(self.to_string()))
            }
        })*
    };
}

texts!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64, bool);

impl IntoReply for Content {
    fn into_reply(self) -> Result<Reply, ToolFailure> {
        Ok(Reply::new().content(self))
    }
}

impl IntoReply for Vec<Content> {
    fn into_reply(self) -> Result<Reply, ToolFailure> {
        Ok(Reply { content: self, ..Reply::default() })
    }
}

impl IntoReply for InputRequired {
    fn into_reply(self) -> Result<Reply, ToolFailure> {
        Ok(self.into())
    }
}

impl From<InputRequired> for Reply {
    fn from(asks: InputRequired) -> Self {
        Self { asks: Some(asks), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(reply: impl IntoReply, expect: &str) {
        let output = reply.into_reply().unwrap().output(false);
        assert_eq!(output.body.to_json().as_text(), expect);
        assert_eq!(output.is_error, expect.contains("isError"));
    }

    #[derive(Serialize, JsonSchema)]
    struct Sum {
        sum: i32,
    }

    #[test]
    fn what_goes_over_the_wire() {
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
            Reply::new().text("no").structured(&json!({"sum": 4})).unwrap().meta("a/b", 1).error(),
            r#"{"content":[{"type":"text","text":"no"}],"structuredContent":{"sum":4},"isError":true,"_meta":{"a/b":1}}"#,
        );
    }

    #[test]
    fn structured_content_is_an_object() {
        check(
            Reply::new().text("two").structured(&[1, 2]).unwrap(),
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
