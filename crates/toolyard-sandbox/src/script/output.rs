//! As much of what a script writes as is kept.

use tokio::io::{AsyncRead, AsyncReadExt};

/// As much is read at a time.
const CHUNK: usize = 16 << 10;

/// Which part is kept of what is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Beginning,
    /// Where a traceback says what went wrong.
    End,
}

/// A text that grows no longer than it may.
#[derive(Debug)]
pub(super) struct Kept {
    part: Part,
    most: usize,
    bytes: Vec<u8>,
    written: u64,
}

impl Kept {
    pub(super) const fn new(part: Part, most: usize) -> Self {
        Self { part, most, bytes: Vec::new(), written: 0 }
    }

    /// Reads to the end, so that whoever writes is never held up.
    pub(super) async fn read(&mut self, mut pipe: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; CHUNK];
        // A pipe that breaks has ended.
        while let Ok(length @ 1..) = pipe.read(&mut buffer).await {
            self.add(&buffer[..length]);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        match self.part {
            Part::Beginning => {
                let room = self.most - self.bytes.len();
                self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Part::End => {
                self.bytes.extend_from_slice(bytes);
                // Not each time, because what is kept has to move.
                if self.bytes.len() > self.most * 2 + CHUNK {
                    self.cut();
                }
            }
        }
    }

    fn cut(&mut self) {
        let beyond = self.bytes.len().saturating_sub(self.most);
        self.bytes.drain(..beyond);
    }

    /// What is kept, and how much is not. What is no UTF-8 is replaced.
    pub(super) fn text(mut self) -> String {
        self.cut();
        let lost = self.written - self.bytes.len() as u64;
        if lost == 0 {
            return String::from_utf8_lossy(&self.bytes).into_owned();
        }
        let whole = whole(&self.bytes, self.part);
        let lost = self.written - whole.len() as u64;
        let text = String::from_utf8_lossy(whole);
        match self.part {
            Part::Beginning => format!("{text}\n[cut here: {lost} bytes more are not kept]\n"),
            Part::End => format!("[cut here: {lost} bytes before this are not kept]\n{text}"),
        }
    }
}

/// The same without the part of a character where it was cut.
fn whole(bytes: &[u8], part: Part) -> &[u8] {
    let is_inside = |byte: &&u8| **byte & 0xC0 == 0x80;
    match part {
        Part::Beginning => {
            let inside = bytes.iter().rev().take(3).take_while(is_inside).count();
            let begins = bytes.len() - inside;
            let Some((first, before)) = bytes[..begins].split_last() else { return bytes };
            let length = first.leading_ones() as usize;
            if (2..=4).contains(&length) && inside + 1 < length { before } else { bytes }
        }
        Part::End => &bytes[bytes.iter().take(3).take_while(is_inside).count()..],
    }
}
