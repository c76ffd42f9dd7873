//! Credentials of upstream requests: the `Authorization` header, from a secret in the configuration or in a file.

use std::error::Error;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use toolyard_core::{SecretRedactor, file};

/// The value of an `Authorization` header. It has no `Debug`, to keep the secret out of logs.
pub struct UpstreamCredentials {
    /// Scheme of the header.
    pub scheme: HttpAuthScheme,
    /// Source of the secret.
    pub source: SecretSource,
    /// Redacts secrets from texts; the secret of a file is registered when it is read.
    pub secrets: SecretRedactor,
}

/// A scheme of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpAuthScheme {
    /// A token (RFC 6750).
    Bearer,
    /// `user:password` (RFC 7617).
    Basic,
    /// A bare key without the name of a scheme. No standard defines this, but services require it.
    Bare,
}

/// The source of a secret.
pub enum SecretSource {
    /// The secret itself.
    Value(String),
    /// A file, read for each call, as a mounted secret may be replaced.
    File(PathBuf),
}

/// The secret is missing or cannot be read. The error does not name it.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the credentials")]
pub struct CredentialsError(#[source] Option<Box<dyn Error + Send + Sync>>);

/// Maximum length of a secret, in bytes.
const MAX_SECRET_BYTES: usize = 64 * 1024;

impl UpstreamCredentials {
    /// Returns the value of the header.
    ///
    /// # Errors
    /// Errors if the file cannot be read, or contains no valid secret.
    pub async fn header(&self) -> Result<HeaderValue, CredentialsError> {
        self.value(&self.source.read(&self.secrets).await?)
    }

    fn value(&self, secret: &str) -> Result<HeaderValue, CredentialsError> {
        if secret.is_empty() || secret.len() > MAX_SECRET_BYTES {
            return Err(CredentialsError(None));
        }
        let text = match self.scheme {
            HttpAuthScheme::Bearer => format!("Bearer {secret}"),
            HttpAuthScheme::Basic => format!("Basic {}", STANDARD.encode(secret)),
            HttpAuthScheme::Bare => secret.to_owned(),
        };
        let mut value = HeaderValue::try_from(text).map_err(|_| CredentialsError(None))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl SecretSource {
    /// Returns the secret, and registers a secret from a file for redaction.
    ///
    /// # Errors
    /// Errors if the file cannot be read.
    pub async fn read(&self, secrets: &SecretRedactor) -> Result<String, CredentialsError> {
        match self {
            Self::Value(secret) => Ok(secret.clone()),
            Self::File(path) => {
                let path = path.clone();
                let read =
                    tokio::task::spawn_blocking(move || file::read_text(&path, MAX_SECRET_BYTES)).await;
                let secret = read.map_err(read_failure)?.map_err(read_failure)?;
                secrets.learn(secret.trim());
                Ok(secret.trim().to_owned())
            }
        }
    }
}

fn read_failure(error: impl Error + Send + Sync + 'static) -> CredentialsError {
    CredentialsError(Some(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(scheme: HttpAuthScheme, secret: &str, expect: Option<&str>) {
        let header = UpstreamCredentials {
            scheme,
            source: SecretSource::Value(secret.to_owned()),
            secrets: SecretRedactor::default(),
        }
        .header()
        .await;
        assert_eq!(header.as_ref().ok().and_then(|value| value.to_str().ok()), expect);
        assert!(header.is_err() || header.is_ok_and(|value| value.is_sensitive()));
    }

    #[tokio::test]
    async fn header_of_a_secret_is_marked_sensitive() {
        check(HttpAuthScheme::Bearer, "token", Some("Bearer token")).await;
        check(HttpAuthScheme::Basic, "me:secret", Some("Basic bWU6c2VjcmV0")).await;
        check(HttpAuthScheme::Bare, "RIV_key", Some("RIV_key")).await;
        check(HttpAuthScheme::Bare, "two\nlines", None).await;
        check(HttpAuthScheme::Bearer, "", None).await;
        check(HttpAuthScheme::Bearer, "two\nlines", None).await;
        check(HttpAuthScheme::Bearer, &"x".repeat(MAX_SECRET_BYTES + 1), None).await;
    }
}
