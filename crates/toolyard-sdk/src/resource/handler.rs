//! Functions as resource handlers.

use futures_util::future::BoxFuture;

use super::reply::{IntoResource, ResourceReply};
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::function::{HandlerFunction, handler_output};

/// A function that reads a resource.
///
/// Implemented for functions and closures, `async` or not; do not implement it yourself. A handler takes nothing or a
/// [`Context`], and returns a type that implements [`IntoResource`], such as `String` or `Result<Vec<u8>,
/// ToolFailure>`. The handlers of templates are [`TemplateHandler`](crate::TemplateHandler)s.
///
/// ```
/// use toolyard_sdk::{Resource, Server};
///
/// // Blocking code, which runs on a thread of its own.
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
/// Plain and `async` functions run like those of tools: see [`ToolHandler`](crate::ToolHandler).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource handler",
    label = "cannot read a resource",
    note = "see `toolyard_sdk::ResourceHandler` for what a handler takes and returns"
)]
pub trait ResourceHandler<Marker>: Clone + Send + Sync + 'static {
    /// Reads the resource.
    fn call(self, context: Context) -> BoxFuture<'static, Result<ResourceReply, ToolFailure>>;
}

impl<F, P, R, K> ResourceHandler<(P, R, K)> for F
where
    F: HandlerFunction<P, Output = R>,
    P: ResourceParameters,
    R: ResourceOutput<K> + Send + 'static,
    R::Value: IntoResource + 'static,
{
    fn call(self, context: Context) -> BoxFuture<'static, Result<ResourceReply, ToolFailure>> {
        let running = R::run(move || HandlerFunction::call(self, P::take(context)));
        Box::pin(async move { running.await.into_resource() })
    }
}

/// The parameters of a resource handler.
#[diagnostic::on_unimplemented(
    message = "a resource handler cannot take `{Self}`",
    label = "cannot take `{Self}`",
    note = "a resource handler takes nothing or a `Context`; a template handler may also take the variables"
)]
pub trait ResourceParameters: Send + Sized + 'static {
    /// Takes the parameters from a call.
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

handler_output! {
    /// The return value of a resource handler: a value or a future of one.
    #[diagnostic::on_unimplemented(
        message = "a resource handler cannot return `{Self}`",
        label = "returns `{Self}`",
        note = "a handler returns `String`, `&'static str`, `Vec<u8>`, `Bytes`, `Json<T>`, `ResourceContents`, \
                `Vec<ResourceContents>`, `ResourceReply`, `InputRequired`, or an `Option` or `Result` of one \
                of them; or a future of that"
    )]
    pub trait ResourceOutput of a handler: IntoResource
}
