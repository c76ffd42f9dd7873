//! The reader of `metadata`, which every document may have.

use crate::{cursor::Cursor, forms};

/// What an API server writes into a resource. A document that was read back from a cluster is still a
/// manifest.
const WRITTEN_BY_SERVERS: &[&str] = &[
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

/// What identifies a resource.
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
}

pub(crate) fn metadata(cursor: Cursor<'_>) -> Option<Metadata> {
    let mut fields = cursor.fields()?;
    let name = fields.required("name", |cursor| cursor.parse(forms::registry_name));
    let namespace = fields.optional("namespace", |cursor| cursor.parse(forms::namespace));
    fields.optional("labels", texts);
    fields.optional("annotations", texts);
    fields.ignore(WRITTEN_BY_SERVERS);
    fields.finish();
    Some(Metadata { name: name?, namespace })
}

/// Labels and annotations are checked and not read, so a `${` in them is nobody's business.
fn texts(cursor: Cursor<'_>) -> Option<()> {
    cursor.entries(forms::any_name, |cursor| cursor.literal().map(drop)).map(drop)
}
