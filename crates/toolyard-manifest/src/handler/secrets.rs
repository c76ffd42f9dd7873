//! The secrets of a handler, which never appear in any output.

use http::HeaderName;
use serde_json::Value;
use toolyard_core::SecretRedactor;

use super::{ArgumentOverride, CredentialSource, HandlerConfig, RequestAuth, SecretString, ToolOverride};
use crate::formats::EndpointUrl;

impl HandlerConfig {
    /// Returns everything that may be secret: the values of secret fields, in the manifest or by reference, and the
    /// values of all other references. Excluded are files that are read at each call.
    ///
    /// Of a program's arguments, the values of options with two dashes (`--token X`, `--token=X`) and URLs with a user
    /// are secret. Others are names of packages and files; without them messages would make no sense.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let mut texts = SecretCollector::default();
        let endpoint = self.kind.endpoint();
        let authority = authority_and_rest(&endpoint).0;
        let program = endpoint.strip_prefix("stdio://");
        for value in self.reference_values.iter().map(SecretString::expose) {
            if program.is_some_and(|program| is_part_of_path(value, program)) {
                continue;
            }
            texts.url(value);
            // The host of a server is not secret.
            if !authority.contains(value) {
                texts.add(value);
            }
        }
        self.kind.add_secrets(&mut texts);
        self.overrides.iter().for_each(|(_, change)| texts.pinned_values(change));
        texts.0
    }

    /// Returns texts that tell its server from others, secrets included. They are for digests only.
    #[must_use]
    pub fn identity(&self) -> Vec<String> {
        let mut texts = vec![self.kind.name().to_owned(), self.kind.endpoint()];
        texts.extend(self.kind.identity());
        texts.extend(self.secrets());
        texts
    }

    /// The target of its calls, for display: a URL without its query and without reference values in its path, or
    /// `stdio://` and a command without its arguments.
    #[must_use]
    pub fn endpoint(&self) -> String {
        self.displayed(&self.kind.endpoint())
    }

    /// Returns a URL of the handler without the values of its references in the path.
    #[must_use]
    pub fn displayed(&self, url: &str) -> String {
        let (before, path) = authority_and_rest(url);
        format!("{before}{}", SecretRedactor::new(self.secrets()).hide(path))
    }
}

/// True if a value is a whole path, or whole components of it: that of a program is not secret.
fn is_part_of_path(value: &str, path: &str) -> bool {
    let value = value.trim_matches('/');
    !value.is_empty() && format!("/{}/", path.trim_matches('/')).contains(&format!("/{value}/"))
}

/// Splits a URL at the start of its path.
fn authority_and_rest(url: &str) -> (&str, &str) {
    let start = url.find("://").map_or(0, |colon| colon + "://".len());
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |end| start + end);
    url.split_at(end)
}

/// Collects texts that may be secret.
#[derive(Default)]
pub(super) struct SecretCollector(Vec<String>);

impl SecretCollector {
    /// Adds a text.
    pub(super) fn add(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }

    /// Adds the credential of requests.
    pub(super) fn auth(&mut self, auth: Option<&RequestAuth>) {
        auth.iter().for_each(|auth| self.credential(&auth.credential));
    }

    /// Adds a token, or a user name and a password; of the latter the password is also secret by itself.
    pub(super) fn credential(&mut self, credential: &CredentialSource) {
        if let CredentialSource::Value(secret) = credential {
            self.add(secret.expose());
            self.0.extend(secret.expose().split_once(':').map(|(_, password)| password.to_owned()));
        }
    }

    /// Adds the values of headers, and the parts after their schemes.
    pub(super) fn headers(&mut self, headers: &[(HeaderName, SecretString)]) {
        for (_, value) in headers {
            self.add(value.expose());
            self.0.extend(value.expose().split_once(' ').map(|(_, credentials)| credentials.to_owned()));
        }
    }

    /// Adds the values of options among a program's arguments, and the secret parts of URLs with a user.
    pub(super) fn args<'a>(&mut self, args: impl Iterator<Item = &'a str>) {
        let mut is_of_option = false;
        for arg in args {
            let option = arg.strip_prefix("--");
            if let Some((_, value)) = option.and_then(|option| option.split_once('=')) {
                self.add(value);
            } else if is_of_option && option.is_none() {
                self.add(arg);
            }
            if arg.contains('@') && arg.contains("://") {
                self.url(arg);
            }
            is_of_option = option.is_some_and(|option| !option.contains('='));
        }
    }

    /// Adds the secret parts of a URL from a reference: password, path and query.
    pub(super) fn url(&mut self, text: &str) {
        let Some((_, behind)) = text.split_once("://") else { return };
        let (authority, rest) = authority_and_rest(behind);
        let user = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        self.0.extend(user.map(|(_, password)| password.to_owned()));
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        self.0.extend(path.split('/').map(str::to_owned));
        self.query(text);
    }

    /// Adds the values in the query of an endpoint.
    pub(super) fn query_of(&mut self, endpoint: &EndpointUrl) {
        self.query(&endpoint.uri().to_string());
    }

    /// Adds the values in the query of a URL.
    pub(super) fn query(&mut self, url: &str) {
        let query = url.split_once('?').map_or("", |(_, query)| query);
        let value = |pair: &str| pair.split_once('=').map_or(pair, |(_, value)| value).to_owned();
        self.0.extend(query.split(['&', '#']).map(value));
    }

    /// Adds the strings in a value.
    pub(super) fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(members) => members.values().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn pinned_values(&mut self, change: &ToolOverride) {
        let ToolOverride::Change(change) = change else { return };
        for (_, argument) in &change.arguments {
            if let ArgumentOverride::Pin(value) = argument {
                self.value(value);
            }
        }
    }
}
