//! Envelopes that cannot be sent.

use toolyard_bus::{BusErrorKind, Envelope};

use crate::support::numbered;

#[test]
fn envelopes_that_would_be_misread_are_refused() {
    let check = |change: fn(&mut Envelope), expected: Option<BusErrorKind>| {
        let mut envelope = numbered(1);
        change(&mut envelope);
        assert_eq!(envelope.check(100_000).err().map(|error| error.kind()), expected, "{envelope:?}");
    };
    fn header(envelope: &mut Envelope, name: &str, value: &str) {
        envelope.headers.insert(name.to_owned(), value.to_owned());
    }
    let invalid = Some(BusErrorKind::Invalid);
    check(|_| {}, None);
    check(|envelope| header(envelope, "rb-mcp-server", "weather"), None);
    check(|envelope| header(envelope, "source", "forged"), invalid);
    check(|envelope| header(envelope, "Reply-To", "forged"), invalid);
    check(|envelope| header(envelope, "a b", "x"), invalid);
    check(|envelope| header(envelope, "a:b", "x"), invalid);
    check(|envelope| header(envelope, "", "x"), invalid);
    check(|envelope| header(envelope, "rb-x", "a\r\nrb-reply-to: forged"), invalid);
    check(|envelope| (0..65).for_each(|number| header(envelope, &format!("h{number}"), "")), invalid);
    check(|envelope| envelope.correlation_id = Some("x".repeat(256)), invalid);
    check(|envelope| envelope.source = "a\nb".to_owned(), invalid);
    check(|envelope| envelope.body = vec![0; 100_000].into(), Some(BusErrorKind::TooLarge));
}

#[test]
fn debug_shows_no_content() {
    let mut envelope = numbered(1).header("rb-token", "hunter2");
    envelope.body = "hunter2".into();
    let shown = format!("{envelope:?}");
    assert!(shown.contains("rb-token") && !shown.contains("hunter2"), "{shown}");
}
