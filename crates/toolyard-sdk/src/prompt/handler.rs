//! Functions as prompt handlers.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolyard_core::{Call, Outcome, ToolError};

use super::reply::IntoPrompt;
use super::{PromptArgument, text_values};
use crate::context::Context;
use crate::function::{FirstParameter, HandlerFunction, handler_output};
use crate::schema::schema_of;

/// A function that fills in a prompt.
///
/// Implemented for functions and closures, `async` or not; do not implement it yourself. A handler takes
///
/// | parameters | |
/// | --- | --- |
/// | `()` | nothing: the prompt has no arguments |
/// | `(Args)` | arguments of your own type, which derives [`Deserialize`](serde::Deserialize) and [`JsonSchema`] |
/// | `(Context)` | the context of the call: progress, log, questions to the client |
/// | `(Context, Args)` | both, the context first |
///
/// and returns a type that implements [`IntoPrompt`], such as `String` or `Result<PromptReply, ToolFailure>`.
///
/// In MCP the arguments are strings. A field of `Args` may still be a number, a `bool` or an enum without values, and
/// is parsed from the string. The prompt's list of arguments is derived from the fields and their doc comments.
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
///     /// Maximum number of remarks
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
/// Plain and `async` functions run like those of tools: see [`ToolHandler`](crate::ToolHandler).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prompt handler",
    label = "cannot fill in a prompt",
    note = "see `toolyard_sdk::PromptHandler` for what a handler takes and returns"
)]
pub trait PromptHandler<Marker>: Clone + Send + Sync + 'static {
    /// The arguments that the user can fill in.
    #[must_use]
    fn arguments() -> Vec<PromptArgument>;

    /// Handles a call.
    fn call(self, call: Call, context: Context) -> BoxFuture<'static, Result<Outcome, ToolError>>;
}

impl<F, P, R, K> PromptHandler<(P, R, K)> for F
where
    F: HandlerFunction<P, Output = R>,
    P: PromptParameters,
    R: PromptOutput<K> + Send + 'static,
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
        let running = R::run(move || HandlerFunction::call(self, parameters));
        Box::pin(async move {
            match running.await.into_prompt() {
                Ok(reply) => reply.outcome(&context),
                Err(failure) => Err(failure.into_error()),
            }
        })
    }
}

/// The parameters of a prompt handler.
#[diagnostic::on_unimplemented(
    message = "a prompt handler cannot take `{Self}`",
    label = "cannot take `{Self}`",
    note = "a handler takes nothing, `Args`, `Context`, or `Context` and then `Args`"
)]
pub trait PromptParameters: Send + Sized + 'static {
    /// The arguments that the user can fill in.
    #[must_use]
    fn arguments() -> Vec<PromptArgument>;

    /// Reads the parameters from a call.
    ///
    /// # Errors
    /// If the arguments do not fit their type.
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

/// The type of a prompt's arguments: every type that is [`DeserializeOwned`] and [`JsonSchema`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a prompt",
    label = "not the arguments of a prompt",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for `{Self}`"
)]
pub trait PromptArguments: Send + Sized + 'static {
    /// The arguments that the user can fill in.
    #[must_use]
    fn arguments() -> Vec<PromptArgument>;

    /// Reads the arguments from a call.
    ///
    /// # Errors
    /// If they do not fit.
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
        text_values::arguments(call)
    }
}

handler_output! {
    /// The return value of a prompt handler: a value or a future of one.
    #[diagnostic::on_unimplemented(
        message = "a prompt handler cannot return `{Self}`",
        label = "returns `{Self}`",
        note = "a handler returns `String`, `&'static str`, `Content`, `PromptMessage`, `Vec<PromptMessage>`, \
                `PromptReply`, `InputRequired`, or a `Result` of one of them whose error is any error; or a \
                future of that"
    )]
    pub trait PromptOutput of a handler: IntoPrompt
}
