//! Formats of handlers of the type `grpc`.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::{FormatError, header::header_name};
use crate::handler::SecretString;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Metadata that gRPC defines, in addition to that which starts with `grpc-`.
const GRPC_METADATA: &[&str] = &["content-type", "user-agent"];

/// Checks the name of metadata to set.
pub(crate) fn is_metadata_name(text: &str) -> Result<(), FormatError> {
    const INVALID: FormatError = FormatError::new("the name of metadata to set", "a name such as x-tenant")
        .hint("the gateway sets the metadata of gRPC itself");
    let name = header_name(text)?;
    let of_grpc = GRPC_METADATA.contains(&name.as_str()) || name.as_str().starts_with("grpc-");
    if of_grpc { Err(INVALID) } else { Ok(()) }
}

/// True for metadata whose value is base64 (gRPC over HTTP/2, "Requests").
pub(crate) fn is_binary_metadata(name: &str) -> bool {
    name.len() >= 4 && name.as_bytes()[name.len() - 4..].eq_ignore_ascii_case(b"-bin")
}

/// The value of metadata of bytes. Padding is optional.
pub(crate) fn binary_metadata(text: &str) -> Result<SecretString, FormatError> {
    const INVALID: FormatError = FormatError::new("binary metadata", "base64, as the name ends with `-bin`");
    BASE64.decode(text).map(|_| SecretString::new(text)).map_err(|_| INVALID)
}

/// A pattern for names of services or methods. `*` stands for anything but a dot or a slash, `**` for anything.
pub(crate) fn service_glob(text: &str) -> Result<String, FormatError> {
    const INVALID: FormatError =
        FormatError::new("a pattern for names", "a pattern such as shop.v1.Orders, shop.** or Get*");
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'*');
    if !text.is_empty() && text.bytes().all(is_part) { Ok(text.to_owned()) } else { Err(INVALID) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_and_patterns() {
        let check = |is_valid: &dyn Fn(&str) -> bool, valid: &[&str], invalid: &[&str]| {
            valid.iter().for_each(|text| assert!(is_valid(text), "{text:?}"));
            invalid.iter().for_each(|text| assert!(!is_valid(text), "{text:?}"));
        };
        let metadata = |text: &str| is_metadata_name(text).is_ok();
        check(
            &metadata,
            &["x-tenant", "Authorization", "key-bin"],
            &["", "a b", "te", "grpc-timeout", "content-type"],
        );
        let pattern = |text: &str| service_glob(text).is_ok();
        check(&pattern, &["shop.v1.Orders", "shop.**", "Get*", "a.B/C"], &["", "a b", "a-b", "é"]);
    }
}
