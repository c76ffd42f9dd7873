//! Several gateways that serve the same clients by turns.

use crate::{cursor::Cursor, forms, handler::Secret};

/// What one of several gateways knows of the others. They have the same manifest, and the same `key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// `address`: where the others reach this one: an origin such as `http://10.0.0.5:8080`.
    pub address: String,
    /// `key`: what clients bring back is sealed with it, so that each gateway can read what another gave out.
    pub key: Secret,
}

/// Reads the object `cluster`.
pub(super) fn cluster(cursor: Cursor<'_>) -> Option<Cluster> {
    let mut fields = cursor.fields()?;
    let address = fields.required("address", |cursor| cursor.parse(forms::http_origin));
    let key = fields.required("key", |cursor| cursor.parse_secret(forms::cluster_key));
    fields.finish();
    Some(Cluster { address: address?, key: key? })
}
