//! Cursor over a text.

/// The unread part of a text.
pub(super) struct TextScanner<'a>(&'a str);

impl<'a> TextScanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self(text)
    }

    pub(super) fn skip_blanks(&mut self) {
        self.take_while(is_blank);
    }

    /// Consumes matching characters.
    pub(super) fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|c| !fits(c)).unwrap_or(self.0.len());
        let (prefix, rest) = self.0.split_at(end);
        self.0 = rest;
        prefix
    }

    /// Consumes this text if it comes next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        match self.0.strip_prefix(text) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.0.chars().next()
    }

    pub(super) const fn rest(&self) -> &'a str {
        self.0
    }
}

pub(super) const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}
