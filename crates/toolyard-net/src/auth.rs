//! Who requests are made for: the `Authorization` header, from wherever the secret is.

use std::error::Error;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use toolyard_core::Secrets;

/// What an `Authorization` header says. It has no `Debug`: there is nothing to show.
pub struct Auth {
    /// How it says it.
    pub scheme: Scheme,
    /// Where the secret is.
    pub source: Source,
    /// What keeps it out of what is said: a secret in a file is known when it is read.
    pub secrets: Secrets,
}

/// A scheme of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// A token (RFC 6750).
    Bearer,
    /// `user:password` (RFC 7617).
    Basic,
    /// A key by itself, without the name of a scheme: no standard has it, and services want it.
    Bare,
}

/// Where a secret is.
pub enum Source {
    /// Here.
    Value(String),
    /// In a file. It is read for each call: whoever mounted it may replace it.
    File(PathBuf),
}

/// There is no secret where one should be. It does not say which.
#[derive(Debug, thiserror::Error)]
#[error("the credentials cannot be read")]
pub struct Unreadable(#[source] Option<Box<dyn Error + Send + Sync>>);

/// A secret that is longer is none.
const LONGEST: usize = 64 * 1024;

impl Auth {
    /// The header's value.
    ///
    /// # Errors
    /// When the file cannot be read, or holds no secret.
    pub async fn header(&self) -> Result<HeaderValue, Unreadable> {
        self.value(&self.source.read(&self.secrets).await?)
    }

    fn value(&self, secret: &str) -> Result<HeaderValue, Unreadable> {
        if secret.is_empty() || secret.len() > LONGEST {
            return Err(Unreadable(None));
        }
        let text = match self.scheme {
            Scheme::Bearer => format!("Bearer {secret}"),
            Scheme::Basic => format!("Basic {}", STANDARD.encode(secret)),
            Scheme::Bare => secret.to_owned(),
        };
        let mut value = HeaderValue::try_from(text).map_err(|_| Unreadable(None))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl Source {
    /// The secret. What keeps secrets out of what is said learns it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn read(&self, secrets: &Secrets) -> Result<String, Unreadable> {
        match self {
            Self::Value(secret) => Ok(secret.clone()),
            Self::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
                let secret = read.map_err(unreadable)?.map_err(unreadable)?;
                secrets.learn(secret.trim());
                Ok(secret.trim().to_owned())
            }
        }
    }
}

fn unreadable(error: impl Error + Send + Sync + 'static) -> Unreadable {
    Unreadable(Some(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(scheme: Scheme, secret: &str, expect: Option<&str>) {
        let header = Auth { scheme, source: Source::Value(secret.to_owned()), secrets: Secrets::default() }
            .header()
            .await;
        assert_eq!(header.as_ref().ok().and_then(|value| value.to_str().ok()), expect);
        assert!(header.is_err() || header.is_ok_and(|value| value.is_sensitive()));
    }

    #[tokio::test]
    async fn a_secret_becomes_a_header_that_does_not_show_it() {
        check(Scheme::Bearer, "token", Some("Bearer token")).await;
        check(Scheme::Basic, "me:secret", Some("Basic bWU6c2VjcmV0")).await;
        check(Scheme::Bare, "RIV_key", Some("RIV_key")).await;
        check(Scheme::Bare, "two\nlines", None).await;
        check(Scheme::Bearer, "", None).await;
        check(Scheme::Bearer, "two\nlines", None).await;
        check(Scheme::Bearer, &"x".repeat(LONGEST + 1), None).await;
    }
}
