//! Return types of resource handlers.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use toolyard_core::{CallOutput, ErrorCode, Json, Object, Outcome, ToolError};

use super::{CachePolicy, CacheScope, ContentsDefaults};
use crate::context::Context;
use crate::failure::ToolFailure;
use crate::input_required::InputRequired;
use crate::reply;

/// A value that a resource handler may return.
///
/// | type | answer |
/// | --- | --- |
/// | `String`, `&'static str`, `Cow<'static, str>` | a text |
/// | `Vec<u8>`, [`Bytes`], `&'static [u8]` | bytes |
/// | [`Json<T>`](crate::Json) | a JSON text |
/// | [`ResourceContents`], `Vec<ResourceContents>` | one or more contents, with their own URIs and types |
/// | [`ResourceReply`] | contents with their caching |
/// | `Option<R>` | `R`, or [`NotFound`] |
/// | [`InputRequired`] | questions to the client; the handler is called again with the answers |
/// | `Result<R, E>` | `R`, or a JSON-RPC error; `E` is [`NotFound`] or any error, see [`ToolFailure`] |
#[diagnostic::on_unimplemented(
    message = "a resource cannot be read as `{Self}`",
    label = "`{Self}` is not the contents of a resource",
    note = "a resource handler returns `String`, `&'static str`, `Vec<u8>`, `Bytes`, `Json<T>`, \
            `ResourceContents`, `Vec<ResourceContents>`, `ResourceReply`, `InputRequired`, or an `Option` or `Result` \
            of one of them"
)]
pub trait IntoResource {
    /// Converts the value into a reply.
    ///
    /// # Errors
    /// If the resource cannot be read.
    fn into_resource(self) -> Result<ResourceReply, ToolFailure>;
}

/// Error for a URI without a resource: as the error of a handler's `Result`, or with `?`.
///
/// ```
/// use toolyard_sdk::{NotFound, ToolFailure};
///
/// async fn page(number: usize) -> Result<String, ToolFailure> {
///     let book = std::fs::read_to_string("book.txt")?;
///     Ok(book.split('\x0c').nth(number).ok_or(NotFound)?.to_owned())
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotFound;

pub(super) const NOT_FOUND: &str = "Resource not found";

/// Allows `?` to convert it into a [`ToolFailure`].
impl From<NotFound> for Box<dyn Error + Send + Sync> {
    fn from(_: NotFound) -> Self {
        Box::new(ToolError::new(ErrorCode::ResourceNotFound, NOT_FOUND))
    }
}

/// Text or binary contents, with a URI and a MIME type if they differ from those of the resource.
///
/// ```
/// use toolyard_sdk::ResourceContents;
///
/// async fn folder() -> Vec<ResourceContents> {
///     vec![
///         ResourceContents::text("# Hello").uri("docs:///hello.md").mime_type("text/markdown"),
///         ResourceContents::blob(b"\x89PNG...").uri("docs:///logo.png").mime_type("image/png"),
///     ]
/// }
/// ```
#[derive(Debug, Clone)]
pub struct ResourceContents {
    uri: Option<String>,
    mime_type: Option<String>,
    /// `text` or `blob`.
    member: &'static str,
    value: Json,
    meta: Object,
}

impl ResourceContents {
    /// Text contents.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceContents;
    /// let contents = ResourceContents::text("fn main() {}").mime_type("text/x-rust");
    /// ```
    #[must_use]
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::new("text", Json::string(text.as_ref()))
    }

    /// Binary contents.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceContents;
    /// let contents = ResourceContents::blob([0x47, 0x49, 0x46]).mime_type("image/gif");
    /// ```
    #[must_use]
    pub fn blob(bytes: impl AsRef<[u8]>) -> Self {
        Self::new("blob", Json::string(&STANDARD.encode(bytes)))
    }

    fn new(member: &'static str, value: Json) -> Self {
        Self { uri: None, mime_type: None, member, value, meta: Object::new() }
    }

    /// Sets the URI, if it differs from the requested one.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceContents;
    /// let contents = ResourceContents::text("# Hello").uri("docs:///hello.md");
    /// ```
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// Sets the MIME type, if it differs from that of the resource.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceContents;
    /// let contents = ResourceContents::text("a,b").mime_type("text/csv");
    /// ```
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a member to `_meta`. Names with a prefix, such as `example.com/line`, cannot clash with MCP's own names.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceContents;
    /// let contents = ResourceContents::text("x = 1").meta("example.com/line", 7);
    /// ```
    #[must_use]
    pub fn meta(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.meta.set(name, Json::from_value(&value.into()));
        self
    }

    fn to_json(&self, uri: &str, mime_type: Option<&str>) -> Json {
        let mut contents = Object::new().with("uri", Json::string(self.uri.as_deref().unwrap_or(uri)));
        if let Some(mime_type) = self.mime_type.as_deref().or(mime_type) {
            contents.set("mimeType", Json::string(mime_type));
        }
        contents.set(self.member, self.value.clone());
        if !self.meta.is_empty() {
            contents.set("_meta", self.meta.to_json());
        }
        contents.to_json()
    }
}

