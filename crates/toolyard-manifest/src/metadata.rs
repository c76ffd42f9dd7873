//! The reader of `metadata`, which every document may have.

use crate::{cursor::ValueCursor, formats};

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
