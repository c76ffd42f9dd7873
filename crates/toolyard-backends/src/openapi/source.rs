//! Location of a description, and the fetching of its files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::http::header::{self, HeaderName};
use ::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::Full;
use toolyard_core::{ToolError, file};
use toolyard_net::body::{self, BodyReadError};
use toolyard_net::client::{HttpClient, RequestError, ResponseBody};
use toolyard_openapi::{DescriptionError, DescriptionSources};

use super::{ServiceAccess, credentials::ServiceCredentials};

/// Maximum number of files of a description.
const MAX_FILES: usize = 10_000;

/// Maximum number of redirects to a file.
const MAX_REDIRECTS: usize = 5;

/// Location of a description.
#[derive(Debug, Clone)]
pub enum DescriptionLocation {
    /// An `http` or `https` URL.
    Url(Uri),
    /// A local file.
    File(PathBuf),
    /// Inline JSON or YAML.
    Inline(String),
}

/// An error while reading a description. It omits the query of URLs, which may hold a secret.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionReadError {
    /// A local file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// The request failed.
    #[error("{0}: {1}")]
    Request(String, RequestError),
    /// The response has an unexpected status.
    #[error("{0}: HTTP status {1}")]
    Status(String, StatusCode),
    /// The body is incomplete or too large.
    #[error("{0}: {1}")]
    Body(String, BodyReadError),
    /// The body is not UTF-8.
    #[error("{0}: it is not UTF-8")]
    NotUtf8(String),
    /// The body is compressed, although no content encoding was accepted.
    #[error("{0}: it is compressed, although no content encoding was accepted")]
    Compressed(String),
    /// The credentials cannot be read.
    #[error(transparent)]
    Credentials(#[from] ToolError),
    /// The description has too many files.
    #[error("it has more than {MAX_FILES} files")]
    TooManyFiles,
    /// The files of the description are too large.
    #[error("its files have {0} bytes in total, but the limit is {1} bytes")]
    TooLarge(usize, usize),
    /// The description was refused before, and is unchanged.
    #[error(transparent)]
    Refused(DescriptionError),
}

/// Reads all files of a description once, without credentials.
///
/// # Errors
/// If the first file cannot be read, or the files exceed `max_bytes` bytes or the maximum number.
pub async fn read(
    source: DescriptionLocation,
    client: HttpClient,
    max_bytes: usize,
) -> Result<DescriptionSources, DescriptionReadError> {
    let access = ServiceAccess {
        base_url: None,
        headers: HeaderMap::new(),
        auth: None,
        credentials: ServiceCredentials::default(),
    };
    let read = DescriptionFetcher::new(source, client, Arc::new(access), max_bytes).read().await?;
    // A description that was never marked as published counts as changed.
    Ok(read.unwrap_or_default())
}

/// Fetches a description, and detects whether it has changed.
pub(super) struct DescriptionFetcher {
    source: DescriptionLocation,
    client: HttpClient,
    /// Client for URLs that a document refers to on other servers.
    public_client: HttpClient,
    access: Arc<ServiceAccess>,
    max_bytes: usize,
    /// Fetched files, for conditional requests.
    fetched: HashMap<String, FetchedFile>,
    /// Digest of the published description.
    published_digest: Option<u64>,
    /// Digest of the last fetched description.
    latest_digest: u64,
    /// Digest of its root alone.
    latest_root_digest: u64,
    refusal: Option<Refusal>,
}

/// A description that cannot be used.
struct Refusal {
    digest: u64,
    /// Digest of the root if the fault is there: other files then make no difference.
    root_digest: Option<u64>,
    error: DescriptionError,
}

#[derive(Clone)]
struct FetchedFile {
    text: Arc<str>,
    /// Header and value of the condition for the next request.
    validator: Option<(HeaderName, HeaderValue)>,
}

impl DescriptionFetcher {
    pub(super) fn new(
        source: DescriptionLocation,
        client: HttpClient,
        access: Arc<ServiceAccess>,
        max_bytes: usize,
    ) -> Self {
        let public_client = client.public_only();
        Self {
            source,
            client,
            public_client,
            access,
            max_bytes,
            fetched: HashMap::new(),
            published_digest: None,
            latest_digest: 0,
            latest_root_digest: 0,
            refusal: None,
        }
    }

