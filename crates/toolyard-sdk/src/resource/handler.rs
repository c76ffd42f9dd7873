//! Functions as handlers of resources.

use futures_util::future::BoxFuture;

use super::reply::{IntoResource, ResourceReply};
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::function::{Function, returned};

/// A function that can read a resource.
///
/// You do not implement this: it is there for functions and closures, `async` or not, that take nothing, or a
/// [`Context`], and return what is [`IntoResource`], such as `String` or `Result<Vec<u8>, ToolFailure>`. Those of
/// templates are [`TemplateHandler`](crate::TemplateHandler)s.
///
/// ```
/// use toolyard_sdk::{Resource, Server};
///
/// // Blocks, and so has a thread for itself while it runs.
/// fn hosts() -> std::io::Result<String> {
///     std::fs::read_to_string("/etc/hosts")
/// }
///
/// # fn main() -> toolyard_sdk::Result<()> {
/// let server = Server::new("system", "1.0.0")
///     .resource(Resource::new("file:///etc/hosts", "hosts").mime_type("text/plain"), hosts)?
///     .resource(Resource::new("system:///version", "version"), async || "1.0.0")?;
/// # Ok(()) }
/// ```
///
/// Plain functions and `async` ones run as those of tools do: see [`ToolHandler`](crate::ToolHandler).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of resources",
    label = "cannot read a resource",
    note = "see `toolyard_sdk::ResourceHandler` for what a handler takes and returns"
)]
pub trait ResourceHandler<Marker>: Clone + Send + Sync + 'static {
    /// Reads the resource.
    fn call(self, context: Context) -> BoxFuture<'static, Result<ResourceReply, ToolFailure>>;
}

impl<F, P, R, K> ResourceHandler<(P, R, K)> for F
where
    F: Function<P, Output = R>,
    P: ResourceParameters,
    R: ResourceReturned<K> + Send + 'static,
    R::Value: IntoResource + 'static,
{
    fn call(self, context: Context) -> BoxFuture<'static, Result<ResourceReply, ToolFailure>> {
        let returned = R::run(move || Function::call(self, P::take(context)));
        Box::pin(async move { returned.await.into_resource() })
    }
}

/// What a handler of resources may take.
#[diagnostic::on_unimplemented(
    message = "a handler of resources cannot take `{Self}`",
    label = "cannot take `{Self}`",
    note = "a handler of a resource takes nothing, or a `Context`; one of a template may take its variables, too"
)]
pub trait ResourceParameters: Send + Sized + 'static {
    /// Takes them from a call.
    #[must_use]
    fn take(context: Context) -> Self;
}

impl ResourceParameters for () {
    fn take(_: Context) -> Self {}
}

impl ResourceParameters for (Context,) {
    fn take(context: Context) -> Self {
        (context,)
    }
}

returned! {
    /// What a handler returns: a value, or a future of one.
    #[diagnostic::on_unimplemented(
        message = "a handler of resources cannot return `{Self}`",
        label = "returns `{Self}`",
        note = "a handler returns `String`, `&'static str`, `Vec<u8>`, `Bytes`, `Json<T>`, `ResourceContents`, \
                `Vec<ResourceContents>`, `ResourceReply`, `InputRequired`, or an `Option` or `Result` of one \
                of them; or a future of that"
    )]
    pub trait ResourceReturned of a handler: IntoResource
}
