use serde_json::json;

use super::*;

/// Puts `{"url": "u"}` as `new` into a text's `servers`.
#[track_caller]
fn check(before: &str, expected: &str) {
    let entry = json!({"url": "u"});
    let after = with_server(before, "servers", "new", &entry).unwrap();
    assert_eq!(after, expected, "{before}");
    // A second run changes nothing.
    assert_eq!(with_server(&after, "servers", "new", &entry).unwrap(), after);
}

#[test]
fn server_is_added_to_empty_file() {
    let whole = "{\n  \"servers\": {\n    \"new\": {\n      \"url\": \"u\"\n    }\n  }\n}\n";
    check("", whole);
    check("\n", &format!("\n{whole}"));
    check("{}", whole.trim_end());
}

#[test]
fn other_entries_are_unchanged() {
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
fn comments_and_trailing_commas_are_kept() {
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
fn existing_entry_is_replaced() {
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
fn ambiguous_text_is_not_edited() {
    let deep = "[".repeat(200);
    for (text, expected) in [
        ("{", EditError::NotJson),
        ("{} {}", EditError::NotJson),
        ("{\"a\" 1}", EditError::NotJson),
        ("{\"a\": 1 \"b\": 2}", EditError::NotJson),
        ("{,}", EditError::NotJson),
        ("{\"a\": [,]}", EditError::NotJson),
        ("{\"a\": yes}", EditError::NotJson),
        ("{\"a\": \"b}", EditError::NotJson),
        ("{} /*", EditError::NotJson),
        ("{'a': 1}", EditError::NotJson),
        (&deep, EditError::NotJson),
        ("[]", EditError::NotAnObject),
        ("{\"servers\": []}", EditError::NotAnObject),
        ("{\"servers\": {}, \"servers\": {}}", EditError::DuplicateMember),
        ("{\"servers\": {\"new\": 1, \"new\": 2}}", EditError::DuplicateMember),
    ] {
        assert_eq!(with_server(text, "servers", "new", &json!({})), Err(expected), "{text}");
    }
}

#[test]
fn server_is_taken_out_with_its_lines() {
    let check = |before: &str, expected: &str| {
        assert_eq!(without_server(before, "servers", "old").unwrap(), expected, "{before}");
    };
    check("{}", "{}");
    check("{\"servers\": {\"old\": {}}}", "{\"servers\": {}}");
    check("{\"servers\": {\"old\": {}, \"b\": {}}}", "{\"servers\": { \"b\": {}}}");
    check("{\"servers\": {\"a\": {}, \"old\": {}, \"b\": {}}}", "{\"servers\": {\"a\": {}, \"b\": {}}}");
    check("{\"servers\": {\"a\": {}, \"old\": {}}}", "{\"servers\": {\"a\": {}}}");
    check(
        "{\n  \"servers\": {\n    // first\n    \"a\": {}, // of a\n    \"old\": {\n      \"x\": 1\n    }, // of old\n    \"b\": {}\n  }\n}",
        "{\n  \"servers\": {\n    // first\n    \"a\": {}, // of a\n    \"b\": {}\n  }\n}",
    );
    check(
        "{\r\n  \"servers\": {\r\n    \"a\": {}, // of a\r\n    \"old\": {}\r\n  }\r\n}",
        "{\r\n  \"servers\": {\r\n    \"a\": {} // of a\r\n  }\r\n}",
    );
    check(
        "{\n  \"servers\": {\n    \"old\": {},\n    \"a\": {},\n  },\n}",
        "{\n  \"servers\": {\n    \"a\": {},\n  },\n}",
    );
}
