use serde_json::json;

use super::*;

/// Puts `{"url": "u"}` as `new` into a text's `servers`.
#[track_caller]
fn check(before: &str, expected: &str) {
    let entry = json!({"url": "u"});
    let after = with_server(before, "servers", "new", &entry).unwrap();
    assert_eq!(after, expected, "{before}");
    // Once is enough.
    assert_eq!(with_server(&after, "servers", "new", &entry).unwrap(), after);
}

#[test]
fn an_empty_file() {
    let whole = "{\n  \"servers\": {\n    \"new\": {\n      \"url\": \"u\"\n    }\n  }\n}\n";
    check("", whole);
    check("\n", &format!("\n{whole}"));
    check("{}", whole.trim_end());
}

#[test]
fn others_stay_as_they_are() {
    check(
        "{\n    \"z\": 1.10,\n    \"servers\": {\n        \"a\": {\"x\":1}\n    },\n    \"a\": []\n}\n",
        "{\n    \"z\": 1.10,\n    \"servers\": {\n        \"a\": {\"x\":1},\n        \"new\": {\n            \"url\": \"u\"\n        }\n    },\n    \"a\": []\n}\n",
    );
    check(
        "{\r\n\t\"a\": 1\r\n}\r\n",
        "{\r\n\t\"a\": 1,\r\n\t\"servers\": {\r\n\t\t\"new\": {\r\n\t\t\t\"url\": \"u\"\r\n\t\t}\r\n\t}\r\n}\r\n",
    );
    check(
        "{\"servers\": {\"a\": {}}}",
        "{\"servers\": {\"a\": {},\n  \"new\": {\n    \"url\": \"u\"\n  }\n}}",
    );
    check(
        "{\n  \"servers\": { \"a\": {} }\n}",
        "{\n  \"servers\": { \"a\": {},\n    \"new\": {\n      \"url\": \"u\"\n    }\n  }\n}",
    );
    check("\u{feff}{\n}", "\u{feff}{\n  \"servers\": {\n    \"new\": {\n      \"url\": \"u\"\n    }\n  }\n}");
}

#[test]
fn comments_and_last_commas() {
    check(
        "{\n  // all\n  \"servers\": {\n    \"a\": {} // {\"not\": \"this\"}\n    /* the end */\n  }\n}",
        "{\n  // all\n  \"servers\": {\n    \"a\": {}, // {\"not\": \"this\"}\n    /* the end */\n    \"new\": {\n      \"url\": \"u\"\n    }\n  }\n}",
    );
    check(
        "{\n  \"servers\": {\n    \"a\": [1, 2,],\n  },\n}",
        "{\n  \"servers\": {\n    \"a\": [1, 2,],\n    \"new\": {\n      \"url\": \"u\"\n    }\n  },\n}",
    );
    check(
        "{\n  \"servers\": {} // none\n}",
        "{\n  \"servers\": {\n    \"new\": {\n      \"url\": \"u\"\n    }\n  } // none\n}",
    );
    check("{ // }\n}", "{ // }\n  \"servers\": {\n    \"new\": {\n      \"url\": \"u\"\n    }\n  }\n}");
}

#[test]
fn an_entry_of_the_same_name() {
    check(
        "{\n  \"servers\": {\n    \"new\": {\"url\": \"old\"}, // mine\n    \"a\": {}\n  }\n}",
        "{\n  \"servers\": {\n    \"new\": {\n      \"url\": \"u\"\n    }, // mine\n    \"a\": {}\n  }\n}",
    );
    let same = "{\"servers\": {\"new\": { \"url\" :\"u\" }}}";
    check(same, same);
    let escaped = r#"{"servers": {"n\u0065w": {"url": "u"}}}"#;
    check(escaped, escaped);
}

#[test]
fn what_is_not_clear_is_left_alone() {
    let deep = "[".repeat(200);
    for (text, expected) in [
        ("{", Unclear::NotJson),
        ("{} {}", Unclear::NotJson),
        ("{\"a\" 1}", Unclear::NotJson),
        ("{\"a\": 1 \"b\": 2}", Unclear::NotJson),
        ("{,}", Unclear::NotJson),
        ("{\"a\": [,]}", Unclear::NotJson),
        ("{\"a\": yes}", Unclear::NotJson),
        ("{\"a\": \"b}", Unclear::NotJson),
        ("{} /*", Unclear::NotJson),
        ("{'a': 1}", Unclear::NotJson),
        (&deep, Unclear::NotJson),
        ("[]", Unclear::NoObject),
        ("{\"servers\": []}", Unclear::NoObject),
        ("{\"servers\": {}, \"servers\": {}}", Unclear::Twice),
        ("{\"servers\": {\"new\": 1, \"new\": 2}}", Unclear::Twice),
    ] {
        assert_eq!(with_server(text, "servers", "new", &json!({})), Err(expected), "{text}");
    }
}
