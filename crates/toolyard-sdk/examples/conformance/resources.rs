//! Resources.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use toolyard_sdk::{CacheScope, RegisterError, Resource, ResourceTemplate, Server};

use crate::PIXEL;

pub(crate) fn register(server: Server) -> Result<Server, RegisterError> {
    let text = Resource::new("test://static-text", "Static text").mime_type("text/plain");
    let image = Resource::new("test://static-binary", "Static binary")
        .mime_type("image/png")
        .cache(Duration::from_secs(3600), CacheScope::Public);
    let watched = Resource::new("test://watched-resource", "Watched resource").mime_type("text/plain");
    let template =
        ResourceTemplate::new("test://template/{id}/data", "Template").mime_type("application/json");
    server
        .resource(text.size(48), async || "This is the content of the static text resource.")?
        .resource(image, async || PIXEL.to_vec())?
        .resource(watched, async || "This resource can be watched.")?
        .resource_template(template, document)
}

/// The variables of the template.
#[derive(Deserialize)]
struct Document {
    id: String,
}

async fn document(variables: Document) -> String {
    let id = variables.id;
    json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string()
}
