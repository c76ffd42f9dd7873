use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Parses `text` as a value, and as an object if it is one, and compares the result.
#[track_caller]
fn check(text: &str, expect: Result<&str, (&str, usize)>) {
    let expect = expect.map_err(|(problem, offset)| format!("{problem} at byte {offset}"));
    let json = Json::parse(text.to_owned());
    let actual = json.as_ref().map(Json::as_text).map_err(ToString::to_string);
    assert_eq!(actual, expect, "{text:?}");
}

#[test]
fn text_is_unchanged() {
    for text in ["1.10", "-0", "1e400", "123456789012345678901234567890", r#""\ud800\/""#, "[]", "{}", "null"]
    {
        check(text, Ok(text));
    }
    check(" {\"b\" : 1.0, \"a\":[ true ]}\t", Ok("{\"b\" : 1.0, \"a\":[ true ]}"));
}

#[test]
fn line_breaks_become_spaces() {
    check("{\n\"a\":\r\n1}\n", Ok("{ \"a\":  1}"));
    let object = Object::parse("{\n\"a\":[1,\n2]}").unwrap();
    assert_eq!(object.get("a").unwrap().as_text(), "[1, 2]");
}

#[test]
fn invalid_json_is_refused() {
    let value = "expected a value";
    let cases = [
        ("", "the text ends where a value is expected", 0),
        ("{", "expected a string", 1),
        ("[1,]", value, 3),
        ("{\"a\":1,}", "expected a string", 7),
        ("{\"a\" 1}", "expected `:` after a key", 5),
        ("{\"a\":1 \"b\":2}", "expected `,` or `}`", 7),
        ("[1 2]", "expected `,` or `]`", 3),
        ("1 2", "text after the value", 2),
        ("01", "text after the value", 1),
        ("1.", "expected a digit", 2),
        ("-", "expected a digit", 1),
        ("1e+", "expected a digit", 3),
        ("+1", value, 0),
        ("tru", value, 0),
        ("NaN", value, 0),
        ("'a'", value, 0),
        ("\"a", "the text ends inside of a string", 2),
        ("\"a\nb\"", "a control character in a string", 2),
        ("\"0123456789\u{1}\"", "a control character in a string", 11),
        ("\"\\x\"", "an unknown escape", 2),
        ("\"\\u12g4\"", "expected four hexadecimal digits", 2),
    ];
    for (text, problem, offset) in cases {
        check(text, Err((problem, offset)));
    }
    assert_eq!(Json::parse(&b"\"\xff\""[..]).unwrap_err().problem, "not UTF-8");
}

/// A value of this depth, of arrays and objects in turn.
fn nested(depth: usize) -> String {
    let opening = (0..depth).map(|level| if level % 2 == 0 { "{\"a\": " } else { "[" });
    let closing = (0..depth).rev().map(|level| if level % 2 == 0 { "}" } else { " , 1]" });
    opening.chain(["\"x\""]).chain(closing).collect()
}

#[test]
fn depth_is_limited_where_a_limit_is_given() {
    for depth in [1, 2, 63, 64, 65, 128, 129, 513] {
        let text = nested(depth);
        let json = Json::parse(text.clone()).unwrap();
        assert!(Json::parse_within(text.clone(), depth).is_ok(), "{depth}");
        assert!(Object::parse_within(text.clone(), depth).is_ok(), "{depth}");
        assert!(json.to_object_within(depth).is_ok(), "{depth}");
        for refused in [
            Json::parse_within(text.clone(), depth - 1).map(drop),
            Object::parse_within(text.clone(), depth - 1).map(drop),
            json.to_object_within(depth - 1).map(drop),
        ] {
            assert_eq!(refused.unwrap_err().problem, TOO_DEEP, "{depth}");
        }
    }
}

/// Runs work on a thread with the least stack that systems offer.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(64 << 10).spawn(work).unwrap().join().unwrap();
}

