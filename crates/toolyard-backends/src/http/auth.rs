//! Who requests are made for.

use std::path::PathBuf;

use ::http::HeaderValue;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use toolyard_core::{Code, ToolError};

/// What an `Authorization` header says. It has no `Debug`: there is nothing to show.
pub struct Auth {
    /// How it says it.
    pub scheme: Scheme,
    /// Where the secret is.
    pub source: Source,
}

/// A scheme of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// A token (RFC 6750).
    Bearer,
    /// `user:password` (RFC 7617).
    Basic,
}

/// Where a secret is.
pub enum Source {
    /// Here.
    Value(String),
    /// In a file. It is read for each call: whoever mounted it may replace it.
    File(PathBuf),
}

/// A secret that is longer is none.
const LONGEST: usize = 64 * 1024;

impl Auth {
    /// The header's value.
    ///
    /// # Errors
    /// [`Code::Unavailable`] where the file cannot be read, or holds no secret.
    pub(super) async fn header(&self) -> Result<HeaderValue, ToolError> {
        match &self.source {
            Source::Value(secret) => self.value(secret),
            Source::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await;
                let secret = read.map_err(|error| unreadable().caused_by(error))?;
                self.value(secret.map_err(|error| unreadable().caused_by(error))?.trim())
            }
        }
    }

    fn value(&self, secret: &str) -> Result<HeaderValue, ToolError> {
        if secret.is_empty() || secret.len() > LONGEST {
            return Err(unreadable());
        }
        let text = match self.scheme {
            Scheme::Bearer => format!("Bearer {secret}"),
            Scheme::Basic => format!("Basic {}", STANDARD.encode(secret)),
        };
        let mut value = HeaderValue::try_from(text).map_err(|_| unreadable())?;
        value.set_sensitive(true);
        Ok(value)
    }
}

fn unreadable() -> ToolError {
    ToolError::new(Code::Unavailable, "The credentials of this tool cannot be read")
}
