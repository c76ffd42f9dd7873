//! Functions as handlers of tools.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_core::{Call, Code, Json, Outcome, ToolError};

use crate::context::Context;
use crate::function::{FirstParameter, Function, returned};
use crate::reply::IntoReply;
use crate::schema;
use crate::tool::ToolCall;

/// A function that can handle a tool's calls.
///
/// You do not implement this: it is there for functions and closures, `async` or not, that take
///
/// | parameters | |
/// | --- | --- |
/// | `()` | nothing: the tool has no arguments |
/// | `(Args)` | arguments of a type of yours, which derives [`Deserialize`](serde::Deserialize) and [`JsonSchema`] |
/// | `(Context)` | what is around the call: progress, log, questions to the client |
/// | `(Context, Args)` | both; the context comes first |
/// | `(ToolCall)`, `(Context, ToolCall)` | the arguments as they came, see [`ToolCall`] |
///
/// and return what is [`IntoReply`], such as `Result<String, ToolFailure>`.
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
/// // Blocks, and so has a thread for itself while it runs.
/// fn read(args: Args) -> std::io::Result<String> {
///     std::fs::read_to_string(args.path)
/// }
///
/// // Does not block.
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
/// A handler gets at what it needs by capturing it. The closure is cloned for each call, so that an `Arc`, or whatever
/// else is cheap to clone, can be moved into the future:
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
///         Ok(format!("nobody is called {}", args.name))
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
/// A plain function runs on a thread of tokio's blocking pool: it may read files or compute, and stalls nobody else.
/// It cannot be stopped; one that runs for long asks [`Context::is_cancelled`] now and then.
///
/// An `async` function runs where the connection is served. It must not block. When the client withdraws the call or
/// its time is up, its future is dropped at the next `.await`.
///
/// A panic fails its own call and no other.
///
/// # When the compiler says no
///
/// The compiler names the bound that does not hold: a type without `#[derive(Deserialize)]` or
/// `#[derive(JsonSchema)]`, a context in the second place, two plain arguments, a return type that is no
/// [`IntoReply`], a future that is not `Send` because it holds an `Rc` or a lock over an `.await`. Closures have to
/// name their parameters' types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of tools",
    label = "cannot handle calls of a tool",
    note = "a handler is a function or closure, `async` or not, that takes `()`, `(Args)`, `(Context)` or \
            `(Context, Args)`: several arguments are the fields of one struct",
    note = "see `toolyard_sdk::ToolHandler` for what a handler takes and returns"
)]
pub trait ToolHandler<Marker>: Clone + Send + Sync + 'static {
    /// The schema of the arguments, as it is published.
    #[must_use]
    fn input_schema() -> Value;

    /// The schema that arguments are held to.
    #[must_use]
    fn accepted_schema() -> Value;

    /// The schema of the structured content, where there is some.
    #[must_use]
    fn output_schema() -> Option<Value>;

    /// Handles a call. With `wraps`, structured content is always the member `result` of an object: the published
    /// schema is that of such an object.
    fn call(
        self,
        call: Call,
        context: Context,
        wraps: bool,
    ) -> BoxFuture<'static, Result<Outcome, ToolError>>;
}

impl<F, P, R, K> ToolHandler<(P, R, K)> for F
where
    F: Function<P, Output = R>,
    P: ToolParameters,
    R: Returned<K> + Send + 'static,
    R::Value: IntoReply + 'static,
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
        let returned = R::run(move || Function::call(self, parameters));
        Box::pin(async move {
            match returned.await.into_reply() {
                Ok(reply) => reply.outcome(&context, wraps),
                Err(failure) => failure.outcome(),
            }
        })
    }
}

/// What a handler of tools may take.
#[diagnostic::on_unimplemented(
    message = "a handler of tools cannot take `{Self}`",
    label = "cannot take `{Self}`",
    note = "a handler takes nothing, `Args`, `Context`, or `Context` and then `Args`"
)]
pub trait ToolParameters: Send + Sized + 'static {
    /// The schema of the arguments, as it is published.
    #[must_use]
    fn schema() -> Value;

    /// The schema that they are held to.
    #[must_use]
    fn accepted_schema() -> Value {
        Self::schema()
    }

    /// Takes them from a call.
    ///
    /// # Errors
    /// When the arguments do not fit their type.
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

