//! Content blocks of results, prompts and sampling messages.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use toolyard_core::{Json, JsonError, Object};

/// A text, an image, audio, a link to a resource, or an embedded resource.
///
/// ```
/// use toolyard_sdk::{Content, Role};
///
/// let chart = Content::image(b"\x89PNG...", "image/png").audience([Role::User]).priority(0.9);
/// assert_eq!(chart.kind(), "image");
/// assert_eq!(Content::from("plain text"), Content::text("plain text"));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Content {
    block: Object,
}

/// The intended audience of content, or the speaker in a prompt or a sampling message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name in MCP's JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// Hints on the use of content or a resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// The intended audience; empty if unspecified.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// The importance, from 0 (optional) to 1 (required).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// Time of the last change in ISO 8601, such as `2026-01-12T15:00:58Z`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Content {
    /// A text.
    ///
    /// ```
    /// # use toolyard_sdk::Content;
    /// assert_eq!(Content::text("four").as_text().as_deref(), Some("four"));
    /// ```
    #[must_use]
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::block("text").with("text", Json::string(text.as_ref()))
    }

    /// An image of the given MIME type, such as `image/png`.
    ///
    /// ```
    /// # use toolyard_sdk::Content;
    /// assert_eq!(Content::image(b"GIF89a", "image/gif").bytes().unwrap(), b"GIF89a");
    /// ```
    #[must_use]
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: &str) -> Self {
        Self::block("image").with("data", encoded(bytes)).with("mimeType", Json::string(mime_type))
    }

    /// Audio of the given MIME type, such as `audio/wav`.
    ///
    /// ```
    /// # use toolyard_sdk::Content;
    /// assert_eq!(Content::audio(b"RIFF", "audio/wav").mime_type().as_deref(), Some("audio/wav"));
    /// ```
    #[must_use]
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: &str) -> Self {
        Self::block("audio").with("data", encoded(bytes)).with("mimeType", Json::string(mime_type))
    }

    /// A link to a resource, which the client may read. [`ResourceLink`] has more fields.
    ///
    /// ```
    /// # use toolyard_sdk::Content;
    /// assert_eq!(Content::resource_link("file:///log.txt", "log").kind(), "resource_link");
    /// ```
    #[must_use]
    pub fn resource_link(uri: &str, name: &str) -> Self {
        ResourceLink::new(uri, name).into()
    }

    /// An embedded text resource.
    ///
    /// ```
    /// # use toolyard_sdk::Content;
    /// let page = Content::embedded_text("doc:///intro", "text/markdown", "# Hello");
    /// assert_eq!(page.kind(), "resource");
    /// ```
    #[must_use]
    pub fn embedded_text(uri: &str, mime_type: &str, text: &str) -> Self {
        Self::embedded(uri, mime_type, "text", Json::string(text))
    }

    /// An embedded binary resource.
    ///
    /// ```
    /// # use toolyard_sdk::Content;
    /// let icon = Content::embedded_blob("doc:///icon", "image/x-icon", b"\0\0\x01\0");
    /// assert_eq!(icon.kind(), "resource");
    /// ```
    #[must_use]
    pub fn embedded_blob(uri: &str, mime_type: &str, bytes: impl AsRef<[u8]>) -> Self {
        Self::embedded(uri, mime_type, "blob", encoded(bytes))
    }

    fn embedded(uri: &str, mime_type: &str, member: &str, value: Json) -> Self {
        let resource = Object::new().with("uri", Json::string(uri)).with("mimeType", Json::string(mime_type));
        Self::block("resource").with("resource", resource.with(member, value).to_json())
    }

    /// Sets the intended audience.
    ///
    /// ```
    /// # use toolyard_sdk::{Content, Role};
    /// let for_the_model = Content::text("raw data").audience([Role::Assistant]);
    /// ```
    #[must_use]
    pub fn audience(self, roles: impl IntoIterator<Item = Role>) -> Self {
        let roles: Vec<_> = roles.into_iter().map(|role| Json::string(role.as_str())).collect();
        self.annotated("audience", Json::array(&roles))
    }

    /// Sets the importance, from 0 to 1. Other numbers are clamped.
    ///
    /// ```
    /// # use toolyard_sdk::Content;
    /// let aside = Content::text("by the way").priority(0.1);
    /// ```
    #[must_use]
    pub fn priority(self, priority: f64) -> Self {
        self.annotated("priority", Json::from_value(&priority.clamp(0.0, 1.0).into()))
    }

    /// Sets the time of the last change, in ISO 8601.
    ///
    /// ```
    /// # use toolyard_sdk::Content;
    /// let entry = Content::text("an entry").last_modified("2026-01-12T15:00:58Z");
    /// ```
    #[must_use]
    pub fn last_modified(self, time: &str) -> Self {
        self.annotated("lastModified", Json::string(time))
    }

    fn annotated(self, name: &str, value: Json) -> Self {
        self.within("annotations", name, value)
    }

    /// Adds a member to `_meta`. Names with a prefix, such as `example.com/trace`, cannot clash with MCP's own names.
    ///
    /// ```
    /// # use toolyard_sdk::Content;
    /// let traced = Content::text("done").meta("example.com/trace", 7);
    /// ```
    #[must_use]
    pub fn meta(self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.within("_meta", name, Json::from_value(&value.into()))
    }

    /// Sets a member of the object in the member `outer`.
    fn within(self, outer: &str, name: &str, value: Json) -> Self {
        let object = self.block.get(outer).and_then(|object| object.to_object().ok()).unwrap_or_default();
        self.with(outer, object.with(name, value).to_json())
    }

    /// The type in MCP's JSON: `text`, `image`, `audio`, `resource_link`, `resource`, or an extension of the client.
    #[must_use]
    pub fn kind(&self) -> Cow<'_, str> {
        self.block.get_str("type").unwrap_or_default()
    }

    /// The text, if it is a text.
    #[must_use]
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        self.block.get_str("text")
    }

    /// The bytes of an image or of audio.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(self.block.get_str("data")?.as_bytes()).ok()
    }

    /// The MIME type of an image, of audio, or of a linked resource.
    #[must_use]
    pub fn mime_type(&self) -> Option<Cow<'_, str>> {
        self.block.get_str("mimeType")
    }

    fn block(kind: &str) -> Self {
        Self { block: Object::new().with("type", Json::string(kind)) }
    }

    fn with(self, name: &str, value: Json) -> Self {
        Self { block: self.block.with(name, value) }
    }

    /// Reads a block that a client sent.
    ///
    /// # Errors
    /// If it is not an object.
    pub(crate) fn from_json(json: &Json) -> Result<Self, JsonError> {
        Ok(Self { block: json.to_object()? })
    }

    /// The block in MCP's JSON.
    pub(crate) fn to_json(&self) -> Json {
        self.block.to_json()
    }
}

