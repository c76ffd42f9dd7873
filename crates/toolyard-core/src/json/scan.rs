//! Validates JSON text (RFC 8259) without building values.

use std::ops::Range;

use super::{JsonError, NOT_AN_OBJECT, TOO_DEEP};

/// A position in a text.
pub(super) struct JsonLexer<'a> {
    text: &'a [u8],
    at: usize,
    max_depth: usize,
    /// `true` if the text was validated before, so that values can be skipped by their brackets.
    is_valid: bool,
}

/// The name of a member, with its quotes.
pub(super) struct NameRange {
    pub(super) range: Range<usize>,
    /// `true` if it has an escape sequence.
    pub(super) has_escape: bool,
}

/// The open brackets of a text: a bit for each, so that nesting costs no stack and little memory.
#[derive(Default)]
struct OpenBrackets {
    depth: usize,
    /// The innermost ones, up to 64; 1 for an object.
    last: u64,
    /// The outer ones.
    outer: Vec<u64>,
}

impl OpenBrackets {
    fn push(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.last);
        }
        self.last = self.last << 1 | u64::from(is_object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.last >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.last = self.outer.pop().unwrap_or_default();
        }
    }

    /// Returns `true` if the innermost bracket is that of an object; `None` if none is open.
    const fn in_object(&self) -> Option<bool> {
        if self.depth == 0 { None } else { Some(self.last & 1 == 1) }
    }
}

impl<'a> JsonLexer<'a> {
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self::within(text, usize::MAX)
    }

    /// Creates a lexer that fails where values are nested more than `max_depth` levels deep.
    pub(super) const fn within(text: &'a [u8], max_depth: usize) -> Self {
        Self { text, at: 0, max_depth, is_valid: false }
    }

    /// Creates a lexer of a value that was validated before, which only finds its parts. It fails as
    /// [`JsonLexer::within`] does.
    pub(super) const fn of_valid(text: &'a [u8], max_depth: usize) -> Self {
        Self { text, at: 0, max_depth, is_valid: true }
    }

    /// Reads a value that fills the text, except for white space.
    pub(super) fn whole_value(&mut self) -> Result<Range<usize>, JsonError> {
        let range = self.value(0)?;
        self.end()?;
        Ok(range)
    }

    /// Reads an object that fills the text: `each` is called with the ranges of keys and values.
    pub(super) fn members(&mut self, mut each: impl FnMut(NameRange, Range<usize>)) -> Result<(), JsonError> {
        self.blanks();
        if self.peek() != Some(b'{') {
            // Only a valid value can be of the wrong type.
            self.whole_value()?;
            return Err(JsonError { problem: NOT_AN_OBJECT, offset: 0 });
        }
        self.open(0)?;
        if self.closes(b'}') {
            return self.end();
        }
        loop {
            let key = self.key()?;
            each(key, self.value(1)?);
            if self.closes(b'}') {
                return self.end();
            }
            self.expect(b',', "expected `,` or `}`")?;
        }
    }

    /// Reads an array that fills the text: `each` is called with the range of each item.
    pub(super) fn items(&mut self, mut each: impl FnMut(Range<usize>)) -> Result<(), JsonError> {
        self.blanks();
        if self.peek() != Some(b'[') {
            return self.fail("expected an array");
        }
        self.open(0)?;
        if self.closes(b']') {
            return self.end();
        }
        loop {
            each(self.value(1)?);
            if self.closes(b']') {
                return self.end();
            }
            self.expect(b',', "expected `,` or `]`")?;
        }
    }

    /// Returns the text that `step` reads.
    pub(super) fn text_of(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(), JsonError>,
    ) -> Result<&'a [u8], JsonError> {
        let start = self.at;
        step(self)?;
        Ok(&self.text[start..self.at])
    }

    /// Reads a value inside of `outer` brackets, without recursion.
    pub(super) fn value(&mut self, outer: usize) -> Result<Range<usize>, JsonError> {
        self.blanks();
        let start = self.at;
        match self.peek() {
            Some(b'{' | b'[') if self.is_valid => self.skip_container(outer)?,
            Some(b'{' | b'[') => self.container(outer)?,
            first => self.scalar(first)?,
        }
        Ok(start..self.at)
    }

    fn scalar(&mut self, first: Option<u8>) -> Result<(), JsonError> {
        match first {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(first) => self.skip_word(first),
            None => self.fail("the text ends where a value is expected"),
        }
    }

    /// Skips an object or an array that was validated before.
    fn skip_container(&mut self, outer: usize) -> Result<(), JsonError> {
        let mut depth = 0;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => {
                    self.open(outer + depth)?;
                    depth += 1;
                    continue;
                }
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
        self.fail("the text ends inside of a value")
    }

    /// Reads an object or an array.
    fn container(&mut self, outer: usize) -> Result<(), JsonError> {
        let mut brackets = OpenBrackets::default();
        loop {
            self.blanks();
            match self.peek() {
                Some(first @ (b'{' | b'[')) => {
                    self.open(outer + brackets.depth)?;
                    let is_object = first == b'{';
                    if !self.closes(if is_object { b'}' } else { b']' }) {
                        brackets.push(is_object);
                        if is_object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                first => self.scalar(first)?,
            }
            if self.close_all(&mut brackets)? {
                return Ok(());
            }
        }
    }

    /// Reads what follows a value, up to the next value. Returns `true` if there is none because all brackets are
    /// closed.
    fn close_all(&mut self, brackets: &mut OpenBrackets) -> Result<bool, JsonError> {
        while let Some(in_object) = brackets.in_object() {
            if in_object {
                if !self.closes(b'}') {
                    self.expect(b',', "expected `,` or `}`")?;
                    self.key()?;
                    return Ok(false);
                }
            } else if !self.closes(b']') {
                self.expect(b',', "expected `,` or `]`")?;
                return Ok(false);
            }
            brackets.pop();
        }
        Ok(true)
    }

    /// Reads the name of a member and the colon, and returns the range of the name.
    fn key(&mut self) -> Result<NameRange, JsonError> {
        self.blanks();
        let start = self.at;
        let has_escape = self.string_with_escapes()?;
        let key = NameRange { range: start..self.at, has_escape };
        self.blanks();
        self.expect(b':', "expected `:` after a key")?;
        Ok(key)
    }

    /// Reads an opening bracket inside of `outer` others.
    fn open(&mut self, outer: usize) -> Result<(), JsonError> {
        if outer >= self.max_depth {
            return self.fail(TOO_DEEP);
        }
        self.at += 1;
        Ok(())
    }

    pub(super) fn string(&mut self) -> Result<(), JsonError> {
        self.string_with_escapes().map(drop)
    }

    /// Reads a string, and returns `true` if it has escape sequences.
    fn string_with_escapes(&mut self) -> Result<bool, JsonError> {
        self.expect(b'"', "expected a string")?;
        let mut has_escape = false;
        loop {
            self.at += plain_length(&self.text[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(has_escape);
                }
                Some(b'\\') => {
                    has_escape = true;
                    self.at += 1;
                    self.escape()?;
                }
                Some(_) => return self.fail("a control character in a string"),
                None => return self.fail("the text ends inside of a string"),
            }
        }
    }

    /// Reads the rest of an escape sequence after the backslash.
    fn escape(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let digits = self.text.get(self.at + 1..self.at + 5);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return self.fail("expected four hexadecimal digits");
                }
                self.at += 5;
            }
            _ => return self.fail("an unknown escape"),
        }
        Ok(())
    }

    pub(super) fn number(&mut self) -> Result<(), JsonError> {
        self.skip(b'-');
        if !self.skip(b'0') {
            self.digits()?;
        }
        if self.skip(b'.') {
            self.digits()?;
        }
        if self.skip(b'e') || self.skip(b'E') {
            let _signed = self.skip(b'+') || self.skip(b'-');
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return self.fail("expected a digit");
        }
        self.at += digits;
        Ok(())
    }

    /// Reads the literal that begins with `first`.
    pub(super) fn skip_word(&mut self, first: u8) -> Result<(), JsonError> {
        let word: &[u8] = match first {
            b't' => b"true",
            b'f' => b"false",
            _ => b"null",
        };
        if !self.text[self.at..].starts_with(word) {
            return self.fail("expected a value");
        }
        self.at += word.len();
        Ok(())
    }

    pub(super) fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    pub(super) fn closes(&mut self, bracket: u8) -> bool {
        self.blanks();
        self.skip(bracket)
    }

    pub(super) fn skip(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8, problem: &'static str) -> Result<(), JsonError> {
        if self.skip(byte) { Ok(()) } else { self.fail(problem) }
    }

    fn end(&mut self) -> Result<(), JsonError> {
        self.blanks();
        if self.at == self.text.len() { Ok(()) } else { self.fail("text after the value") }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn fail<T>(&self, problem: &'static str) -> Result<T, JsonError> {
        Err(JsonError { problem, offset: self.at })
    }
}

