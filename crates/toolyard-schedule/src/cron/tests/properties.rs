//! Properties of the parser and of the search.

use jiff::SignedDuration;
use jiff::civil::DateTime;
use proptest::prelude::*;

use super::*;

/// Returns a field of `values`, in any of the forms.
fn field(min: u32, max: u32) -> impl Strategy<Value = String> {
    let value = move || min..=max;
    let part = prop_oneof![
        3 => Just("*".to_owned()),
        3 => value().prop_map(|value| value.to_string()),
        1 => (value(), value()).prop_map(|(first, last)| format!("{first}-{last}")),
        1 => (1..=max - min).prop_map(|step| format!("*/{step}")),
        1 => (value(), 1..=max - min).prop_map(|(first, step)| format!("{first}/{step}")),
        1 => (value(), value(), 1..=max - min).prop_map(|(first, last, step)| format!("{first}-{last}/{step}")),
    ];
    prop::collection::vec(part, 1..3).prop_map(|parts| parts.join(","))
}

fn expression() -> impl Strategy<Value = String> {
    let fields = (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6));
    fields.prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

/// Returns `true` if a field matches a value, by its text.
fn matches(field: &str, value: u32, min: u32, max: u32) -> bool {
    field.split(',').any(|part| {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let step: u32 = step.parse().expect("a number");
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (first.parse().expect("a number"), last.parse().expect("a number")),
            None if range == "*" => (min, max),
            None => {
                let first = range.parse().expect("a number");
                (first, if part.contains('/') { max } else { first })
            }
        };
        let last = if last < first { last + max - min + 1 } else { last };
        let wrapped = value + max - min + 1;
        [value, wrapped].iter().any(|value| (first..=last).contains(value) && (value - first) % step == 0)
    })
}

fn is_due(expression: &str, time: DateTime) -> bool {
    let fields: Vec<_> = expression.split(' ').collect();
    let weekday = time.weekday().to_sunday_zero_offset();
    let values = [
        (time.minute(), 0, 59),
        (time.hour(), 0, 23),
        (time.day(), 1, 31),
        (time.month(), 1, 12),
        (weekday, 0, 6),
    ];
    let is_match = |(field, (value, min, max)): (&&str, (i8, u32, u32))| {
        matches(field, u32::from(value.unsigned_abs()), min, max)
    };
    fields.iter().zip(values).all(is_match)
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,40}") {
        let _parsed = text.parse::<CronExpression>();
    }

    #[test]
    fn similar_texts_are_parsed_or_refused(text in "[0-9*/,?#LW a-z-]{0,40}") {
        if let Ok(cron) = text.parse::<CronExpression>() {
            prop_assert_eq!(cron.as_str().parse(), Ok(cron));
        }
    }

    #[test]
    fn next_time_is_the_first_that_matches(expression in expression(), minutes in 0..60_000_000_i64) {
        let cron = cron(&expression);
        let after = Timestamp::from_second(minutes * 60).expect("a time");
        let next = cron.next_after(after, &TimeZone::UTC);
        // Two weeks are searched minute by minute.
        let first = (1..=14 * 24 * 60).map(|minute| after + SignedDuration::from_mins(minute));
        let first = first.into_iter().find(|time| is_due(&expression, TimeZone::UTC.to_datetime(*time)));
        let end = after + SignedDuration::from_hours(14 * 24);
        prop_assert_eq!(next.filter(|next| *next <= end), first);
        if let Some(next) = next {
            prop_assert!(is_due(&expression, TimeZone::UTC.to_datetime(next)));
        }
    }

    /// A fixed time fires once on each day, and an interval whenever the local time matches.
    #[test]
    fn times_follow_the_clock_of_a_zone(
        expression in expression(),
        name in prop::sample::select(&["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia"][..]),
        second in 1_000_000_000..2_000_000_000_i64,
    ) {
        let (cron, zone) = (cron(&expression), zone(name));
        let mut time = Timestamp::from_second(second).expect("a time");
        for _ in 0..20 {
            let Some(next) = cron.next_after(time, &zone) else { break };
            prop_assert!(next > time);
            let local = zone.to_datetime(next);
            let is_end_of_gap = zone.following(next - SignedDuration::from_secs(1)).next().is_some_and(|change| change.timestamp() == next);
            prop_assert!(is_due(&expression, local) || !cron.is_interval && is_end_of_gap, "{expression} at {local}");
            // Nothing is left out in between.
            let middle = time + next.duration_since(time) / 2;
            prop_assert_eq!(cron.next_after(middle, &zone), Some(next));
            time = next;
        }
    }
}
