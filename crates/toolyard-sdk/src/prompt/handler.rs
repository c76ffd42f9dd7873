//! Functions as handlers of prompts.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolyard_core::{Call, Outcome, ToolError};

use super::reply::IntoPrompt;
use super::{PromptArgument, texts};
use crate::context::Context;
use crate::function::{FirstParameter, Function, returned};
use crate::schema::schema_of;

/// A function that can fill in a prompt.
///
/// You do not implement this: it is there for functions and closures, `async` or not, that take
///
/// | parameters | |
/// | --- | --- |
/// | `()` | nothing: the prompt has no arguments |
/// | `(Args)` | arguments of a type of yours, which derives [`Deserialize`](serde::Deserialize) and [`JsonSchema`] |
/// | `(Context)` | what is around the call: progress, log, questions to the client |
/// | `(Context, Args)` | both; the context comes first |
///
/// and return what is [`IntoPrompt`], such as `String` or `Result<PromptReply, ToolFailure>`.
///
/// On the wire arguments are texts. A field of `Args` can be a number, a `bool` or an enum without values all the
/// same: the text is read as one. The prompt's list of arguments is made of the fields, and their doc comments.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolyard_sdk::{PromptMessage, Server};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Review {
///     /// The code to review
///     code: String,
///     /// How many remarks there may be
///     remarks: Option<u32>,
/// }
///
/// async fn review(args: Review) -> Vec<PromptMessage> {
///     let many = args.remarks.unwrap_or(10);
///     vec![
///         PromptMessage::user(format!("Review this code with at most {many} remarks.")),
///         PromptMessage::user(args.code),
///     ]
/// }
///
/// # fn main() -> toolyard_sdk::Result<()> {
/// let server = Server::new("reviews", "1.0.0").prompt("review", "Asks for a review of some code.", review)?;
/// # Ok(()) }
/// ```
///
/// Plain functions and `async` ones run as those of tools do: see [`ToolHandler`](crate::ToolHandler).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of prompts",
    label = "cannot fill in a prompt",
    note = "see `toolyard_sdk::PromptHandler` for what a handler takes and returns"
)]
pub trait PromptHandler<Marker>: Clone + Send + Sync + 'static {
    /// What can be filled in.
    #[must_use]
    fn arguments() -> Vec<PromptArgument>;

    /// Handles a call.
    fn call(self, call: Call, context: Context) -> BoxFuture<'static, Result<Outcome, ToolError>>;
}

impl<F, P, R, K> PromptHandler<(P, R, K)> for F
where
    F: Function<P, Output = R>,
    P: PromptParameters,
    R: PromptReturned<K> + Send + 'static,
    R::Value: IntoPrompt + 'static,
{
    fn arguments() -> Vec<PromptArgument> {
        P::arguments()
    }

    fn call(self, call: Call, context: Context) -> BoxFuture<'static, Result<Outcome, ToolError>> {
        let parameters = match P::read(&call, &context) {
            Ok(parameters) => parameters,
            Err(error) => return ready(Err(error)).boxed(),
        };
        let returned = R::run(move || Function::call(self, parameters));
        Box::pin(async move {
            match returned.await.into_prompt() {
                Ok(reply) => reply.outcome(&context),
                Err(failure) => Err(failure.into_error()),
            }
        })
    }
}

/// What a handler of prompts may take.
#[diagnostic::on_unimplemented(
    message = "a handler of prompts cannot take `{Self}`",
    label = "cannot take `{Self}`",
    note = "a handler takes nothing, `Args`, `Context`, or `Context` and then `Args`"
)]
pub trait PromptParameters: Send + Sized + 'static {
    /// What can be filled in.
    #[must_use]
    fn arguments() -> Vec<PromptArgument>;

    /// Takes them from a call.
    ///
    /// # Errors
    /// When the arguments do not fit their type.
    fn read(call: &Call, context: &Context) -> Result<Self, ToolError>;
}

impl PromptParameters for () {
    fn arguments() -> Vec<PromptArgument> {
        Vec::new()
    }

    fn read(_: &Call, _: &Context) -> Result<Self, ToolError> {
        Ok(())
    }
}

impl PromptParameters for (Context,) {
    fn arguments() -> Vec<PromptArgument> {
        Vec::new()
    }

    fn read(_: &Call, context: &Context) -> Result<Self, ToolError> {
        Ok((context.clone(),))
    }
}

impl<A: PromptArguments> PromptParameters for (A,) {
    fn arguments() -> Vec<PromptArgument> {
        A::arguments()
    }

    fn read(call: &Call, _: &Context) -> Result<Self, ToolError> {
        Ok((A::read(call)?,))
    }
}

impl<C: FirstParameter, A: PromptArguments> PromptParameters for (C, A) {
    fn arguments() -> Vec<PromptArgument> {
        A::arguments()
    }

    fn read(call: &Call, context: &Context) -> Result<Self, ToolError> {
        Ok((C::of(context), A::read(call)?))
    }
}

/// A type that a prompt's arguments can be read into: whatever is [`DeserializeOwned`] and [`JsonSchema`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a prompt",
    label = "not the arguments of a prompt",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for `{Self}`"
)]
pub trait PromptArguments: Send + Sized + 'static {
    /// What can be filled in.
    #[must_use]
    fn arguments() -> Vec<PromptArgument>;

    /// Takes them from a call.
    ///
    /// # Errors
    /// When they do not fit.
    fn read(call: &Call) -> Result<Self, ToolError>;
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> PromptArguments for A {
    fn arguments() -> Vec<PromptArgument> {
        let schema = schema_of::<A>();
        let required = |name: &str| {
            schema["required"].as_array().is_some_and(|required| required.iter().any(|other| *other == *name))
        };
        let properties = schema["properties"].as_object().into_iter().flatten();
        let argument = |(name, property): (&String, &serde_json::Value)| {
            let text = |member: &str| property[member].as_str().map(str::to_owned);
            let (title, description) = (text("title"), text("description"));
            PromptArgument { name: name.clone(), title, description, required: required(name) }
        };
        properties.map(argument).collect()
    }

    fn read(call: &Call) -> Result<Self, ToolError> {
        texts::arguments(call)
    }
}

returned! {
    /// What a handler returns: a value, or a future of one.
    #[diagnostic::on_unimplemented(
        message = "a handler of prompts cannot return `{Self}`",
        label = "returns `{Self}`",
        note = "a handler returns `String`, `&'static str`, `Content`, `PromptMessage`, `Vec<PromptMessage>`, \
                `PromptReply`, `InputRequired`, or a `Result` of one of them whose error is any error; or a \
                future of that"
    )]
    pub trait PromptReturned of a handler: IntoPrompt
}
