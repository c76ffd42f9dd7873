//! Completion of prompt arguments and template variables (MCP, server/utilities/completion).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use toolyard_core::{Call, CallOutput, ErrorCode, Json, Object, Outcome, ToolError};

use crate::backend::BoxHandler;
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::function::{HandlerFunction, handler_output};

/// Maximum number of values in a response (server/utilities/completion, data types).
const MAX_VALUES: usize = 100;

/// The input that a completer completes.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// The name of the argument or variable.
    pub argument: String,
    /// The value typed so far.
    pub value: String,
    /// The values of other arguments, as far as the client sends them.
    pub context: BTreeMap<String, String>,
}

/// Shows names only, and none of the values that the user typed.
impl fmt::Debug for CompletionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.context.keys().collect();
        f.debug_struct("CompletionRequest")
            .field("argument", &self.argument)
            .field("context", &names)
            .finish_non_exhaustive()
    }
}

/// Values to choose from, the best one first.
///
/// At most 100 are sent. If there are more, the response says so, and gives their number if `total` is set or all of
/// them are here.
///
/// ```
/// use toolyard_sdk::CompletionReply;
///
/// async fn word(typed: String) -> CompletionReply {
///     CompletionReply { values: vec![format!("{typed}ing"), format!("{typed}ed")], total: Some(1234), has_more: true }
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompletionReply {
    /// The values.
    pub values: Vec<String>,
    /// The total number of values; `None` if unknown.
    pub total: Option<u64>,
    /// True if there are more values than these.
    pub has_more: bool,
}

impl CompletionReply {
    /// These values and no others.
    ///
    /// ```
    /// # use toolyard_sdk::CompletionReply;
    /// let languages = CompletionReply::of(["python", "rust"]);
    /// ```
    pub fn of<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        let values: Vec<_> = values.into_iter().map(Into::into).collect();
        Self { total: Some(values.len() as u64), values, has_more: false }
    }

    fn outcome(mut self) -> Outcome {
        self.has_more |= self.values.len() > MAX_VALUES;
        self.values.truncate(MAX_VALUES);
        let values: Vec<_> = self.values.iter().map(|value| Json::string(value)).collect();
        let mut completion = Object::new().with("values", Json::array(&values));
        if let Some(total) = self.total {
            completion.set("total", Json::unsigned(total));
        }
        completion.set("hasMore", Json::boolean(self.has_more));
        let body = Object::new().with("completion", completion.to_json());
        Outcome::Done(CallOutput { body, is_error: false })
    }
}

/// A value that a completer may return: [`CompletionReply`], a `Vec` or array of strings, or a `Result` of one of
/// these.
#[diagnostic::on_unimplemented(
    message = "an argument cannot be completed with `{Self}`",
    label = "`{Self}` is not a completion",
    note = "a completer returns `Vec<String>`, `Vec<&'static str>`, an array of strings, `CompletionReply`, or a \
            `Result` of one of these"
)]
pub trait IntoCompletion {
    /// Converts the value into a list of values to choose from.
    ///
    /// # Errors
    /// If the values cannot be found.
    fn into_completion(self) -> Result<CompletionReply, ToolFailure>;
}

impl IntoCompletion for CompletionReply {
    fn into_completion(self) -> Result<CompletionReply, ToolFailure> {
        Ok(self)
    }
}

impl<T: Into<String>> IntoCompletion for Vec<T> {
    fn into_completion(self) -> Result<CompletionReply, ToolFailure> {
        Ok(CompletionReply::of(self))
    }
}

impl<T: Into<String>, const N: usize> IntoCompletion for [T; N] {
    fn into_completion(self) -> Result<CompletionReply, ToolFailure> {
        Ok(CompletionReply::of(self))
    }
}

impl<C: IntoCompletion, E: Into<ToolFailure>> IntoCompletion for Result<C, E> {
    fn into_completion(self) -> Result<CompletionReply, ToolFailure> {
        self.map_err(Into::into)?.into_completion()
    }
}

