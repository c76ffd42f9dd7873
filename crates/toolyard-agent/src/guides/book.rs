//! All guides that there are.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write;
use std::sync::Arc;

use super::GuideProvider;

/// How many guides there may be.
const MOST_GUIDES: usize = 200;
/// How long a name and a summary may be, in characters, and a document, in bytes.
const LONGEST_NAME: usize = 64;
const LONGEST_SUMMARY: usize = 300;
const LONGEST_DOCUMENT: usize = 256 * 1024;

/// Names of the same guide: who looks for one finds the guide that has another, unless a guide has that very name.
const ALIASES: [&[&str]; 6] = [
    &["mcp-tool-guide", "mcp", "mcp-tools"],
    &["web-tools", "web"],
    &["service-search", "search"],
    &["scripts", "script"],
    &["subagent", "subagents"],
    &["wisp", "wisps"],
];

/// All guides, by their names. They are found whatever the case is in which they are asked for.
#[derive(Clone, Default)]
pub struct GuideBook {
    guides: BTreeMap<String, Arc<dyn GuideProvider>>,
}

/// Why a guide is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadGuide {
    /// What it is called is no name of a guide.
    #[error("`{0}` is no name of a guide: letters, digits, `-` and `_`, 64 at most, such as `web-tools`")]
    Name(String),
    /// Another one has the name.
    #[error("there is a guide of the name `{0}` already")]
    Taken(String),
    /// What it is about is not said in one line.
    #[error("the summary of the guide `{0}` is not one line of 1 to 300 characters")]
    Summary(String),
    /// There is nothing in it, or too much.
    #[error("the guide `{0}` is empty, or longer than 256 KiB")]
    Document(String),
    /// There are as many as there may be.
    #[error("there are more than 200 guides")]
    TooMany,
}

impl GuideBook {
    /// A book without guides.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with another guide.
    ///
    /// # Errors
    /// As [`GuideBook::add`].
    pub fn with(mut self, guide: impl GuideProvider + 'static) -> Result<Self, BadGuide> {
        self.add(Arc::new(guide))?;
        Ok(self)
    }

    /// Adds a guide.
    ///
    /// # Errors
    /// Where it cannot be listed as it is, or another one has its name, in whatever case.
    pub fn add(&mut self, guide: Arc<dyn GuideProvider>) -> Result<(), BadGuide> {
        let name = checked(&*guide)?;
        let key = folded(&name);
        if self.guides.contains_key(&key) {
            return Err(BadGuide::Taken(name));
        }
        if self.guides.len() == MOST_GUIDES {
            return Err(BadGuide::TooMany);
        }
        self.guides.insert(key, guide);
        Ok(())
    }

    /// The guide of a name, or of another name of the same.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&dyn GuideProvider> {
        let name = folded(name);
        let aliases = ALIASES.into_iter().find(|aliases| aliases.contains(&&*name)).unwrap_or_default();
        let names = [&*name].into_iter().chain(aliases.iter().copied());
        names.filter_map(|name| self.guides.get(name)).map(|guide| &**guide).next()
    }

    /// The guides, in the order of their names.
    pub fn guides(&self) -> impl Iterator<Item = &dyn GuideProvider> {
        self.guides.values().map(|guide| &**guide)
    }

    /// What a model reads that asks which guides there are.
    pub(super) fn listed(&self) -> String {
        if self.guides.is_empty() {
            return "No tool guides are available here.".to_owned();
        }
        let mut text = format!("Available tool guides ({}):", self.guides.len());
        for guide in self.guides() {
            let _ = write!(text, "\n- {}: {}", guide.name(), guide.summary().trim());
        }
        text
    }

    /// What a model reads that asks for one. That there is none is no error: it reads which there are, and goes on.
    pub(super) fn told(&self, name: &str) -> String {
        if let Some(guide) = self.find(name) {
            return guide.document().into_owned();
        }
        let shown: String = name.trim().chars().take(LONGEST_NAME).collect();
        let names: Vec<_> = self.guides().map(GuideProvider::name).collect();
        match names.is_empty() {
            true => format!("No tool guide named '{shown}'. No tool guides are available here."),
            false => format!("No tool guide named '{shown}'. Available guides: {}.", names.join(", ")),
        }
    }
}

/// Shows the names.
impl fmt::Debug for GuideBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.guides.keys()).finish()
    }
}

/// The name of a guide that can be listed as it is.
fn checked(guide: &dyn GuideProvider) -> Result<String, BadGuide> {
    let (name, summary, document) = (guide.name(), guide.summary(), guide.document());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !(1..=LONGEST_NAME).contains(&name.len()) || !name.chars().all(is_plain) {
        return Err(BadGuide::Name(name.chars().take(LONGEST_NAME).collect()));
    }
    let is_line = summary.chars().count() <= LONGEST_SUMMARY && !summary.contains(char::is_control);
    if summary.trim().is_empty() || !is_line {
        return Err(BadGuide::Summary(name.to_owned()));
    }
    if document.trim().is_empty() || document.len() > LONGEST_DOCUMENT {
        return Err(BadGuide::Document(name.to_owned()));
    }
    Ok(name.to_owned())
}

/// A name as it is compared. Models write `Web tools` and `web_tools` for `web-tools`.
fn folded(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', ' '], "-")
}
