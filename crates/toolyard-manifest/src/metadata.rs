//! The reader of `metadata`, which every document may have.

use serde_json::{Value, json};

use crate::{cursor::ValueCursor, formats, object_schema::SchemaDefinitions};

/// Fields that an API server writes into a resource. A document that was exported from a cluster is still a valid
/// manifest.
const SERVER_FIELDS: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The identity of a resource.
pub(crate) struct ResourceMetadata {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
}

pub(crate) fn metadata(cursor: ValueCursor<'_>) -> Option<ResourceMetadata> {
    let mut fields = cursor.fields()?;
    let name = fields.required("name", |cursor| cursor.parse(formats::registry_name));
    let namespace = fields.optional("namespace", |cursor| cursor.parse(formats::namespace));
    fields.optional("labels", texts);
    fields.optional("annotations", texts);
    fields.ignore(SERVER_FIELDS);
    fields.finish();
    Some(ResourceMetadata { name: name?, namespace })
}

/// Checks labels and annotations. They are not read, so a `${` in them has no meaning.
fn texts(cursor: ValueCursor<'_>) -> Option<()> {
    cursor.entries(formats::any_name, |cursor| cursor.literal_text().map(drop)).map(drop)
}

/// Returns the schema of the metadata of a `Toolyard` document, which the gateway does not use.
pub(crate) fn schema(definitions: &mut SchemaDefinitions) -> Value {
    const NAME: &str = r"\$\{|^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$";
    const NAMESPACE: &str = r"\$\{|^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$";
    let texts =
        json!({"description": "Not read.", "type": "object", "additionalProperties": {"type": "string"}});
    let server_metadata =
        definitions.value("written", json!({"description": "Written by API servers; not read."}));
    definitions.object("metadata", |object| {
        object.require("name");
        let name = json!({"description": "Not used.", "type": "string", "pattern": NAME, "maxLength": 253});
        object.property("name", name);
        object.property(
            "namespace",
            json!({"description": "Not used.", "type": "string", "pattern": NAMESPACE}),
        );
        object.property("labels", texts.clone());
        object.property("annotations", texts);
        for field in SERVER_FIELDS {
            object.property(field, server_metadata.clone());
        }
    })
}
