//! Validates JSON text (RFC 8259) without building values.

use std::ops::Range;

use super::{JsonError, MAX_DEPTH, NOT_AN_OBJECT};

/// A position in a text.
pub(super) struct JsonLexer<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> JsonLexer<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// Reads a value that fills the text, except for white space.
    pub(super) fn whole_value(&mut self) -> Result<Range<usize>, JsonError> {
        let range = self.value(MAX_DEPTH)?;
        self.end()?;
        Ok(range)
    }

    /// Reads an object that fills the text: `each` is called with the ranges of keys (with quotes) and values.
    pub(super) fn members(
        &mut self,
        mut each: impl FnMut(Range<usize>, Range<usize>),
    ) -> Result<(), JsonError> {
        self.blanks();
        if self.peek() != Some(b'{') {
            // Only a valid value can be of the wrong type.
            self.whole_value()?;
            return Err(JsonError { problem: NOT_AN_OBJECT, offset: 0 });
        }
        self.object(MAX_DEPTH, &mut each)?;
        self.end()
    }

    /// Reads an array that fills the text: `each` is called with the range of each item.
    pub(super) fn items(&mut self, mut each: impl FnMut(Range<usize>)) -> Result<(), JsonError> {
        self.blanks();
        if self.peek() != Some(b'[') {
            return self.fail("expected an array");
        }
        self.array(MAX_DEPTH, &mut each)?;
        self.end()
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

    fn value(&mut self, depth: usize) -> Result<Range<usize>, JsonError> {
        self.blanks();
        let start = self.at;
        match self.peek() {
            Some(b'{') => self.object(depth, &mut |_, _| ())?,
            Some(b'[') => self.array(depth, &mut |_| ())?,
            Some(b'"') => self.string()?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(first) => self.skip_word(first)?,
            None => return self.fail("the text ends where a value is expected"),
        }
        Ok(start..self.at)
    }

    fn object(
        &mut self,
        depth: usize,
        each: &mut dyn FnMut(Range<usize>, Range<usize>),
    ) -> Result<(), JsonError> {
        let depth = self.deeper(depth)?;
        if self.closes(b'}') {
            return Ok(());
        }
        loop {
            self.blanks();
            let key = self.at;
            self.string()?;
            let key = key..self.at;
            self.blanks();
            self.expect(b':', "expected `:` after a key")?;
            let value = self.value(depth)?;
            each(key, value);
            if self.closes(b'}') {
                return Ok(());
            }
            self.expect(b',', "expected `,` or `}`")?;
        }
    }

    fn array(&mut self, depth: usize, each: &mut dyn FnMut(Range<usize>)) -> Result<(), JsonError> {
        let depth = self.deeper(depth)?;
        if self.closes(b']') {
            return Ok(());
        }
        loop {
            each(self.value(depth)?);
            if self.closes(b']') {
                return Ok(());
            }
            self.expect(b',', "expected `,` or `]`")?;
        }
    }

    /// Reads an opening bracket.
    fn deeper(&mut self, depth: usize) -> Result<usize, JsonError> {
        match depth.checked_sub(1) {
            Some(depth) => {
                self.at += 1;
                Ok(depth)
            }
            None => self.fail("nested too deeply"),
        }
    }

    pub(super) fn string(&mut self) -> Result<(), JsonError> {
        self.expect(b'"', "expected a string")?;
        loop {
            self.at += plain_length(&self.text[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
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
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
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

/// Returns the length of the part of a string up to a quote, a backslash or a control character. Eight bytes are
/// examined at a time, because most of the relayed data is text.
fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    // Sets the high bit of the lowest byte that is zero or below `limit`. Bytes above it may be set as well, which is
    // harmless: only the lowest is used.
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & HIGHS;
    let equal = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    let mut length = 0;
    while let Some(&chunk) = text[length..].first_chunk::<8>() {
        let word = u64::from_le_bytes(chunk);
        let found = below(word, 0x20) | equal(word, b'"') | equal(word, b'\\');
        if found != 0 {
            return length + found.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let rest = text[length..].iter().take_while(|&&byte| byte != b'"' && byte != b'\\' && byte >= 0x20);
    length + rest.count()
}
