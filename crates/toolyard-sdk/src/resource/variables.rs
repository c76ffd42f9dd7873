//! Functions as handlers of templates, and the variables that they take.

use std::fmt;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde::de::DeserializeOwned;
use toolyard_core::{Code, ToolError};

use super::handler::ResourceReturned;
use super::reply::{IntoResource, ResourceReply};
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::function::{FirstParameter, Function};
use crate::prompt::texts;

/// A function that can read the resources of a template.
///
/// You do not implement this: it is there for functions and closures, `async` or not, that take
///
/// | parameters | |
/// | --- | --- |
/// | `()` | nothing |
/// | `(Values)` | what stands in the URI for the variables, see below |
/// | `(Context)` | what is around the call: progress, log, questions to the client |
/// | `(Context, Values)` | both; the context comes first |
///
/// and return what is [`IntoResource`], such as `Option<String>` or `Result<Vec<u8>, ToolFailure>`.
///
/// `Values` is a struct that derives [`Deserialize`](serde::Deserialize), with a field for each variable; or a tuple
/// of the values in their order; or one `String`, number or the like, for a template with one variable; or [`Uri`],
/// for all that is not to be taken apart. Where a value does not fit, there is no such resource.
///
/// Values are percent-decoded, and written by clients: `{name}` can be `..` or `a/b`. Check them before they become
/// paths of files (MCP, server/resources, security considerations).
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
    message = "`{Self}` is not a handler of a resource template",
    label = "cannot read the resources of a template",
    note = "see `toolyard_sdk::TemplateHandler` for what a handler takes and returns"
)]
pub trait TemplateHandler<Marker>: Clone + Send + Sync + 'static {
    /// Reads a resource.
    fn call(
        self,
        variables: Variables,
        context: Context,
    ) -> BoxFuture<'static, Result<ResourceReply, ToolFailure>>;
}

impl<F, P, R, K> TemplateHandler<(P, R, K)> for F
where
    F: Function<P, Output = R>,
    P: TemplateParameters,
    R: ResourceReturned<K> + Send + 'static,
    R::Value: IntoResource + 'static,
{
    fn call(
        self,
        variables: Variables,
        context: Context,
    ) -> BoxFuture<'static, Result<ResourceReply, ToolFailure>> {
        let parameters = match P::take(variables, context) {
            Ok(parameters) => parameters,
            Err(error) => return ready(Err(error.into())).boxed(),
        };
        let returned = R::run(move || Function::call(self, parameters));
        Box::pin(async move { returned.await.into_resource() })
    }
}

/// What stands in a URI.
#[derive(Clone, PartialEq, Eq)]
pub struct Variables {
    /// The URI itself.
    pub(super) uri: String,
    /// The values of the variables that there are, in their order.
    pub(super) values: Vec<(String, String)>,
}

/// Shows the names of the variables only.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.iter().map(|(name, _)| name)).finish()
    }
}

/// The whole URI that is read, for handlers of templates that take it apart themselves.
///
/// ```
/// use toolyard_sdk::{NotFound, Uri};
///
/// async fn file(Uri(uri): Uri) -> Result<String, NotFound> {
///     uri.strip_prefix("notes:///").map(|name| format!("This is {name}.")).ok_or(NotFound)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uri(pub String);

/// What a handler of a template may take.
#[diagnostic::on_unimplemented(
    message = "a handler of a resource template cannot take `{Self}`",
    label = "cannot take `{Self}`",
    note = "a handler of a template takes nothing, the variables' values, `Context`, or `Context` and then the values"
)]
pub trait TemplateParameters: Send + Sized + 'static {
    /// Takes them from a call.
    ///
    /// # Errors
    /// When a value does not fit.
    fn take(variables: Variables, context: Context) -> Result<Self, ToolError>;
}

impl TemplateParameters for () {
    fn take(_: Variables, _: Context) -> Result<Self, ToolError> {
        Ok(())
    }
}

impl TemplateParameters for (Context,) {
    fn take(_: Variables, context: Context) -> Result<Self, ToolError> {
        Ok((context,))
    }
}

impl<V: TemplateVariables> TemplateParameters for (V,) {
    fn take(variables: Variables, _: Context) -> Result<Self, ToolError> {
        Ok((V::read(variables)?,))
    }
}

impl<C: FirstParameter, V: TemplateVariables> TemplateParameters for (C, V) {
    fn take(variables: Variables, context: Context) -> Result<Self, ToolError> {
        Ok((C::of(&context), V::read(variables)?))
    }
}

/// A type that a template's variables can be read into: whatever is [`DeserializeOwned`], and [`Uri`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the variables of a resource template",
    label = "not the variables of a template",
    note = "derive `serde::Deserialize` for `{Self}`, or take `Uri`"
)]
pub trait TemplateVariables: Send + Sized + 'static {
    /// Takes them from a URI.
    ///
    /// # Errors
    /// When a value does not fit.
    fn read(variables: Variables) -> Result<Self, ToolError>;
}

impl<V: DeserializeOwned + Send + 'static> TemplateVariables for V {
    fn read(variables: Variables) -> Result<Self, ToolError> {
        let Variables { uri, values } = variables;
        texts::read(values).map_err(|error| {
            ToolError::new(Code::ResourceNotFound, format!("Resource not found: {uri} ({error})"))
        })
    }
}

impl TemplateVariables for Uri {
    fn read(variables: Variables) -> Result<Self, ToolError> {
        Ok(Self(variables.uri))
    }
}
