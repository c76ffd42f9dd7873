//! The reader of an entry of `credentials`: the credential for a security scheme.

use super::auth;
use crate::{
    cursor::ValueCursor,
    fields::ObjectFields,
    formats::{self, EndpointUrl},
    handler::{OAuthClient, SchemeCredential},
};

/// The fields of a key, a token, or a user name with a password.
const SECRET_FIELDS: &[&str] = &["value", "secretRef"];

/// The fields that have no meaning without `clientId`.
const OAUTH_FIELDS: &[&str] = &["clientSecret", "clientSecretRef", "tokenURL", "scopes"];

/// Reads the credential for one scheme. The description defines the kind of the scheme; a mismatch shows when the
/// description is read.
pub(super) fn credential(cursor: ValueCursor<'_>) -> Option<SchemeCredential> {
    let mut fields = cursor.fields()?;
    let client_id = fields.optional("clientId", |cursor| Some(cursor.parse_secret(formats::client_id)));
    let credential = match client_id {
        Some(id) => {
            fields.reject_misplaced(SECRET_FIELDS, "with `clientId` (OAuth 2), the secret is `clientSecret`");
            oauth_client(&mut fields, id).map(SchemeCredential::OAuth)
        }
        None => {
            fields.reject_misplaced(OAUTH_FIELDS, "it belongs to OAuth 2 and requires `clientId`");
            auth::secret(&mut fields, "value", "secretRef", formats::scheme_secret)
                .map(SchemeCredential::Secret)
        }
    };
    fields.finish();
    credential
}

/// Reads the fields next to `clientId`.
fn oauth_client(fields: &mut ObjectFields<'_>, id: Option<String>) -> Option<OAuthClient> {
    let scope = |cursor: ValueCursor<'_>| cursor.parse(formats::scope);
    let secret = auth::secret(fields, "clientSecret", "clientSecretRef", formats::scheme_secret);
    let token_url = fields.optional("tokenURL", |cursor| cursor.parse_secret(EndpointUrl::parse));
    let scopes = fields.with_default("scopes", |cursor| cursor.non_empty_list(scope), Vec::new());
    Some(OAuthClient { id: id?, secret: secret?, token_url, scopes })
}
