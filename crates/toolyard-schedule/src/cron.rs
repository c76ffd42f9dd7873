//! Cron expressions, and the times at which they fire in a time zone.
//!
//! An expression has five fields, `minute hour day-of-month month day-of-week`, or six with the second first. The
//! fields of days are both conditions: a day must match the day of the month and the day of the week (semantics of
//! Cronos; Vixie cron fires if either matches).
//!
//! # Changes of the clock
//!
//! An expression is an interval if its second, minute or hour contains `*`, `-` or `/`, and fixed otherwise. If the
//! clocks go forward, an interval skips the missing times, and a fixed time in the gap fires when the gap ends. If they
//! go back, an interval fires in both passes of the repeated times, and a fixed time in the first one only (Cronos, and
//! in essence Vixie cron).

mod day;
mod field;
mod search;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use self::day::{DayOfMonth, DayOfWeek};
use self::field::{FieldSpec, HOUR, MINUTE, MONTH, SECOND};

pub use self::field::CronError;

/// Maximum length of an expression in bytes.
const MAX_LENGTH: usize = 200;

/// Names of common expressions.
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronExpression {
    /// The expression with single spaces.
    text: String,
    /// Bit `n` is set if the field matches `n`; likewise the next three.
    seconds: u64,
    minutes: u64,
    hours: u64,
    months: u64,
    day_of_month: DayOfMonth,
    day_of_week: DayOfWeek,
    is_interval: bool,
}

impl CronExpression {
    /// Returns the first time after `after` at which the expression fires, in whole seconds. `None` if there is none
    /// within a hundred years.
    #[must_use]
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        search::next_after(self, after, zone)
    }

    /// Returns the text of the expression.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for CronExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for CronExpression {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        if text.len() > MAX_LENGTH {
            return Err(CronError::TooLong { limit: MAX_LENGTH });
        }
        let fields: Vec<_> = text.split_whitespace().collect();
        let written = fields.join(" ");
        let named = |name: &str| NICKNAMES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let fields = match fields[..] {
            [name] if name.starts_with('@') => {
                let (_, expression) = named(name).ok_or_else(|| CronError::Nickname(name.to_owned()))?;
                expression.split(' ').collect()
            }
            _ => fields,
        };
        let (second, [minute, hour, day_of_month, month, day_of_week]) = match fields[..] {
            [minute, hour, day, month, weekday] => ("0", [minute, hour, day, month, weekday]),
            [second, minute, hour, day, month, weekday] => (second, [minute, hour, day, month, weekday]),
            _ => return Err(CronError::FieldCount(fields.len())),
        };
        let is_interval = [second, minute, hour].iter().any(|field| field.contains(['*', '-', '/']));
        let values = |spec: &FieldSpec, text: &str| spec.values(text);
        Ok(Self {
            seconds: values(&SECOND, second)?,
            minutes: values(&MINUTE, minute)?,
            hours: values(&HOUR, hour)?,
            months: values(&MONTH, month)?,
            day_of_month: DayOfMonth::parse(day_of_month)?,
            day_of_week: DayOfWeek::parse(day_of_week)?,
            text: written,
            is_interval,
        })
    }
}
