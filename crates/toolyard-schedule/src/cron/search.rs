//! The search for the next time.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::CronExpression;

/// Number of years to search. The 29th of February is a certain weekday at least every 40 years.
const MAX_YEARS: i16 = 100;

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// See [`CronExpression::next_after`]. The offset of a time zone is constant between two transitions, where the search
/// is one on the calendar.
pub(super) fn next_after(cron: &CronExpression, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let start = Timestamp::from_second(after.as_second()).ok()?;
    let start = if start > after { start } else { start.checked_add(SECOND).ok()? };
    let mut offset = zone.to_offset(start);
    let mut from = offset.to_datetime(start);
    if !cron.is_interval {
        // These local times may be the second pass of the same times, in which a fixed time does not fire again.
        let last = zone.preceding(start.checked_add(SECOND).ok()?).next();
        let end = last.map(|last| local_end(zone, last.timestamp()));
        from = end.map_or(from, |end| from.max(end));
    }
    let mut candidate = next_local(cron, from)?;
    for transition in zone.following(start) {
        let (change, next_offset) = (transition.timestamp(), transition.offset());
        if offset.to_timestamp(candidate).ok()? < change {
            break;
        }
        let (end, begin) = (offset.to_datetime(change), next_offset.to_datetime(change));
        if begin > end && candidate < begin {
            // The local time does not exist.
            if !cron.is_interval {
                return Some(change);
            }
            candidate = next_local(cron, begin)?;
        } else if begin < end && cron.is_interval {
            candidate = next_local(cron, begin)?;
        }
        offset = next_offset;
    }
    offset.to_timestamp(candidate).ok()
}

/// Returns the local time at which the offset before a transition ends.
fn local_end(zone: &TimeZone, transition: Timestamp) -> DateTime {
    let before = transition.checked_sub(SECOND).unwrap_or(Timestamp::MIN);
    zone.to_offset(before).to_datetime(transition)
}

/// Returns the first matching local time from `from` on.
fn next_local(cron: &CronExpression, from: DateTime) -> Option<DateTime> {
    let mut date = from.date();
    if is_match(cron, date)
        && let Some(time) = next_time(cron, [from.hour(), from.minute(), from.second()])
    {
        return Some(at(date, time));
    }
    let first = next_time(cron, [0; 3])?;
    while date.year() <= from.year().saturating_add(MAX_YEARS) {
        date = if is_month(cron, date) {
            date.tomorrow().ok()?
        } else {
            date.last_of_month().tomorrow().ok()?
        };
        if is_match(cron, date) {
            return Some(at(date, first));
        }
    }
    None
}

fn at(date: Date, [hour, minute, second]: [i8; 3]) -> DateTime {
    date.at(hour, minute, second, 0)
}

fn is_month(cron: &CronExpression, date: Date) -> bool {
    cron.months >> date.month() & 1 == 1
}

fn is_match(cron: &CronExpression, date: Date) -> bool {
    is_month(cron, date) && cron.day_of_month.contains(date) && cron.day_of_week.contains(date)
}

/// Returns the first matching hour, minute and second of a day, from the given ones on.
fn next_time(cron: &CronExpression, [hour, minute, second]: [i8; 3]) -> Option<[i8; 3]> {
    let (first_minute, first_second) = (next(cron.minutes, 0)?, next(cron.seconds, 0)?);
    if cron.hours >> hour & 1 == 1 {
        if cron.minutes >> minute & 1 == 1
            && let Some(second) = next(cron.seconds, second)
        {
            return Some([hour, minute, second]);
        }
        if let Some(minute) = next(cron.minutes, minute + 1) {
            return Some([hour, minute, first_second]);
        }
    }
    next(cron.hours, hour + 1).map(|hour| [hour, first_minute, first_second])
}

/// Returns the lowest bit that is set, from `from` on, which is less than 64.
fn next(bits: u64, from: i8) -> Option<i8> {
    let rest = bits >> from << from;
    (rest != 0).then(|| i8::try_from(rest.trailing_zeros()).unwrap_or(i8::MAX))
}
