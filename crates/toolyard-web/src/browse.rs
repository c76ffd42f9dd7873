//! A page as the text that a model reads: whole, or in chunks in working memory, or cut.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio::time::Duration;
use toolyard_agent::large::document::LongDocument;
use toolyard_agent::large::message::truncation;
use toolyard_agent::memory::{MemoryCaller, WorkingMemory};
use toolyard_core::Caller;
use toolyard_core::random::hex;

use crate::call_limits::WebCallLimits;
use crate::fetch::{FetchError, FetchedPage, PageFetcher};
use crate::github::{GithubApi, GithubReference};
use crate::page::{PageText, needs_scripts, page_text};
use crate::render::PageRenderer;
use crate::web_url::WebUrl;

/// Time limit for saving chunks; after it a page is cut.
const STORE_TIME: Duration = Duration::from_secs(10);

/// Maximum length of the part of a URL after `#`, in bytes.
const MAX_FRAGMENT: usize = 2048;

/// Maximum length of the name of a page in keys, in characters.
const MAX_NAME: usize = 80;

/// Number of bytes of the digest at the end of a long name.
const DIGEST_BYTES: usize = 4;

/// Length of a message about chunks at which rows are left out, in characters.
const MESSAGE_CHARS: usize = 8_000;

const NO_MEMORY: &str = "This caller does not have the tools of working memory.";

/// Visits pages.
#[derive(Clone)]
pub struct PageBrowser(Arc<BrowserParts>);

/// The parts of a page browser.
pub struct BrowserParts {
    /// Gets pages.
    pub fetcher: PageFetcher,
    /// Renders pages that are empty without their scripts. `None`: they are errors.
    pub renderer: Option<PageRenderer>,
    /// GitHub's API.
    pub github: GithubApi,
    /// Working memory for long pages. `None`: they are cut.
    pub memory: Option<WorkingMemory>,
    /// Limits of calls.
    pub limits: WebCallLimits,
}

/// The text of a page and the URL at which it is, after redirects.
struct BrowsedPage {
    text: PageText,
    url: String,
}

impl PageBrowser {
    /// Returns a browser of these parts.
    #[must_use]
    pub fn new(parts: BrowserParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Returns the text of a page for a model. `memory_caller` has working memory for a long page; without one it is cut.
    ///
    /// # Errors
    /// Returns the reason, for the model, if there is no text.
    pub async fn browse(
        &self,
        url: &str,
        caller: &Caller,
        memory_caller: Option<MemoryCaller>,
    ) -> Result<String, FetchError> {
        let fragment = fragment(url);
        let url = WebUrl::parse(url).map_err(FetchError::Url)?;
        let BrowsedPage { text: page, url } = self.in_time(caller, self.page(url, fragment)).await?;
        let text = page.markdown();
        let settings = self.0.fetcher.settings();
        let Some((end, _)) = text.char_indices().nth(settings.chunking_threshold) else { return Ok(text) };
        let name = format!("web-{}", slug(&url));
        let document = LongDocument {
            name: &name,
            text: &text,
            chunk_chars: settings.chunk_max_length,
            ttl: settings.chunk_ttl,
            store_time: STORE_TIME,
        };
        let stored = match self.0.memory.as_ref().zip(memory_caller) {
            Some((memory, caller)) => document.put(memory, caller).await,
            None => Err(NO_MEMORY.to_owned()),
        };
        Ok(match stored {
            Ok(stored) => {
                let subject = match &page.title {
                    Some(title) => format!("# {title}\n\nThe page {url} is large"),
                    None => format!("The page {url} is large"),
                };
                stored.message_about(&subject, MESSAGE_CHARS)
            }
            Err(why) => format!("{}{}", &text[..end], truncation(text[end..].chars().count(), &why)),
        })
    }

    async fn in_time<T>(
        &self,
        caller: &Caller,
        work: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        let limits = &self.0.limits;
        limits.run(caller, work).await.unwrap_or(Err(FetchError::TooSlow(limits.time)))
    }

    async fn page(&self, url: WebUrl, fragment: Option<&str>) -> Result<BrowsedPage, FetchError> {
        self.0.fetcher.check_host(&url)?;
        if let Some(reference) = GithubReference::of(&url) {
            match self.0.github.get(&reference).await {
                Ok(text) => return Ok(BrowsedPage { text, url: url.to_string() }),
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::info!(%url, error, "no answer of GitHub's API, visiting the page");
                }
            }
        }
        let (page, text) = self.converted(self.0.fetcher.fetch(&url).await?).await?;
        let renderer = self.0.renderer.as_ref().filter(|_| needs_scripts(&page, &text));
        let Some(renderer) = renderer else {
            return Ok(BrowsedPage { text: text?, url: page.url.to_string() });
        };
        match (self.rendered(renderer, &page, fragment).await, text) {
            (Ok(rendered), _) => Ok(rendered),
            (Err(error), Ok(text)) => {
                let (url, error) = (page.url.to_string(), &error as &dyn std::error::Error);
                tracing::info!(url, error, "page not rendered, its text without scripts is used");
                Ok(BrowsedPage { text, url })
            }
            (Err(error), Err(_)) => {
                tracing::info!(url = %page.url, error = &error as &dyn std::error::Error, "page not rendered");
                Err(error)
            }
        }
    }

