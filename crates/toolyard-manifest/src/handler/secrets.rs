//! What of a handler nobody is to see, wherever it is written.

use serde_json::Value;
use toolyard_core::Secrets;

use super::{
    Argument, Auth, Credential, Handler, HandlerKind, McpTransport, OpenApiSpec, Override, SchemeCredential,
    Secret, Url,
};

impl Handler {
    /// Everything that may be secret: what stands where secrets do, whether it is written out or referred to, and whatever
    /// else a reference stands for. What is in a file that is read at each call, only who reads it knows.
    ///
    /// Of the arguments of a program, those are secret that an option with two dashes has (`--token X`, `--token=X`), and URLs
    /// with a user: others are the names of packages and files, without which nobody understands what the program says.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let mut texts = Texts::default();
        let authority = self.kind.endpoint();
        let authority = authority_and_rest(&authority).0;
        for value in self.from_outside.iter().map(Secret::expose) {
            texts.url(value);
            // Where a server is may be known.
            if !authority.contains(value) {
                texts.add(value);
            }
        }
        texts.kind(&self.kind);
        self.overrides.iter().for_each(|(_, change)| texts.pinned(change));
        texts.0
    }

    /// Where its calls go, for people: a URL without its query and without what references stand for in its path, or
    /// `stdio://` and a command without its arguments.
    #[must_use]
    pub fn endpoint(&self) -> String {
        let endpoint = self.kind.endpoint();
        let (before, path) = authority_and_rest(&endpoint);
        format!("{before}{}", Secrets::new(self.secrets()).hide(path))
    }
}

/// A URL up to its path, and the rest.
fn authority_and_rest(url: &str) -> (&str, &str) {
    let start = url.find("://").map_or(0, |colon| colon + "://".len());
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |end| start + end);
    url.split_at(end)
}

/// The texts that may be secret.
#[derive(Default)]
struct Texts(Vec<String>);

impl Texts {
    fn add(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }

    fn kind(&mut self, kind: &HandlerKind) {
        match kind {
            HandlerKind::Mcp(mcp) => match &mcp.transport {
                McpTransport::Http(http) => {
                    self.query(&http.endpoint.uri().to_string());
                    self.auth(http.auth.as_ref());
                    http.headers.iter().for_each(|(_, value)| self.header(value));
                }
                McpTransport::Stdio { args, env, .. } => {
                    self.args(args.iter());
                    env.iter().for_each(|(_, value)| self.add(value));
                }
            },
            HandlerKind::Http(http) => {
                match &http.url {
                    Url::Fixed(endpoint) => self.query(&endpoint.uri().to_string()),
                    Url::Template(template) => self.query(template.as_str()),
                }
                self.auth(http.auth.as_ref());
                http.headers.iter().for_each(|(_, value)| self.header(value));
                http.static_query.iter().for_each(|(_, value)| self.add(value.expose()));
                http.static_body.iter().flat_map(|body| body.iter()).for_each(|(_, value)| self.value(value));
            }
            HandlerKind::Grpc(grpc) => self.auth(grpc.auth.as_ref()),
            HandlerKind::Function(_) => {}
            HandlerKind::CortexOne(function) => self.credential(&function.api_key),
            HandlerKind::OpenApi(openapi) => {
                if let OpenApiSpec::Url(url) = &openapi.spec {
                    self.query(&url.uri().to_string());
                }
                openapi.base_url.iter().for_each(|url| self.query(&url.uri().to_string()));
                self.auth(openapi.auth.as_ref());
                openapi.headers.iter().for_each(|(_, value)| self.header(value));
                openapi.credentials.iter().for_each(|(_, wanted)| self.scheme(wanted));
            }
            HandlerKind::Builtins(builtins) => {
                builtins
                    .llm
                    .iter()
                    .filter_map(|llm| llm.api_key.as_ref())
                    .for_each(|key| self.add(key.expose()));
            }
        }
    }

    fn scheme(&mut self, wanted: &SchemeCredential) {
        match wanted {
            SchemeCredential::Secret(credential) => self.credential(credential),
            SchemeCredential::OAuth(client) => {
                self.credential(&client.secret);
                client.token_url.iter().for_each(|url| self.query(&url.uri().to_string()));
            }
        }
    }

    fn auth(&mut self, auth: Option<&Auth>) {
        auth.iter().for_each(|auth| self.credential(&auth.credential));
    }

    /// A token, or a name and a password, of which the password is secret by itself as well.
    fn credential(&mut self, credential: &Credential) {
        if let Credential::Value(secret) = credential {
            self.add(secret.expose());
            self.0.extend(secret.expose().split_once(':').map(|(_, password)| password.to_owned()));
        }
    }

    /// A header, and what stands behind a scheme in it.
    fn header(&mut self, value: &Secret) {
        self.add(value.expose());
        self.0.extend(value.expose().split_once(' ').map(|(_, credentials)| credentials.to_owned()));
    }

    fn args<'a>(&mut self, args: impl Iterator<Item = &'a str>) {
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

    /// All that may be secret in a URL from outside: password, path and query.
    fn url(&mut self, text: &str) {
        let Some((_, behind)) = text.split_once("://") else { return };
        let (authority, rest) = authority_and_rest(behind);
        let user = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        self.0.extend(user.map(|(_, password)| password.to_owned()));
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        self.0.extend(path.split('/').map(str::to_owned));
        self.query(text);
    }

    /// The values in the query of a URL.
    fn query(&mut self, url: &str) {
        let query = url.split_once('?').map_or("", |(_, query)| query);
        let value = |pair: &str| pair.split_once('=').map_or(pair, |(_, value)| value).to_owned();
        self.0.extend(query.split(['&', '#']).map(value));
    }

    /// The strings in a value.
    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(members) => members.values().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn pinned(&mut self, change: &Override) {
        let Override::Change(change) = change else { return };
        for (_, argument) in &change.arguments {
            if let Argument::Pin(value) = argument {
                self.value(value);
            }
        }
    }
}
