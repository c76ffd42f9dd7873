//! Who requests are made for, in the words of what sends them.

use toolyard_core::Secrets;
use toolyard_manifest::{AuthScheme, Credential, Process};
use toolyard_net::auth::{Auth, Scheme, Source};

pub(super) fn auth(auth: &toolyard_manifest::Auth, process: &Process, secrets: &Secrets) -> Auth {
    let scheme = match auth.scheme {
        AuthScheme::Bearer => Scheme::Bearer,
        AuthScheme::Basic => Scheme::Basic,
    };
    Auth { scheme, source: source(&auth.credential, process), secrets: secrets.clone() }
}

pub(super) fn source(credential: &Credential, process: &Process) -> Source {
    match credential {
        Credential::Value(secret) => Source::Value(secret.expose().to_owned()),
        Credential::File(path) => Source::File(path.clone()),
        Credential::Key { name, key } => {
            // The manifest names keys only beside a folder.
            Source::File(process.secrets_dir.clone().unwrap_or_default().join(name).join(key))
        }
    }
}
