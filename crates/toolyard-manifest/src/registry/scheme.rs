//! The reader of an entry of `credentials`: what a security scheme of a description wants.

use super::auth;
use crate::{
    cursor::Cursor,
    fields::Fields,
    forms::{self, Endpoint},
    handler::{OAuthClient, SchemeCredential},
};

/// The fields of a key, a token, or a name with a password.
const OF_SECRET: &[&str] = &["value", "secretRef"];

/// The fields that mean nothing without `clientId`.
const OF_CLIENT: &[&str] = &["clientSecret", "clientSecretRef", "tokenURL", "scopes"];

/// What one scheme wants. Of which kind it is, the description says; that it fits is seen where that is read.
pub(super) fn credential(cursor: Cursor<'_>) -> Option<SchemeCredential> {
    let mut fields = cursor.fields()?;
    let client_id = fields.optional("clientId", |cursor| Some(cursor.parse_secret(forms::client_id)));
    let credential = match client_id {
        Some(id) => {
            fields.misplaced(OF_SECRET, "`clientId` is for OAuth 2, where the secret is `clientSecret`");
            client(&mut fields, id).map(SchemeCredential::OAuth)
        }
        None => {
            fields.misplaced(OF_CLIENT, "it belongs to OAuth 2, and goes with `clientId`");
            auth::secret(&mut fields, "value", "secretRef", forms::scheme_secret)
                .map(SchemeCredential::Secret)
        }
    };
    fields.finish();
    credential
}

/// What stands beside `clientId`.
fn client(fields: &mut Fields<'_>, id: Option<String>) -> Option<OAuthClient> {
    let scope = |cursor: Cursor<'_>| cursor.parse(forms::scope);
    let secret = auth::secret(fields, "clientSecret", "clientSecretRef", forms::scheme_secret);
    let token_url = fields.optional("tokenURL", |cursor| cursor.parse_secret(Endpoint::parse));
    let scopes = fields.with_default("scopes", |cursor| cursor.non_empty_list(scope), Vec::new());
    Some(OAuthClient { id: id?, secret: secret?, token_url, scopes })
}
