//! What could stand in an argument of a prompt, or for a variable of a template (MCP, server/utilities/completion).

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use toolyard_core::{Call, Code, Json, Object, Outcome, Output, ToolError};

use crate::backend::BoxHandler;
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::function::{Function, returned};

/// How many values go out at most (server/utilities/completion, data types).
const MOST: usize = 100;

/// What a user has typed so far.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// The argument's or variable's name.
    pub argument: String,
    /// What stands there now.
    pub value: String,
    /// The other arguments, as far as they are known.
    pub context: BTreeMap<String, String>,
}

/// Shows names only, and nothing that the user typed.
impl fmt::Debug for CompletionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = self.context.keys().collect();
        f.debug_struct("CompletionRequest")
            .field("argument", &self.argument)
            .field("context", &known)
            .finish_non_exhaustive()
    }
}

/// Values to choose from, the best one first.
///
/// At most 100 go out. If there are more, the client learns so, and how many there are if `total` says it or all of
/// them are here.
///
/// ```
/// use toolyard_sdk::Completion;
///
/// async fn word(typed: String) -> Completion {
///     Completion { values: vec![format!("{typed}ing"), format!("{typed}ed")], total: Some(1234), has_more: true }
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The values.
    pub values: Vec<String>,
    /// How many there are altogether; `None` where that is not known.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
}

impl Completion {
    /// These, and no others.
    ///
    /// ```
    /// # use toolyard_sdk::Completion;
    /// let languages = Completion::of(["python", "rust"]);
    /// ```
    pub fn of<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        let values: Vec<_> = values.into_iter().map(Into::into).collect();
        Self { total: Some(values.len() as u64), values, has_more: false }
    }

    fn outcome(mut self) -> Outcome {
        self.has_more |= self.values.len() > MOST;
        self.values.truncate(MOST);
        let values: Vec<_> = self.values.iter().map(|value| Json::string(value)).collect();
        let mut completion = Object::new().with("values", Json::array(&values));
        if let Some(total) = self.total {
            completion.set("total", Json::unsigned(total));
        }
        completion.set("hasMore", Json::boolean(self.has_more));
        let body = Object::new().with("completion", completion.to_json());
        Outcome::Done(Output { body, is_error: false })
    }
}

/// What a completer may return: [`Completion`], a `Vec` or array of texts, or a `Result` of one.
#[diagnostic::on_unimplemented(
    message = "an argument cannot be completed with `{Self}`",
    label = "`{Self}` is no completion",
    note = "a completer returns `Vec<String>`, `Vec<&'static str>`, an array of texts, `Completion`, or a \
            `Result` of one of these"
)]
pub trait IntoCompletion {
    /// Makes values to choose from of it.
    ///
    /// # Errors
    /// When they cannot be found.
    fn into_completion(self) -> Result<Completion, ToolFailure>;
}

impl IntoCompletion for Completion {
    fn into_completion(self) -> Result<Completion, ToolFailure> {
        Ok(self)
    }
}

impl<T: Into<String>> IntoCompletion for Vec<T> {
    fn into_completion(self) -> Result<Completion, ToolFailure> {
        Ok(Completion::of(self))
    }
}

impl<T: Into<String>, const N: usize> IntoCompletion for [T; N] {
    fn into_completion(self) -> Result<Completion, ToolFailure> {
        Ok(Completion::of(self))
    }
}

impl<C: IntoCompletion, E: Into<ToolFailure>> IntoCompletion for Result<C, E> {
    fn into_completion(self) -> Result<Completion, ToolFailure> {
        self.map_err(Into::into)?.into_completion()
    }
}

/// A function that completes an argument of a prompt or a variable of a template.
///
/// You do not implement this: it is there for functions and closures, `async` or not, that take what was typed so far
/// as a `String`, or a [`CompletionRequest`], which tells the other arguments, too; or a [`Context`] and then one of
/// them; and return what is [`IntoCompletion`], such as `Vec<String>`.
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
/// Plain functions and `async` ones run as those of tools do: see [`ToolHandler`](crate::ToolHandler).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a completer",
    label = "cannot complete an argument",
    note = "see `toolyard_sdk::Completer` for what a completer takes and returns"
)]
pub trait Completer<Marker>: Clone + Send + Sync + 'static {
    /// Finds values.
    fn call(
        self,
        request: CompletionRequest,
        context: Context,
    ) -> BoxFuture<'static, Result<Completion, ToolFailure>>;
}

impl<F, P, R, K> Completer<(P, R, K)> for F
where
    F: Function<P, Output = R>,
    P: CompleterParameters,
    R: CompleterReturned<K> + Send + 'static,
    R::Value: IntoCompletion + 'static,
{
    fn call(
        self,
        request: CompletionRequest,
        context: Context,
    ) -> BoxFuture<'static, Result<Completion, ToolFailure>> {
        let returned = R::run(move || Function::call(self, P::take(request, context)));
        Box::pin(async move { returned.await.into_completion() })
    }
}

/// What a completer may take.
#[diagnostic::on_unimplemented(
    message = "a completer cannot take `{Self}`",
    label = "cannot take `{Self}`",
    note = "a completer takes a `String` or a `CompletionRequest`, or a `Context` and then one of them"
)]
pub trait CompleterParameters: Send + Sized + 'static {
    /// Takes them from a call.
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

returned! {
    /// What a completer returns: a value, or a future of one.
    #[diagnostic::on_unimplemented(
        message = "a completer cannot return `{Self}`",
        label = "returns `{Self}`",
        note = "a completer returns `Vec<String>`, `Vec<&'static str>`, an array of texts, `Completion`, or a `Result` \
                of one; or a future of that"
    )]
    pub trait CompleterReturned of a completer: IntoCompletion
}

/// What runs the calls of a completer.
pub(crate) fn handler<M>(completer: impl Completer<M>) -> BoxHandler {
    Arc::new(move |call, context| {
        let request = match request(&call) {
            Ok(request) => request,
            Err(error) => return ready(Err(error)).boxed(),
        };
        let found = completer.clone().call(request, context);
        Box::pin(async move { found.await.map(Completion::outcome).map_err(ToolFailure::into_error) })
    })
}

fn request(call: &Call) -> Result<CompletionRequest, ToolError> {
    let member = |name: &str| call.params.get(name)?.to_object().ok();
    let argument = member("argument").unwrap_or_default();
    let text = |name: &str| argument.get_str(name).map(|text| text.into_owned());
    let (Some(name), Some(value)) = (text("name"), text("value")) else {
        let message = "A completion needs an `argument` with a `name` and a `value` that are texts";
        return Err(ToolError::new(Code::InvalidArguments, message));
    };
    let known = member("context").and_then(|context| context.get("arguments")?.to_object().ok());
    let known = known.unwrap_or_default();
    let known =
        known.iter().filter_map(|(name, value)| Some((name.into_owned(), value.to_str()?.into_owned())));
    Ok(CompletionRequest { argument: name, value, context: known.collect() })
}
