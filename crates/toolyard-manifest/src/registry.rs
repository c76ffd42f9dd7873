//! The reader of `ToolRegistry` documents.

mod guides;
mod probe;

use crate::{
    cursor::ValueCursor,
    fields::ObjectFields,
    handler::{HandlerConfig, ProbeSettings},
    metadata::{ResourceMetadata, metadata},
};

pub(crate) use crate::handler::{DUPLICATE_HANDLER, headers::headers};
pub use guides::ToolGuide;

/// The content of a document.
#[derive(Default)]
pub(crate) struct RegistryDocument {
    pub(crate) handlers: Vec<HandlerConfig>,
    pub(crate) guides: Vec<ToolGuide>,
}

/// Reads a document whose `apiVersion` and `kind` have been read.
pub(crate) fn registry_document(mut fields: ObjectFields<'_>) -> Option<RegistryDocument> {
    // Operators write `status`. It describes the actual state, not the desired one.
    fields.ignore(&["status"]);
    let registry = fields.required("metadata", registry_identity).unwrap_or_default();
    let declared = fields.required("spec", |cursor| spec(cursor, &registry));
    fields.finish();
    declared
}

/// The part of a registry's metadata that its handlers need.
#[derive(Default)]
struct RegistryIdentity {
    name: String,
    namespace: Option<String>,
}

/// Reads the identity of a registry. A cluster would keep only the second of two registries with the same name.
fn registry_identity(cursor: ValueCursor<'_>) -> Option<RegistryIdentity> {
    let ResourceMetadata { name, namespace } = metadata(cursor.clone())?;
    cursor.declare("ToolRegistry name", &format!("{}/{name}", namespace.as_deref().unwrap_or_default()));
    Some(RegistryIdentity { name, namespace })
}

fn spec(cursor: ValueCursor<'_>, registry: &RegistryIdentity) -> Option<RegistryDocument> {
    let mut fields = cursor.fields()?;
    let namespace = registry.namespace.as_deref().unwrap_or("default");
    let handler = |item: ValueCursor<'_>| HandlerConfig::read(item, &registry.name, namespace);
    let mut handlers = fields.required("handlers", |cursor| cursor.list(handler));
    let probe = fields.with_default("probe", probe::probe, Some(ProbeSettings::default()));
    let guides = fields.with_default("guides", guides::guides, Vec::new());
    fields.finish();
    handlers.iter_mut().flatten().for_each(|handler| handler.probe = probe);
    Some(RegistryDocument { handlers: handlers.unwrap_or_default(), guides })
}
