//! `Debug` output of any type contains no secret.

use serde_json::{Value, json};
use toolyard_core::SecretRedactor;
use toolyard_manifest::{Manifest, ManifestProblems, ManifestSource, StoreSettings};
use toolyard_store::{DatabaseLocation, PostgresUrl, StoreOptions};

use super::manifest_with_secrets::{over_http, plain_http, process, programs};
use super::reflecting_server::ReflectingServer;
use super::secret_tracker::SecretTracker;

fn parse(secrets: &SecretTracker, handlers: &[Value], process: &Value) -> Result<Manifest, ManifestProblems> {
    let registry = json!({
        "apiVersion": "omnia.altairalabs.ai/v1alpha1",
        "kind": "ToolRegistry",
        "metadata": {"name": "test"},
        "spec": {"handlers": handlers},
    });
    let process = json!({"apiVersion": "toolyard.dev/v1alpha1", "kind": "Toolyard", "spec": process});
    let sources = [("registry.json", registry), ("process.json", process)]
        .map(|(name, document)| ManifestSource { name: name.to_owned(), text: document.to_string() });
    let variable = |name: &str| {
        secrets.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    };
    toolyard_manifest::parse_with(&sources, &variable)
}

#[test]
fn debug_shows_no_secret() {
    let (mut secrets, server) = (SecretTracker::default(), ReflectingServer::start());
    let folder = tempfile::tempdir().unwrap();
    let mut handlers = over_http(&mut secrets, folder.path(), &server);
    handlers.extend(plain_http(&mut secrets, &server));
    handlers.extend(programs(&mut secrets));
    let mut document = process(&mut secrets, folder.path(), &server);
    document["store"] = json!({"url": format!("postgres://me:{}@db/x", secrets.reference("store-password"))});

    let manifest = parse(&secrets, &handlers, &document).unwrap_or_else(|problems| panic!("{problems}"));
    secrets.record("a manifest", format!("{manifest:?} {manifest:#?}"));
    for handler in &manifest.handlers {
        secrets.record("a handler", format!("{handler:?} {:?} {}", handler.kind, handler.endpoint()));
        let redactor = SecretRedactor::new(handler.secrets());
        redactor.learn(&secrets.secret(&format!("learnt-{}", handler.name.as_str())));
        secrets.record("secrets", format!("{redactor:?}"));
    }
    let Some(StoreSettings::Url(url)) = &manifest.process.store else { panic!("{:?}", manifest.process) };
    let location = DatabaseLocation::Postgres(PostgresUrl::parse(url.expose()).unwrap());
    secrets.record("a store", format!("{:?} {location}", StoreOptions::at(location.clone())));

    handlers[0]["mcpConfig"]["headers"] = json!({"X-Key": format!("a\n{}", secrets.secret("bad-header"))});
    document["store"] = json!({"url": secrets.secret("bad-store")});
    let problems = parse(&secrets, &handlers, &document).unwrap_err();
    secrets.record("problems", format!("{problems:?} {problems}"));
    secrets.assert_no_leaks();
}
