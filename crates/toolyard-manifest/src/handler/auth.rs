//! Authentication of upstream requests: `auth`, and the older fields of a configuration.

use std::{
    fmt,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use toolyard_core::file;

use crate::{
    cursor::{KeywordChoice, ValueCursor},
    expand::NO_FILES,
    fields::ObjectFields,
    formats::{self, FormatError},
};

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

// === impl SecretString ===

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

// === readers ===

const SCHEME: KeywordChoice<Option<AuthScheme>> = KeywordChoice {
    noun: "kind of authentication",
    words: &[("none", None), ("bearer", Some(AuthScheme::Bearer)), ("basic", Some(AuthScheme::Basic))],
    unsupported: &["serviceAccount", "workloadIdentity"],
};

/// The names of the fields, which differ.
struct AuthFieldNames {
    scheme: &'static str,
    token: &'static str,
    secret: &'static str,
}

/// Reads the handler's own `auth`, unless its configuration has one.
pub(super) fn handler_auth(
    fields: &mut ObjectFields<'_>,
    configured: Option<RequestAuth>,
    config: &str,
) -> Option<RequestAuth> {
    if configured.is_some() {
        fields.reject_misplaced(&["auth"], &format!("`{config}.authType` already sets the authentication"));
        return configured;
    }
    fields.optional("auth", auth)
}

/// Reads the object `auth` of a handler.
fn auth(cursor: ValueCursor<'_>) -> Option<RequestAuth> {
    const NAMES: AuthFieldNames = AuthFieldNames { scheme: "type", token: "token", secret: "secretRef" };
    let mut fields = cursor.fields()?;
    let scheme = fields.required(NAMES.scheme, |cursor| cursor.choice(&SCHEME));
    let auth = credentials(&mut fields, &NAMES, scheme);
    fields.reject_unsupported(&["serviceAccount", "workloadIdentity"]);
    fields.finish();
    auth
}

/// Reads the equivalent fields of a configuration.
pub(super) fn config_auth(fields: &mut ObjectFields<'_>) -> Option<RequestAuth> {
    const NAMES: AuthFieldNames =
        AuthFieldNames { scheme: "authType", token: "authToken", secret: "authSecretRef" };
    let scheme = fields.optional(NAMES.scheme, |cursor| Some(cursor.choice(&SCHEME)));
    // Without a scheme a token has no use.
    credentials(fields, &NAMES, scheme.unwrap_or(Some(None)))
}

fn credentials(
    fields: &mut ObjectFields<'_>,
    names: &AuthFieldNames,
    scheme: Option<Option<AuthScheme>>,
) -> Option<RequestAuth> {
    let scheme = match scheme {
        Some(Some(scheme)) => scheme,
        Some(None) => {
            fields.reject_misplaced(
                &[names.token, names.secret],
                "it belongs to the types `bearer` and `basic`",
            );
            return None;
        }
        // The scheme is invalid, so that the other fields cannot be checked.
        None => {
            fields.allow(&[names.token, names.secret]);
            return None;
        }
    };
    let format = match scheme {
        AuthScheme::Bearer => formats::token,
        AuthScheme::Basic => formats::user_and_password,
    };
    secret(fields, names.token, names.secret, format).map(|credential| RequestAuth { scheme, credential })
}

/// Reads a secret from one of two fields: `value_field` contains it in a format or as `file:PATH`, and
/// `reference_field` refers to a mounted secret.
pub(crate) fn secret(
    fields: &mut ObjectFields<'_>,
    value_field: &'static str,
    reference_field: &'static str,
    format: fn(&str) -> Result<SecretString, FormatError>,
) -> Option<CredentialSource> {
    match fields.optional(reference_field, |cursor| Some(secret_key(cursor))) {
        Some(secret) => {
            fields.reject_misplaced(
                &[value_field],
                &format!("`{reference_field}` already refers to the secret"),
            );
            secret
        }
        None => fields.required(value_field, |cursor| credential(cursor, format)),
    }
}

fn credential(
    cursor: ValueCursor<'_>,
    format: fn(&str) -> Result<SecretString, FormatError>,
) -> Option<CredentialSource> {
    match cursor.clone().text()?.strip_prefix("file:") {
        Some(path) => existing_file(&cursor, path).map(CredentialSource::File),
        None => cursor.parse_secret(format).map(CredentialSource::Value),
    }
}

/// Resolves a file that is read when it is needed. It must exist already.
pub(super) fn existing_file(cursor: &ValueCursor<'_>, path: &str) -> Option<PathBuf> {
    if !cursor.has_files() {
        let problem = cursor.problem("this file does not exist where the gateway runs");
        cursor.report(problem.hint(NO_FILES));
        return None;
    }
    let path = cursor.resolve_path(path);
    if let Err(error) = readable(&path) {
        let problem = cursor.problem(format!("this file cannot be read: {error}"));
        cursor.report(problem.expected("`file:` and the path of a file, from the folder of the manifest"));
        return None;
    }
    Some(path)
}

fn readable(path: &Path) -> io::Result<File> {
    file::ensure_regular(path)?;
    File::open(path)
}

fn secret_key(cursor: ValueCursor<'_>) -> Option<CredentialSource> {
    cursor.require_secrets_dir();
    let mut fields = cursor.fields()?;
    let name = fields.required("name", |cursor| cursor.parse(formats::file_name));
    let key = fields.required("key", |cursor| cursor.parse(formats::file_name));
    fields.finish();
    Some(CredentialSource::Key { name: name?, key: key? })
}
