//! Collection of a script's output, with a size limit.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Size of one read, in bytes.
const CHUNK_BYTES: usize = 16 << 10;

/// Part of the output to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputPart {
    Beginning,
    /// The end, where a traceback has the error message.
    End,
}

/// Output with a size limit.
#[derive(Debug)]
pub(super) struct BoundedOutput {
    part: OutputPart,
    max_bytes: usize,
    bytes: Vec<u8>,
    total_bytes: u64,
}

impl BoundedOutput {
    pub(super) const fn new(part: OutputPart, max_bytes: usize) -> Self {
        Self { part, max_bytes, bytes: Vec::new(), total_bytes: 0 }
    }

    /// Reads to the end, so that the writing process never blocks.
    pub(super) async fn read(&mut self, mut pipe: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; CHUNK_BYTES];
        // A broken pipe has ended.
        while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
            self.add(&buffer[..length]);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        match self.part {
            OutputPart::Beginning => {
                let room = self.max_bytes - self.bytes.len();
                self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            OutputPart::End => {
                self.bytes.extend_from_slice(bytes);
                // Not after each read, because truncation moves the rest.
                if self.bytes.len() > self.max_bytes * 2 + CHUNK_BYTES {
                    self.truncate_kept();
                }
            }
        }
    }

    fn truncate_kept(&mut self) {
        let beyond = self.bytes.len().saturating_sub(self.max_bytes);
        self.bytes.drain(..beyond);
    }

    /// Returns the kept text and a note about the lost part. Invalid UTF-8 is replaced.
    pub(super) fn text(mut self) -> String {
        self.truncate_kept();
        let lost_bytes = self.total_bytes - self.bytes.len() as u64;
        if lost_bytes == 0 {
            return String::from_utf8_lossy(&self.bytes).into_owned();
        }
        let whole = complete_characters(&self.bytes, self.part);
        let lost_bytes = self.total_bytes - whole.len() as u64;
        let text = String::from_utf8_lossy(whole);
        match self.part {
            OutputPart::Beginning => format!("{text}\n[truncated: {lost_bytes} more bytes]\n"),
            OutputPart::End => format!("[truncated: {lost_bytes} bytes before]\n{text}"),
        }
    }
}

/// Removes a partial character at the cut.
fn complete_characters(bytes: &[u8], part: OutputPart) -> &[u8] {
    let is_inside = |byte: &&u8| **byte & 0xC0 == 0x80;
    match part {
        OutputPart::Beginning => {
            let inside = bytes.iter().rev().take(3).take_while(is_inside).count();
            let begins = bytes.len() - inside;
            let Some((first, before)) = bytes[..begins].split_last() else { return bytes };
            let length = first.leading_ones() as usize;
            if (2..=4).contains(&length) && inside + 1 < length { before } else { bytes }
        }
        OutputPart::End => &bytes[bytes.iter().take(3).take_while(is_inside).count()..],
    }
}
