//! Functions as tool handlers.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_core::{Call, ErrorCode, Json, Outcome, ToolError};

use crate::context::Context;
use crate::function::{FirstParameter, HandlerFunction, handler_output};
use crate::reply::IntoToolReply;
use crate::schema;
use crate::tool::ToolCall;

/// A function that handles the calls of a tool.
///
/// Implemented for functions and closures, `async` or not; do not implement it yourself. A handler takes
///
/// | parameters | |
/// | --- | --- |
/// | `()` | nothing: the tool has no arguments |
/// | `(Args)` | arguments of your own type, which derives [`Deserialize`](serde::Deserialize) and [`JsonSchema`] |
/// | `(Context)` | the context of the call: progress, log, questions to the client |
/// | `(Context, Args)` | both, the context first |
/// | `(ToolCall)`, `(Context, ToolCall)` | the untyped arguments, see [`ToolCall`] |
///
/// and returns a type that implements [`IntoToolReply`], such as `Result<String, ToolFailure>`.
///
/// ```
/// use serde::Deserialize;
/// use toolyard_sdk::{Context, Server, ToolFailure};
///
/// #[derive(Deserialize, schemars::JsonSchema)]
/// struct Args {
///     path: String,
/// }
///
/// // Blocking code, which runs on a thread of its own.
/// fn read(args: Args) -> std::io::Result<String> {
///     std::fs::read_to_string(args.path)
/// }
///
/// // Async code, which must not block.
/// async fn count(ctx: Context, args: Args) -> Result<String, ToolFailure> {
///     ctx.progress(0.0, None, "counting");
///     Ok(args.path.len().to_string())
/// }
///
/// # fn main() -> toolyard_sdk::Result<()> {
/// let greeting = String::from("hello");
/// let server = Server::new("files", "1.0.0")
///     .tool("read", "Reads a file.", read)?
///     .tool("count", "Counts the bytes of a path.", count)?
///     .tool("greet", "Greets.", async move || greeting)?;
/// # Ok(()) }
/// ```
///
/// # State
///
/// A handler captures the state it needs. The closure is cloned for each call, so that an `Arc`, or another value that
/// is cheap to clone, can be moved into the future:
///
/// ```
/// # use std::sync::Arc;
/// # use toolyard_sdk::{Server, ToolFailure};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct FindArgs { name: String }
/// struct Database { /* ... */ }
///
/// impl Database {
///     async fn find(&self, args: FindArgs) -> Result<String, ToolFailure> {
///         Ok(format!("no person is called {}", args.name))
///     }
/// }
///
/// # fn main() -> toolyard_sdk::Result<()> {
/// let database = Arc::new(Database {});
/// let server = Server::new("people", "1.0.0")
///     .tool("find", "Finds a person.", async move |args: FindArgs| database.find(args).await)?;
/// # Ok(()) }
/// ```
///
/// # Sync or async
///
/// A plain function runs on a thread of tokio's blocking pool: it may read files or compute without delaying other
/// calls. It cannot be stopped; a long-running function should check [`Context::is_cancelled`] regularly.
///
/// An `async` function runs on the thread of its connection and must not block. If the client cancels the call or its
/// deadline passes, the future is dropped at the next `.await`.
///
/// A panic fails only its own call.
///
/// # Compiler errors
///
/// The compiler names the bound that is not satisfied: a type without `#[derive(Deserialize)]` or
/// `#[derive(JsonSchema)]`, a context as the second parameter, two plain arguments, a return type that does not
/// implement [`IntoToolReply`], a future that is not `Send` because it holds an `Rc` or a lock over an `.await`.
/// Closures must name the types of their parameters.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool handler",
    label = "cannot handle the calls of a tool",
    note = "a handler is a function or closure, `async` or not, that takes `()`, `(Args)`, `(Context)` or \
            `(Context, Args)`: several arguments are the fields of one struct",
    note = "see `toolyard_sdk::ToolHandler` for what a handler takes and returns"
)]
pub trait ToolHandler<Marker>: Clone + Send + Sync + 'static {
    /// The published schema of the arguments.
    #[must_use]
    fn input_schema() -> Value;

    /// The schema that validates the arguments.
    #[must_use]
    fn accepted_schema() -> Value;

    /// The schema of the structured content, if there is one.
    #[must_use]
    fn output_schema() -> Option<Value>;

    /// Handles a call. With `wraps`, structured content is always the member `result` of an object, as in the published
    /// schema.
    fn call(
        self,
        call: Call,
        context: Context,
        wraps: bool,
    ) -> BoxFuture<'static, Result<Outcome, ToolError>>;
}

