//! The collection of guides.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;
use std::sync::Arc;

use super::GuideProvider;

/// Maximum number of guides.
const MAX_GUIDES: usize = 200;
/// Maximum length of a name and of a summary in characters, and of a document in bytes.
const MAX_NAME_LENGTH: usize = 64;
const MAX_SUMMARY_LENGTH: usize = 300;
const MAX_DOCUMENT_LENGTH: usize = 256 * 1024;

/// Alternative names of guides. A guide with exactly the requested name takes precedence.
const ALIASES: [&[&str]; 9] = [
    &["mcp-tool-guide", "mcp", "mcp-tools"],
    &["web-tools", "web"],
    &["service-search", "search"],
    &["scripts", "script"],
    &["scheduling", "schedule", "schedules", "scheduled-tasks", "cron"],
    &["openrouter", "open-router"],
    &["agents", "agent", "a2a"],
    &["subagent", "subagents"],
    &["wisp", "wisps"],
];

/// Guides by their names. The lookup ignores case.
#[derive(Clone, Default)]
pub struct GuideBook {
    guides: BTreeMap<String, Arc<dyn GuideProvider>>,
}

/// Reason why a guide is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuideError {
    /// The name is invalid.
    #[error(
        "`{0}` is not a valid guide name: expected at most 64 letters, digits, `-` and `_`, such as `web-tools`"
    )]
    Name(String),
    /// Another guide has this name.
    #[error("there is already a guide named `{0}`")]
    Taken(String),
    /// The summary is empty, too long, or has several lines.
    #[error("the summary of the guide `{0}` is not one line of 1 to 300 characters")]
    Summary(String),
    /// The document is empty or too long.
    #[error("the guide `{0}` is empty, or longer than 256 KiB")]
    Document(String),
    /// The maximum number of guides is reached.
    #[error("there are more than 200 guides")]
    TooMany,
}

impl GuideBook {
    /// Returns a book without guides.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a guide and returns the book.
    ///
    /// # Errors
    /// As [`GuideBook::add`].
    pub fn with(mut self, guide: impl GuideProvider + 'static) -> Result<Self, GuideError> {
        self.add(Arc::new(guide))?;
        Ok(self)
    }

    /// Adds a guide.
    ///
    /// # Errors
    /// Returns an error if the guide is invalid, or if another guide has its name in any case.
    pub fn add(&mut self, guide: Arc<dyn GuideProvider>) -> Result<(), GuideError> {
        let name = checked(&*guide)?;
        let key = folded(&name);
        if self.guides.contains_key(&key) {
            return Err(GuideError::Taken(name));
        }
        if self.guides.len() == MAX_GUIDES {
            return Err(GuideError::TooMany);
        }
        self.guides.insert(key, guide);
        Ok(())
    }

    /// Returns the guide of a name or of one of its aliases.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&dyn GuideProvider> {
        let name = folded(name);
        let aliases = ALIASES.into_iter().find(|aliases| aliases.contains(&&*name)).unwrap_or_default();
        let names = [&*name].into_iter().chain(aliases.iter().copied());
        names.filter_map(|name| self.guides.get(name)).map(|guide| &**guide).next()
    }

    /// Returns the guides in the order of their names.
    pub fn guides(&self) -> impl Iterator<Item = &dyn GuideProvider> {
        self.guides.values().map(|guide| &**guide)
    }

    /// Returns the text of `list_tool_guides`.
    pub(super) fn listing(&self) -> String {
        if self.guides.is_empty() {
            return "No tool guides are available here.".to_owned();
        }
        let mut text = format!("Available tool guides ({}):", self.guides.len());
        for guide in self.guides() {
            let _ = write!(text, "\n- {}: {}", guide.name(), guide.summary().trim());
        }
        text
    }

    /// Returns the document of a guide. An unknown name is not an error: the model reads the available names and goes
    /// on.
    pub(super) fn document_or_names(&self, name: &str) -> String {
        if let Some(guide) = self.find(name) {
            return guide.document().into_owned();
        }
        let requested: String = name.trim().chars().take(MAX_NAME_LENGTH).collect();
        let names: Vec<_> = self.guides().map(GuideProvider::name).collect();
        match names.is_empty() {
            true => format!("No tool guide named '{requested}'. No tool guides are available here."),
            false => format!("No tool guide named '{requested}'. Available guides: {}.", names.join(", ")),
        }
    }
}

/// Shows the names only.
impl fmt::Debug for GuideBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.guides.keys()).finish()
    }
}

/// Checks a guide and returns its name.
fn checked(guide: &dyn GuideProvider) -> Result<String, GuideError> {
    let (name, summary, document) = (guide.name(), guide.summary(), guide.document());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !(1..=MAX_NAME_LENGTH).contains(&name.len()) || !name.chars().all(is_plain) {
        return Err(GuideError::Name(name.chars().take(MAX_NAME_LENGTH).collect()));
    }
    let is_line = summary.chars().count() <= MAX_SUMMARY_LENGTH && !summary.contains(char::is_control);
    if summary.trim().is_empty() || !is_line {
        return Err(GuideError::Summary(name.to_owned()));
    }
    if document.trim().is_empty() || document.len() > MAX_DOCUMENT_LENGTH {
        return Err(GuideError::Document(name.to_owned()));
    }
    Ok(name.to_owned())
}

/// Normalizes a name for comparison. Models write `Web tools` and `web_tools` for `web-tools`.
fn folded(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', ' '], "-")
}
