//! A text that does not grow beyond its bound.

use std::io;

/// Takes what is written, as long as it is not too much.
pub(super) struct Bounded {
    written: Vec<u8>,
    /// How many characters more there may be.
    left: usize,
}

impl Bounded {
    pub(super) const fn new(chars: usize) -> Self {
        Self { written: Vec::new(), left: chars }
    }

    pub(super) fn into_text(self) -> String {
        String::from_utf8(self.written).unwrap_or_default()
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// What bytes of a character behind its first one begin with.
        const CONTINUES: u8 = 0b1000_0000;
        let chars = bytes.iter().filter(|byte| **byte & 0b1100_0000 != CONTINUES).count();
        self.left = self.left.checked_sub(chars).ok_or(io::ErrorKind::FileTooLarge)?;
        self.written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
