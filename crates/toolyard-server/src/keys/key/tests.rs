use super::*;

fn wanted() -> NewKey {
    let scopes = vec![KeyScope::Rest];
    NewKey {
        name: "ci".to_owned(),
        scopes,
        expires_in: None,
        rate: None,
        calls: None,
        cost: None,
        model: None,
        chunk_threshold: None,
    }
}

#[test]
fn scopes() {
    let check = |text: &str, is_one: bool| {
        let scope = text.parse::<KeyScope>();
        assert_eq!(scope.is_ok(), is_one, "{text:?}");
        if let Ok(scope) = scope {
            assert_eq!(scope.to_string(), text);
        }
    };
    for text in
        ["tools:*", "tools:github/get_*", "tools:file:///etc/*", "rest", "admin", "functions", "metrics"]
    {
        check(text, true);
    }
    for text in ["", "tools", "tools:", "tools:/", "tools:a b", "Rest", "root", "rest "] {
        check(text, false);
    }
}

#[test]
fn amounts() {
    let check = |text: &str, expected: Option<(u64, Option<Period>)>| {
        let amount = text.parse::<Amount>().ok();
        assert_eq!(amount.map(|amount| (amount.millionths, amount.per)), expected, "{text:?}");
        if let Some(amount) = amount {
            assert_eq!(amount.to_string(), text);
        }
    };
    check("10/s", Some((10_000_000, Some(Period::Second))));
    check("1000/day", Some((1_000_000_000, Some(Period::Day))));
    check("2.5/week", Some((2_500_000, Some(Period::Week))));
    check("0.5/min", Some((500_000, Some(Period::Minute))));
    check("3/h", Some((3_000_000, Some(Period::Hour))));
    check("7", Some((7_000_000, None)));
    for text in ["", "/s", "1/", "1/year", "1 /s", "-1/s", "1/s/s", "a/s"] {
        check(text, None);
    }
}

#[test]
fn what_is_of_no_use_is_not_made() {
    let check = |wanted: NewKey, expected: BadKey| {
        assert_eq!(wanted.clone().make(SystemTime::now()).err(), Some(expected), "{wanted:?}");
    };
    for name in ["", " ", "a\nb", &"x".repeat(101)] {
        check(NewKey { name: name.to_owned(), ..wanted() }, BadKey::Name);
    }
    check(NewKey { scopes: Vec::new(), ..wanted() }, BadKey::Scopes);
    check(NewKey { scopes: vec![KeyScope::Rest; 101], ..wanted() }, BadKey::Scopes);
    for seconds in [0, 30_000_000_000, u64::MAX] {
        check(NewKey { expires_in: Some(seconds), ..wanted() }, BadKey::Expiry);
    }
    for rate in ["10", "0/s"] {
        check(NewKey { rate: rate.parse().ok(), ..wanted() }, BadKey::Rate);
    }
}

#[test]
fn only_its_own_secret_opens_a_key() {
    let now = SystemTime::now();
    let (key, secret) = wanted().make(now).unwrap();
    let (other_key, other) = wanted().make(now).unwrap();
    let text = secret.reveal();
    let read = Secret::parse(&text).expect("a secret");
    assert!(key.is_opened_by(&read));
    assert!(!key.is_opened_by(&other));
    assert!(!other_key.is_opened_by(&secret));
    // One bit away.
    let last = if text.ends_with('0') { '1' } else { '0' };
    let near = format!("{}{last}", &text[..text.len() - 1]);
    assert!(!key.is_opened_by(&Secret::parse(&near).expect("a secret")));
    assert!(!format!("{secret:?} {key:?}").contains(&text[16..]), "the secret shows");
}

#[test]
fn what_is_no_secret_is_not_read() {
    let (_, secret) = wanted().make(SystemTime::now()).unwrap();
    let text = secret.reveal();
    let id = secret.id();
    let cases = [
        "",
        "ty",
        "ty_",
        "ty__",
        &text[1..],
        &text[..text.len() - 1],
        &format!("{text}0"),
        &text.replace("ty_", "tz_"),
        &text.replace(id, "12345678901"),
        &text.replace(id, "g23456789012"),
        &format!("ty_{id}_{}", "\u{e9}".repeat(32)),
        &format!("ty_{id}_{}", "g".repeat(64)),
    ];
    for text in cases {
        assert!(Secret::parse(text).is_none(), "{text:?}");
    }
}

#[test]
fn a_key_has_its_time() {
    let now = SystemTime::now();
    let check = |key: &Key, after: u64, expected: bool| {
        assert_eq!(key.is_valid(now + Duration::from_secs(after)), expected, "{key:?} {after}");
    };
    let (key, _) = wanted().make(now).unwrap();
    check(&key, 0, true);
    check(&key, 1_000_000_000, true);
    check(&Key { revoked: Some(millis(now)), ..key }, 0, false);
    let (key, _) = NewKey { expires_in: Some(60), ..wanted() }.make(now).unwrap();
    check(&key, 59, true);
    check(&key, 60, false);
}
