//! Where a description is, and how its files are fetched.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::http::header::{self, HeaderName};
use ::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use toolyard_core::ToolError;
use toolyard_net::body::{self, ReadError};
use toolyard_net::client::{Client, RequestError};
use toolyard_openapi::Sources;

use super::{Shared, credentials::Credentials};

/// How many files a description may have.
const MOST_FILES: usize = 10_000;

/// How many redirects lead to a file.
const MOST_REDIRECTS: usize = 5;

/// Where a description is.
#[derive(Debug, Clone)]
pub enum Source {
    /// At a URL of `http` or `https`.
    Url(Uri),
    /// In a file.
    File(PathBuf),
    /// Here, as JSON or YAML.
    Inline(String),
}

/// Why a description could not be read. It says no query of a URL, which may hold a secret.
#[derive(Debug, thiserror::Error)]
pub enum NotRead {
    /// A file of the system cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// There was no response.
    #[error("{0}: {1}")]
    Request(String, RequestError),
    /// There was another one.
    #[error("{0}: HTTP status {1}")]
    Status(String, StatusCode),
    /// The body broke off, or is too large.
    #[error("{0}: {1}")]
    Body(String, ReadError),
    /// It is no text.
    #[error("{0}: it is not UTF-8")]
    NoText(String),
    /// It is compressed, which was not asked for.
    #[error("{0}: it is compressed, which was not asked for")]
    Compressed(String),
    /// The credentials are not there.
    #[error(transparent)]
    Credentials(#[from] ToolError),
    /// Its files are more, or larger, than they may be.
    #[error("its files are more than {MOST_FILES}, or larger than {0} bytes together")]
    TooLarge(usize),
}

/// Reads all files of a description once, as one who shows no credentials.
///
/// # Errors
/// When its first file cannot be read, or there are too many or larger ones than `most_bytes` together.
pub async fn read(source: Source, client: Client, most_bytes: usize) -> Result<Sources, NotRead> {
    let nobody =
        Shared { base_url: None, headers: HeaderMap::new(), auth: None, credentials: Credentials::default() };
    let read = Reader::new(source, client, Arc::new(nobody), most_bytes).read().await?;
    // What was never kept is another one than before.
    Ok(read.unwrap_or_default())
}

/// Reads a description, and tells whether it is another one than before.
pub(super) struct Reader {
    source: Source,
    client: Client,
    /// For what a document says is elsewhere.
    public: Client,
    shared: Arc<Shared>,
    most_bytes: usize,
    /// What was fetched, to ask for it only if it has changed.
    fetched: HashMap<String, Fetched>,
    /// What the tools are made of.
    kept: Option<u64>,
    /// What was read last.
    latest: u64,
}

#[derive(Clone)]
struct Fetched {
    text: Arc<str>,
    /// What the server calls this version: the header that it is asked by, and its value.
    version: Option<(HeaderName, HeaderValue)>,
}

impl Reader {
    pub(super) fn new(source: Source, client: Client, shared: Arc<Shared>, most_bytes: usize) -> Self {
        let public = client.public_only();
        Self { source, client, public, shared, most_bytes, fetched: HashMap::new(), kept: None, latest: 0 }
    }

    /// All files of the description; `None` where they are as they were when [`Reader::keep`] was called.
    pub(super) async fn read(&mut self) -> Result<Option<Sources>, NotRead> {
        let (root, text) = match self.source.clone() {
            Source::Inline(text) => ("openapi".to_owned(), text),
            Source::File(path) => (path.display().to_string(), self.file(&path).await?),
            Source::Url(url) => (url.to_string(), self.fetch(&url.to_string()).await?.to_string()),
        };
        let mut sources = Sources::new(root, text);
        let mut files = 1;
        loop {
            let missing = sources.missing();
            files += missing.len();
            if files > MOST_FILES || sources.bytes() > self.most_bytes {
                return Err(NotRead::TooLarge(self.most_bytes));
            }
            if missing.is_empty() {
                break;
            }
            for file in missing {
                let text = self.referred(&file).await.unwrap_or_else(|error| {
                    tracing::warn!("a file of a description cannot be read: {error}");
                    // What was read before goes on to count.
                    self.fetched.get(&file).map(|fetched| fetched.text.to_string()).unwrap_or_default()
                });
                sources.add(file, text);
            }
        }
        self.latest = sources.digest();
        Ok((self.kept != Some(self.latest)).then_some(sources))
    }

    /// The server that the manifest names.
    pub(super) fn origin(&self) -> Option<String> {
        match &self.source {
            Source::Url(url) => toolyard_openapi::origin(&url.to_string()),
            Source::File(_) | Source::Inline(_) => None,
        }
    }

