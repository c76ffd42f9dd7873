//! Renders pages that are empty without their scripts, by Chromium.
//!
//! - [`launcher`]: starts browsers;
//! - `devtools`: the protocol that a browser speaks;
//! - `page_load`: a page from its first request to its text;
//! - `paused_request`: requests of a page, and their treatment;
//! - `read_page.js`: the document as HTML, which the browser runs.
//!
//! A browser has no network. It passes each request to the gateway, which makes it as it gets pages: within the hosts
//! that the operator allows, `robots.txt`, public addresses, and limits of size and number. Each page has a browser of its
//! own, which ends with the call.

mod devtools;
pub mod launcher;
mod page_load;
mod paused_request;

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::{Duration, Instant, timeout_at};
use toolyard_manifest::ChromiumSettings;

use self::devtools::DevTools;
use self::launcher::{BrowserLauncher, LaunchError};
use self::page_load::PageLoad;
use crate::fetch::{FetchError, FetchedPage, PageFetcher};

/// Time for the end of a page's scripts and for its HTML, after the time limit of the page.
const READ_TIME: Duration = Duration::from_secs(3);

/// Renders pages. Clones share their limits.
#[derive(Clone)]
pub struct PageRenderer(Arc<RendererInner>);

struct RendererInner {
    fetcher: PageFetcher,
    launcher: Arc<dyn BrowserLauncher>,
    settings: ChromiumSettings,
    permits: Semaphore,
}

/// The reason why a page is not rendered, as models read it.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// No browser could be started.
    #[error(
        "The page has no text without its scripts, and the browser that runs them does not start. Tell the user that the \
         operator has to check `builtins.web.chromium`."
    )]
    Launch(#[from] LaunchError),
    /// The browser ended.
    #[error(
        "The browser ended while it ran the scripts of the page: they need more than it has. Use another source."
    )]
    Ended,
    /// The scripts of the page do not pause.
    #[error("The scripts of the page still run after {} s, and it cannot be read. Use another source.", .0.as_secs())]
    Busy(Duration),
    /// The browser does not do what it is told.
    #[error("The browser cannot show the page: {0}. Use another source.")]
    Protocol(String),
}

impl PageRenderer {
    /// Returns a renderer that makes the requests of pages by `fetcher`.
    #[must_use]
    pub fn new(fetcher: PageFetcher, launcher: Arc<dyn BrowserLauncher>) -> Self {
        let settings = fetcher.settings().chromium.clone();
        let permits = Semaphore::new(settings.concurrent.min(Semaphore::MAX_PERMITS));
        Self(Arc::new(RendererInner { fetcher, launcher, settings, permits }))
    }

    /// Returns a page as its scripts leave it. `fragment` is that of its URL, by which some pages choose what they show.
    ///
    /// # Errors
    /// Returns the reason if the page cannot be rendered, or if its scripts lead to one that cannot be visited.
    pub async fn render(
        &self,
        page: &FetchedPage,
        fragment: Option<&str>,
    ) -> Result<FetchedPage, FetchError> {
        let RendererInner { fetcher, launcher, settings, permits } = &*self.0;
        // The semaphore is never closed.
        let _permit = permits.acquire().await;
        let deadline = Instant::now() + settings.timeout;
        let browser = launcher.start().await.map_err(RenderError::from)?;
        let rendering = async {
            let mut devtools = DevTools::new(browser.input, browser.output, settings.dom_bytes);
            PageLoad::open(&mut devtools, fetcher, page).await?.finish(fragment, deadline).await
        };
        let rendered = timeout_at(deadline + READ_TIME, rendering).await;
        // The browser lives until here.
        drop(browser.guard);
        rendered.unwrap_or(Err(RenderError::Busy(settings.timeout + READ_TIME).into()))
    }
}
