//! A document as a tree, from JSON or YAML.

mod json;
mod yaml;

use std::borrow::Cow;

use serde_json::{Number, Value};

/// Maximum nesting depth of a document. Its readers are recursive.
pub(crate) const MAX_DEPTH: usize = 200;

/// A value of a document. Its strings are slices of the text if possible: the largest documents have millions of
/// values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SpecNode<'t> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'t, str>),
    List(Vec<SpecNode<'t>>),
    Object(Vec<(Cow<'t, str>, SpecNode<'t>)>),
}

/// A text is not a valid document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid JSON or YAML: {problem} at line {line}, column {column}")]
pub struct SpecSyntaxError {
    /// Description of the problem.
    pub problem: String,
    /// Line number, counted from one.
    pub line: usize,
    /// Column number, counted from one.
    pub column: usize,
}

impl<'t> SpecNode<'t> {
    /// Parses a text. A text that starts like JSON is first parsed as JSON, which is faster, and then as YAML.
    pub(crate) fn parse(text: &'t str) -> Result<Self, SpecSyntaxError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if !text.trim_start().starts_with(['{', '[']) {
            return yaml::parse(text);
        }
        json::parse(text).or_else(|error| {
            yaml::parse(text).map_err(|other| if other.problem == yaml::too_deep() { other } else { error })
        })
    }

    /// Returns the member with a name.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.members().iter().find_map(|(member, value)| (member == name).then_some(value))
    }

    /// Returns a string member.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// True if a member is `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some(&SpecNode::Bool(true))
    }

    /// The members of an object.
    pub(crate) fn members(&self) -> &[(Cow<'t, str>, Self)] {
        match self {
            SpecNode::Object(members) => members,
            _ => &[],
        }
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> &[Self] {
        match self {
            SpecNode::List(items) => items,
            _ => &[],
        }
    }

    /// The items of a list member.
    pub(crate) fn list(&self, name: &str) -> &[Self] {
        self.get(name).map_or(&[], Self::items)
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            SpecNode::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, SpecNode::Object(_))
    }

    /// Resolves a JSON pointer (RFC 6901).
    pub(crate) fn pointer(&self, pointer: &str) -> Option<&Self> {
        let segments = pointer.split('/').skip(1);
        segments.into_iter().try_fold(self, |node, segment| {
            let name = segment.replace("~1", "/").replace("~0", "~");
            match node {
                SpecNode::List(items) => items.get(name.parse::<usize>().ok()?),
                node => node.get(&name),
            }
        })
    }

    /// Converts to a value that owns its strings.
    pub(crate) fn into_owned(self) -> SpecNode<'static> {
        match self {
            SpecNode::Null => SpecNode::Null,
            SpecNode::Bool(value) => SpecNode::Bool(value),
            SpecNode::Number(number) => SpecNode::Number(number),
            SpecNode::Text(text) => SpecNode::Text(Cow::Owned(text.into_owned())),
            SpecNode::List(items) => SpecNode::List(items.into_iter().map(Self::into_owned).collect()),
            SpecNode::Object(members) => {
                let owned =
                    |(name, value): (Cow<'_, str>, Self)| (Cow::Owned(name.into_owned()), value.into_owned());
                SpecNode::Object(members.into_iter().map(owned).collect())
            }
        }
    }

    /// Converts to a [`Value`].
    pub(crate) fn to_value(&self) -> Value {
        match self {
            SpecNode::Null => Value::Null,
            SpecNode::Bool(value) => Value::Bool(*value),
            SpecNode::Number(number) => Value::Number(number.clone()),
            SpecNode::Text(text) => Value::String(text.clone().into_owned()),
            SpecNode::List(items) => items.iter().map(Self::to_value).collect(),
            SpecNode::Object(members) => Value::Object(
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
        let read = match SpecNode::parse(text) {
            Ok(node) => node.to_value().to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn json_and_yaml_give_the_same_tree() {
        let expected = r#"{"a":[1,-2.5,true,null,"x"],"b":{"200":"y"}}"#;
        check(expected, expected);
        check("a: [1, -2.5, true, null, x]\nb:\n  200: y\n", expected);
        check("a:\n- 1\n- -2.5\n- true\n- ~\n- 'x'\nb: {\"200\": y}", expected);
        check("\u{feff}{\"a\": 1}", r#"{"a":1}"#);
        check("{a: 1, b: [x]}", r#"{"a":1,"b":["x"]}"#);
        check(r#"{"é":"\u00e9\n"}"#, r#"{"é":"é\n"}"#);
    }

    #[test]
    fn yaml_extensions() {
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
    fn syntax_error_has_a_position() {
        check("{\"a\": [1,}", "invalid JSON or YAML: expected value at line 1, column 10");
        check("a: [1\nb: 2", "invalid JSON or YAML: illegal placement of ':' indicator at line 2, column 2");
        check(
            "a: *nothing",
            "invalid JSON or YAML: while parsing node, found unknown anchor at line 1, column 4",
        );
    }

    #[test]
    fn deep_and_expanding_documents_are_refused() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(SpecNode::parse(&deep).is_err());
        let deep = (0..300).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect::<String>();
        assert!(SpecNode::parse(&deep).unwrap_err().problem.contains("more than 200 levels"));
        let deep = format!("{{\"a\": {}1{}}}", "[".repeat(300), "]".repeat(300));
        assert!(SpecNode::parse(&deep).unwrap_err().problem.contains("more than 200 levels"));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let aliases = vec![format!("*a{}", level - 1); 8].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert!(
            SpecNode::parse(&bomb).unwrap_err().problem.contains("aliases expand to more than 8388608 bytes")
        );
        // Few values with long texts.
        let bomb = format!("a: &a |\n  {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 3000].join(", "));
        assert!(SpecNode::parse(&bomb).unwrap_err().problem.contains("aliases expand"));
    }

    #[test]
    fn json_pointers_resolve() {
        let node = SpecNode::parse(r#"{"a/b": {"~": [10, {"c": 11}]}}"#).unwrap();
        let at = |pointer| node.pointer(pointer).map(SpecNode::to_value);
        assert_eq!(at("/a~1b/~0/1/c"), Some(11.into()));
        assert_eq!(at("/a~1b/~0/0"), Some(10.into()));
        assert_eq!(at("").map(|value| value.is_object()), Some(true));
        assert_eq!(at("/a~1b/x"), None);
    }
}
