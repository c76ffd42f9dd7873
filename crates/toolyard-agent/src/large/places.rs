//! The text that is stored with each chunk, so that nothing of the whole text is lost.

use crate::chunk::TextChunk;
use crate::memory::ChunkPlace;

/// Iterator over the stored texts of chunks, with the place of each chunk in its text. Together they are the whole text.
pub(crate) struct StoredChunks<'a, 'c> {
    text: &'a str,
    chunks: &'c [TextChunk<'a>],
    /// Number of the next chunk.
    number: usize,
    /// End of the preceding stored text.
    end: usize,
    /// Number of lines that end before `end`.
    lines: usize,
}

impl<'a, 'c> StoredChunks<'a, 'c> {
    pub(crate) const fn new(text: &'a str, chunks: &'c [TextChunk<'a>]) -> Self {
        Self { text, chunks, number: 0, end: 0, lines: 0 }
    }
}

impl<'a> Iterator for StoredChunks<'a, '_> {
    type Item = (&'a str, ChunkPlace);

    fn next(&mut self) -> Option<Self::Item> {
        let (chunk, rest) = self.chunks.split_first()?;
        // The last chunk has the rest of the text.
        let end = if rest.is_empty() { self.text.len() } else { chunk.end() };
        let (before, after) = (chunk.start - self.end, end - chunk.end());
        let lines = self.lines + line_ends(&self.text[self.end..chunk.start]);
        let stored = &self.text[self.end..end];
        (self.chunks, self.end) = (rest, end);
        self.lines = lines + line_ends(&self.text[chunk.start..end]);
        let number = self.number;
        self.number += 1;
        Some((stored, ChunkPlace { number, before, after, lines }))
    }
}

fn line_ends(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{chunks, packed_chunks};

    #[test]
    fn stored_texts_are_the_whole_text() {
        let check = |text: &str, chunks: &[TextChunk<'_>]| {
            let stored: Vec<_> = StoredChunks::new(text, chunks).collect();
            assert_eq!(stored.iter().map(|(stored, _)| *stored).collect::<String>(), text);
            for ((stored, place), chunk) in stored.into_iter().zip(chunks) {
                assert_eq!(&stored[place.before..stored.len() - place.after], chunk.content, "{text:?}");
                assert_eq!(place.lines, text[..chunk.start].matches('\n').count(), "{text:?}");
            }
        };
        for text in [
            "",
            "\n",
            "a",
            "# A\n\nb\n\n\n",
            "\n\n# A\nb\n## C\n",
            "aaa\n\nbbb\n\n\n\nccc\nddd",
            "# A\n# B\nx",
        ] {
            for max in [1, 4, 100] {
                check(text, &chunks(text, max).collect::<Vec<_>>());
                check(text, &packed_chunks(text, max));
            }
        }
    }
}