/// A function that completes an argument of a prompt or a variable of a template.
///
/// Implemented for functions and closures, `async` or not; do not implement it yourself. A completer takes the value
/// typed so far as a `String`, or a [`CompletionRequest`], which also has the other arguments, or a [`Context`]
/// followed by one of them. It returns a type that implements [`IntoCompletion`], such as `Vec<String>`.
///
/// ```
/// use toolyard_sdk::{CompletionRequest, Server};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Review { language: String, framework: String }
/// # async fn review(_args: Review) -> &'static str { "" }
///
/// async fn language(typed: String) -> Vec<&'static str> {
///     ["python", "rust", "ruby"].into_iter().filter(|name| name.starts_with(&typed)).collect()
/// }
///
/// async fn framework(request: CompletionRequest) -> Vec<&'static str> {
///     match request.context.get("language").map(String::as_str) {
///         Some("python") => vec!["django", "flask"],
///         Some("rust") => vec!["axum"],
///         _ => vec![],
///     }
/// }
///
/// # fn main() -> toolyard_sdk::Result<()> {
/// let server = Server::new("reviews", "1.0.0")
///     .prompt("review", "Asks for a review.", review)?
///     .complete_prompt("review", "language", language)?
///     .complete_prompt("review", "framework", framework)?;
/// # Ok(()) }
/// ```
///
/// Plain and `async` functions run like those of tools: see [`ToolHandler`](crate::ToolHandler).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a completer",
    label = "cannot complete an argument",
    note = "see `toolyard_sdk::Completer` for what a completer takes and returns"
)]
pub trait Completer<Marker>: Clone + Send + Sync + 'static {
    /// Returns the values.
    fn call(
        self,
        request: CompletionRequest,
        context: Context,
    ) -> BoxFuture<'static, Result<CompletionReply, ToolFailure>>;
}

impl<F, P, R, K> Completer<(P, R, K)> for F
where
    F: HandlerFunction<P, Output = R>,
    P: CompleterParameters,
    R: CompleterOutput<K> + Send + 'static,
    R::Value: IntoCompletion + 'static,
{
    fn call(
        self,
        request: CompletionRequest,
        context: Context,
    ) -> BoxFuture<'static, Result<CompletionReply, ToolFailure>> {
        let running = R::run(move || HandlerFunction::call(self, P::take(request, context)));
        Box::pin(async move { running.await.into_completion() })
    }
}

/// The parameters of a completer.
#[diagnostic::on_unimplemented(
    message = "a completer cannot take `{Self}`",
    label = "cannot take `{Self}`",
    note = "a completer takes a `String` or a `CompletionRequest`, or a `Context` and then one of them"
)]
pub trait CompleterParameters: Send + Sized + 'static {
    /// Takes the parameters from a call.
    #[must_use]
    fn take(request: CompletionRequest, context: Context) -> Self;
}

impl CompleterParameters for (String,) {
    fn take(request: CompletionRequest, _: Context) -> Self {
        (request.value,)
    }
}

impl CompleterParameters for (CompletionRequest,) {
    fn take(request: CompletionRequest, _: Context) -> Self {
        (request,)
    }
}

impl CompleterParameters for (Context, String) {
    fn take(request: CompletionRequest, context: Context) -> Self {
        (context, request.value)
    }
}

impl CompleterParameters for (Context, CompletionRequest) {
    fn take(request: CompletionRequest, context: Context) -> Self {
        (context, request)
    }
}

handler_output! {
    /// The return value of a completer: a value or a future of one.
    #[diagnostic::on_unimplemented(
        message = "a completer cannot return `{Self}`",
        label = "returns `{Self}`",
        note = "a completer returns `Vec<String>`, `Vec<&'static str>`, an array of strings, `CompletionReply`, or a `Result` \
                of one; or a future of that"
    )]
    pub trait CompleterOutput of a completer: IntoCompletion
}

/// Returns a handler that calls the completer.
pub(crate) fn handler<M>(completer: impl Completer<M>) -> BoxHandler {
    Arc::new(move |call, context| {
        let request = match request(&call) {
            Ok(request) => request,
            Err(error) => return ready(Err(error)).boxed(),
        };
        let reply = completer.clone().call(request, context);
        Box::pin(async move { reply.await.map(CompletionReply::outcome).map_err(ToolFailure::into_error) })
    })
}

fn request(call: &Call) -> Result<CompletionRequest, ToolError> {
    let member = |name: &str| call.params.get(name)?.to_object().ok();
    let argument = member("argument").unwrap_or_default();
    let text = |name: &str| argument.get_str(name).map(|text| text.into_owned());
    let (Some(name), Some(value)) = (text("name"), text("value")) else {
        let message = "A completion needs an `argument` with the strings `name` and `value`";
        return Err(ToolError::new(ErrorCode::InvalidArguments, message));
    };
    let others = member("context").and_then(|context| context.get("arguments")?.to_object().ok());
    let others = others.unwrap_or_default();
    let others =
        others.iter().filter_map(|(name, value)| Some((name.into_owned(), value.to_str()?.into_owned())));
    Ok(CompletionRequest { argument: name, value, context: others.collect() })
}