    /// Returns a page with its text.
    async fn converted(
        &self,
        page: FetchedPage,
    ) -> Result<(FetchedPage, Result<PageText, FetchError>), FetchError> {
        let convert = move || {
            let text = page_text(&page);
            (page, text)
        };
        self.0.limits.run_blocking(convert).await.map_err(|_| FetchError::Conversion)
    }

    /// Returns the text of a page after its scripts ran.
    async fn rendered(
        &self,
        renderer: &PageRenderer,
        page: &FetchedPage,
        fragment: Option<&str>,
    ) -> Result<BrowsedPage, FetchError> {
        let (page, text) = self.converted(renderer.render(page, fragment).await?).await?;
        let text = text.map_err(|error| match error {
            FetchError::Empty => FetchError::EmptyRendered,
            other => other,
        })?;
        let url = match fragment {
            Some(fragment) => format!("{}#{fragment}", page.url),
            None => page.url.to_string(),
        };
        Ok(BrowsedPage { text, url })
    }
}

/// Returns the part of a URL after `#`, by which the scripts of some pages choose what they show.
fn fragment(url: &str) -> Option<&str> {
    let (_, fragment) = url.trim().split_once('#')?;
    let is_plain = fragment.bytes().all(|byte| byte.is_ascii_graphic());
    (is_plain && !fragment.is_empty() && fragment.len() <= MAX_FRAGMENT).then_some(fragment)
}

/// Returns the name of a page in keys: its URL with `_` for `/` and for the colon of a port. Any other URL, and a long one,
/// ends with a digest, because pages of one name replace each other.
fn slug(url: &str) -> String {
    let text = url.split_once("://").map_or(url, |(_, rest)| rest);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let slug: String = text.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let slug = slug.trim_matches('_');
    let (host, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    let is_ambiguous = host.starts_with('[')
        || path.contains("//")
        || path.chars().any(|character| !is_plain(character) && character != '/');
    if !is_ambiguous && slug.len() <= MAX_NAME {
        return slug.to_owned();
    }
    let digest = hex(&Sha256::digest(url)[..DIGEST_BYTES]);
    let start = &slug[..slug.len().min(MAX_NAME - digest.len() - 1)];
    format!("{start}-{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slug_of_a_url() {
        let check = |url: &str, expected: &str| {
            let url = WebUrl::parse(url).expect("a URL");
            let digest = hex(&Sha256::digest(url.as_str())[..DIGEST_BYTES]);
            assert_eq!(slug(url.as_str()), expected.replace("DIGEST", &digest), "{url}");
        };
        check("https://example.com/", "example.com");
        check("https://example.com/docs/guide-1.html", "example.com_docs_guide-1.html");
        check("https://example.com:8080/docs/", "example.com_8080_docs");
        check("http://[::1]/", "1-DIGEST");
        check("https://example.com/c?x", "example.com_c_x-DIGEST");
        check("https://example.com/c_x", "example.com_c_x-DIGEST");
        check("https://example.com/c//x", "example.com_c__x-DIGEST");
        check("https://example.com/é", "example.com__C3_A9-DIGEST");
        let long = |end: &str| slug(&format!("https://example.com/{}{end}", "x".repeat(99)));
        assert_eq!((long("").len(), &long("")[..12]), (MAX_NAME, "example.com_"));
        assert_ne!(long("1"), long("2"));
    }
}