    /// Returns all files of the description, or `None` if they are unchanged since
    /// [`DescriptionFetcher::mark_published`].
    pub(super) async fn read(&mut self) -> Result<Option<DescriptionSources>, DescriptionReadError> {
        let text = match self.source.clone() {
            DescriptionLocation::Inline(text) => text,
            DescriptionLocation::File(path) => self.read_file(&path).await?,
            DescriptionLocation::Url(url) => self.fetch(&url.to_string()).await?.to_string(),
        };
        let mut sources = DescriptionSources::new(self.root_name(), text);
        self.latest_root_digest = sources.digest();
        self.check_refusal(|refusal| refusal.root_digest, self.latest_root_digest)?;
        let mut files = 1;
        loop {
            let missing = sources.missing();
            files += missing.len();
            if files > MAX_FILES {
                return Err(DescriptionReadError::TooManyFiles);
            }
            if sources.bytes() > self.max_bytes {
                return Err(DescriptionReadError::TooLarge(sources.bytes(), self.max_bytes));
            }
            if missing.is_empty() {
                break;
            }
            for file in missing {
                let text = self.read_reference(&file).await.unwrap_or_else(|error| {
                    tracing::warn!("a file of a description cannot be read: {error}");
                    // Fall back to the last fetched version.
                    self.fetched.get(&file).map(|fetched| fetched.text.to_string()).unwrap_or_default()
                });
                sources.add(file, text);
            }
        }
        self.latest_digest = sources.digest();
        self.check_refusal(|refusal| Some(refusal.digest), self.latest_digest)?;
        Ok((self.published_digest != Some(self.latest_digest)).then_some(sources))
    }

    /// Name of the first file.
    fn root_name(&self) -> String {
        match &self.source {
            DescriptionLocation::Inline(_) => "openapi".to_owned(),
            DescriptionLocation::File(path) => path.display().to_string(),
            DescriptionLocation::Url(url) => url.to_string(),
        }
    }

    /// Origin of the description's URL.
    pub(super) fn origin(&self) -> Option<String> {
        match &self.source {
            DescriptionLocation::Url(url) => toolyard_openapi::origin(&url.to_string()),
            DescriptionLocation::File(_) | DescriptionLocation::Inline(_) => None,
        }
    }

    /// Marks the last fetched description as published.
    pub(super) fn mark_published(&mut self) {
        self.published_digest = Some(self.latest_digest);
    }

    /// Marks the last fetched description as refused: it is not parsed again until it changes.
    pub(super) fn mark_refused(&mut self, error: &DescriptionError) {
        let (DescriptionError::Syntax { file, .. } | DescriptionError::InvalidDescription { file, .. }) =
            error;
        let is_root = self.root_name() == *file;
        self.refusal = Some(Refusal {
            digest: self.latest_digest,
            root_digest: is_root.then_some(self.latest_root_digest),
            error: error.clone(),
        });
    }

    fn check_refusal(
        &self,
        digest_of: impl Fn(&Refusal) -> Option<u64>,
        digest: u64,
    ) -> Result<(), DescriptionReadError> {
        match self.refusal.as_ref().filter(|refusal| digest_of(refusal) == Some(digest)) {
            Some(refusal) => Err(DescriptionReadError::Refused(refusal.error.clone())),
            None => Ok(()),
        }
    }

    /// Reads a file that another file refers to. A remote document cannot refer to local files.
    async fn read_reference(&mut self, file: &str) -> Result<String, DescriptionReadError> {
        if file.starts_with("http://") || file.starts_with("https://") {
            return Ok(self.fetch(file).await?.to_string());
        }
        match self.source {
            DescriptionLocation::File(_) => self.read_file(Path::new(file)).await,
            DescriptionLocation::Url(_) | DescriptionLocation::Inline(_) => {
                let error = std::io::Error::other("a remote description cannot refer to local files");
                Err(DescriptionReadError::File { path: file.into(), error })
            }
        }
    }

