//! `credentials`: the credentials for the security schemes of a description.

use crate::{
    cursor::ValueCursor,
    fields::ObjectFields,
    formats::{self, EndpointUrl},
    handler::{CredentialSource, auth, secrets::SecretCollector},
};

/// The credential for a security scheme of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemeCredential {
    /// The key, the token, or `user:password`.
    Secret(CredentialSource),
    /// The client that requests tokens.
    OAuth(OAuthClient),
}

/// An OAuth 2 client that acts for itself, not for a user (RFC 6749, section 4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthClient {
    /// `clientId`: the client id, which is not secret.
    pub id: String,
    /// `clientSecret` or `clientSecretRef`.
    pub secret: CredentialSource,
    /// `tokenURL`: the token endpoint. Default: that of the description.
    pub token_url: Option<EndpointUrl>,
    /// `scopes`: the scopes to request. Default: those that the operations require.
    pub scopes: Vec<String>,
}

/// The fields of a key, a token, or a user name with a password.
const SECRET_FIELDS: &[&str] = &["value", "secretRef"];

/// The fields that have no meaning without `clientId`.
const OAUTH_FIELDS: &[&str] = &["clientSecret", "clientSecretRef", "tokenURL", "scopes"];

impl SchemeCredential {
    /// Adds the values that may be secret.
    pub(super) fn add_secrets(&self, secrets: &mut SecretCollector) {
        match self {
            Self::Secret(credential) => secrets.credential(credential),
            Self::OAuth(client) => {
                secrets.credential(&client.secret);
                client.token_url.iter().for_each(|url| secrets.query_of(url));
            }
        }
    }

    /// True if requests for tokens may use TLS: the description may name their endpoint.
    pub(super) fn uses_tls(&self) -> bool {
        match self {
            Self::Secret(_) => false,
            Self::OAuth(client) => client.token_url.as_ref().is_none_or(EndpointUrl::is_tls),
        }
    }
}

/// Reads the credential for one scheme. The description defines the kind of the scheme; a mismatch shows when the
/// description is read.
pub(super) fn read(cursor: ValueCursor<'_>) -> Option<SchemeCredential> {
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
