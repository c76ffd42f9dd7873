use super::*;

fn new_key() -> NewApiKey {
    let scopes = vec![KeyScope::Rest];
    NewApiKey {
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
    let check = |text: &str, is_valid: bool| {
        let scope = text.parse::<KeyScope>();
        assert_eq!(scope.is_ok(), is_valid, "{text:?}");
        if let Ok(scope) = scope {
            assert_eq!(scope.to_string(), text);
        }
    };
    for text in [
        "tools:*",
        "tools:github/get_*",
        "tools:file:///etc/*",
        "rest",
        "admin",
        "functions",
        "metrics",
        "publish:geo-*",
    ] {
        check(text, true);
    }
    for text in
        ["", "tools", "tools:", "tools:/", "publish", "publish:", "tools:a b", "Rest", "root", "rest "]
    {
        check(text, false);
    }
}

#[test]
fn amounts() {
    let check = |text: &str, expected: Option<(u64, Option<QuotaPeriod>)>| {
        let amount = text.parse::<QuotaAmount>().ok();
        assert_eq!(amount.map(|amount| (amount.millionths, amount.per)), expected, "{text:?}");
        if let Some(amount) = amount {
            assert_eq!(amount.to_string(), text);
        }
    };
    check("10/s", Some((10_000_000, Some(QuotaPeriod::Second))));
    check("1000/day", Some((1_000_000_000, Some(QuotaPeriod::Day))));
    check("2.5/week", Some((2_500_000, Some(QuotaPeriod::Week))));
    check("0.5/min", Some((500_000, Some(QuotaPeriod::Minute))));
    check("3/h", Some((3_000_000, Some(QuotaPeriod::Hour))));
    check("7", Some((7_000_000, None)));
    for text in ["", "/s", "1/", "1/year", "1 /s", "-1/s", "1/s/s", "a/s"] {
        check(text, None);
    }
}

#[test]
fn invalid_key_is_not_created() {
    let check = |new_key: NewApiKey, expected: InvalidKey| {
        assert_eq!(new_key.clone().create(SystemTime::now()).err(), Some(expected), "{new_key:?}");
    };
    for name in ["", " ", "a\nb", &"x".repeat(101)] {
        check(NewApiKey { name: name.to_owned(), ..new_key() }, InvalidKey::Name);
    }
    check(NewApiKey { scopes: Vec::new(), ..new_key() }, InvalidKey::Scopes);
    check(NewApiKey { scopes: vec![KeyScope::Rest; 101], ..new_key() }, InvalidKey::Scopes);
    for seconds in [0, 30_000_000_000, u64::MAX] {
        check(NewApiKey { expires_in: Some(seconds), ..new_key() }, InvalidKey::Expiry);
    }
    for rate in ["10", "0/s"] {
        check(NewApiKey { rate: rate.parse().ok(), ..new_key() }, InvalidKey::Rate);
    }
}

#[test]
fn only_the_own_secret_matches_a_key() {
    let now = SystemTime::now();
    let (key, secret) = new_key().create(now).unwrap();
    let (other_key, other) = new_key().create(now).unwrap();
    let text = secret.reveal();
    let read = KeySecret::parse(&text).expect("a secret");
    assert!(key.matches(&read));
    assert!(!key.matches(&other));
    assert!(!other_key.matches(&secret));
    // One bit away.
    let last = if text.ends_with('0') { '1' } else { '0' };
    let altered = format!("{}{last}", &text[..text.len() - 1]);
    assert!(!key.matches(&KeySecret::parse(&altered).expect("a secret")));
    assert!(!format!("{secret:?} {key:?}").contains(&text[16..]), "the secret shows");
}

#[test]
fn invalid_secret_is_not_parsed() {
    let (_, secret) = new_key().create(SystemTime::now()).unwrap();
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
        assert!(KeySecret::parse(text).is_none(), "{text:?}");
    }
}

#[test]
fn expired_or_revoked_key_is_invalid() {
    let now = SystemTime::now();
    let check = |key: &ApiKey, after: u64, expected: bool| {
        assert_eq!(key.is_valid(now + Duration::from_secs(after)), expected, "{key:?} {after}");
    };
    let (key, _) = new_key().create(now).unwrap();
    check(&key, 0, true);
    check(&key, 1_000_000_000, true);
    check(&ApiKey { revoked: Some(millis(now)), ..key }, 0, false);
    let (key, _) = NewApiKey { expires_in: Some(60), ..new_key() }.create(now).unwrap();
    check(&key, 59, true);
    check(&key, 60, false);
}