    async fn read_file(&self, path: &Path) -> Result<String, DescriptionReadError> {
        let (path, max_bytes) = (path.to_owned(), self.max_bytes);
        let read = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || file::read_text(&path, max_bytes))
        };
        let read = read.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        read.map_err(|error| DescriptionReadError::File { path, error })
    }

    /// Fetches the text at a URL, with a conditional request if it was fetched before.
    async fn fetch(&mut self, url: &str) -> Result<Arc<str>, DescriptionReadError> {
        let display_url = || url.split('?').next().unwrap_or_default().to_owned();
        let response = self.send(url, &display_url()).await?;
        if response.status() == StatusCode::NOT_MODIFIED
            && let Some(fetched) = self.fetched.get(url)
        {
            return Ok(fetched.text.clone());
        }
        if response.status() != StatusCode::OK {
            return Err(DescriptionReadError::Status(display_url(), response.status()));
        }
        let (head, body) = response.into_parts();
        if head.headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            return Err(DescriptionReadError::Compressed(display_url()));
        }
        let bytes = body::read(body, self.max_bytes)
            .await
            .map_err(|error| DescriptionReadError::Body(display_url(), error))?;
        let text: Arc<str> =
            std::str::from_utf8(&bytes).map_err(|_| DescriptionReadError::NotUtf8(display_url()))?.into();
        let version = |response_header: HeaderName, condition: HeaderName| {
            Some((condition, head.headers.get(response_header)?.clone()))
        };
        let version = version(header::ETAG, header::IF_NONE_MATCH)
            .or_else(|| version(header::LAST_MODIFIED, header::IF_MODIFIED_SINCE));
        self.fetched.insert(url.to_owned(), FetchedFile { text: text.clone(), validator: version });
        Ok(text)
    }

    /// Sends a request and follows redirects. Credentials go only to the description's own server; other servers need
    /// public addresses.
    async fn send(
        &self,
        url: &str,
        display_url: &str,
    ) -> Result<Response<ResponseBody>, DescriptionReadError> {
        let mut uri: Uri = url
            .parse()
            .map_err(|_| DescriptionReadError::Status(display_url.to_owned(), StatusCode::NOT_FOUND))?;
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::new(Full::new(Bytes::new()));
            *request.uri_mut() = uri.clone();
            let accept = HeaderValue::from_static("application/json, application/yaml, */*;q=0.5");
            request.headers_mut().insert(header::ACCEPT, accept);
            let is_description_server = self.is_description_server(&uri);
            if is_description_server {
                self.access.apply_headers(&mut request).await?;
            }
            if let Some(FetchedFile { validator: Some((name, value)), .. }) = self.fetched.get(url) {
                request.headers_mut().insert(name.clone(), value.clone());
            }
            let client = if is_description_server { &self.client } else { &self.public_client };
            let response = client
                .send(request)
                .await
                .map_err(|error| DescriptionReadError::Request(display_url.to_owned(), error))?;
            let location =
                response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
            match location.filter(|_| response.status().is_redirection()) {
                Some(location) => {
                    let next = toolyard_openapi::join(&uri.to_string(), location);
                    uri = next.parse().map_err(|_| {
                        DescriptionReadError::Status(display_url.to_owned(), response.status())
                    })?;
                }
                None => return Ok(response),
            }
        }
        Err(DescriptionReadError::Status(display_url.to_owned(), StatusCode::LOOP_DETECTED))
    }

    /// True if a URL is on the server that the manifest names.
    fn is_description_server(&self, uri: &Uri) -> bool {
        match &self.source {
            DescriptionLocation::Url(own) => {
                own.scheme() == uri.scheme() && own.authority() == uri.authority()
            }
            // The author of a local description chose its URLs.
            DescriptionLocation::File(_) | DescriptionLocation::Inline(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetcher(source: DescriptionLocation) -> DescriptionFetcher {
        let access = ServiceAccess {
            base_url: None,
            headers: HeaderMap::new(),
            auth: None,
            credentials: ServiceCredentials::default(),
        };
        DescriptionFetcher::new(source, HttpClient::without_roots().unwrap(), Arc::new(access), 1 << 20)
    }

    fn error(sources: &DescriptionSources) -> DescriptionError {
        toolyard_openapi::read(sources, &toolyard_openapi::ReadOptions::default()).unwrap_err()
    }

    #[tokio::test]
    async fn refused_description_is_not_read_again_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("openapi.yaml");
        let mut fetcher = fetcher(DescriptionLocation::File(file.clone()));
        for text in ["openapi: [", "openapi: 5.0.0\nx: {$ref: other.yaml}"] {
            std::fs::write(&file, text).unwrap();
            let sources = fetcher.read().await.unwrap().unwrap();
            let refusal = error(&sources);
            fetcher.mark_refused(&refusal);
            for _ in 0..2 {
                let again = fetcher.read().await.unwrap_err();
                assert!(
                    matches!(&again, DescriptionReadError::Refused(error) if *error == refusal),
                    "{again}"
                );
            }
        }
        std::fs::write(&file, "openapi: 3.0.0").unwrap();
        assert!(fetcher.read().await.unwrap().is_some());
    }

    #[tokio::test]
    async fn exceeded_limit_is_named() {
        let text = "x".repeat((1 << 20) + 1);
        let read = fetcher(DescriptionLocation::Inline(text)).read().await;
        let expected = "its files have 1048577 bytes in total, but the limit is 1048576 bytes";
        assert_eq!(read.unwrap_err().to_string(), expected);
    }
}
