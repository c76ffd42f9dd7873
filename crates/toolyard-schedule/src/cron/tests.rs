mod corpus;
mod properties;

use super::*;

pub(super) fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).expect("a time zone")
}

fn cron(text: &str) -> CronExpression {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Checks the times that follow a time, each as a local time with its offset.
#[track_caller]
fn check(expression: &str, zone_name: &str, after: &str, expected: &[&str]) {
    let (zone, cron) = (zone(zone_name), cron(expression));
    let mut time: Timestamp = after.parse().expect("a time");
    for expected in expected {
        let next = cron.next_after(time, &zone).expect("a time");
        assert_eq!(
            next.to_zoned(zone.clone()).strftime("%FT%T%:z").to_string(),
            *expected,
            "{expression} after {}",
            time.to_zoned(zone)
        );
        time = next;
    }
}

#[test]
fn expressions_of_five_and_six_fields() {
    let check = |expression: &str, expected: &[&str]| {
        let expected: Vec<_> = expected.iter().map(|time| format!("{time}+00:00")).collect();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        super::tests::check(expression, "UTC", "2026-11-25T23:07:36.5Z", &expected);
    };
    check("* * * * *", &["2026-11-25T23:08:00", "2026-11-25T23:09:00"]);
    check("* * * * * *", &["2026-11-25T23:07:37", "2026-11-25T23:07:38"]);
    check("0 9 * * 1-5", &["2026-11-26T09:00:00", "2026-11-27T09:00:00", "2026-11-30T09:00:00"]);
    check("0 0 9 * * MON-fri", &["2026-11-26T09:00:00", "2026-11-27T09:00:00", "2026-11-30T09:00:00"]);
    check("*/15 * * * *", &["2026-11-25T23:15:00", "2026-11-25T23:30:00"]);
    check("5/20 * * * *", &["2026-11-25T23:25:00", "2026-11-25T23:45:00", "2026-11-26T00:05:00"]);
    check(
        "10-20/5,59 3 * * *",
        &[
            "2026-11-26T03:10:00",
            "2026-11-26T03:15:00",
            "2026-11-26T03:20:00",
            "2026-11-26T03:59:00",
            "2026-11-27T03:10:00",
        ],
    );
    check("0 22-2/2 * * *", &["2026-11-26T00:00:00", "2026-11-26T02:00:00", "2026-11-26T22:00:00"]);
    check(
        "0 0 * * fri-mon",
        &[
            "2026-11-27T00:00:00",
            "2026-11-28T00:00:00",
            "2026-11-29T00:00:00",
            "2026-11-30T00:00:00",
            "2026-12-04T00:00:00",
        ],
    );
    check(
        "0 0 * * 5-7",
        &["2026-11-27T00:00:00", "2026-11-28T00:00:00", "2026-11-29T00:00:00", "2026-12-04T00:00:00"],
    );
    check("0 0 * * 7", &["2026-11-29T00:00:00", "2026-12-06T00:00:00"]);
    check("0 0 29 feb ?", &["2028-02-29T00:00:00", "2032-02-29T00:00:00"]);
    check("0 0 29 2 1", &["2044-02-29T00:00:00"]);
    check(
        "0 0 L * *",
        &["2026-11-30T00:00:00", "2026-12-31T00:00:00", "2027-01-31T00:00:00", "2027-02-28T00:00:00"],
    );
    check("0 0 ? * 1#1", &["2026-12-07T00:00:00", "2027-01-04T00:00:00"]);
    check("0 0 * * friL", &["2026-11-27T00:00:00", "2026-12-25T00:00:00"]);
    check("@Daily", &["2026-11-26T00:00:00"]);
    check(" 0\t9  * * * ", &["2026-11-26T09:00:00"]);
}

#[test]
fn both_fields_of_days_must_match() {
    // Friday the 13th.
    check(
        "0 0 13 * 5",
        "UTC",
        "2026-01-01T00:00:00Z",
        &["2026-02-13T00:00:00+00:00", "2026-03-13T00:00:00+00:00"],
    );
    check("0 0 1-7 * mon", "UTC", "2026-11-25T00:00:00Z", &["2026-12-07T00:00:00+00:00"]);
}

#[test]
fn clocks_go_forward() {
    let berlin = |expression, after, expected: &[&str]| check(expression, "Europe/Berlin", after, expected);
    // On 2026-03-29 Berlin has no times from 2:00 to 3:00.
    let before = "2026-03-28T12:00:00+01:00";
    let skipped = ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"];
    berlin("30 2 * * *", before, &skipped);
    berlin("0 30 2 29 3 *", before, &["2026-03-29T03:00:00+02:00", "2027-03-29T02:30:00+02:00"]);
    berlin("0 2,3 * * *", before, &["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"]);
    berlin("0 3 * * *", before, &["2026-03-29T03:00:00+02:00", "2026-03-30T03:00:00+02:00"]);
    berlin("59 1 * * *", before, &["2026-03-29T01:59:00+01:00", "2026-03-30T01:59:00+02:00"]);
    let skip = "2026-03-29T01:00:00+01:00";
    berlin("*/30 * * * *", skip, &["2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00"]);
    berlin("*/30 2 * * *", before, &["2026-03-30T02:00:00+02:00"]);
    berlin("0 1-3 * * *", skip, &["2026-03-29T03:00:00+02:00"]);
    // Half an hour is missing.
    check(
        "10 2 * * *",
        "Australia/Lord_Howe",
        "2026-10-03T12:00:00+10:30",
        &["2026-10-04T02:30:00+11:00", "2026-10-05T02:10:00+11:00"],
    );
    // A whole day is missing.
    check(
        "0 9 30 12 *",
        "Pacific/Apia",
        "2011-12-29T12:00:00-10:00",
        &["2011-12-31T00:00:00+14:00", "2012-12-30T09:00:00+14:00"],
    );
    check(
        "0 * * * *",
        "Pacific/Apia",
        "2011-12-29T22:30:00-10:00",
        &["2011-12-29T23:00:00-10:00", "2011-12-31T00:00:00+14:00"],
    );
    // Midnight is missing.
    check(
        "0 0 * * *",
        "America/Sao_Paulo",
        "2018-11-03T12:00:00-03:00",
        &["2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"],
    );
}

#[test]
fn clocks_go_back() {
    let berlin = |expression, after, expected: &[&str]| check(expression, "Europe/Berlin", after, expected);
    // On 2026-10-25 Berlin has the times from 2:00 to 3:00 twice.
    let before = "2026-10-24T12:00:00+02:00";
    berlin("30 2 * * *", before, &["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]);
    berlin("0 3 * * *", before, &["2026-10-25T03:00:00+01:00", "2026-10-26T03:00:00+01:00"]);
    berlin("30 2 * * *", "2026-10-25T02:10:00+01:00", &["2026-10-26T02:30:00+01:00"]);
    berlin("30 2 * * *", "2026-10-25T02:59:59+02:00", &["2026-10-26T02:30:00+01:00"]);
    let first = "2026-10-25T02:15:00+02:00";
    berlin(
        "*/30 * * * *",
        first,
        &[
            "2026-10-25T02:30:00+02:00",
            "2026-10-25T02:00:00+01:00",
            "2026-10-25T02:30:00+01:00",
            "2026-10-25T03:00:00+01:00",
        ],
    );
    berlin("15 2-3 * * *", first, &["2026-10-25T02:15:00+01:00", "2026-10-25T03:15:00+01:00"]);
    check(
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T12:00:00+11:00",
        &["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"],
    );
}

#[test]
fn expression_that_never_fires_has_no_time() {
    for expression in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 1-7 * mon#2", "0 0 31 feb L"] {
        let Ok(cron) = expression.parse::<CronExpression>() else { continue };
        assert_eq!(cron.next_after(Timestamp::UNIX_EPOCH, &zone("Europe/Berlin")), None, "{expression}");
    }
    assert_eq!(cron("* * * * * *").next_after(Timestamp::MAX, &TimeZone::UTC), None);
    assert_eq!(cron("0 0 1 1 *").next_after(Timestamp::MAX, &zone("Europe/Berlin")), None);
    assert!(cron("0 0 1 1 *").next_after(Timestamp::MIN, &zone("Europe/Berlin")).is_some());
}

#[test]
fn errors_of_expressions() {
    let texts = [
        "",
        "* * *",
        "* * * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "0 60 * * * *",
        "* * * * XYZ",
        "-1 * * * *",
        "1- * * * *",
        ", * * * *",
        "a * * * *",
        "*/0 * * * *",
        "*/90 * * * *",
        "* */24 * * *",
        "1/2/3 * * * *",
        "? * * * *",
        "* * L-1 * *",
        "* * * * L",
        "* * * * 1#6",
        "* * * * 1-2#1",
        "@reboot",
        "5.5 * * * *",
        "99999999999 * * * *",
        "é * * * *",
        "TZ=UTC 0 9 * * *",
        "every day",
        "0 9 15W * *",
    ];
    let line = |text: &str| format!("{text:?}: {}", text.parse::<CronExpression>().expect_err(text));
    insta::assert_snapshot!(texts.map(line).join("\n"), @r#"
        "": a cron expression has 5 fields, `minute hour day-of-month month day-of-week`, or 6 with the second first, and this one has 0
        "* * *": a cron expression has 5 fields, `minute hour day-of-month month day-of-week`, or 6 with the second first, and this one has 3
        "* * * * * * *": a cron expression has 5 fields, `minute hour day-of-month month day-of-week`, or 6 with the second first, and this one has 7
        "60 * * * *": minute: `60` is not a value from 0 to 59
        "* 24 * * *": hour: `24` is not a value from 0 to 23
        "* * 0 * *": day-of-month: `0` is not a value from 1 to 31
        "* * 32 * *": day-of-month: `32` is not a value from 1 to 31
        "* * * 13 *": month: `13` is not a value from 1 to 12
        "* * * * 8": day-of-week: `8` is not a value from 0 to 6
        "0 60 * * * *": minute: `60` is not a value from 0 to 59
        "* * * * XYZ": day-of-week: `XYZ` is not a value from 0 to 6
        "-1 * * * *": minute: `-1` is not a value, a range such as `0-30`, or one of them with a step such as `*/15`
        "1- * * * *": minute: `1-` is not a value, a range such as `0-30`, or one of them with a step such as `*/15`
        ", * * * *": minute: `` is not a value, a range such as `0-30`, or one of them with a step such as `*/15`
        "a * * * *": minute: `a` is not a value from 0 to 59
        "*/0 * * * *": minute: the step of `*/0` is not a number from 1 to 59; steps begin anew in each hour, so that a longer interval needs the next field
        "*/90 * * * *": minute: the step of `*/90` is not a number from 1 to 59; steps begin anew in each hour, so that a longer interval needs the next field
        "* */24 * * *": hour: the step of `*/24` is not a number from 1 to 23; steps begin anew in each day, so that a longer interval needs the next field
        "1/2/3 * * * *": minute: the step of `1/2/3` is not a number from 1 to 59; steps begin anew in each hour, so that a longer interval needs the next field
        "? * * * *": minute: `?` is not a value, a range such as `0-30`, or one of them with a step such as `*/15`
        "* * L-1 * *": day-of-month: `L-1` is not a value from 1 to 31
        "* * * * L": day-of-week: `L` is not a value from 0 to 6
        "* * * * 1#6": number of a weekday: `1#6` is not a value from 1 to 5
        "* * * * 1-2#1": day-of-week: `1-2#1` is not a value, a range such as `1-5`, or one of them with a step such as `*/2`
        "@reboot": unknown nickname `@reboot`: use @hourly, @daily, @weekly, @monthly, @yearly, or the fields
        "5.5 * * * *": minute: `5.5` is not a value, a range such as `0-30`, or one of them with a step such as `*/15`
        "99999999999 * * * *": minute: `99999999999` is not a value from 0 to 59
        "é * * * *": minute: `é` is not a value, a range such as `0-30`, or one of them with a step such as `*/15`
        "TZ=UTC 0 9 * * *": second: `TZ=UTC` is not a value, a range such as `0-30`, or one of them with a step such as `*/15`
        "every day": a cron expression has 5 fields, `minute hour day-of-month month day-of-week`, or 6 with the second first, and this one has 2
        "0 9 15W * *": day-of-month: `15W` is not a value from 1 to 31
        "#);
    let long = "1,".repeat(100) + "1 * * * *";
    assert_eq!(long.parse::<CronExpression>(), Err(CronError::TooLong { limit: 200 }));
}