/// The contents of a resource, built step by step.
///
/// ```
/// use std::time::Duration;
/// use toolyard_sdk::{CacheScope, ResourceContents, ResourceReply};
///
/// async fn rates() -> ResourceReply {
///     ResourceReply::new()
///         .contents(ResourceContents::text("1.08"))
///         .cache(Duration::from_secs(10), CacheScope::Public)
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct ResourceReply {
    contents: Vec<ResourceContents>,
    cache: Option<CachePolicy>,
    meta: Object,
    asks: Option<InputRequired>,
}

impl ResourceReply {
    /// A reply without contents, for an empty resource; a missing resource is [`NotFound`].
    ///
    /// ```
    /// # use toolyard_sdk::ResourceReply;
    /// let empty = ResourceReply::new();
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds contents.
    ///
    /// ```
    /// # use toolyard_sdk::{ResourceContents, ResourceReply};
    /// let reply = ResourceReply::new().contents(ResourceContents::text("hello"));
    /// ```
    #[must_use]
    pub fn contents(mut self, contents: ResourceContents) -> Self {
        self.contents.push(contents);
        self
    }

    /// Sets the caching by the client, instead of that of the resource.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use toolyard_sdk::{CacheScope, ResourceReply};
    /// let reply = ResourceReply::new().cache(Duration::from_secs(3600), CacheScope::Private);
    /// ```
    #[must_use]
    pub const fn cache(mut self, ttl: Duration, scope: CacheScope) -> Self {
        self.cache = Some(CachePolicy { ttl, scope });
        self
    }

    /// Adds a member to `_meta`. Names with a prefix, such as `example.com/trace`, cannot clash with MCP's own names.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceReply;
    /// let reply = ResourceReply::new().meta("example.com/version", 3);
    /// ```
    #[must_use]
    pub fn meta(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.meta.set(name, Json::from_value(&value.into()));
        self
    }

    /// The outcome of the call.
    pub(super) fn outcome(
        self,
        defaults: &ContentsDefaults,
        context: &Context,
    ) -> Result<Outcome, ToolError> {
        if let Some(asks) = self.asks {
            return asks.outcome(context);
        }
        let (uri, mime_type) = (context.request_name(), defaults.mime_type.as_deref());
        let contents: Vec<_> =
            self.contents.iter().map(|contents| contents.to_json(uri, mime_type)).collect();
        // A reply that depends on answers must not be cached (MCP 2026-07-28, server/utilities/caching, cache key).
        let cache =
            if context.is_retry() { CachePolicy::default() } else { self.cache.unwrap_or(defaults.cache) };
        let ttl = u64::try_from(cache.ttl.as_millis()).unwrap_or(u64::MAX);
        let mut body = Object::new()
            .with("contents", Json::array(&contents))
            .with("ttlMs", Json::unsigned(ttl))
            .with("cacheScope", Json::string(cache.scope.as_str()));
        if !self.meta.is_empty() {
            body.set("_meta", self.meta.to_json());
        }
        Ok(Outcome::Done(CallOutput { body, is_error: false }))
    }
}

impl<R: IntoResource, E: Into<ToolFailure>> IntoResource for Result<R, E> {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        self.map_err(Into::into)?.into_resource()
    }
}

impl<R: IntoResource> IntoResource for Option<R> {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        self.ok_or(NotFound)?.into_resource()
    }
}

impl IntoResource for ResourceReply {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        Ok(self)
    }
}

impl IntoResource for ResourceContents {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        Ok(ResourceReply::new().contents(self))
    }
}

impl IntoResource for Vec<ResourceContents> {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        Ok(ResourceReply { contents: self, ..ResourceReply::default() })
    }
}

impl IntoResource for String {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        ResourceContents::text(self).into_resource()
    }
}

impl IntoResource for &'static str {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        ResourceContents::text(self).into_resource()
    }
}

impl IntoResource for Cow<'static, str> {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        ResourceContents::text(self).into_resource()
    }
}

impl IntoResource for Vec<u8> {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        ResourceContents::blob(self).into_resource()
    }
}

impl IntoResource for Bytes {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        ResourceContents::blob(self).into_resource()
    }
}

impl IntoResource for &'static [u8] {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        ResourceContents::blob(self).into_resource()
    }
}

impl<T: Serialize> IntoResource for reply::Json<T> {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        ResourceContents::text(serde_json::to_string(&self.0)?).into_resource()
    }
}

impl IntoResource for InputRequired {
    fn into_resource(self) -> Result<ResourceReply, ToolFailure> {
        Ok(self.into())
    }
}

impl From<InputRequired> for ResourceReply {
    fn from(asks: InputRequired) -> Self {
        Self { asks: Some(asks), ..Self::default() }
    }
}
