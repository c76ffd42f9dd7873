//! Numbers of bytes, with or without a unit.

use super::FormatError;

/// The format of a size, for messages.
pub(crate) const SIZE: &str = "a number of bytes, alone or with a unit: 65536, 64KiB, 4MiB, 1GiB";

pub(crate) fn size(text: &str) -> Result<usize, FormatError> {
    const INVALID: FormatError = FormatError::new("a size", SIZE);
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = &text[..text.len() - unit.len()];
    let bytes: usize = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "KB" | "MB" | "GB" | "K" | "M" | "G" | "Ki" | "Mi" | "Gi" | "k" | "kB" => {
            return Err(INVALID.hint("the units are KiB, MiB and GiB, spelled out"));
        }
        _ => return Err(INVALID),
    };
    number.parse::<usize>().ok().and_then(|number| number.checked_mul(bytes)).ok_or(INVALID)
}

/// Writes a size in the largest unit without a fraction.
pub(crate) fn size_text(bytes: usize) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        for (text, bytes) in
            [("65536", 65536), ("12B", 12), ("64KiB", 65536), ("4MiB", 4 << 20), ("1GiB", 1 << 30)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_in_one_unit() {
        for text in ["0", "1000", "1KiB", "1025", "64KiB", "512MiB", "1GiB", "1025MiB"] {
            assert_eq!(size(text).map(size_text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "MiB", "4 MiB", "4MB", "4mib", "1.5GiB", "-1", "18446744073709551615KiB", "4MiB4"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
