//! Random bytes, and bytes in hexadecimal.

use std::fmt::Write;

/// The system has no random numbers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the system provides no random numbers: {0}")]
pub struct NoRandomness(getrandom::Error);

/// Returns random bytes.
///
/// # Errors
/// If the system provides none. A fixed value must not take their place: ids would be equal, and tokens known.
pub fn random_bytes<const BYTES: usize>() -> Result<[u8; BYTES], NoRandomness> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(NoRandomness)?;
    Ok(bytes)
}

/// Returns bytes in hexadecimal, in lower case.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_two_digits_each() {
        assert_eq!(hex(&[0, 7, 0xab, 0xff]), "0007abff");
        assert_eq!(hex(&[]), "");
    }

    #[test]
    fn random_bytes_differ() {
        assert_ne!(random_bytes::<16>(), random_bytes::<16>());
    }
}
