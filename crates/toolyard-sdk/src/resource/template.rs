//! Templates of resources that are too many to be listed.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::ready;
use serde::Serialize;
use serde_json::{Map, Value};
use toolyard_core::UriTemplate;

use super::{Cache, Defaults, TemplateHandler, Variables, not_found};
use crate::backend::BoxHandler;
use crate::content::Annotations;
use crate::icon::Icon;
use crate::setters::setters;

/// What is published of resources that are too many to be listed, for
/// [`Server::resource_template`](crate::Server::resource_template).
///
/// ```
/// use toolyard_sdk::{NotFound, ResourceTemplate, Server};
///
/// /// The variable of the template.
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
    /// Which URIs it stands for: a template of RFC 6570, such as `file:///{+path}`.
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What a model should know of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What all of these resources are, such as `text/markdown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Hints on how they are to be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Pictures for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// What else there is to say, under names with a prefix of your own.
    #[serde(rename = "_meta", skip_serializing_if = "Map::is_empty")]
    pub meta: Map<String, Value>,
    /// For how long clients may keep what they read, and who may.
    #[serde(skip)]
    pub cache: Cache,
}

impl ResourceTemplate {
    /// A template of URIs.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceTemplate;
    /// let files = ResourceTemplate::new("file:///{+path}", "files");
    /// ```
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri_template: uri_template.into(), name: name.into(), ..Self::default() }
    }

    setters! {
        /// Their name for people.
        ///
        /// ```
        /// # use toolyard_sdk::ResourceTemplate;
        /// let log = ResourceTemplate::new("log:///{day}", "log").title("The log");
        /// ```
        text title;

        /// What a model should know of them.
        ///
        /// ```
        /// # use toolyard_sdk::ResourceTemplate;
        /// let log = ResourceTemplate::new("log:///{day}", "log").description("One line for each call");
        /// ```
        text description;

        /// What all of them are. Contents that do not say it themselves are of this type.
        ///
        /// ```
        /// # use toolyard_sdk::ResourceTemplate;
        /// let log = ResourceTemplate::new("log:///{day}", "log").mime_type("text/plain");
        /// ```
        text mime_type;

        /// Hints on how they are to be used.
        ///
        /// ```
        /// # use toolyard_sdk::{Annotations, ResourceTemplate};
        /// let important = Annotations { priority: Some(0.9), ..Annotations::default() };
        /// let log = ResourceTemplate::new("log:///{day}", "log").annotations(important);
        /// ```
        some annotations: Annotations;

        /// One more picture for them.
        ///
        /// ```
        /// # use toolyard_sdk::{Icon, ResourceTemplate};
        /// let log = ResourceTemplate::new("log:///{day}", "log").icon(Icon::new("https://example.com/log.svg"));
        /// ```
        icon;

        /// Adds a member to `_meta`. Names with a prefix, such as `example.com/owner`, cannot clash with MCP's own.
        ///
        /// ```
        /// # use toolyard_sdk::ResourceTemplate;
        /// let log = ResourceTemplate::new("log:///{day}", "log").meta("example.com/owner", "team-log");
        /// ```
        meta;

        /// For how long clients may keep what they read, and who may; not at all if this is not called. A client that
        /// follows the resource reads it anew when it has changed.
        ///
        /// ```
        /// # use std::time::Duration;
        /// # use toolyard_sdk::{CacheScope, ResourceTemplate};
        /// let log = ResourceTemplate::new("log:///{day}", "log").cache(Duration::from_secs(60), CacheScope::Private);
        /// ```
        cache;
    }
}

/// What runs the calls of a template's resources. Where the template is none, nothing is ever found.
pub(crate) fn handler<M>(template: &ResourceTemplate, handler: impl TemplateHandler<M>) -> BoxHandler {
    let uris = UriTemplate::parse(&template.uri_template).ok();
    let defaults = Defaults::new(template.mime_type.as_deref(), template.cache);
    Arc::new(move |call, context| {
        let uri = call.target.name();
        let values = uris.as_ref().and_then(|uris| uris.matches(uri));
        let Some(values) = values else { return ready(Err(not_found(uri))).boxed() };
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let variables = Variables { uri: uri.to_string(), values };
        let (reply, defaults) = (handler.clone().call(variables, context.clone()), defaults.clone());
        Box::pin(async move { defaults.outcome(reply.await, &context) })
    })
}