fn encoded(bytes: impl AsRef<[u8]>) -> Json {
    Json::string(&STANDARD.encode(bytes))
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// Shows the names of the members only: content belongs to users and tools.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Content").field(&self.block).finish()
    }
}

/// A link to a resource, with all optional fields.
///
/// ```
/// use toolyard_sdk::{Content, ResourceLink};
///
/// let link = ResourceLink::new("file:///report.pdf", "report")
///     .title("The report")
///     .description("All figures of the last quarter")
///     .mime_type("application/pdf")
///     .size(48_213);
/// assert_eq!(Content::from(link).mime_type().as_deref(), Some("application/pdf"));
/// ```
#[derive(Debug, Clone)]
pub struct ResourceLink {
    content: Content,
}

impl ResourceLink {
    /// A link with a URI and a name.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceLink;
    /// let link = ResourceLink::new("file:///log.txt", "log");
    /// ```
    #[must_use]
    pub fn new(uri: &str, name: &str) -> Self {
        let content = Content::block("resource_link").with("uri", Json::string(uri));
        Self { content: content.with("name", Json::string(name)) }
    }

    /// Sets the display name.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceLink;
    /// let link = ResourceLink::new("file:///log.txt", "log").title("Today's log");
    /// ```
    #[must_use]
    pub fn title(self, title: &str) -> Self {
        self.with("title", Json::string(title))
    }

    /// Sets the description for the model.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceLink;
    /// let link = ResourceLink::new("file:///log.txt", "log").description("One line for each event");
    /// ```
    #[must_use]
    pub fn description(self, description: &str) -> Self {
        self.with("description", Json::string(description))
    }

    /// Sets the MIME type.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceLink;
    /// let link = ResourceLink::new("file:///log.txt", "log").mime_type("text/plain");
    /// ```
    #[must_use]
    pub fn mime_type(self, mime_type: &str) -> Self {
        self.with("mimeType", Json::string(mime_type))
    }

    /// Sets the size in bytes.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceLink;
    /// let link = ResourceLink::new("file:///log.txt", "log").size(1024);
    /// ```
    #[must_use]
    pub fn size(self, bytes: u64) -> Self {
        self.with("size", Json::unsigned(bytes))
    }

    fn with(self, name: &str, value: Json) -> Self {
        Self { content: self.content.with(name, value) }
    }
}

impl From<ResourceLink> for Content {
    fn from(link: ResourceLink) -> Self {
        link.content
    }
}