/// A type that a tool's arguments can be read into: whatever is [`DeserializeOwned`] and [`JsonSchema`], and
/// [`ToolCall`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool",
    label = "not the arguments of a tool",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for `{Self}`"
)]
pub trait ToolArguments: Send + Sized + 'static {
    /// Their schema, as it is published.
    #[must_use]
    fn schema() -> Value;

    /// The schema that they are held to.
    #[must_use]
    fn accepted_schema() -> Value {
        Self::schema()
    }

    /// Takes them from a call.
    ///
    /// # Errors
    /// When they do not fit.
    fn read(call: &Call) -> Result<Self, ToolError>;
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> ToolArguments for A {
    fn schema() -> Value {
        schema::schema_of::<A>()
    }

    fn accepted_schema() -> Value {
        schema::accepted_of::<A>()
    }

    fn read(call: &Call) -> Result<Self, ToolError> {
        let arguments = call.arguments().cloned().unwrap_or_else(no_arguments);
        parse(&arguments).map_err(|problem| {
            ToolError::new(Code::InvalidArguments, format!("Invalid arguments: {problem}"))
        })
    }
}

impl ToolArguments for ToolCall {
    fn schema() -> Value {
        schema::any_arguments()
    }

    fn read(call: &Call) -> Result<Self, ToolError> {
        let arguments = call.arguments().map(Json::to_object).transpose().map_err(|error| {
            ToolError::new(Code::InvalidArguments, format!("Invalid arguments: {}", error.problem))
        })?;
        let name = call.target.name().to_string();
        Ok(Self { name, arguments: arguments.unwrap_or_default(), meta: call.meta.clone() })
    }
}

fn no_arguments() -> Json {
    toolyard_core::Object::new().to_json()
}

/// Reads arguments into a value.
///
/// # Errors
/// What does not fit, and where: the schema has passed it, but a type can be narrower.
pub(crate) fn parse<T: DeserializeOwned>(arguments: &Json) -> Result<T, String> {
    if let Ok(value) = serde_json::from_slice(arguments.as_bytes()) {
        return Ok(value);
    }
    // A unit, which stands for no arguments, is written as `null`.
    let nothing = arguments.to_object().is_ok_and(|arguments| arguments.is_empty());
    if let Some(unit) = nothing.then(|| serde_json::from_slice(b"null").ok()).flatten() {
        return Ok(unit);
    }
    // To JSON Schema 5.0 is an integer, to serde it is none.
    if let Some(value) = with_integers(arguments).and_then(|text| serde_json::from_str(&text).ok()) {
        return Ok(value);
    }
    // Once more, now watching where it is: that is not worth its price while all is well.
    let mut text = serde_json::Deserializer::from_slice(arguments.as_bytes());
    serde_path_to_error::deserialize(&mut text).map_err(|error| named(&error))
}

/// The same with whole floats as integers; `None` where there are none.
fn with_integers(arguments: &Json) -> Option<String> {
    let mut value = arguments.to_value();
    make_integers(&mut value).then(|| value.to_string())
}

/// Says whether there were any.
fn make_integers(value: &mut Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().and_then(whole);
            whole.map(|whole| *number = whole.into()).is_some()
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, item| make_integers(item) | any),
        Value::Object(members) => members.values_mut().fold(false, |any, member| make_integers(member) | any),
        _ => false,
    }
}

/// Beyond 2^53 a float does not hold every integer: the one that it shows may not be the one that was written.
fn whole(float: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
    let integer = float as i64;
    (float.fract() == 0.0 && float.abs() < EXACT).then_some(integer)
}

/// The place and the problem, as the check against the schema writes them.
fn named(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let problem = error.inner().to_string();
    // Who sent the arguments never saw the lines that they came in.
    let problem = problem.rfind(" at line ").map_or(&*problem, |place| &problem[..place]);
    let path: String = error.path().iter().map(|segment| format!("/{segment}")).collect();
    if path.is_empty() { problem.to_owned() } else { format!("{path}: {problem}") }
}

returned! {
    /// What a handler returns: a value, or a future of one.
    #[diagnostic::on_unimplemented(
        message = "a handler of tools cannot return `{Self}`",
        label = "returns `{Self}`",
        note = "a handler returns `String`, `&'static str`, a number, `bool`, `()`, `Content`, `Vec<Content>`, \
                `Json<T>`, `Reply`, `InputRequired`, or a `Result` of one of them whose error is any error; or a \
                future of that",
        note = "for your own type, derive `Serialize` and `JsonSchema` and return `Json<{Self}>`"
    )]
    pub trait Returned of a handler: IntoReply
}
