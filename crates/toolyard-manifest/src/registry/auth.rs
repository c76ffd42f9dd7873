//! The readers of what says on whose behalf requests are made: `auth`, and the older fields of a configuration.

use std::path::PathBuf;

use crate::{
    cursor::{Choice, Cursor},
    fields::Fields,
    forms,
    handler::{Auth, AuthScheme, Credential},
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

/// The object `auth` of a handler.
pub(super) fn auth(cursor: Cursor<'_>) -> Option<Auth> {
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
    let secret = fields.optional(names.secret, secret_key);
    let credential = match secret {
        Some(secret) => {
            fields.misplaced(&[names.token], "the secret is somewhere else already");
            Some(secret)
        }
        None => fields.required(names.token, |cursor| credential(cursor, scheme)),
    };
    Some(Auth { scheme, credential: credential? })
}

fn credential(cursor: Cursor<'_>, scheme: AuthScheme) -> Option<Credential> {
    if let Some(path) = cursor.clone().text()?.strip_prefix("file:") {
        if path.is_empty() {
            cursor.report(cursor.problem("this names no file").expected("`file:` and a path"));
            return None;
        }
        return Some(Credential::File(PathBuf::from(path)));
    }
    let form = match scheme {
        AuthScheme::Bearer => forms::token,
        AuthScheme::Basic => forms::user_and_password,
    };
    cursor.parse_secret(form).map(Credential::Value)
}

fn secret_key(cursor: Cursor<'_>) -> Option<Credential> {
    cursor.needs_secrets();
    let mut fields = cursor.fields()?;
    let name = fields.required("name", |cursor| cursor.parse(forms::file_name));
    let key = fields.required("key", |cursor| cursor.parse(forms::file_name));
    fields.finish();
    Some(Credential::Key { name: name?, key: key? })
}