#[test]
fn depth_costs_no_stack() {
    on_small_stack(|| {
        let text = nested(100_000);
        let json = Json::parse(text.clone()).unwrap();
        assert_eq!(json.as_text(), text);
        let object = json.to_object().unwrap();
        assert_eq!(object.to_json().to_object().unwrap(), object);
        let list = object.get("a").unwrap();
        assert_eq!(list.to_items().unwrap().len(), 2);
        let brackets = "[".repeat(1_000_000);
        assert_eq!(Json::parse(brackets).unwrap_err().offset, 1_000_000);
        assert_eq!(Json::parse(nested(99_999) + "]").unwrap_err().problem, "text after the value");
    });
}

#[test]
fn typed_values_are_cut_at_the_maximum_depth() {
    let innermost = |json: &Json| {
        let value = json.to_value();
        let mut inner = &value;
        let mut depth = 0;
        while let Some(next) = inner.get("a").or_else(|| inner.get(0)) {
            inner = next;
            depth += 1;
        }
        (depth, inner.clone())
    };
    let json = |depth: usize| Json::parse(nested(depth)).unwrap();
    assert_eq!(innermost(&json(MAX_DEPTH)), (MAX_DEPTH, "x".into()));
    assert_eq!(innermost(&json(MAX_DEPTH + 1)), (MAX_DEPTH, Value::Null));
    assert_eq!(innermost(&json(50_000)), (MAX_DEPTH, Value::Null));
}

