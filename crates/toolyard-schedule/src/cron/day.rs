//! The two fields of days.

use jiff::civil::Date;

use super::field::{CronError, DAY_OF_MONTH, DAY_OF_WEEK};

/// Days of the month: numbers, and the last one as `L`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DayOfMonth {
    /// Bit `n` is set if day `n` matches.
    days: u64,
    /// `true` if the last day matches.
    has_last: bool,
}

/// Days of the week: all of a month, as `1`, the second one as `1#2`, the last one as `1L`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DayOfWeek {
    /// Bit `n` is set if every weekday `n` matches, where 0 is Sunday.
    weekdays: u64,
    /// Bit `n` is set if the `n`th one in a month matches, by weekday. Bit 0 is the last one.
    of_month: [u8; 7],
}

impl DayOfMonth {
    pub(super) fn parse(text: &str) -> Result<Self, CronError> {
        let (mut days, mut has_last) = (0, false);
        for part in text.split(',') {
            match part {
                "?" => days |= DAY_OF_MONTH.part("*")?,
                "L" | "l" => has_last = true,
                _ => days |= DAY_OF_MONTH.part(part)?,
            }
        }
        Ok(Self { days, has_last })
    }

    pub(super) fn contains(&self, date: Date) -> bool {
        self.days >> date.day() & 1 == 1 || self.has_last && date.day() == date.days_in_month()
    }
}

impl DayOfWeek {
    pub(super) fn parse(text: &str) -> Result<Self, CronError> {
        let (mut weekdays, mut of_month) = (0, [0; 7]);
        for part in text.split(',') {
            if let Some((weekday, number)) = part.split_once('#') {
                let number: u8 = number.parse().ok().filter(|n| (1..=5).contains(n)).ok_or_else(|| {
                    CronError::Value { field: "number of a weekday", part: part.to_owned(), min: 1, max: 5 }
                })?;
                add(&mut of_month, weekday, part, number)?;
            } else if let Some(weekday) = part.strip_suffix(['L', 'l']).filter(|weekday| !weekday.is_empty())
            {
                add(&mut of_month, weekday, part, 0)?;
            } else {
                weekdays |= DAY_OF_WEEK.part(if part == "?" { "*" } else { part })?;
            }
        }
        Ok(Self { weekdays, of_month })
    }

    pub(super) fn contains(&self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset().unsigned_abs();
        let numbers = self.of_month[usize::from(weekday)];
        let number = (date.day() - 1) / 7 + 1;
        let is_last = date.day() + 7 > date.days_in_month();
        self.weekdays >> weekday & 1 == 1 || numbers >> number & 1 == 1 || is_last && numbers & 1 == 1
    }
}

/// Adds one day of a month, `number` of a weekday.
fn add(of_month: &mut [u8; 7], weekday: &str, part: &str, number: u8) -> Result<(), CronError> {
    let bits = DAY_OF_WEEK.part(weekday)?;
    if bits.count_ones() != 1 || weekday.contains(['-', '/']) {
        return Err(DAY_OF_WEEK.form_error(part));
    }
    of_month[bits.trailing_zeros() as usize % 7] |= 1 << number;
    Ok(())
}