impl<F, P, R, K> ToolHandler<(P, R, K)> for F
where
    F: HandlerFunction<P, Output = R>,
    P: ToolParameters,
    R: ToolOutput<K> + Send + 'static,
    R::Value: IntoToolReply + 'static,
{
    fn input_schema() -> Value {
        P::schema()
    }

    fn accepted_schema() -> Value {
        P::accepted_schema()
    }

    fn output_schema() -> Option<Value> {
        R::Value::output_schema()
    }

    fn call(
        self,
        call: Call,
        context: Context,
        wraps: bool,
    ) -> BoxFuture<'static, Result<Outcome, ToolError>> {
        let parameters = match P::read(&call, &context) {
            Ok(parameters) => parameters,
            Err(error) => return ready(Err(error)).boxed(),
        };
        let running = R::run(move || HandlerFunction::call(self, parameters));
        Box::pin(async move {
            match running.await.into_reply() {
                Ok(reply) => reply.outcome(&context, wraps),
                Err(failure) => failure.outcome(),
            }
        })
    }
}

/// The parameters of a tool handler.
#[diagnostic::on_unimplemented(
    message = "a tool handler cannot take `{Self}`",
    label = "cannot take `{Self}`",
    note = "a handler takes nothing, `Args`, `Context`, or `Context` and then `Args`"
)]
pub trait ToolParameters: Send + Sized + 'static {
    /// The published schema of the arguments.
    #[must_use]
    fn schema() -> Value;

    /// The schema that validates the arguments.
    #[must_use]
    fn accepted_schema() -> Value {
        Self::schema()
    }

    /// Reads the parameters from a call.
    ///
    /// # Errors
    /// If the arguments do not fit their type.
    fn read(call: &Call, context: &Context) -> Result<Self, ToolError>;
}

impl ToolParameters for () {
    fn schema() -> Value {
        schema::no_arguments()
    }

    fn read(_: &Call, _: &Context) -> Result<Self, ToolError> {
        Ok(())
    }
}

impl ToolParameters for (Context,) {
    fn schema() -> Value {
        schema::no_arguments()
    }

    fn read(_: &Call, context: &Context) -> Result<Self, ToolError> {
        Ok((context.clone(),))
    }
}

impl<A: ToolArguments> ToolParameters for (A,) {
    fn schema() -> Value {
        A::schema()
    }

    fn accepted_schema() -> Value {
        A::accepted_schema()
    }

    fn read(call: &Call, _: &Context) -> Result<Self, ToolError> {
        Ok((A::read(call)?,))
    }
}

impl<C: FirstParameter, A: ToolArguments> ToolParameters for (C, A) {
    fn schema() -> Value {
        A::schema()
    }

    fn accepted_schema() -> Value {
        A::accepted_schema()
    }

    fn read(call: &Call, context: &Context) -> Result<Self, ToolError> {
        Ok((C::of(context), A::read(call)?))
    }
}

/// The type of a tool's arguments: every type that is [`DeserializeOwned`] and [`JsonSchema`], and [`ToolCall`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool",
    label = "not the arguments of a tool",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for `{Self}`"
)]
pub trait ToolArguments: Send + Sized + 'static {
    /// The published schema.
    #[must_use]
    fn schema() -> Value;

    /// The schema that validates the arguments.
    #[must_use]
    fn accepted_schema() -> Value {
        Self::schema()
    }

    /// Reads the arguments from a call.
    ///
    /// # Errors
    /// If they do not fit.
    fn read(call: &Call) -> Result<Self, ToolError>;
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> ToolArguments for A {
    fn schema() -> Value {
        schema::schema_of::<A>()
    }

    fn accepted_schema() -> Value {
        schema::accepted_schema_of::<A>()
    }

    fn read(call: &Call) -> Result<Self, ToolError> {
        let arguments = call.arguments().cloned().unwrap_or_else(no_arguments);
        parse(&arguments).map_err(|problem| {
            ToolError::new(ErrorCode::InvalidArguments, format!("Invalid arguments: {problem}"))
        })
    }
}

