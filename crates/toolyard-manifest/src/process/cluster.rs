//! The reader of `cluster`: several gateways that serve the same clients.

use crate::{cursor::ValueCursor, formats, handler::SecretString};

/// A gateway's view of its cluster. All members have the same manifest and the same `key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// `address`: the origin at which the other members reach this one, such as `http://10.0.0.5:8080`.
    pub address: String,
    /// `key`: the key that seals tokens given to clients, so that each member can read those of another.
    pub key: SecretString,
}

/// Reads the object `cluster`.
pub(super) fn cluster(cursor: ValueCursor<'_>) -> Option<ClusterSettings> {
    let mut fields = cursor.fields()?;
    let address = fields.required("address", |cursor| cursor.parse(formats::http_origin));
    let key = fields.required("key", |cursor| cursor.parse_secret(formats::cluster_key));
    fields.finish();
    Some(ClusterSettings { address: address?, key: key? })
}
