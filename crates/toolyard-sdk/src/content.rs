//! Pieces of content: what results, prompts and samples are made of.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use toolyard_core::{Json, JsonError, Object};

/// A text, an image, some audio, a link to a resource, or a resource itself.
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

/// Who content is for, and who speaks in a prompt or sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name, as MCP writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// Hints on how content or a resource is to be used.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// Who it is for; nobody in particular where it is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// How important it is: from 0, which can be left out, to 1, which cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// When it changed last, in ISO 8601, such as `2026-01-12T15:00:58Z`.
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

    /// A link to a resource, which the client may read if it wants to. [`ResourceLink`] says more about it.
    ///
    /// ```
    /// # use toolyard_sdk::Content;
    /// assert_eq!(Content::resource_link("file:///log.txt", "log").kind(), "resource_link");
    /// ```
    #[must_use]
    pub fn resource_link(uri: &str, name: &str) -> Self {
        ResourceLink::new(uri, name).into()
    }

    /// A resource itself, that is text.
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

    /// A resource itself, that is bytes.
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

    /// Says who it is for.
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

    /// Says how important it is, from 0 to 1. Other numbers become the nearer end.
    ///
    /// ```
    /// # use toolyard_sdk::Content;
    /// let aside = Content::text("by the way").priority(0.1);
    /// ```
    #[must_use]
    pub fn priority(self, priority: f64) -> Self {
        self.annotated("priority", Json::from_value(&priority.clamp(0.0, 1.0).into()))
    }

    /// Says when it changed last, in ISO 8601.
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

    /// Adds a member to `_meta`. Names with a prefix, such as `example.com/trace`, cannot clash with MCP's own.
    ///
    /// ```
    /// # use toolyard_sdk::Content;
    /// let traced = Content::text("done").meta("example.com/trace", 7);
    /// ```
    #[must_use]
    pub fn meta(self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.within("_meta", name, Json::from_value(&value.into()))
    }

    /// Sets a member of the object that is the member `outer`.
    fn within(self, outer: &str, name: &str, value: Json) -> Self {
        let object = self.block.get(outer).and_then(|object| object.to_object().ok()).unwrap_or_default();
        self.with(outer, object.with(name, value).to_json())
    }

    /// Its type as MCP writes it: `text`, `image`, `audio`, `resource_link`, `resource`, or what a client made up.
    #[must_use]
    pub fn kind(&self) -> Cow<'_, str> {
        self.block.get_str("type").unwrap_or_default()
    }

    /// The text, where it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        self.block.get_str("text")
    }

    /// The bytes of an image or of audio.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        STANDARD.decode(self.block.get_str("data")?.as_bytes()).ok()
    }

    /// The MIME type of an image, of audio, or of what is linked to.
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

    /// Reads what a client sent.
    ///
    /// # Errors
    /// When it is not an object.
    pub(crate) fn from_json(json: &Json) -> Result<Self, JsonError> {
        Ok(Self { block: json.to_object()? })
    }

    /// The block as it goes over the wire.
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

/// Shows which members there are: content is what users and tools say to each other.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Content").field(&self.block).finish()
    }
}

/// A link to a resource, with all that can be said of it.
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
    /// A link.
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

    /// Its name for people.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceLink;
    /// let link = ResourceLink::new("file:///log.txt", "log").title("Today's log");
    /// ```
    #[must_use]
    pub fn title(self, title: &str) -> Self {
        self.with("title", Json::string(title))
    }

    /// What a model should know of it.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceLink;
    /// let link = ResourceLink::new("file:///log.txt", "log").description("One line for each event");
    /// ```
    #[must_use]
    pub fn description(self, description: &str) -> Self {
        self.with("description", Json::string(description))
    }

    /// Its MIME type.
    ///
    /// ```
    /// # use toolyard_sdk::ResourceLink;
    /// let link = ResourceLink::new("file:///log.txt", "log").mime_type("text/plain");
    /// ```
    #[must_use]
    pub fn mime_type(self, mime_type: &str) -> Self {
        self.with("mimeType", Json::string(mime_type))
    }

    /// Its size in bytes.
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
