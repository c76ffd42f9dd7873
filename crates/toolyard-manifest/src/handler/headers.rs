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
    let entries = cursor.entries(is_name, value)?;
    let named = |(name, value): (String, SecretString)| Some((formats::header_name(&name).ok()?, value));
    Some(entries.into_iter().filter_map(named).collect())
}
