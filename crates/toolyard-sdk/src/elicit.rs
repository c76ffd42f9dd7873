//! Elicitation: questions to the user (MCP, client/elicitation).

pub(crate) mod form;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolyard_core::{InputRequest, InputRequestKind, Json, Object};

use crate::input_required::{
    BadAnswer, BadQuestion, ClientQuestion, PreparedQuestion, RequiredCapability, sealed,
};

/// A question to the user, as a value for [`InputRequired::ask`](crate::InputRequired::ask) and
/// [`Context::ask`](crate::Context::ask).
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolyard_sdk::{ElicitRequest, InputRequired};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Consent {
///     /// Really delete it?
///     confirm: bool,
/// }
///
/// let asks = InputRequired::new().ask("confirm", ElicitRequest::form::<Consent>("The file is not empty."));
/// ```
#[derive(Debug, Clone)]
pub struct ElicitRequest {
    params: Result<Object, BadQuestion>,
    need: RequiredCapability,
}

impl ElicitRequest {
    /// A form with the fields of `T`. Forms are flat (client/elicitation, requested schema). A field is one of:
    ///
    /// - a `String`, which `#[schemars(email)]`, `#[schemars(url)]`, `#[schemars(length(..))]` and date types constrain
    ///   further;
    /// - a number, with `#[schemars(range(..))]`;
    /// - a `bool`;
    /// - a choice: an enum without values, whose variants are shown with their `#[schemars(title = "..")]` or doc
    ///   comments;
    /// - several choices: a `Vec` or a set of such an enum.
    ///
    /// An `Option` is optional, and so is a field with `#[serde(default)]`, whose default is shown. Doc comments become
    /// descriptions. Constraints that forms do not support, such as a pattern, are left out: check them in the answer.
    ///
    /// Other fields, such as a struct in a struct, cause an error when the question is sent.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use toolyard_sdk::ElicitRequest;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Order {
    ///     #[schemars(range(min = 1, max = 9))]
    ///     pieces: u8,
    ///     size: Size,
    ///     #[serde(default)]
    ///     gift_wrapped: bool,
    /// }
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// enum Size {
    ///     /// Fits most
    ///     M,
    ///     /// A bit wider
    ///     L,
    /// }
    ///
    /// let question = ElicitRequest::form::<Order>("What would you like?");
    /// ```
    #[must_use]
    pub fn form<T: JsonSchema>(message: impl Into<String>) -> Self {
        let name = T::schema_name();
        Self::with_form(message.into(), form::of::<T>().map_err(|fault| not_flat(&name, &fault)))
    }

    /// A form with a schema of your own, which is sent unchanged. It must be flat, as for [`ElicitRequest::form`].
    ///
    /// ```
    /// # use toolyard_sdk::ElicitRequest;
    /// # use serde_json::json;
    /// let question = ElicitRequest::form_with_schema("Which one?", json!({
    ///     "type": "object",
    ///     "properties": {"color": {"type": "string", "enum": ["red", "green"], "default": "red"}},
    ///     "required": ["color"],
    /// }));
    /// ```
    #[must_use]
    pub fn form_with_schema(message: impl Into<String>, schema: Value) -> Self {
        let checked = form::flat(&schema).map_err(|fault| not_flat("schema", &fault));
        Self::with_form(message.into(), checked.map(|_| schema))
    }

    fn with_form(message: String, schema: Result<Value, BadQuestion>) -> Self {
        let params =
            |schema| Self::params("form", &message).with("requestedSchema", Json::from_value(&schema));
        Self { params: schema.map(params), need: RequiredCapability::Form }
    }

    /// A URL for the user to open: see [`Context::elicit_url`](crate::Context::elicit_url). The id, which clients of
    /// revision 2025-11-25 require, must be unique.
    ///
    /// ```
    /// # use toolyard_sdk::{ElicitRequest, InputRequired};
    /// let page = ElicitRequest::url("Enter the key there.", "https://example.com/set-key", "set-key-1");
    /// let asks = InputRequired::new().ask("key", page);
    /// ```
    #[must_use]
    pub fn url(
        message: impl Into<String>,
        url: impl Into<String>,
        elicitation_id: impl Into<String>,
    ) -> Self {
        let params = Self::params("url", &message.into())
            .with("url", Json::string(&url.into()))
            .with("elicitationId", Json::string(&elicitation_id.into()));
        Self { params: Ok(params), need: RequiredCapability::Url }
    }

    fn params(mode: &str, message: &str) -> Object {
        Object::new().with("mode", Json::string(mode)).with("message", Json::string(message))
    }
}

fn not_flat(name: &str, fault: &str) -> BadQuestion {
    BadQuestion(format!(
        "`{name}` is not a form, because {fault}: the fields of a form are strings, numbers, booleans and choices"
    ))
}

impl sealed::Sealed for ElicitRequest {}

impl ClientQuestion for ElicitRequest {
    type Answer = ElicitResult<Value>;

    fn prepare(self) -> Result<PreparedQuestion, BadQuestion> {
        Ok(PreparedQuestion {
            ask: InputRequest { kind: InputRequestKind::Elicit, params: self.params? },
            need: self.need,
        })
    }

    fn read(answer: &Json) -> Result<Self::Answer, BadAnswer> {
        let bad = |reason: &str| BadAnswer(reason.to_owned());
        let answer = answer.to_object().map_err(|_| bad("it is not an object"))?;
        match answer.get_str("action").as_deref() {
            // The answer to a URL has no content.
            Some("accept") => match answer.get("content").filter(|content| !content.is_null()) {
                None => Ok(ElicitResult::Accepted(Value::Object(Map::new()))),
                Some(content) if content.is_object() => Ok(ElicitResult::Accepted(content.to_value())),
                Some(_) => Err(bad("its `content` is not an object")),
            },
            Some("decline") => Ok(ElicitResult::Declined),
            Some("cancel") => Ok(ElicitResult::Cancelled),
            _ => Err(bad("its `action` is not `accept`, `decline` or `cancel`")),
        }
    }
}

/// The user's response to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElicitResult<T> {
    /// The user filled in the form, or agreed to open the URL.
    Accepted(T),
    /// The user declined.
    Declined,
    /// The user closed the question without a decision.
    Cancelled,
}

