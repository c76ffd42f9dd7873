//! Icons of servers, tools, prompts and resources.

use serde::Serialize;

/// A picture that a client may show beside a name.
///
/// ```
/// use toolyard_sdk::Icon;
///
/// let icon = Icon::new("https://example.com/tool.png").mime_type("image/png").size("48x48");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// Where it is: an `https:` or `data:` URI.
    pub src: String,
    /// Its MIME type, where the source does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// In which sizes it can be used, such as `48x48`, or `any`; every size where it is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// Which background it is made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<Theme>,
}

/// The background that an icon is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// A light one.
    Light,
    /// A dark one.
    Dark,
}

impl Icon {
    /// The icon at this URI.
    ///
    /// ```
    /// # use toolyard_sdk::Icon;
    /// let icon = Icon::new("https://example.com/tool.svg");
    /// ```
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), mime_type: None, sizes: Vec::new(), theme: None }
    }

    /// Its MIME type.
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

    /// One more size in which it can be used.
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

    /// The background that it is made for.
    ///
    /// ```
    /// # use toolyard_sdk::{Icon, Theme};
    /// let icon = Icon::new("https://example.com/white.png").theme(Theme::Dark);
    /// ```
    #[must_use]
    pub const fn theme(mut self, theme: Theme) -> Self {
        self.theme = Some(theme);
        self
    }
}
