//! The readers of what says on whose behalf requests are made: `auth`, and the older fields of a configuration.

use std::{
    fs::{File, Metadata},
    io,
    path::PathBuf,
};

use crate::{
    cursor::{Choice, Cursor},
    fields::Fields,
    forms::{self, Invalid},
    handler::{Auth, AuthScheme, Credential, Secret},
};

const SCHEME: Choice<Option<AuthScheme>> = Choice {
    noun: "kind of authentication",
    words: &[("none", None), ("bearer", Some(AuthScheme::Bearer)), ("basic", Some(AuthScheme::Basic))],
    not_yet: &["serviceAccount", "workloadIdentity"],
};

/// The names of the fields, which differ.
struct Names {
    scheme: &'static str,
    token: &'static str,
    secret: &'static str,
}

/// What a handler says in its own `auth`, unless its configuration has said it.
pub(super) fn of_handler(fields: &mut Fields<'_>, configured: Option<Auth>, config: &str) -> Option<Auth> {
    if configured.is_some() {
        fields.misplaced(&["auth"], &format!("`{config}.authType` says who is calling"));
        return configured;
    }
    fields.optional("auth", auth)
}

/// The object `auth` of a handler.
fn auth(cursor: Cursor<'_>) -> Option<Auth> {
    const NAMES: Names = Names { scheme: "type", token: "token", secret: "secretRef" };
    let mut fields = cursor.fields()?;
    let scheme = fields.required(NAMES.scheme, |cursor| cursor.choice(&SCHEME));
    let auth = credentials(&mut fields, &NAMES, scheme);
    fields.not_yet(&["serviceAccount", "workloadIdentity"]);
    fields.finish();
    auth
}

/// The fields of a configuration that say the same.
pub(super) fn configured(fields: &mut Fields<'_>) -> Option<Auth> {
    const NAMES: Names = Names { scheme: "authType", token: "authToken", secret: "authSecretRef" };
    let scheme = fields.optional(NAMES.scheme, |cursor| Some(cursor.choice(&SCHEME)));
    // Without a scheme there is nothing that a token could be for.
    credentials(fields, &NAMES, scheme.unwrap_or(Some(None)))
}

fn credentials(fields: &mut Fields<'_>, names: &Names, scheme: Option<Option<AuthScheme>>) -> Option<Auth> {
    let scheme = match scheme {
        Some(Some(scheme)) => scheme,
        Some(None) => {
            fields.misplaced(&[names.token, names.secret], "it belongs to the types `bearer` and `basic`");
            return None;
        }
        // What was meant is not known.
        None => {
            fields.accept(&[names.token, names.secret]);
            return None;
        }
    };
    let form = match scheme {
        AuthScheme::Bearer => forms::token,
        AuthScheme::Basic => forms::user_and_password,
    };
    secret(fields, names.token, names.secret, form).map(|credential| Auth { scheme, credential })
}

/// A secret that one of two fields has: `written` itself, in this form or as `file:PATH`, or `referred` its name.
pub(super) fn secret(
    fields: &mut Fields<'_>,
    written: &'static str,
    referred: &'static str,
    form: fn(&str) -> Result<Secret, Invalid>,
) -> Option<Credential> {
    match fields.optional(referred, |cursor| Some(secret_key(cursor))) {
        Some(secret) => {
            fields.misplaced(&[written], "the secret is somewhere else already");
            secret
        }
        None => fields.required(written, |cursor| credential(cursor, form)),
    }
}

fn credential(cursor: Cursor<'_>, form: fn(&str) -> Result<Secret, Invalid>) -> Option<Credential> {
    match cursor.clone().text()?.strip_prefix("file:") {
        Some(path) => file(&cursor, path).map(Credential::File),
        None => cursor.parse_secret(form).map(Credential::Value),
    }
}

/// A file that is read when it is needed. Here it has to be there.
pub(super) fn file(cursor: &Cursor<'_>, path: &str) -> Option<PathBuf> {
    let path = cursor.path_from_here(path);
    if let Err(error) = File::open(&path).and_then(|file| file.metadata()).and_then(is_file) {
        let problem = cursor.problem(format!("this file cannot be read: {error}"));
        cursor.report(problem.expected("`file:` and the path of a file, from the folder of the manifest"));
        return None;
    }
    Some(path)
}

fn is_file(metadata: Metadata) -> io::Result<()> {
    if metadata.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(()) }
}

fn secret_key(cursor: Cursor<'_>) -> Option<Credential> {
    cursor.needs_secrets();
    let mut fields = cursor.fields()?;
    let name = fields.required("name", |cursor| cursor.parse(forms::file_name));
    let key = fields.required("key", |cursor| cursor.parse(forms::file_name));
    fields.finish();
    Some(Credential::Key { name: name?, key: key? })
}