    /// What was read last is in use.
    pub(super) fn keep(&mut self) {
        self.kept = Some(self.latest);
    }

    /// A file that another one refers to. A document from elsewhere reaches no file of this system.
    async fn referred(&mut self, file: &str) -> Result<String, NotRead> {
        if file.starts_with("http://") || file.starts_with("https://") {
            return Ok(self.fetch(file).await?.to_string());
        }
        match self.source {
            Source::File(_) => self.file(Path::new(file)).await,
            Source::Url(_) | Source::Inline(_) => {
                let error = std::io::Error::other("a description from elsewhere may not refer to it");
                Err(NotRead::File { path: file.into(), error })
            }
        }
    }

    async fn file(&self, path: &Path) -> Result<String, NotRead> {
        let (path, most) = (path.to_owned(), self.most_bytes as u64);
        let read = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || {
                // A device or a pipe may have no end.
                if !std::fs::metadata(&path)?.is_file() {
                    return Err(std::io::Error::other("it is no file"));
                }
                let mut text = String::new();
                std::fs::File::open(path)?.take(most + 1).read_to_string(&mut text)?;
                match text.len() as u64 > most {
                    true => Err(std::io::Error::other("it is too large")),
                    false => Ok(text),
                }
            })
        };
        let read = read.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        read.map_err(|error| NotRead::File { path, error })
    }

    /// The text at a URL, which is sent again only if it has changed.
    async fn fetch(&mut self, url: &str) -> Result<Arc<str>, NotRead> {
        let shown = || url.split('?').next().unwrap_or_default().to_owned();
        let response = self.send(url, &shown()).await?;
        if response.status() == StatusCode::NOT_MODIFIED
            && let Some(fetched) = self.fetched.get(url)
        {
            return Ok(fetched.text.clone());
        }
        if response.status() != StatusCode::OK {
            return Err(NotRead::Status(shown(), response.status()));
        }
        let (head, body) = response.into_parts();
        if head.headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            return Err(NotRead::Compressed(shown()));
        }
        let bytes = body::read(body, self.most_bytes).await.map_err(|error| NotRead::Body(shown(), error))?;
        let text: Arc<str> = std::str::from_utf8(&bytes).map_err(|_| NotRead::NoText(shown()))?.into();
        let version = |said: HeaderName, asked: HeaderName| Some((asked, head.headers.get(said)?.clone()));
        let version = version(header::ETAG, header::IF_NONE_MATCH)
            .or_else(|| version(header::LAST_MODIFIED, header::IF_MODIFIED_SINCE));
        self.fetched.insert(url.to_owned(), Fetched { text: text.clone(), version });
        Ok(text)
    }

    /// Follows redirects. What opens the service goes where the description is, and nowhere else; and what is elsewhere
    /// because a document says so has to be public.
    async fn send(&self, url: &str, shown: &str) -> Result<Response<Incoming>, NotRead> {
        let mut uri: Uri =
            url.parse().map_err(|_| NotRead::Status(shown.to_owned(), StatusCode::NOT_FOUND))?;
        for _ in 0..=MOST_REDIRECTS {
            let mut request = Request::new(Full::new(Bytes::new()));
            *request.uri_mut() = uri.clone();
            let accept = HeaderValue::from_static("application/json, application/yaml, */*;q=0.5");
            request.headers_mut().insert(header::ACCEPT, accept);
            let is_own = self.is_own(&uri);
            if is_own {
                self.shared.dress(&mut request).await?;
            }
            if let Some(Fetched { version: Some((name, value)), .. }) = self.fetched.get(url) {
                request.headers_mut().insert(name.clone(), value.clone());
            }
            let client = if is_own { &self.client } else { &self.public };
            let response =
                client.send(request).await.map_err(|error| NotRead::Request(shown.to_owned(), error))?;
            let location =
                response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
            match location.filter(|_| response.status().is_redirection()) {
                Some(location) => {
                    let next = toolyard_openapi::join(&uri.to_string(), location);
                    uri = next.parse().map_err(|_| NotRead::Status(shown.to_owned(), response.status()))?;
                }
                None => return Ok(response),
            }
        }
        Err(NotRead::Status(shown.to_owned(), StatusCode::LOOP_DETECTED))
    }

    /// Whether a URL is at the server that the manifest names.
    fn is_own(&self, uri: &Uri) -> bool {
        match &self.source {
            Source::Url(own) => own.scheme() == uri.scheme() && own.authority() == uri.authority(),
            // Whoever wrote the file wrote the URL.
            Source::File(_) | Source::Inline(_) => false,
        }
    }
}
