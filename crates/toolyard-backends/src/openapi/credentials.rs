//! What opens a service: the schemes of its description, with what the manifest has for them.

use std::collections::{BTreeMap, HashMap};

use ::http::{HeaderName, HeaderValue, Request, Uri, header};
use bytes::Bytes;
use toolyard_core::{Code, Secrets, ToolError};
use toolyard_net::auth::{self, Auth, Source};
use toolyard_net::client::Client;
use toolyard_openapi::{KeyPlace, Requirement, Scheme, percent_encoded};

use super::token::{Grant, Tokens};
use crate::http::no_credentials;

/// What the manifest has for the schemes of a description, by their names.
#[derive(Default)]
pub struct Credentials {
    /// The names of schemes, and what opens them.
    pub by_scheme: HashMap<String, Credential>,
    /// What keeps secrets out of what is said.
    pub secrets: Secrets,
    tokens: Tokens,
}

/// What opens a scheme.
pub enum Credential {
    /// The key, the token, or `user:password`.
    Secret(Source),
    /// What tokens are given out for (OAuth 2, client credentials: RFC 6749, section 4.4).
    Client {
        /// Who asks.
        id: String,
        /// What proves it.
        secret: Source,
        /// Where tokens are given out, if not where the description says.
        token_url: Option<String>,
        /// The scopes to ask for, if not those that an operation wants.
        scopes: Option<Vec<String>>,
    },
}

/// What a request was signed with, as far as that can be over.
#[derive(Debug, Default)]
pub(super) struct Signed(Vec<String>);

impl Credentials {
    /// What the manifest has, by the names of schemes.
    #[must_use]
    pub fn new(by_scheme: HashMap<String, Credential>, secrets: Secrets) -> Self {
        Self { by_scheme, secrets, tokens: Tokens::default() }
    }

    /// Puts on what opens an operation: the first of its alternatives for which there is everything. Where there is none,
    /// the request goes as it is.
    pub(super) async fn sign(
        &self,
        request: &mut Request<Bytes>,
        alternatives: &[Vec<Requirement>],
        schemes: &BTreeMap<String, Scheme>,
        client: &Client,
    ) -> Result<Signed, ToolError> {
        let has_all = |all: &&Vec<Requirement>| {
            !all.is_empty()
                && all
                    .iter()
                    .all(|one| self.by_scheme.contains_key(&one.scheme) && schemes.contains_key(&one.scheme))
        };
        let mut signed = Signed::default();
        for requirement in alternatives.iter().find(has_all).into_iter().flatten() {
            let (Some(scheme), Some(credential)) =
                (schemes.get(&requirement.scheme), self.by_scheme.get(&requirement.scheme))
            else {
                continue;
            };
            self.put(request, scheme, credential, requirement, client, &mut signed).await?;
        }
        Ok(signed)
    }

    /// Whether there is a token among what a request was signed with; if so, it is not used again.
    pub(super) fn forget(&self, signed: &Signed) -> bool {
        signed.0.iter().filter(|grant| self.tokens.forget(grant)).count() > 0
    }

    async fn put(
        &self,
        request: &mut Request<Bytes>,
        scheme: &Scheme,
        credential: &Credential,
        wanted: &Requirement,
        client: &Client,
        signed: &mut Signed,
    ) -> Result<(), ToolError> {
        match (scheme, credential) {
            (Scheme::ApiKey { place, name }, Credential::Secret(source)) => {
                let key = source.read(&self.secrets).await.map_err(no_credentials)?;
                put_key(request, *place, name, &key)
            }
            (Scheme::Basic, Credential::Secret(source)) => {
                self.authorize(request, auth::Scheme::Basic, source).await
            }
            (Scheme::Other, Credential::Secret(_)) => {
                let problem = "The credentials of this tool cannot be used: its scheme is none that is known";
                Err(ToolError::new(Code::Unavailable, problem).unsent())
            }
            (_, Credential::Secret(source)) => self.authorize(request, auth::Scheme::Bearer, source).await,
            (scheme, Credential::Client { id, secret, token_url, scopes }) => {
                let described = match scheme {
                    Scheme::OAuth2 { token_url } => token_url.as_deref(),
                    _ => None,
                };
                let no_place = "The credentials of this tool cannot be used: where tokens are given out is not known \
                                (`tokenURL`)";
                let token_url = token_url.as_deref().or(described);
                let token_url =
                    token_url.ok_or_else(|| ToolError::new(Code::Unavailable, no_place).unsent())?;
                let scopes = scopes.as_ref().unwrap_or(&wanted.scopes);
                let secret = secret.read(&self.secrets).await.map_err(no_credentials)?;
                let grant = Grant {
                    token_url: token_url.to_owned(),
                    id: id.clone(),
                    secret,
                    scopes: scopes.join(" "),
                };
                let token = self.tokens.get(&grant, client, &self.secrets).await?;
                signed.0.push(grant.key());
                self.authorize(request, auth::Scheme::Bearer, &Source::Value(token)).await
            }
        }
    }

    async fn authorize(
        &self,
        request: &mut Request<Bytes>,
        scheme: auth::Scheme,
        source: &Source,
    ) -> Result<(), ToolError> {
        let source = Source::Value(source.read(&self.secrets).await.map_err(no_credentials)?);
        let auth = Auth { scheme, source, secrets: self.secrets.clone() };
        request.headers_mut().insert(header::AUTHORIZATION, auth.header().await.map_err(no_credentials)?);
        Ok(())
    }
}

fn put_key(request: &mut Request<Bytes>, place: KeyPlace, name: &str, key: &str) -> Result<(), ToolError> {
    let cannot = || {
        ToolError::new(Code::Unavailable, "The credentials of this tool cannot stand where they belong")
            .unsent()
    };
    let sensitive = |text: String| -> Result<HeaderValue, ToolError> {
        let mut value = HeaderValue::try_from(text).map_err(|_| cannot())?;
        value.set_sensitive(true);
        Ok(value)
    };
    match place {
        KeyPlace::Header => {
            let name = HeaderName::try_from(name).map_err(|_| cannot())?;
            request.headers_mut().insert(name, sensitive(key.to_owned())?);
        }
        KeyPlace::Cookie => {
            let before = request.headers().get(header::COOKIE).and_then(|value| value.to_str().ok());
            let before = before.map(|before| format!("{before}; ")).unwrap_or_default();
            let cookie = sensitive(format!("{before}{name}={key}"))?;
            request.headers_mut().insert(header::COOKIE, cookie);
        }
        KeyPlace::Query => {
            let separator =
                if request.uri().query().is_some_and(|query| !query.is_empty()) { "&" } else { "?" };
            let url = request.uri().to_string();
            let url = format!(
                "{}{separator}{}={}",
                url.trim_end_matches('?'),
                percent_encoded(name),
                percent_encoded(key)
            );
            *request.uri_mut() = url.parse::<Uri>().map_err(|_| cannot())?;
        }
    }
    Ok(())
}