impl ToolArguments for ToolCall {
    fn schema() -> Value {
        schema::any_arguments()
    }

    fn read(call: &Call) -> Result<Self, ToolError> {
        let arguments = call.arguments().map(Json::to_object).transpose().map_err(|error| {
            ToolError::new(ErrorCode::InvalidArguments, format!("Invalid arguments: {}", error.problem))
        })?;
        let name = call.target.name().to_string();
        Ok(Self { name, arguments: arguments.unwrap_or_default(), meta: call.meta.clone() })
    }
}

fn no_arguments() -> Json {
    toolyard_core::Object::new().to_json()
}

/// Deserializes arguments.
///
/// # Errors
/// The fault and its location. The arguments are valid against the schema, but a type can be narrower.
pub(crate) fn parse<T: DeserializeOwned>(arguments: &Json) -> Result<T, String> {
    if let Ok(value) = serde_json::from_slice(arguments.as_bytes()) {
        return Ok(value);
    }
    // A unit stands for no arguments and is serialized as `null`.
    let nothing = arguments.to_object().is_ok_and(|arguments| arguments.is_empty());
    if let Some(unit) = nothing.then(|| serde_json::from_slice(b"null").ok()).flatten() {
        return Ok(unit);
    }
    // `5.0` is an integer for JSON Schema, but not for serde.
    if let Some(value) = with_integers(arguments).and_then(|text| serde_json::from_str(&text).ok()) {
        return Ok(value);
    }
    // Deserializes again to find the location, which is too costly for the normal case.
    let mut text = serde_json::Deserializer::from_slice(arguments.as_bytes());
    serde_path_to_error::deserialize(&mut text).map_err(|error| describe_error(&error))
}

/// Rewrites whole floats as integers; `None` if there are none.
fn with_integers(arguments: &Json) -> Option<String> {
    let mut value = arguments.to_value();
    make_integers(&mut value).then(|| value.to_string())
}

/// Rewrites whole floats as integers; returns `true` if there were any.
fn make_integers(value: &mut Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => {
            let integer = number.as_f64().and_then(exact_integer);
            integer.map(|integer| *number = integer.into()).is_some()
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, item| make_integers(item) | any),
        Value::Object(members) => members.values_mut().fold(false, |any, member| make_integers(member) | any),
        _ => false,
    }
}

/// The integer that a float stands for. Beyond 2^53 a float does not represent every integer, and its value may differ
/// from the one in the text.
fn exact_integer(float: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
    let integer = float as i64;
    (float.fract() == 0.0 && float.abs() < EXACT).then_some(integer)
}

/// The location and the fault, in the format of schema validation.
fn describe_error(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let problem = error.inner().to_string();
    // The line and column mean nothing to the sender of the arguments.
    let problem = problem.rfind(" at line ").map_or(&*problem, |start| &problem[..start]);
    let path: String = error.path().iter().map(|segment| format!("/{segment}")).collect();
    if path.is_empty() { problem.to_owned() } else { format!("{path}: {problem}") }
}

handler_output! {
    /// The return value of a tool handler: a value or a future of one.
    #[diagnostic::on_unimplemented(
        message = "a tool handler cannot return `{Self}`",
        label = "returns `{Self}`",
        note = "a handler returns `String`, `&'static str`, a number, `bool`, `()`, `Content`, `Vec<Content>`, \
                `Json<T>`, `ToolReply`, `InputRequired`, or a `Result` of one of them whose error is any error; or a \
                future of that",
        note = "for your own type, derive `Serialize` and `JsonSchema` and return `Json<{Self}>`"
    )]
    pub trait ToolOutput of a handler: IntoToolReply
}
