//! Resources: data that clients read by its URI (MCP, server/resources).

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
use toolyard_core::{Code, Outcome, ToolError};

use crate::backend::BoxHandler;
use crate::content::Annotations;
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::icon::Icon;
use crate::setters::setters;

pub use handler::{ResourceHandler, ResourceParameters, ResourceReturned};
pub use reply::{IntoResource, NotFound, ResourceContents, ResourceReply};
pub use template::ResourceTemplate;
pub(crate) use template::handler as template_handler;
pub use variables::{TemplateHandler, TemplateParameters, TemplateVariables, Uri, Variables};

/// Who may keep what was read (MCP 2026-07-28, server/utilities/caching).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheScope {
    /// Everybody may, and give it to anybody else: it is the same for all users.
    Public,
    /// Only who reads it: it may be another thing for another user.
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

/// For how long what was read may be kept, and by whom. By default it may not be kept at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cache {
    /// For how long.
    pub ttl: Duration,
    /// By whom.
    pub scope: CacheScope,
}

/// What is published of a resource, for [`Server::resource`](crate::Server::resource).
///
/// What is `None` or empty is left out.
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
    /// By what it is read.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What a model should know of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it is, such as `text/markdown`. Contents that do not say it themselves are of this type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Hints on how it is to be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Pictures for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// What else there is to say, under names with a prefix of your own.
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// For how long clients may keep what they read, and who may.
    #[serde(skip)]
    pub cache: Cache,
}

impl Resource {
    /// A resource at this URI.
    ///
    /// ```
    /// # use toolyard_sdk::Resource;
    /// let log = Resource::new("log:///today", "Today's log");
    /// ```
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), ..Self::default() }
    }

    setters! {
        /// Its name for people.
        ///
        /// ```
        /// # use toolyard_sdk::Resource;
        /// let log = Resource::new("log:///today", "log").title("The log");
        /// ```
        text title;

        /// What a model should know of it.
        ///
        /// ```
        /// # use toolyard_sdk::Resource;
        /// let log = Resource::new("log:///today", "log").description("One line for each call");
        /// ```
        text description;

        /// What it is. Contents that do not say it themselves are of this type.
        ///
        /// ```
        /// # use toolyard_sdk::Resource;
        /// let log = Resource::new("log:///today", "log").mime_type("text/plain");
        /// ```
        text mime_type;

        /// Hints on how it is to be used.
        ///
        /// ```
        /// # use toolyard_sdk::{Annotations, Resource};
        /// let important = Annotations { priority: Some(0.9), ..Annotations::default() };
        /// let log = Resource::new("log:///today", "log").annotations(important);
        /// ```
        some annotations: Annotations;

        /// One more picture for it.
        ///
        /// ```
        /// # use toolyard_sdk::{Icon, Resource};
        /// let log = Resource::new("log:///today", "log").icon(Icon::new("https://example.com/log.svg"));
        /// ```
        icon;

        /// Adds a member to `_meta`. Names with a prefix, such as `example.com/owner`, cannot clash with MCP's own.
        ///
        /// ```
        /// # use toolyard_sdk::Resource;
        /// let log = Resource::new("log:///today", "log").meta("example.com/owner", "team-log");
        /// ```
        meta;

        /// For how long clients may keep what they read, and who may; not at all if this is not called. A client that
        /// follows the resource reads it anew when it has changed.
        ///
        /// ```
        /// # use std::time::Duration;
        /// # use toolyard_sdk::{CacheScope, Resource};
        /// let log = Resource::new("log:///today", "log").cache(Duration::from_secs(60), CacheScope::Private);
        /// ```
        cache;
    }

    /// Its size in bytes.
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

/// What contents say of themselves when their handler does not.
#[derive(Debug, Clone)]
struct Defaults {
    mime_type: Option<Arc<str>>,
    cache: Cache,
}

impl Defaults {
    fn new(mime_type: Option<&str>, cache: Cache) -> Self {
        Self { mime_type: mime_type.map(Into::into), cache }
    }

    /// What the call came to.
    fn outcome(
        &self,
        reply: Result<ResourceReply, ToolFailure>,
        context: &Context,
    ) -> Result<Outcome, ToolError> {
        reply.map_err(ToolFailure::into_error).and_then(|reply| reply.outcome(self, context)).map_err(
            |error| {
                let unnamed = error.code() == Code::ResourceNotFound && error.message() == reply::NOT_FOUND;
                if unnamed { not_found(context.request_name()) } else { error }
            },
        )
    }
}

/// What runs the calls of a resource.
pub(crate) fn handler<M>(resource: &Resource, handler: impl ResourceHandler<M>) -> BoxHandler {
    let defaults = Defaults::new(resource.mime_type.as_deref(), resource.cache);
    Arc::new(move |_, context| {
        let (reply, defaults) = (handler.clone().call(context.clone()), defaults.clone());
        Box::pin(async move { defaults.outcome(reply.await, &context) })
    })
}

fn not_found(uri: &str) -> ToolError {
    ToolError::new(Code::ResourceNotFound, format!("Resource not found: {uri}"))
}
