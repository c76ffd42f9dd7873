//! Legal names of tools.

use sha2::{Digest, Sha256};

use crate::random::hex;

/// Maximum length of function names in the APIs of large models.
pub const MAX_LENGTH: usize = 64;

/// Returns `true` if models can call a tool by this name: `^[a-zA-Z0-9_-]{1,64}$`.
#[must_use]
pub fn is_legal(name: &str) -> bool {
    (1..=MAX_LENGTH).contains(&name.len()) && name.bytes().all(is_legal_byte)
}

fn is_legal_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Returns `name` with illegal characters replaced, shortened if it is too long.
pub(super) fn legalized(name: &str) -> String {
    let legal: String =
        name.chars().map(|c| if c.is_ascii() && is_legal_byte(c as u8) { c } else { '_' }).collect();
    match legal.len() {
        0 => "_".to_owned(),
        1..=MAX_LENGTH => legal,
        _ => with_hash(&legal, name),
    }
}

/// Returns the beginning of `legal` with a hash of the whole `name`, the same on every start.
pub(super) fn with_hash(legal: &str, name: &str) -> String {
    let length = legal.len().min(MAX_LENGTH - HASH - 1);
    format!("{}_{}", &legal[..length], hash(name))
}

/// Returns the beginning of a legal `name` with a hash of the place that it comes from, for the generated names of
/// operations and methods. The hash is 32-bit FNV-1a: these names must stay the same in every version of this program.
#[must_use]
pub fn with_site_hash(name: &str, site: &str) -> String {
    let fnv1a =
        site.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let end = format!("_{fnv1a:08x}");
    let start = &name[..name.len().min(MAX_LENGTH - end.len())];
    format!("{}{end}", start.trim_end_matches('_'))
}

/// Length of a [`hash`].
const HASH: usize = 8;

/// Returns a hash that distinguishes texts with the same legal form.
pub(crate) fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    hex(&digest[..HASH / 2])
}
