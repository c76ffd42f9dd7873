//! Random bytes, and bytes in hexadecimal.

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
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digit = |number: u8| char::from(DIGITS[usize::from(number)]);
    let mut text = String::with_capacity(2 * bytes.len());
    bytes.iter().for_each(|byte| text.extend([digit(byte >> 4), digit(byte & 15)]));
    text
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
