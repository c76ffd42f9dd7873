//! `Debug` shows no secret, of whatever type that holds one.

use serde_json::{Value, json};
use toolyard_core::Secrets;
use toolyard_manifest::{Manifest, Problems, Source, StorePlace};
use toolyard_store::{Location, PostgresUrl, StoreOptions};

use super::planted::{over_http, plain_http, process, programs};
use super::servers::Server;
use super::yard::Yard;

fn parse(yard: &Yard, handlers: &[Value], process: &Value) -> Result<Manifest, Problems> {
    let registry = json!({
        "apiVersion": "omnia.altairalabs.ai/v1alpha1",
        "kind": "ToolRegistry",
        "metadata": {"name": "test"},
        "spec": {"handlers": handlers},
    });
    let process = json!({"apiVersion": "toolyard.dev/v1alpha1", "kind": "Toolyard", "spec": process});
    let sources = [("registry.json", registry), ("process.json", process)]
        .map(|(name, document)| Source { name: name.to_owned(), text: document.to_string() });
    let variable =
        |name: &str| yard.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    toolyard_manifest::parse_with(&sources, &variable)
}

#[test]
fn debug_shows_no_secret() {
    let (mut yard, server) = (Yard::default(), Server::start());
    let folder = tempfile::tempdir().unwrap();
    let mut handlers = over_http(&mut yard, folder.path(), &server);
    handlers.extend(plain_http(&mut yard, &server));
    handlers.extend(programs(&mut yard));
    let mut document = process(&mut yard, folder.path(), &server);
    document["store"] = json!({"url": format!("postgres://me:{}@db/x", yard.reference("store-password"))});

    let manifest = parse(&yard, &handlers, &document).unwrap_or_else(|problems| panic!("{problems}"));
    yard.saw("a manifest", format!("{manifest:?} {manifest:#?}"));
    for handler in &manifest.handlers {
        yard.saw("a handler", format!("{handler:?} {:?} {}", handler.kind, handler.endpoint()));
        let secrets = Secrets::new(handler.secrets());
        secrets.learn(&yard.secret(&format!("learnt-{}", handler.name.as_str())));
        yard.saw("secrets", format!("{secrets:?}"));
    }
    let Some(StorePlace::Url(url)) = &manifest.process.store else { panic!("{:?}", manifest.process) };
    let location = Location::Postgres(PostgresUrl::parse(url.expose()).unwrap());
    yard.saw("a store", format!("{:?} {location}", StoreOptions::at(location.clone())));

    handlers[0]["mcpConfig"]["headers"] = json!({"X-Key": format!("a\n{}", yard.secret("bad-header"))});
    document["store"] = json!({"url": yard.secret("bad-store")});
    let problems = parse(&yard, &handlers, &document).unwrap_err();
    yard.saw("problems", format!("{problems:?} {problems}"));
    yard.assert_kept();
}
