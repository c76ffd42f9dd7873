//! What says on whose behalf requests are made.

use std::{fmt, path::PathBuf};

/// How a request says on whose behalf it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// `bearer` or `basic`.
    pub scheme: AuthScheme,
    /// The token, or `user:password`.
    pub credential: Credential,
}

/// The scheme of an `Authorization` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthScheme {
    /// A token (RFC 6750).
    Bearer,
    /// A name and a password with a colon between them (RFC 7617).
    Basic,
}

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// In the manifest, by way of the environment.
    Value(Secret),
    /// `file:PATH`: in a file, which is read at each call, so that it can be replaced.
    File(PathBuf),
    /// In the file `NAME/KEY` of the folder [`secretsDir`](crate::Process::secrets_dir), which is how a
    /// cluster mounts its secrets.
    Key {
        /// The name of the secret.
        name: String,
        /// The key in it.
        key: String,
    },
}

/// A string that may be secret: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

// === impl Secret ===

impl Secret {
    /// Keeps a string from being shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The string, for where it is used.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
