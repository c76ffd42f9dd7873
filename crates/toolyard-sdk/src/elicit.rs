//! Asking the user (MCP, client/elicitation).

pub(crate) mod form;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolyard_core::{Ask, AskKind, Json, Object};

use crate::rounds::{BadAnswer, BadQuestion, Need, Prepared, Question, sealed};

/// A question to the user, as a value: for [`InputRequired::ask`](crate::InputRequired::ask) and
/// [`Context::ask`](crate::Context::ask).
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolyard_sdk::{Elicit, InputRequired};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Consent {
///     /// Really delete it?
///     confirm: bool,
/// }
///
/// let asks = InputRequired::new().ask("confirm", Elicit::form::<Consent>("The file is not empty."));
/// ```
#[derive(Debug, Clone)]
pub struct Elicit {
    params: Result<Object, BadQuestion>,
    need: Need,
}

impl Elicit {
    /// A form with the fields of `T`. Forms are flat (client/elicitation, requested schema): a field is
    ///
    /// - a `String`, where `#[schemars(email)]`, `#[schemars(url)]`, `#[schemars(length(..))]` and types of dates
    ///   say more about it;
    /// - a number, with `#[schemars(range(..))]`;
    /// - a `bool`;
    /// - a choice: an enum without values, whose variants show as what `#[schemars(title = "..")]` or their doc
    ///   comments say;
    /// - several choices: a `Vec` or a set of such an enum.
    ///
    /// An `Option` need not be filled in, nor a field with `#[serde(default)]`, whose default is shown. Doc comments
    /// become descriptions. What a form cannot say, such as a pattern, is left out: check it in the answer.
    ///
    /// Anything else, such as a struct in a struct, is an error when the question is to be sent.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use toolyard_sdk::Elicit;
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
    /// let question = Elicit::form::<Order>("What would you like?");
    /// ```
    #[must_use]
    pub fn form<T: JsonSchema>(message: impl Into<String>) -> Self {
        let name = T::schema_name();
        Self::with_form(message.into(), form::of::<T>().map_err(|fault| not_flat(&name, &fault)))
    }

    /// A form with a schema of your own, which is sent as it is. It has to be flat, as with [`Elicit::form`].
    ///
    /// ```
    /// # use toolyard_sdk::Elicit;
    /// # use serde_json::json;
    /// let question = Elicit::form_with_schema("Which one?", json!({
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
        Self { params: schema.map(params), need: Need::Form }
    }

    /// An address that the user is to open: see [`Context::elicit_url`](crate::Context::elicit_url). The id, which
    /// clients of revision 2025-11-25 want, must be another one for each question.
    ///
    /// ```
    /// # use toolyard_sdk::{Elicit, InputRequired};
    /// let page = Elicit::url("Enter the key there.", "https://example.com/set-key", "set-key-1");
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
        Self { params: Ok(params), need: Need::Url }
    }

    fn params(mode: &str, message: &str) -> Object {
        Object::new().with("mode", Json::string(mode)).with("message", Json::string(message))
    }
}

fn not_flat(what: &str, fault: &str) -> BadQuestion {
    BadQuestion(format!(
        "`{what}` is no form, because {fault}: the fields of a form are texts, numbers, booleans and choices"
    ))
}

impl sealed::Sealed for Elicit {}

impl Question for Elicit {
    type Answer = Elicited<Value>;

    fn prepare(self) -> Result<Prepared, BadQuestion> {
        Ok(Prepared { ask: Ask { kind: AskKind::Elicit, params: self.params? }, need: self.need })
    }

    fn read(answer: &Json) -> Result<Self::Answer, BadAnswer> {
        let bad = |why: &str| BadAnswer(why.to_owned());
        let answer = answer.to_object().map_err(|_| bad("it is no object"))?;
        match answer.get_str("action").as_deref() {
            // An address that was opened comes back without content.
            Some("accept") => match answer.get("content").filter(|content| !content.is_null()) {
                None => Ok(Elicited::Accepted(Value::Object(Map::new()))),
                Some(content) if content.is_object() => Ok(Elicited::Accepted(content.to_value())),
                Some(_) => Err(bad("its `content` is no object")),
            },
            Some("decline") => Ok(Elicited::Declined),
            Some("cancel") => Ok(Elicited::Cancelled),
            _ => Err(bad("its `action` is none of accept, decline and cancel")),
        }
    }
}

/// What the user did with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elicited<T> {
    /// Filled in the form, or agreed to open the address.
    Accepted(T),
    /// Said no.
    Declined,
    /// Closed the question without saying anything.
    Cancelled,
}

impl<T> Elicited<T> {
    /// What was entered, where something was.
    ///
    /// ```
    /// # use toolyard_sdk::Elicited;
    /// assert_eq!(Elicited::Accepted(7).accepted(), Some(7));
    /// assert_eq!(Elicited::<i32>::Declined.accepted(), None);
    /// ```
    #[must_use]
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(value) => Some(value),
            Self::Declined | Self::Cancelled => None,
        }
    }

    /// What the user did, as MCP writes it: `accept`, `decline` or `cancel`.
    ///
    /// ```
    /// # use toolyard_sdk::Elicited;
    /// assert_eq!(Elicited::<()>::Cancelled.action(), "cancel");
    /// ```
    #[must_use]
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Accepted(_) => "accept",
            Self::Declined => "decline",
            Self::Cancelled => "cancel",
        }
    }

    /// The same with another value.
    ///
    /// ```
    /// # use toolyard_sdk::Elicited;
    /// assert_eq!(Elicited::Accepted(7).map(|number| number * 2), Elicited::Accepted(14));
    /// ```
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Elicited<U> {
        match self {
            Self::Accepted(value) => Elicited::Accepted(change(value)),
            Self::Declined => Elicited::Declined,
            Self::Cancelled => Elicited::Cancelled,
        }
    }
}

impl Elicited<Value> {
    /// What was entered, as a `T`.
    ///
    /// # Errors
    /// When it does not fit.
    ///
    /// ```
    /// # use toolyard_sdk::Elicited;
    /// # use serde_json::json;
    /// # #[derive(Debug, PartialEq, serde::Deserialize)]
    /// # struct Name { name: String }
    /// let entered = Elicited::Accepted(json!({"name": "Ada"}));
    /// assert_eq!(entered.parse().ok(), Some(Elicited::Accepted(Name { name: "Ada".to_owned() })));
    /// ```
    pub fn parse<T: DeserializeOwned>(self) -> Result<Elicited<T>, BadAnswer> {
        Ok(match self {
            Self::Accepted(value) => Elicited::Accepted(serde_json::from_value(value)?),
            Self::Declined => Elicited::Declined,
            Self::Cancelled => Elicited::Cancelled,
        })
    }
}
