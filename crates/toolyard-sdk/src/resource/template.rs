//! Resource templates, for resources that are too many to list.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::ready;
use serde::Serialize;
use serde_json::{Map, Value};
use toolyard_core::UriTemplate;

use super::{CachePolicy, ContentsDefaults, TemplateHandler, UriVariables, not_found};
use crate::backend::BoxHandler;
use crate::content::Annotations;
use crate::icon::Icon;
use crate::setters::setters;

/// The definition of a resource template, for [`Server::resource_template`](crate::Server::resource_template).
///
/// ```
/// use toolyard_sdk::{NotFound, ResourceTemplate, Server};
///
/// /// Takes the variable of the template.
/// fn user(id: u32) -> Result<String, NotFound> {
///     if id == 1 { Ok("root".to_owned()) } else { Err(NotFound) }
/// }
///
/// # fn main() -> toolyard_sdk::Result<()> {
/// let users = ResourceTemplate::new("users:///{id}", "users").mime_type("text/plain");
/// let server = Server::new("users", "1.0.0").resource_template(users, user)?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The URI template (RFC 6570), such as `file:///{+path}`.
    pub uri_template: String,
    /// The name.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The MIME type of all these resources, such as `text/markdown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Hints on the use of the resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Icons of the template.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// Additional metadata, under names with a prefix of your own.
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// Caching by clients.
    #[serde(skip)]
    pub cache: CachePolicy,
}

impl ResourceTemplate {
    /// A template with a URI template and a name.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceTemplate;
    /// let files = ResourceTemplate::new("file:///{+path}", "files");
    /// ```
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri_template: uri_template.into(), name: name.into(), ..Self::default() }
    }

    setters! {
        /// Sets the display name.
        ///
        /// ```
        /// # use toolyard_sdk::ResourceTemplate;
        /// let log = ResourceTemplate::new("log:///{day}", "log").title("The log");
        /// ```
        text title;

        /// Sets the description for the model.
        ///
        /// ```
        /// # use toolyard_sdk::ResourceTemplate;
        /// let log = ResourceTemplate::new("log:///{day}", "log").description("One line for each call");
        /// ```
        text description;

        /// Sets the MIME type of all resources, the default for contents without one.
        ///
        /// ```
        /// # use toolyard_sdk::ResourceTemplate;
        /// let log = ResourceTemplate::new("log:///{day}", "log").mime_type("text/plain");
        /// ```
        text mime_type;

        /// Sets hints on the use of the resources.
        ///
        /// ```
        /// # use toolyard_sdk::{Annotations, ResourceTemplate};
        /// let important = Annotations { priority: Some(0.9), ..Annotations::default() };
        /// let log = ResourceTemplate::new("log:///{day}", "log").annotations(important);
        /// ```
        some annotations: Annotations;

        /// Adds an icon.
        ///
        /// ```
        /// # use toolyard_sdk::{Icon, ResourceTemplate};
        /// let log = ResourceTemplate::new("log:///{day}", "log").icon(Icon::new("https://example.com/log.svg"));
        /// ```
        icon;

        /// Adds a member to `_meta`. Names with a prefix, such as `example.com/owner`, cannot clash with MCP's own
        /// names.
        ///
        /// ```
        /// # use toolyard_sdk::ResourceTemplate;
        /// let log = ResourceTemplate::new("log:///{day}", "log").meta("example.com/owner", "team-log");
        /// ```
        meta;

        /// Sets the caching by clients; by default they do not cache. A subscribed client reads the resource again
        /// after a change.
        ///
        /// ```
        /// # use std::time::Duration;
        /// # use toolyard_sdk::{CacheScope, ResourceTemplate};
        /// let log = ResourceTemplate::new("log:///{day}", "log").cache(Duration::from_secs(60), CacheScope::Private);
        /// ```
        cache;
    }
}

/// Returns the handler of a template's resources. An invalid template matches no URI.
pub(crate) fn handler<M>(template: &ResourceTemplate, handler: impl TemplateHandler<M>) -> BoxHandler {
    let uris = UriTemplate::parse(&template.uri_template).ok();
    let defaults = ContentsDefaults::new(template.mime_type.as_deref(), template.cache);
    Arc::new(move |call, context| {
        let uri = call.target.name();
        let values = uris.as_ref().and_then(|uris| uris.matches(uri));
        let Some(values) = values else { return ready(Err(not_found(uri))).boxed() };
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let variables = UriVariables { uri: uri.to_string(), values };
        let (reply, defaults) = (handler.clone().call(variables, context.clone()), defaults.clone());
        Box::pin(async move { defaults.outcome(reply.await, &context) })
    })
}
