//! Resources: data that clients read by URI (MCP, server/resources).

mod handler;
mod reply;
mod template;
#[cfg(test)]
mod tests;
mod variables;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};
use toolyard_core::{ErrorCode, Outcome, ToolError};

use crate::backend::BoxHandler;
use crate::content::Annotations;
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::icon::Icon;
use crate::setters::setters;

pub use handler::{ResourceHandler, ResourceOutput, ResourceParameters};
pub use reply::{IntoResource, NotFound, ResourceContents, ResourceReply};
pub use template::ResourceTemplate;
pub(crate) use template::handler as template_handler;
pub use variables::{ResourceUri, TemplateHandler, TemplateParameters, TemplateVariables, UriVariables};

/// The sharing of cached contents (MCP 2026-07-28, server/utilities/caching).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheScope {
    /// Shared caches may store the contents: they are the same for all users.
    Public,
    /// Only the reader may store the contents: they may differ between users.
    #[default]
    Private,
}

impl CacheScope {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}

/// Time and scope for which contents may be cached. Default: no caching.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CachePolicy {
    /// Time to live.
    pub ttl: Duration,
    /// Sharing of the cached contents.
    pub scope: CacheScope,
}

/// The definition of a resource, for [`Server::resource`](crate::Server::resource).
///
/// Members that are `None` or empty are left out.
///
/// ```
/// use std::time::Duration;
/// use toolyard_sdk::{CacheScope, Resource, Server};
///
/// # fn main() -> toolyard_sdk::Result<()> {
/// let readme = Resource::new("file:///README.md", "README.md")
///     .description("What this is")
///     .mime_type("text/markdown")
///     .cache(Duration::from_secs(60), CacheScope::Public);
/// let server = Server::new("docs", "1.0.0").resource(readme, async || "# Toolyard")?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// The URI.
    pub uri: String,
    /// The name.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The MIME type, such as `text/markdown`. The default for contents without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Hints on the use of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Icons of the resource.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Additional metadata, under names with a prefix of your own.
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// Caching by clients.
    #[serde(skip)]
    pub cache: CachePolicy,
}

impl Resource {
    /// A resource with a URI and a name.
    ///
    /// ```
    /// # use toolyard_sdk::Resource;
    /// let log = Resource::new("log:///today", "Today's log");
    /// ```
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), ..Self::default() }
    }

    setters! {
        /// Sets the display name.
        ///
        /// ```
        /// # use toolyard_sdk::Resource;
        /// let log = Resource::new("log:///today", "log").title("The log");
        /// ```
        text title;

        /// Sets the description for the model.
        ///
        /// ```
        /// # use toolyard_sdk::Resource;
        /// let log = Resource::new("log:///today", "log").description("One line for each call");
        /// ```
        text description;

        /// Sets the MIME type, the default for contents without one.
        ///
        /// ```
        /// # use toolyard_sdk::Resource;
        /// let log = Resource::new("log:///today", "log").mime_type("text/plain");
        /// ```
        text mime_type;

        /// Sets hints on the use of the resource.
        ///
        /// ```
        /// # use toolyard_sdk::{Annotations, Resource};
        /// let important = Annotations { priority: Some(0.9), ..Annotations::default() };
        /// let log = Resource::new("log:///today", "log").annotations(important);
        /// ```
        some annotations: Annotations;

        /// Adds an icon.
        ///
        /// ```
        /// # use toolyard_sdk::{Icon, Resource};
        /// let log = Resource::new("log:///today", "log").icon(Icon::new("https://example.com/log.svg"));
        /// ```
        icon;

        /// Adds a member to `_meta`. Names with a prefix, such as `example.com/owner`, cannot clash with MCP's own
        /// names.
        ///
        /// ```
        /// # use toolyard_sdk::Resource;
        /// let log = Resource::new("log:///today", "log").meta("example.com/owner", "team-log");
        /// ```
        meta;

        /// Sets the caching by clients; by default they do not cache. A subscribed client reads the resource again
        /// after a change.
        ///
        /// ```
        /// # use std::time::Duration;
        /// # use toolyard_sdk::{CacheScope, Resource};
        /// let log = Resource::new("log:///today", "log").cache(Duration::from_secs(60), CacheScope::Private);
        /// ```
        cache;
    }

    /// Sets the size in bytes.
    ///
    /// ```
    /// # use toolyard_sdk::Resource;
    /// let picture = Resource::new("img:///logo", "logo").mime_type("image/png").size(4711);
    /// ```
    #[must_use]
    pub const fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }
}

/// Defaults for contents whose handler does not set them.
#[derive(Debug, Clone)]
struct ContentsDefaults {
    mime_type: Option<Arc<str>>,
    cache: CachePolicy,
}

impl ContentsDefaults {
    fn new(mime_type: Option<&str>, cache: CachePolicy) -> Self {
        Self { mime_type: mime_type.map(Into::into), cache }
    }

    /// The outcome of the call.
    fn outcome(
        &self,
        reply: Result<ResourceReply, ToolFailure>,
        context: &Context,
    ) -> Result<Outcome, ToolError> {
        reply.map_err(ToolFailure::into_error).and_then(|reply| reply.outcome(self, context)).map_err(
            |error| {
                let unnamed =
                    error.code() == ErrorCode::ResourceNotFound && error.message() == reply::NOT_FOUND;
                if unnamed { not_found(context.request_name()) } else { error }
            },
        )
    }
}

/// Returns the handler of a resource.
pub(crate) fn handler<M>(resource: &Resource, handler: impl ResourceHandler<M>) -> BoxHandler {
    let defaults = ContentsDefaults::new(resource.mime_type.as_deref(), resource.cache);
    Arc::new(move |_, context| {
        let (reply, defaults) = (handler.clone().call(context.clone()), defaults.clone());
        Box::pin(async move { defaults.outcome(reply.await, &context) })
    })
}

fn not_found(uri: &str) -> ToolError {
    ToolError::new(ErrorCode::ResourceNotFound, format!("Resource not found: {uri}"))
}
