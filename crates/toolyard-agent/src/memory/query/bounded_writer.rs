//! A text with a maximum length.

use std::io;

/// Collects written text and fails when it exceeds the limit.
pub(super) struct BoundedTextWriter {
    buffer: Vec<u8>,
    /// Remaining number of characters.
    left: usize,
}

impl BoundedTextWriter {
    pub(super) const fn new(chars: usize) -> Self {
        Self { buffer: Vec::new(), left: chars }
    }

    pub(super) fn into_text(self) -> String {
        String::from_utf8(self.buffer).unwrap_or_default()
    }
}

impl io::Write for BoundedTextWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// Leading bits of the continuation bytes of a character.
        const CONTINUES: u8 = 0b1000_0000;
        let chars = bytes.iter().filter(|byte| **byte & 0b1100_0000 != CONTINUES).count();
        self.left = self.left.checked_sub(chars).ok_or(io::ErrorKind::FileTooLarge)?;
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
