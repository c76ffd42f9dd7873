//! The section `builtins.web`.

use std::{path::PathBuf, time::Duration};

use serde_json::{Value, json};

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    field_type::{
        BoundedCountField, CountField, CpuField, FieldType, FlagField, KeywordField, ListField, SizeField,
        TextField, TimeoutField,
    },
    formats::{self, EndpointUrl, FormatError},
    handler::SecretString,
    object_schema::SchemaDefinitions,
    section::{nested, section},
};

/// With less not even the head of a page fits.
const MIN_PAGE_BYTES: usize = 16 << 10;

/// With less Chromium does not start.
const MIN_BROWSER_BYTES: usize = 256 << 20;

/// With less Chromium has no room for its profile and its shared memory.
const MIN_BROWSER_DISK_BYTES: usize = 32 << 20;

section! {
    /// Settings of `web_search` and `web_browse`. The group is only enabled if the section is present.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct WebSettings: Default = "web" {
        /// Service of `web_search`: `brave`, the Brave Search API, or `searxng`, an instance of SearXNG.
        pub provider: SearchService = "provider", KeywordField(&SERVICE), default SearchService::Brave;
        /// URL of the search service. Default: that of the Brave Search API. For SearXNG it is required: the base URL
        /// of an instance whose settings have the format `json`.
        pub endpoint: Option<EndpointUrl> = "endpoint", ENDPOINT.examples(&["https://searx.example.com"]), optional;
        /// Key of the Brave Search API. Without a key there is no `web_search`; SearXNG needs none.
        pub api_key: Option<SecretString> = "apiKey",
            TextField::new(formats::token).secret().examples(&["${BRAVE_API_KEY}"]),
            optional;
        /// Environment variable with the key. Unlike a reference in `apiKey` it may be unset: then there is no
        /// `web_search`.
        pub api_key_env_var: Option<SecretVariable> = "apiKeyEnvVar", SecretVariableField, optional;
        /// Number of search results if the call does not name one.
        pub max_search_results: usize = "maxSearchResults", BoundedCountField { min: 1, max: 20 }, default 5;
        /// Length above which a page goes to working memory in chunks, in characters.
        pub chunking_threshold: usize = "chunkingThreshold", CountField, default 8_000;
        /// Maximum length of a chunk of a page, in characters.
        pub chunk_max_length: usize = "chunkMaxLength", CountField, default 4_000;
        /// Lifetime of the chunks of a page.
        pub chunk_ttl: Duration = "chunkTtl", TimeoutField, default Duration::from_secs(30 * 60);
        /// `User-Agent` of requests for pages. Default: `Toolyard/VERSION`.
        pub user_agent: Option<String> = "userAgent", TextField::new(user_agent), optional;
        /// Obey `robots.txt`, by the product name of `userAgent`.
        pub robots: bool = "robots", FlagField, default true;
        /// Hosts that may be visited, with or without a port. A leading `*.` matches any subdomain. Default: all.
        pub hosts: Option<Vec<String>> = "hosts", HOSTS, optional;
        /// Hosts that may have a private address, in the same form. All others must have a public one.
        pub private_hosts: Vec<String> = "privateHosts", HOSTS, described Vec::new();
        /// Maximum number of requests to one host in a minute; more are refused.
        pub host_requests: usize = "hostRequests", CountField, default 60;
        /// Maximum size of a page, before and after decompression, at least 16 KiB.
        pub page_bytes: usize = "pageBytes", SizeField(MIN_PAGE_BYTES), default 5 << 20;
        /// Time limit of a call, including redirects.
        pub timeout: Duration = "timeout", TimeoutField, default Duration::from_secs(30);
        /// Maximum number of running calls of these tools; more wait.
        pub concurrent: usize = "concurrent", CountField, default 8;
        /// Maximum number of running calls of one key; more wait, and let calls of other keys pass. Default: half of
        /// `concurrent`.
        pub concurrent_per_key: Option<usize> = "concurrentPerKey", CountField, optional;
        /// Rendering of pages that are empty without scripts: `none`, or `chromium`, which runs them in a sandbox.
        pub render: PageRendering = "render", KeywordField(&RENDERING), default PageRendering::None;
        /// The browser of `render: chromium`.
        pub chromium: ChromiumSettings = "chromium", nested::<ChromiumSettings>(),
            described ChromiumSettings::default();
        /// Base URL of the REST API of GitHub, for issues and pull requests.
        pub github_api: Option<EndpointUrl> = "githubAPI", ENDPOINT.examples(&["https://api.github.com"]), optional;
        /// Token for it, with which private repositories can be read, and more requests made.
        pub github_token: Option<SecretString> = "githubToken",
            TextField::new(formats::token).secret().examples(&["${GITHUB_TOKEN}"]),
            optional;
    }
}