impl<T> ElicitResult<T> {
    /// The entered value, if the user accepted.
    ///
    /// ```
    /// # use toolyard_sdk::ElicitResult;
    /// assert_eq!(ElicitResult::Accepted(7).accepted(), Some(7));
    /// assert_eq!(ElicitResult::<i32>::Declined.accepted(), None);
    /// ```
    #[must_use]
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(value) => Some(value),
            Self::Declined | Self::Cancelled => None,
        }
    }

    /// The user's action in MCP's JSON: `accept`, `decline` or `cancel`.
    ///
    /// ```
    /// # use toolyard_sdk::ElicitResult;
    /// assert_eq!(ElicitResult::<()>::Cancelled.action(), "cancel");
    /// ```
    #[must_use]
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Accepted(_) => "accept",
            Self::Declined => "decline",
            Self::Cancelled => "cancel",
        }
    }

    /// Converts the entered value.
    ///
    /// ```
    /// # use toolyard_sdk::ElicitResult;
    /// assert_eq!(ElicitResult::Accepted(7).map(|number| number * 2), ElicitResult::Accepted(14));
    /// ```
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> ElicitResult<U> {
        match self {
            Self::Accepted(value) => ElicitResult::Accepted(change(value)),
            Self::Declined => ElicitResult::Declined,
            Self::Cancelled => ElicitResult::Cancelled,
        }
    }
}

impl ElicitResult<Value> {
    /// Parses the entered value as a `T`.
    ///
    /// # Errors
    /// If it does not fit.
    ///
    /// ```
    /// # use toolyard_sdk::ElicitResult;
    /// # use serde_json::json;
    /// # #[derive(Debug, PartialEq, serde::Deserialize)]
    /// # struct Name { name: String }
    /// let entered = ElicitResult::Accepted(json!({"name": "Ada"}));
    /// assert_eq!(entered.parse().ok(), Some(ElicitResult::Accepted(Name { name: "Ada".to_owned() })));
    /// ```
    pub fn parse<T: DeserializeOwned>(self) -> Result<ElicitResult<T>, BadAnswer> {
        Ok(match self {
            Self::Accepted(value) => ElicitResult::Accepted(serde_json::from_value(value)?),
            Self::Declined => ElicitResult::Declined,
            Self::Cancelled => ElicitResult::Cancelled,
        })
    }
}
