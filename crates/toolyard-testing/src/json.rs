//! JSON as tokens: the exact content of a text, without the white space between tokens.
//!
//! The tests have a parser of their own, because the one under test must not judge itself, and others lose what these
//! tests check: the digits of numbers, escapes, the order of members, and duplicate members.

/// A JSON value. Numbers, literals and strings keep their source text, strings with their quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonNode {
    /// The members of an object, in order.
    Object(Vec<(String, JsonNode)>),
    /// The items of an array.
    Array(Vec<JsonNode>),
    /// The source text of any other value.
    Token(String),
}

/// Parses a text that must be one JSON value.
#[track_caller]
pub fn read(text: &str) -> JsonNode {
    let mut rest = text;
    let node = value(&mut rest);
    assert!(rest.trim().is_empty(), "text behind the value: {rest:?} in {text:?}");
    node
}

impl JsonNode {
    /// Returns a member of an object, by the text between the quotes of its name; panics if it is absent.
    #[track_caller]
    pub fn get(&self, name: &str) -> &Self {
        self.find(name).unwrap_or_else(|| panic!("no {name} in {}", self.text()))
    }

    /// Returns a member of an object, if there is one.
    pub fn find(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the content of a string without escapes; the source text of any other value.
    pub fn plain(&self) -> String {
        let text = self.text();
        text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&text).to_owned()
    }

    /// Returns the members of an object, for modification.
    #[track_caller]
    pub fn members(&mut self) -> &mut Vec<(String, Self)> {
        match self {
            Self::Object(members) => members,
            other => panic!("no object: {}", other.text()),
        }
    }

    /// Returns the items of an array.
    #[track_caller]
    pub fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            other => panic!("no array: {}", other.text()),
        }
    }

    /// Returns the text without white space between tokens.
    pub fn text(&self) -> String {
        let join = |parts: Vec<String>| parts.join(",");
        match self {
            Self::Object(members) => {
                let member = |(key, value): &(String, Self)| format!("\"{key}\":{}", value.text());
                format!("{{{}}}", join(members.iter().map(member).collect()))
            }
            Self::Array(items) => format!("[{}]", join(items.iter().map(Self::text).collect())),
            Self::Token(text) => text.clone(),
        }
    }
}

#[track_caller]
fn value(rest: &mut &str) -> JsonNode {
    *rest = rest.trim_start();
    match rest.bytes().next() {
        Some(b'{') => JsonNode::Object(list(rest, '}', |rest| {
            let key = string(rest);
            skip(rest, ':');
            (key[1..key.len() - 1].to_owned(), value(rest))
        })),
        Some(b'[') => JsonNode::Array(list(rest, ']', value)),
        Some(b'"') => JsonNode::Token(string(rest)),
        _ => {
            let end = rest.find([',', '}', ']', ' ', '\n', '\r', '\t']).unwrap_or(rest.len());
            assert!(end > 0, "no value: {rest:?}");
            JsonNode::Token(take(rest, end))
        }
    }
}

#[track_caller]
fn list<T>(rest: &mut &str, close: char, item: impl Fn(&mut &str) -> T) -> Vec<T> {
    take(rest, 1);
    let mut items = Vec::new();
    while !rest.trim_start().starts_with(close) {
        if !items.is_empty() {
            skip(rest, ',');
        }
        items.push(item(rest));
    }
    skip(rest, close);
    items
}

#[track_caller]
fn string(rest: &mut &str) -> String {
    *rest = rest.trim_start();
    assert!(rest.starts_with('"'), "no string: {rest:?}");
    let mut escaped = false;
    let closes = |byte: u8| {
        let quote = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        quote
    };
    let end = rest.bytes().skip(1).position(closes).expect("a string has an end");
    take(rest, end + 2)
}

#[track_caller]
fn skip(rest: &mut &str, expect: char) {
    *rest = rest.trim_start();
    assert!(rest.starts_with(expect), "no {expect} at {rest:?}");
    take(rest, 1);
}

fn take(rest: &mut &str, length: usize) -> String {
    let (taken, left) = rest.split_at(length);
    *rest = left;
    taken.to_owned()
}
