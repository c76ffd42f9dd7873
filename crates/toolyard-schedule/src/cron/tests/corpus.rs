//! Expressions and times from the tests of other implementations, in the folder `TOOLYARD_CORPORA`.

use std::collections::BTreeMap;

use jiff::fmt::strtime;
use serde_json::Value;
use toolyard_testing::corpora::corpus;

use super::*;

fn vectors(file: &str) -> Option<Value> {
    let path = corpus(&format!("cron/{file}"), "the vectors of other implementations")?;
    Some(serde_json::from_slice(&std::fs::read(path).expect("the corpus")).expect("JSON"))
}

/// Splits the zone from a text such as `TZ=America/New_York 0 9 * * *`.
fn split_zone(text: &str) -> (Option<TimeZone>, &str) {
    let zoned = text.strip_prefix("CRON_").unwrap_or(text).strip_prefix("TZ=");
    let Some((name, rest)) = zoned.and_then(|zoned| zoned.split_once(' ')) else { return (None, text) };
    (Some(zone(name)), rest)
}

/// Returns a time, and the zone that its text names. Times without offset are in UTC.
fn time(text: &str) -> (Option<TimeZone>, Timestamp) {
    let (zone, text) = split_zone(text);
    let parsed = strtime::parse("%FT%T%z", text).and_then(|time| time.to_timestamp());
    let time = parsed.unwrap_or_else(|_| {
        // Some weekdays of the corpus are wrong.
        let (_, text) = text.split_once(' ').expect("a weekday");
        let seconds = if text.matches(':').count() == 2 { ":%S" } else { "" };
        let parsed = strtime::parse(format!("%b %d %H:%M{seconds} %Y"), text).expect("a time");
        parsed.to_datetime().expect("a time").to_zoned(TimeZone::UTC).expect("a time").timestamp()
    });
    let offset = zone.is_none() && text.contains("+0530");
    (
        zone.or_else(|| offset.then(|| TimeZone::fixed(jiff::tz::offset(5) + jiff::Span::new().minutes(30)))),
        time,
    )
}

/// A vector that the dialect decides otherwise.
const UNION_OF_DAYS: &str = "fires on days that match one of the two fields only";
const SKIPPED: &str = "skips the day on which a fixed time is missing";
const REPEATED: &str = "fires twice on the day on which a fixed time is repeated";

/// Returns the reason why a vector does not fit the dialect.
fn exclusion(spec: &str, time: &str) -> Option<&'static str> {
    let (_, spec) = split_zone(spec);
    let time = split_zone(time).1;
    let day = |days: &[&str]| days.iter().any(|day| time.starts_with(day));
    match spec {
        "* * 1,15 * Sun" if day(&["Fri", "Wed"]) => Some(UNION_OF_DAYS),
        "* * */10 * Sun" | "0 0 0 */5 Apr,Aug,Oct Mon" => Some(UNION_OF_DAYS),
        "0 30 2 11 Mar ?" => Some(SKIPPED),
        "0 0 2 * * ?" if day(&["2012-03-11"]) => Some(SKIPPED),
        "0 30 1 04 Nov ?" => Some(REPEATED),
        "0 0 1 * * ?" if day(&["2012-11-04T01:00:00-0400"]) => Some(REPEATED),
        _ => None,
    }
}

#[test]
fn vectors_of_robfig_cron_that_fit_the_dialect() {
    let Some(corpus) = vectors("robfig.json") else { return };
    let mut excluded = BTreeMap::<_, Vec<_>>::new();
    let (mut checked, text) = (0, |value: &Value| value.as_str().expect("a text").to_owned());
    let mut judge = |vector: &Value, is_equal: bool| {
        let (spec, time) = (text(&vector["spec"]), text(&vector["time"]));
        match exclusion(&spec, &time) {
            None => {
                assert!(is_equal, "{vector}");
                checked += 1;
            }
            Some(reason) => {
                assert!(!is_equal, "no longer to be excluded: {vector}");
                excluded.entry(reason).or_default().push(format!("{spec} after {time}"));
            }
        }
    };
    for vector in corpus["activation"].as_array().expect("a list") {
        let (_, time) = time(&text(&vector["time"]));
        let before = time - jiff::SignedDuration::from_secs(1);
        let next = cron(&text(&vector["spec"])).next_after(before, &TimeZone::UTC);
        judge(vector, (next == Some(time)) == vector["fires"].as_bool().expect("a flag"));
    }
    let lists =
        ["next_seconds_field", "next_standard_tz"].map(|list| corpus[list].as_array().expect("a list"));
    for vector in lists.into_iter().flatten() {
        let spec = text(&vector["spec"]);
        let ((zone, spec), (zone_of_time, after)) = (split_zone(&spec), time(&text(&vector["time"])));
        let zone = zone.or(zone_of_time).unwrap_or(TimeZone::UTC);
        let expected = vector["expected"].as_str().map(|expected| time(expected).1);
        judge(vector, cron(spec).next_after(after, &zone) == expected);
    }
    let invalid = corpus["invalid_standard"].as_array().expect("a list");
    for spec in invalid.iter().map(text) {
        let error = split_zone(&spec).1.parse::<CronExpression>();
        assert!(error.is_err(), "{spec}");
        checked += 1;
    }
    println!("{excluded:#?}");
    let excluded: Vec<_> = excluded.iter().map(|(reason, vectors)| (*reason, vectors.len())).collect();
    assert_eq!((checked, excluded), (87, vec![(UNION_OF_DAYS, 4), (REPEATED, 3), (SKIPPED, 2)]));
}

/// Returns the expression of a line, without its comment.
fn expression(line: &str) -> &str {
    let line = line.split_once('⟶').map_or(line, |(_, expression)| expression);
    line.split_once(" # ").map_or(line, |(expression, _)| expression).trim()
}

#[test]
fn expressions_of_other_tests_are_parsed_or_refused_with_a_reason() {
    let Some(corpus) = vectors("expressions.json") else { return };
    let mut outcomes = BTreeMap::<_, Vec<_>>::new();
    for list in ["fugit_nat", "cron_parser_strings", "fugit_strings"] {
        for line in corpus[list].as_array().expect("a list") {
            let expression = expression(line.as_str().expect("a text"));
            let outcome = match expression.parse::<CronExpression>() {
                Ok(cron) => {
                    let is_ever = cron.next_after(Timestamp::UNIX_EPOCH, &TimeZone::UTC).is_some();
                    if is_ever { "fires" } else { "never fires" }
                }
                Err(CronError::FieldCount(_)) => "other fields: a time zone, a year, a comment or prose",
                Err(CronError::Nickname(_)) => "nickname",
                Err(CronError::Value { .. }) => "value out of range",
                Err(CronError::Step { .. }) => "step out of range",
                Err(CronError::Form { .. }) => "form",
                Err(error) => panic!("{expression}: {error}"),
            };
            outcomes.entry(outcome).or_default().push(expression.to_owned());
        }
    }
    println!("{outcomes:#?}");
    let outcomes: Vec<_> =
        outcomes.iter().map(|(outcome, lines)| format!("{outcome}: {}", lines.len())).collect();
    insta::assert_snapshot!(outcomes.join("\n"), @"
        fires: 438
        form: 83
        never fires: 10
        other fields: a time zone, a year, a comment or prose: 61
        step out of range: 60
        value out of range: 58
        ");
}