section! {
    /// The browser that renders pages, a new one for each page.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ChromiumSettings: Default = "chromium" {
        /// The program: a path, or a name in `/usr/local/bin`, `/usr/bin` and `/bin`. Default: the first of
        /// `chromium-headless-shell`, `chromium`, `chrome-headless-shell` and `google-chrome` that is installed.
        pub command: Option<PathBuf> = "command", TextField::new(browser).examples(&["chromium"]), optional;
        /// Memory of all processes of a browser, at least 256 MiB.
        pub memory_bytes: usize = "memory", SizeField(MIN_BROWSER_BYTES), default 1 << 30;
        /// Share of the processors per browser: a number of processors, or of thousandths with an `m`.
        pub cpu_millis: u32 = "cpu", CpuField, default 2000;
        /// Maximum number of processes and threads of a browser, which has about a hundred.
        pub processes: usize = "processes", CountField, default 256;
        /// Maximum size of its files, including shared memory, at least 32 MiB.
        pub disk_bytes: usize = "disk", SizeField(MIN_BROWSER_DISK_BYTES), default 256 << 20;
        /// Time after which a page is read as it is then, although its scripts have not finished.
        pub timeout: Duration = "timeout", TimeoutField, default Duration::from_secs(15);
        /// Maximum size of a rendered page as HTML, at least 16 KiB; the rest is left out.
        pub dom_bytes: usize = "domBytes", SizeField(MIN_PAGE_BYTES), default 4 << 20;
        /// Maximum number of requests of a page; more are refused. A response has at most `pageBytes`.
        pub requests: usize = "requests", CountField, default 100;
        /// Maximum size of all responses for a page together, after decompression, at least 16 KiB.
        pub response_bytes: usize = "responseBytes", SizeField(MIN_PAGE_BYTES), default 32 << 20;
        /// Maximum number of running browsers; more pages wait.
        pub concurrent: usize = "concurrent", CountField, default 2;
    }
}

const ENDPOINT: TextField<EndpointUrl> =
    TextField::new(EndpointUrl::parse).secret().pattern("^https?://[^@]+$");

const HOSTS: ListField<TextField<String>> =
    ListField(TextField::new(formats::host_pattern).examples(&["docs.example.com", "*.example.com"]));

/// The service of `web_search`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchService {
    /// `brave`: the Brave Search API.
    Brave,
    /// `searxng`: an instance of SearXNG.
    Searxng,
}

const SERVICE: KeywordChoice<SearchService> = KeywordChoice {
    noun: "search service",
    words: &[("brave", SearchService::Brave), ("searxng", SearchService::Searxng)],
    unsupported: &[],
};

/// The way in which pages that are empty without scripts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageRendering {
    /// `none`: they are errors.
    None,
    /// `chromium`: Chromium runs their scripts.
    Chromium,
}

const RENDERING: KeywordChoice<PageRendering> = KeywordChoice {
    noun: "rendering of pages",
    words: &[("none", PageRendering::None), ("chromium", PageRendering::Chromium)],
    unsupported: &[],
};

/// An environment variable with a secret, which may be unset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretVariable {
    /// Name of the variable.
    pub name: String,
    /// Its value; `None` if it is unset or empty.
    pub value: Option<SecretString>,
}

/// The name of an environment variable, which is read with the document.
struct SecretVariableField;

impl FieldType for SecretVariableField {
    type Value = SecretVariable;

    fn read(&self, cursor: ValueCursor<'_>) -> Option<SecretVariable> {
        let name = cursor.clone().parse(variable)?;
        let value = match cursor.variable(&name) {
            Some(value) => Some(cursor.check_secret(&value, formats::token)?),
            None => None,
        };
        Some(SecretVariable { name, value })
    }

    fn schema(&self, _: &mut SchemaDefinitions) -> Value {
        json!({"type": "string", "minLength": 1, "examples": ["BRAVE_API_KEY"]})
    }
}

fn variable(text: &str) -> Result<String, FormatError> {
    formats::variable_name(text).map(|()| text.to_owned())
}

fn browser(text: &str) -> Result<PathBuf, FormatError> {
    const INVALID: FormatError = FormatError::new(
        "a program",
        "an absolute path such as /usr/bin/chromium, or a name such as chromium",
    );
    let is_path = text.starts_with('/') || (!text.is_empty() && !text.contains('/'));
    if is_path && !text.contains('\0') { Ok(text.into()) } else { Err(INVALID) }
}

fn user_agent(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError = FormatError::new("a user agent", "a name such as Example/1.0");
    let is_named = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let value = formats::header_value(text).map_err(|_| INVALID)?;
    if is_named && value.to_str().is_ok() { Ok(text.to_owned()) } else { Err(INVALID) }
}

impl WebSettings {
    /// Returns the key of the search service.
    #[must_use]
    pub fn search_key(&self) -> Option<&SecretString> {
        let of_variable = self.api_key_env_var.as_ref().and_then(|variable| variable.value.as_ref());
        self.api_key.as_ref().or(of_variable)
    }

    /// Reports settings that do not fit together.
    pub(super) fn check(&self, cursor: &ValueCursor<'_>) {
        if self.provider == SearchService::Searxng && self.endpoint.is_none() {
            let problem = cursor.problem("`provider: searxng` has no `endpoint`");
            cursor.report(problem.expected("the URL of an instance, such as https://searx.example.com"));
        }
    }
}
