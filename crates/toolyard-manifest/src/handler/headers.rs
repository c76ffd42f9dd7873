//! `headers`: custom headers of requests.

use http::HeaderName;

use super::SecretString;
use crate::{
    cursor::ValueCursor,
    formats::{self, FormatError},
};

/// Reads custom headers; `is_name` checks their names.
pub(crate) fn headers(
    cursor: ValueCursor<'_>,
    is_name: fn(&str) -> Result<(), FormatError>,
) -> Option<Vec<(HeaderName, SecretString)>> {
    let value = |cursor: ValueCursor<'_>| cursor.parse_secret(formats::secret_header_value);
    cursor.entries(is_name, value).map(named)
}

/// Reads metadata of gRPC: headers, of which some have values of bytes.
pub(crate) fn metadata(cursor: ValueCursor<'_>) -> Option<Vec<(HeaderName, SecretString)>> {
    let value = |name: &str, cursor: ValueCursor<'_>| match formats::is_binary_metadata(name) {
        true => cursor.parse_secret(formats::binary_metadata),
        false => cursor.parse_secret(formats::secret_header_value),
    };
    cursor.named_entries(formats::is_metadata_name, value).map(named)
}

fn named(entries: Vec<(String, SecretString)>) -> Vec<(HeaderName, SecretString)> {
    let named = |(name, value): (String, SecretString)| Some((formats::header_name(&name).ok()?, value));
    entries.into_iter().filter_map(named).collect()
}
