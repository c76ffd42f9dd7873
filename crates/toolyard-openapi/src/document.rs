//! A document as a tree: JSON and YAML are the same here.

mod json;
mod yaml;

use std::borrow::Cow;

use serde_json::{Number, Value};

/// How deep a document may nest. Readers recurse.
pub(crate) const DEEPEST: usize = 200;

/// A value of a document. Its texts are slices of the document where they can be: the largest documents have millions
/// of values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node<'t> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'t, str>),
    List(Vec<Node<'t>>),
    Object(Vec<(Cow<'t, str>, Node<'t>)>),
}

/// Why a text is no document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is neither JSON nor YAML: {problem} at line {line}, column {column}")]
pub struct SyntaxError {
    /// What is wrong.
    pub problem: String,
    /// The line, counted from one.
    pub line: usize,
    /// The column, counted from one.
    pub column: usize,
}

impl<'t> Node<'t> {
    /// Reads a text. What begins like JSON is read as JSON first, which is faster; YAML that begins so is YAML.
    pub(crate) fn parse(text: &'t str) -> Result<Self, SyntaxError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if !text.trim_start().starts_with(['{', '[']) {
            return yaml::parse(text);
        }
        json::parse(text).or_else(|error| yaml::parse(text).map_err(|_| error))
    }

    /// The member of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.members().iter().find_map(|(member, value)| (member == name).then_some(value))
    }

    /// The text of a member.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// Whether a member is `true`.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.get(name) == Some(&Node::Bool(true))
    }

    /// The members, of an object.
    pub(crate) fn members(&self) -> &[(Cow<'t, str>, Self)] {
        match self {
            Node::Object(members) => members,
            _ => &[],
        }
    }

    /// The items, of a list.
    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Node::List(items) => items,
            _ => &[],
        }
    }

    /// The items of a member that is a list.
    pub(crate) fn list(&self, name: &str) -> &[Self] {
        self.get(name).map_or(&[], Self::items)
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Node::Object(_))
    }

    /// The value that a JSON pointer names (RFC 6901).
    pub(crate) fn pointer(&self, pointer: &str) -> Option<&Self> {
        let segments = pointer.split('/').skip(1);
        segments.into_iter().try_fold(self, |node, segment| {
            let name = segment.replace("~1", "/").replace("~0", "~");
            match node {
                Node::List(items) => items.get(name.parse::<usize>().ok()?),
                node => node.get(&name),
            }
        })
    }

    /// The same value, with texts of its own.
    pub(crate) fn into_owned(self) -> Node<'static> {
        match self {
            Node::Null => Node::Null,
            Node::Bool(value) => Node::Bool(value),
            Node::Number(number) => Node::Number(number),
            Node::Text(text) => Node::Text(Cow::Owned(text.into_owned())),
            Node::List(items) => Node::List(items.into_iter().map(Self::into_owned).collect()),
            Node::Object(members) => {
                let owned =
                    |(name, value): (Cow<'_, str>, Self)| (Cow::Owned(name.into_owned()), value.into_owned());
                Node::Object(members.into_iter().map(owned).collect())
            }
        }
    }

    /// The same value, as the rest of the program has values.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Node::Null => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Number(number) => Value::Number(number.clone()),
            Node::Text(text) => Value::String(text.clone().into_owned()),
            Node::List(items) => items.iter().map(Self::to_value).collect(),
            Node::Object(members) => Value::Object(
                members.iter().map(|(name, value)| (name.clone().into_owned(), value.to_value())).collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let read = match Node::parse(text) {
            Ok(node) => node.to_value().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn json_and_yaml_are_the_same() {
        let expected = r#"{"a":[1,-2.5,true,null,"x"],"b":{"200":"y"}}"#;
        check(expected, expected);
        check("a: [1, -2.5, true, null, x]\nb:\n  200: y\n", expected);
        check("a:\n- 1\n- -2.5\n- true\n- ~\n- 'x'\nb: {\"200\": y}", expected);
        check("\u{feff}{\"a\": 1}", r#"{"a":1}"#);
        check("{a: 1, b: [x]}", r#"{"a":1,"b":["x"]}"#);
        check(r#"{"é":"\u00e9\n"}"#, r#"{"é":"é\n"}"#);
    }

    #[test]
    fn yaml_has_what_json_has_not() {
        check("a: &x {b: 1}\nc: *x\n", r#"{"a":{"b":1},"c":{"b":1}}"#);
        check("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n", r#"{"a":{"b":1,"c":2},"d":{"c":3,"b":1}}"#);
        check("a: |\n  x\n  y\nb: >-\n  x\n  y\n", r#"{"a":"x\ny\n","b":"x y"}"#);
        check(
            "a: yes\nb: 2020-01-01\nc: 0x1f\nd: '1'\ne: 010\n",
            r#"{"a":"yes","b":"2020-01-01","c":31,"d":"1","e":10}"#,
        );
        check("a: !!str 1\nb: !Tag {c: d}", r#"{"a":"1","b":{"c":"d"}}"#);
        check(
            "a:\n    b: \"x\n  y\n  z\"\n    c: {\n  d: 1,\n  e: 2\n  }\n",
            r#"{"a":{"b":"x y z","c":{"d":1,"e":2}}}"#,
        );
        check("a:\n  b: \"x\n  y\n  z\"\n  c:\n    d: 1\n", r#"{"a":{"b":"x y z","c":{"d":1}}}"#);
        check("", "null");
    }

    #[test]
    fn what_is_no_document_is_refused_with_its_place() {
        check("{\"a\": [1,}", "it is neither JSON nor YAML: expected value at line 1, column 10");
        check(
            "a: [1\nb: 2",
            "it is neither JSON nor YAML: illegal placement of ':' indicator at line 2, column 2",
        );
        check(
            "a: *nothing",
            "it is neither JSON nor YAML: while parsing node, found unknown anchor at line 1, column 4",
        );
    }

    #[test]
    fn what_would_grow_without_bound_is_refused() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Node::parse(&deep).is_err());
        let deep = (0..300).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect::<String>();
        assert!(Node::parse(&deep).unwrap_err().problem.contains("deep"));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let aliases = vec![format!("*a{}", level - 1); 8].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert!(Node::parse(&bomb).unwrap_err().problem.contains("aliases"));
    }

    #[test]
    fn pointers_name_values() {
        let node = Node::parse(r#"{"a/b": {"~": [10, {"c": 11}]}}"#).unwrap();
        let at = |pointer| node.pointer(pointer).map(Node::to_value);
        assert_eq!(at("/a~1b/~0/1/c"), Some(11.into()));
        assert_eq!(at("/a~1b/~0/0"), Some(10.into()));
        assert_eq!(at("").map(|value| value.is_object()), Some(true));
        assert_eq!(at("/a~1b/x"), None);
    }
}
