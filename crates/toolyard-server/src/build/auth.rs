//! Converts credentials of the manifest.

use toolyard_core::SecretRedactor;
use toolyard_manifest::{AuthScheme, CredentialSource, ProcessSettings};
use toolyard_net::auth::{HttpAuthScheme, SecretSource, UpstreamCredentials};

pub(super) fn auth(
    auth: &toolyard_manifest::RequestAuth,
    process: &ProcessSettings,
    secrets: &SecretRedactor,
) -> UpstreamCredentials {
    let scheme = match auth.scheme {
        AuthScheme::Bearer => HttpAuthScheme::Bearer,
        AuthScheme::Basic => HttpAuthScheme::Basic,
    };
    UpstreamCredentials { scheme, source: source(&auth.credential, process), secrets: secrets.clone() }
}

pub(crate) fn source(credential: &CredentialSource, process: &ProcessSettings) -> SecretSource {
    match credential {
        CredentialSource::Value(secret) => SecretSource::Value(secret.expose().to_owned()),
        CredentialSource::File(path) => SecretSource::File(path.clone()),
        CredentialSource::Key { name, key } => {
            // Validation requires `secretsDir` for named keys.
            SecretSource::File(process.secrets_dir.clone().unwrap_or_default().join(name).join(key))
        }
    }
}
