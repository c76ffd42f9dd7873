//! Icons of servers, tools, prompts and resources.

use serde::Serialize;

/// An image that a client may show beside a name.
///
/// ```
/// use toolyard_sdk::Icon;
///
/// let icon = Icon::new("https://example.com/tool.png").mime_type("image/png").size("48x48");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// An `https:` or `data:` URI.
    pub src: String,
    /// The MIME type, if the source does not give it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Supported sizes, such as `48x48` or `any`; every size if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// The background that the icon is made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

/// The background that an icon is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IconTheme {
    /// A light one.
    Light,
    /// A dark one.
    Dark,
}

impl Icon {
    /// An icon with this URI.
    ///
    /// ```
    /// # use toolyard_sdk::Icon;
    /// let icon = Icon::new("https://example.com/tool.svg");
    /// ```
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), mime_type: None, sizes: Vec::new(), theme: None }
    }

    /// Sets the MIME type.
    ///
    /// ```
    /// # use toolyard_sdk::Icon;
    /// let icon = Icon::new("https://example.com/tool").mime_type("image/svg+xml");
    /// ```
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a supported size.
    ///
    /// ```
    /// # use toolyard_sdk::Icon;
    /// let icon = Icon::new("https://example.com/tool.png").size("48x48").size("96x96");
    /// ```
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.push(size.into());
        self
    }

    /// Sets the background that the icon is made for.
    ///
    /// ```
    /// # use toolyard_sdk::{Icon, IconTheme};
    /// let icon = Icon::new("https://example.com/white.png").theme(IconTheme::Dark);
    /// ```
    #[must_use]
    pub const fn theme(mut self, theme: IconTheme) -> Self {
        self.theme = Some(theme);
        self
    }
}
