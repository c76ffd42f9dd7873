//! Issues and pull requests by GitHub's REST API, whose answers are shorter and clearer than the pages for people.

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use http_body_util::Full;
use serde::Deserialize;
use toolyard_manifest::SecretString;
use toolyard_net::body;

use crate::fetch::DEFAULT_USER_AGENT;
use crate::page::PageText;
use crate::shared_client::SharedClient;
use crate::web_url::WebUrl;

/// Base URL of the API.
pub const ENDPOINT: &str = "https://api.github.com";

/// Maximum size of a response in bytes. A body has 64 Ki characters at most.
const MAX_RESPONSE_BYTES: usize = 2 << 20;

/// An issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GithubReference {
    /// Owner and name of the repository.
    repository: String,
    is_pull: bool,
    number: u64,
}

/// A client of the API.
#[derive(Debug)]
pub struct GithubApi {
    client: SharedClient,
    endpoint: String,
    authorization: Option<HeaderValue>,
}

/// The members of a response that are used.
#[derive(Deserialize)]
struct GithubIssue {
    title: String,
    state: String,
    #[serde(default)]
    state_reason: Option<String>,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    merged_at: Option<String>,
    #[serde(default)]
    user: Option<GithubUser>,
    #[serde(default)]
    labels: Vec<GithubLabel>,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    updated_at: Option<String>,
    #[serde(default)]
    html_url: Option<String>,
    #[serde(default)]
    comments: Option<u64>,
    #[serde(default)]
    body: Option<String>,
}

#[derive(Deserialize)]
struct GithubUser {
    login: String,
}

/// A label: its name, or an object with it.
#[derive(Deserialize)]
#[serde(untagged)]
enum GithubLabel {
    Name(String),
    Described {
        #[serde(default)]
        name: Option<String>,
    },
}

/// The reason why the API has no answer. Then the page for people is visited.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct GithubError(String);

impl GithubReference {
    /// Returns what a URL refers to: `https://github.com/{owner}/{repo}/issues/{number}`, or `…/pull/{number}`, with
    /// anything after it.
    #[must_use]
    pub fn of(url: &WebUrl) -> Option<Self> {
        if !matches!(url.host().as_str(), "github.com" | "www.github.com") {
            return None;
        }
        let mut segments = url.uri().path().split('/').skip(1);
        let (owner, name, kind, number) =
            (segments.next()?, segments.next()?, segments.next()?, segments.next()?);
        let is_name = |name: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !name.is_empty() && name.len() <= 100 && name.bytes().all(is_plain) && !name.starts_with('.')
        };
        let is_pull = match kind {
            "issues" => false,
            "pull" => true,
            _ => return None,
        };
        let number = number.parse().ok().filter(|number| *number > 0)?;
        (is_name(owner) && is_name(name)).then(|| Self {
            repository: format!("{owner}/{name}"),
            is_pull,
            number,
        })
    }
}

impl GithubApi {
    /// Returns a client of the API with this base URL.
    #[must_use]
    pub fn new(client: SharedClient, endpoint: &str, token: Option<&SecretString>) -> Self {
        let authorization = token.and_then(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose())).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Self { client, endpoint: endpoint.trim_end_matches('/').to_owned(), authorization }
    }

    /// Returns an issue or a pull request as a page.
    ///
    /// # Errors
    /// Returns an error if the API has no usable answer.
    pub async fn get(&self, reference: &GithubReference) -> Result<PageText, GithubError> {
        let GithubReference { repository, is_pull, number } = reference;
        let kind = if *is_pull { "pulls" } else { "issues" };
        let mut request = Request::get(format!("{}/repos/{repository}/{kind}/{number}", self.endpoint))
            // The API refuses requests without one.
            .header(header::USER_AGENT, DEFAULT_USER_AGENT)
            .header(header::ACCEPT, "application/vnd.github+json, application/json;q=0.9");
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request =
            request.body(Full::<Bytes>::default()).map_err(|error| GithubError(error.to_string()))?;
        let client = self.client.get().await.map_err(|error| GithubError(error.to_string()))?;
        let response = client.any.send(request).await;
        let response = response.map_err(|error| GithubError(error.reason().to_owned()))?;
        if !response.status().is_success() {
            return Err(GithubError(format!("status {}", response.status())));
        }
        let body = body::read(response.into_body(), MAX_RESPONSE_BYTES).await;
        let body = body.map_err(|error| GithubError(error.to_string()))?;
        let issue: GithubIssue =
            serde_json::from_slice(&body).map_err(|error| GithubError(error.to_string()))?;
        Ok(issue.page(reference))
    }
}

impl GithubIssue {
    fn page(self, reference: &GithubReference) -> PageText {
        let GithubReference { repository, is_pull, number } = reference;
        let name = if *is_pull { "PR" } else { "Issue" };
        let title = format!("{name} #{number}: {} [{repository}]", self.title.trim());
        let reason = match (&self.merged_at, self.draft, self.state_reason.as_deref()) {
            (Some(_), ..) => " (merged)".to_owned(),
            (None, true, _) => " (draft)".to_owned(),
            (None, false, Some(reason)) => format!(" ({})", reason.replace('_', " ")),
            (None, false, None) => String::new(),
        };
        let labels: Vec<_> = self.labels.into_iter().filter_map(GithubLabel::name).collect();
        let rows = [
            ("Repository", Some(repository.clone())),
            ("State", Some(self.state + &reason)),
            ("Author", self.user.map(|user| user.login)),
            ("Created", self.created_at),
            ("Updated", self.updated_at),
            ("Labels", (!labels.is_empty()).then(|| labels.join(", "))),
            ("Comments", self.comments.filter(|comments| *comments > 0).map(|comments| comments.to_string())),
            ("URL", self.html_url),
        ];
        let rows = rows.into_iter().filter_map(|(name, value)| Some(format!("**{name}:** {}", value?)));
        let rows = rows.collect::<Vec<_>>().join("  \n");
        let body = self.body.filter(|body| !body.trim().is_empty());
        let body = body.map_or_else(|| "No description.".to_owned(), |body| body.replace("\r\n", "\n"));
        PageText { title: Some(title), text: format!("{rows}\n\n{}", body.trim_end()) }
    }
}

impl GithubLabel {
    fn name(self) -> Option<String> {
        match self {
            Self::Name(name) => Some(name),
            Self::Described { name } => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_of_a_url() {
        let check = |url: &str, expected: Option<(&str, bool, u64)>| {
            let reference = GithubReference::of(&WebUrl::parse(url).expect("a URL"));
            let expected = expected.map(|(repository, is_pull, number)| GithubReference {
                repository: repository.to_owned(),
                is_pull,
                number,
            });
            assert_eq!(reference, expected, "{url}");
        };
        check(
            "https://github.com/octocat/Hello-World/issues/1347",
            Some(("octocat/Hello-World", false, 1347)),
        );
        check("http://www.GitHub.com/o/r.js/pull/2/files?x=1#diff", Some(("o/r.js", true, 2)));
        check("https://github.com/o/r/issues/1#issuecomment-5", Some(("o/r", false, 1)));
        check("https://github.com/o/r/issues", None);
        check("https://github.com/o/r/issues/new", None);
        check("https://github.com/o/r/issues/0", None);
        check("https://github.com/o/r/pulls/1", None);
        check("https://github.com/o/..%2fx/issues/1", None);
        check("https://github.example/o/r/issues/1", None);
        check("https://gist.github.com/o/r/issues/1", None);
    }
}
