//! Authentication of upstream requests.

use std::{fmt, path::PathBuf};

/// The authentication of upstream requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestAuth {
    /// `bearer` or `basic`.
    pub scheme: AuthScheme,
    /// The token, or `user:password`.
    pub credential: CredentialSource,
}

/// The scheme of an `Authorization` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthScheme {
    /// A token (RFC 6750).
    Bearer,
    /// A user name and a password with a colon between them (RFC 7617).
    Basic,
}

/// The source of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// In the manifest, usually from an environment variable.
    Value(SecretString),
    /// `file:PATH`: a file that is read at each call, so that it can be replaced.
    File(PathBuf),
    /// The file `NAME/KEY` in the folder [`secretsDir`](crate::ProcessSettings::secrets_dir), which is how a cluster
    /// mounts its secrets.
    Key {
        /// Name of the secret.
        name: String,
        /// Key in the secret.
        key: String,
    },
}

/// A string that may be secret: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretString(String);

// === impl Secret ===

impl SecretString {
    /// Wraps a string.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The string itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretString")
    }
}
