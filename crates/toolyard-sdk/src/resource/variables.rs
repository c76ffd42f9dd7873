//! Functions as template handlers, and the variables that they take.

use std::fmt;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde::de::DeserializeOwned;
use toolyard_core::{ErrorCode, ToolError};

use super::handler::ResourceOutput;
use super::reply::{IntoResource, ResourceReply};
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::function::{FirstParameter, HandlerFunction};
use crate::prompt::text_values;

/// A function that reads the resources of a template.
///
/// Implemented for functions and closures, `async` or not; do not implement it yourself. A handler takes
///
/// | parameters | |
/// | --- | --- |
/// | `()` | nothing |
/// | `(Values)` | the values of the variables in the URI, see below |
/// | `(Context)` | the context of the call: progress, log, questions to the client |
/// | `(Context, Values)` | both, the context first |
///
/// and returns a type that implements [`IntoResource`], such as `Option<String>` or `Result<Vec<u8>, ToolFailure>`.
///
/// `Values` is a struct that derives [`Deserialize`](serde::Deserialize), with a field for each variable; or a tuple of
/// the values in order; or a single `String`, number or other scalar, for a template with one variable; or
/// [`ResourceUri`], for the whole URI. If a value does not fit, the resource does not exist.
///
/// Values are percent-decoded and come from clients: `{name}` can be `..` or `a/b`. Check them before you use them as
/// file paths (MCP, server/resources, security considerations).
///
/// ```
/// use serde::Deserialize;
/// use toolyard_sdk::{NotFound, ResourceTemplate, Server};
///
/// #[derive(Deserialize)]
/// struct Page {
///     book: String,
///     number: u32,
/// }
///
/// async fn page(page: Page) -> Result<String, NotFound> {
///     if page.book == "rust" { Ok(format!("This is page {}.", page.number)) } else { Err(NotFound) }
/// }
///
/// # fn main() -> toolyard_sdk::Result<()> {
/// let pages = ResourceTemplate::new("books:///{book}/{number}", "pages").mime_type("text/plain");
/// let covers = ResourceTemplate::new("covers:///{book}", "covers");
/// let server = Server::new("library", "1.0.0")
///     .resource_template(pages, page)?
///     .resource_template(covers, async |book: String| format!("The cover of {book}"))?;
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a template handler",
    label = "cannot read the resources of a template",
    note = "see `toolyard_sdk::TemplateHandler` for what a handler takes and returns"
)]
pub trait TemplateHandler<Marker>: Clone + Send + Sync + 'static {
    /// Reads a resource.
    fn call(
        self,
        variables: UriVariables,
        context: Context,
    ) -> BoxFuture<'static, Result<ResourceReply, ToolFailure>>;
}

impl<F, P, R, K> TemplateHandler<(P, R, K)> for F
where
    F: HandlerFunction<P, Output = R>,
    P: TemplateParameters,
    R: ResourceOutput<K> + Send + 'static,
    R::Value: IntoResource + 'static,
{
    fn call(
        self,
        variables: UriVariables,
        context: Context,
    ) -> BoxFuture<'static, Result<ResourceReply, ToolFailure>> {
        let parameters = match P::take(variables, context) {
            Ok(parameters) => parameters,
            Err(error) => return ready(Err(error.into())).boxed(),
        };
        let running = R::run(move || HandlerFunction::call(self, parameters));
        Box::pin(async move { running.await.into_resource() })
    }
}

/// The values of the variables in a URI.
#[derive(Clone, PartialEq, Eq)]
pub struct UriVariables {
    /// The URI itself.
    pub(super) uri: String,
    /// The values of the variables that are present, in order.
    pub(super) values: Vec<(String, String)>,
}

/// Shows the names of the variables only.
impl fmt::Debug for UriVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.iter().map(|(name, _)| name)).finish()
    }
}

/// The whole requested URI, for template handlers that parse it themselves.
///
/// ```
/// use toolyard_sdk::{NotFound, ResourceUri};
///
/// async fn file(ResourceUri(uri): ResourceUri) -> Result<String, NotFound> {
///     uri.strip_prefix("notes:///").map(|name| format!("This is {name}.")).ok_or(NotFound)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUri(pub String);

/// The parameters of a template handler.
#[diagnostic::on_unimplemented(
    message = "a template handler cannot take `{Self}`",
    label = "cannot take `{Self}`",
    note = "a template handler takes nothing, the variables' values, `Context`, or `Context` and then the values"
)]
pub trait TemplateParameters: Send + Sized + 'static {
    /// Takes the parameters from a call.
    ///
    /// # Errors
    /// If a value does not fit.
    fn take(variables: UriVariables, context: Context) -> Result<Self, ToolError>;
}

impl TemplateParameters for () {
    fn take(_: UriVariables, _: Context) -> Result<Self, ToolError> {
        Ok(())
    }
}

impl TemplateParameters for (Context,) {
    fn take(_: UriVariables, context: Context) -> Result<Self, ToolError> {
        Ok((context,))
    }
}

impl<V: TemplateVariables> TemplateParameters for (V,) {
    fn take(variables: UriVariables, _: Context) -> Result<Self, ToolError> {
        Ok((V::read(variables)?,))
    }
}

impl<C: FirstParameter, V: TemplateVariables> TemplateParameters for (C, V) {
    fn take(variables: UriVariables, context: Context) -> Result<Self, ToolError> {
        Ok((C::of(&context), V::read(variables)?))
    }
}

/// The type of a template's variables: every type that is [`DeserializeOwned`], and [`ResourceUri`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the variables of a resource template",
    label = "not the variables of a template",
    note = "derive `serde::Deserialize` for `{Self}`, or take `ResourceUri`"
)]
pub trait TemplateVariables: Send + Sized + 'static {
    /// Reads the variables from a URI.
    ///
    /// # Errors
    /// If a value does not fit.
    fn read(variables: UriVariables) -> Result<Self, ToolError>;
}

impl<V: DeserializeOwned + Send + 'static> TemplateVariables for V {
    fn read(variables: UriVariables) -> Result<Self, ToolError> {
        let UriVariables { uri, values } = variables;
        text_values::read(values).map_err(|error| {
            ToolError::new(ErrorCode::ResourceNotFound, format!("Resource not found: {uri} ({error})"))
        })
    }
}

impl TemplateVariables for ResourceUri {
    fn read(variables: UriVariables) -> Result<Self, ToolError> {
        Ok(Self(variables.uri))
    }
}