/// Number of bytes of a string that are examined as words. Most strings end within them, and for the others a vectorized
/// search is worth its call.
const WORDS: usize = 32;

/// Number of bytes that are searched at a time. A text with many escapes is searched again behind each of them.
const WINDOW: usize = 256;

/// Returns the length of the part of a string up to a quote, a backslash or a control character. Most of the relayed data
/// is text, so that this decides about the time of a large message.
pub(super) fn plain_length(text: &[u8]) -> usize {
    let (start, rest) = text.split_at(text.len().min(WORDS));
    let length = plain_length_by_words(start);
    if length < start.len() {
        return length;
    }
    for (window, at) in rest.chunks(WINDOW).zip((length..).step_by(WINDOW)) {
        let plain = memchr::memchr2(b'"', b'\\', window).unwrap_or(window.len());
        // The compiler vectorizes the search for the smallest byte, but not one that ends early.
        if window[..plain].iter().fold(u8::MAX, |least, &byte| least.min(byte)) < 0x20 {
            return at + window.iter().take_while(|&&byte| byte >= 0x20).count();
        }
        if plain < window.len() {
            return at + plain;
        }
    }
    text.len()
}

fn plain_length_by_words(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    // Sets the high bit of the lowest byte that is zero or below `limit`. Bytes above it may be set as well, which is
    // harmless: only the lowest is used.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGHS;
    let equal = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let mut length = 0;
    while let Some(&chunk) = text[length..].first_chunk::<8>() {
        let word = u64::from_le_bytes(chunk);
        let matches = below(word, 0x20) | equal(word, b'"') | equal(word, b'\\');
        if matches != 0 {
            return length + matches.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let rest = text[length..].iter().take_while(|&&byte| byte != b'"' && byte != b'\\' && byte >= 0x20);
    length + rest.count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive_plain_length(text: &[u8]) -> usize {
        text.iter().take_while(|&&byte| byte != b'"' && byte != b'\\' && byte >= 0x20).count()
    }

    proptest! {
        #[test]
        fn plain_length_is_that_of_a_search_byte_by_byte(
            filling in prop_oneof![Just(b'x'), 0x20..=u8::MAX],
            length in 0..4 * WINDOW,
            others in prop::collection::vec((0..4 * WINDOW, any::<u8>()), 0..4),
        ) {
            let mut text = vec![filling; length];
            for (at, byte) in others {
                text.get_mut(at).into_iter().for_each(|place| *place = byte);
            }
            prop_assert_eq!(plain_length(&text), naive_plain_length(&text));
        }
    }
}