#[test]
fn duplicate_members_are_refused() {
    let many = |last: &str| {
        let members: Vec<_> = (0..40).map(|i| format!("\"m{i}\":0")).collect();
        format!("{{{},\"{last}\":0}}", members.join(","))
    };
    assert!(Object::parse(many("other")).is_ok());
    // A line break, and a backslash with an n.
    assert!(Object::parse(r#"{"\n":1,"\\n":2}"#).is_ok() && Object::parse(r#"{"\\n":1,"\n":2}"#).is_ok());
    for text in
        [r#"{"a":1,"a":2}"#.to_owned(), r#"{"a":1,"\u0061":2}"#.to_owned(), many("m7"), many(r"\u006d7")]
    {
        assert!(Object::parse(text.clone()).is_err(), "{text}");
        assert!(Json::parse(text.clone()).unwrap().check_object_within(9).is_err(), "{text}");
    }
    assert!(Json::parse(many("other")).unwrap().check_object_within(9).is_ok());
    // Only at the opened level: duplicates below are passed on.
    assert!(Object::parse(r#"{"a":{"b":1,"b":2}}"#).is_ok());
}

#[test]
fn objects_are_changed_in_place() {
    let mut object = Object::parse(r#"{"z":1.10, "\u0061":[ 2 ], "m":{}}"#).unwrap();
    assert_eq!(object.get("a").unwrap().as_text(), "[ 2 ]");
    object.set("a", Json::string("two"));
    object.set("new", Json::null());
    assert_eq!(object.remove("z").unwrap().as_text(), "1.10");
    assert_eq!(object.remove("z"), None);
    assert_eq!(object.to_json().as_text(), r#"{"\u0061":"two","m":{},"new":null}"#);
}

#[test]
fn string_is_written_as_a_new_one_would_be() {
    for (value, text, expected) in [
        (r#""echo""#, "echo", r#""echo""#),
        (r#""\u0065cho""#, "echo", r#""echo""#),
        (r#""other""#, "echo", r#""echo""#),
        ("1", "1", r#""1""#),
        (r#""a\\b""#, r"a\b", r#""a\\b""#),
        (r#""a\/b""#, "a/b", r#""a/b""#),
        (r#""grüße""#, "grüße", r#""grüße""#),
    ] {
        let mut object = Object::parse(format!(r#"{{"name":{value},"b":2}}"#)).unwrap();
        object.set_string("name", text);
        object.set_string("new", text);
        let expected = format!(r#"{{"name":{expected},"b":2,"new":{expected}}}"#);
        assert_eq!(object.to_json().as_text(), expected);
    }
}

#[test]
fn a_large_object_is_written_in_pieces() {
    let text = format!(r#"{{"a":"{}","b":1}}"#, "x".repeat(10_000));
    let pieces = Object::parse(text.clone()).unwrap().to_pieces();
    assert!(pieces.len() > 1);
    assert_eq!(pieces.concat(), text.as_bytes());
}

#[test]
fn values_for_validation_are_lossy() {
    let check =
        |text: &str, expect: Value| assert_eq!(Json::parse(text.to_owned()).unwrap().to_value(), expect);
    check("1e400", f64::MAX.into());
    check("-1e400", f64::MIN.into());
    check("18446744073709551615", u64::MAX.into());
    check("-5", (-5).into());
    check(r#""\ud800x\ud83d\ude00\u0000""#, "\u{fffd}x\u{1f600}\0".into());
    check(r#""\ud83d\u0041""#, "\u{fffd}A".into());
}

/// Generates JSON texts from values, with white space between tokens.
fn texts() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?",
        any::<String>().prop_map(|text| Value::String(text).to_string()),
    ];
    let blank = || "[ \n\r\t]{0,2}";
    leaf.prop_recursive(4, 40, 6, move |inner| {
        let item = (blank(), inner, blank()).prop_map(|(before, item, after)| before + &item + &after);
        prop_oneof![
            prop::collection::vec(item.clone(), 0..6).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::btree_map("[a-z\"\\\\é]{0,8}", item, 0..6).prop_map(|members| {
                let member = |(key, value)| format!("{}:{value}", Value::String(key));
                format!("{{{}}}", members.into_iter().map(member).collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn parsed_texts_keep_their_values(text in texts()) {
        let json = Json::parse(text.clone()).unwrap();
        prop_assert!(!json.as_text().contains(['\n', '\r']));
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            prop_assert_eq!(json.to_value(), value);
        }
    }

    #[test]
    fn objects_round_trip_except_for_white_space(text in texts()) {
        let json = Json::parse(text).unwrap();
        prop_assert_eq!(json.to_object().is_ok(), json.is_object());
        if let Ok(object) = json.to_object() {
            let json = object.to_json();
            let again = json.to_object().unwrap();
            prop_assert_eq!(object.to_pieces().concat(), json.as_bytes());
            prop_assert_eq!(object, again);
        }
    }

    /// Accepts the same bytes as serde_json, except for values beyond its types.
    #[test]
    fn damaged_texts_are_accepted_like_serde_json(text in texts(), at: prop::sample::Index, byte: u8) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let ours = Json::parse(bytes.clone());
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(_) => prop_assert!(ours.is_ok()),
            Err(error) => {
                let cannot_hold = error.to_string().contains("number out of range")
                    || error.to_string().contains("surrogate")
                    || error.to_string().contains("hex escape");
                prop_assert!(ours.is_err() || cannot_hold, "{error}");
            }
        }
    }

    #[test]
    fn validated_text_is_opened_like_unknown_text(text in texts(), max_depth in 1_usize..6) {
        let json = Json::parse(text.clone()).unwrap();
        let opened = |object: Result<Object, JsonError>| object.map_err(|error| error.problem);
        let checked = json.check_object_within(max_depth).map_err(|error| error.problem);
        prop_assert_eq!(checked, opened(json.to_object_within(max_depth)).map(drop));
        prop_assert_eq!(opened(json.to_object_within(max_depth)), opened(Object::parse_within(text, max_depth)));
    }

    #[test]
    fn strings_survive(text: String) {
        let json = Json::string(&text);
        let again = Json::parse(json.bytes()).unwrap();
        prop_assert_eq!(again.to_str().unwrap(), text);
    }

    #[test]
    fn nothing_panics(bytes: Vec<u8>) {
        let _ = Json::parse(bytes.clone()).map(|json| (json.to_value(), json.to_items()));
        let _ = Object::parse(bytes);
    }
}
