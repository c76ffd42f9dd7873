//! One field of a cron expression.

/// The reason why a text is not a cron expression. A model reads the texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// The text is too long.
    #[error("a cron expression has at most {limit} bytes")]
    TooLong {
        /// Maximum length in bytes.
        limit: usize,
    },
    /// The number of fields is wrong.
    #[error(
        "a cron expression has 5 fields, `minute hour day-of-month month day-of-week`, or 6 with the second first, and this \
         one has {0}"
    )]
    FieldCount(usize),
    /// The nickname is unknown.
    #[error("unknown nickname `{0}`: use @hourly, @daily, @weekly, @monthly, @yearly, or the fields")]
    Nickname(String),
    /// A part of a field is neither a number nor a name of it.
    #[error("{field}: `{part}` is not a value from {min} to {max}")]
    Value {
        /// Name of the field.
        field: &'static str,
        /// The part.
        part: String,
        /// Least value.
        min: u32,
        /// Greatest value.
        max: u32,
    },
    /// A step is not positive, or larger than the field.
    #[error(
        "{field}: the step of `{part}` is not a number from 1 to {max}; steps begin anew in each {unit}, so that a longer interval \
         needs the next field"
    )]
    Step {
        /// Name of the field.
        field: &'static str,
        /// The part.
        part: String,
        /// Greatest step.
        max: u32,
        /// Unit in which the steps begin anew.
        unit: &'static str,
    },
    /// The form of a part is unknown.
    #[error(
        "{field}: `{part}` is not a value, a range such as `{example}`, or one of them with a step such as `*/{step}`"
    )]
    Form {
        /// Name of the field.
        field: &'static str,
        /// The part.
        part: String,
        /// A range of this field.
        example: &'static str,
        /// A step of this field.
        step: &'static str,
    },
    /// No date matches the fields of days and months.
    #[error("no date matches: the day of the month, the month and the day of the week must all match")]
    NoDate,
}

/// The values of a field.
pub(super) struct FieldSpec {
    pub(super) name: &'static str,
    /// Unit that contains all values once.
    pub(super) unit: &'static str,
    pub(super) min: u32,
    pub(super) max: u32,
    /// Names of the values from `min`.
    pub(super) names: &'static [&'static str],
    /// A range and a step, for errors.
    pub(super) examples: (&'static str, &'static str),
}

pub(super) const SECOND: FieldSpec =
    FieldSpec { name: "second", unit: "minute", min: 0, max: 59, names: &[], examples: ("0-30", "15") };

pub(super) const MINUTE: FieldSpec =
    FieldSpec { name: "minute", unit: "hour", min: 0, max: 59, names: &[], examples: ("0-30", "15") };

pub(super) const HOUR: FieldSpec =
    FieldSpec { name: "hour", unit: "day", min: 0, max: 23, names: &[], examples: ("9-17", "2") };

pub(super) const DAY_OF_MONTH: FieldSpec =
    FieldSpec { name: "day-of-month", unit: "month", min: 1, max: 31, names: &[], examples: ("1-7", "5") };

pub(super) const MONTH: FieldSpec = FieldSpec {
    name: "month",
    unit: "year",
    min: 1,
    max: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    examples: ("3-5", "3"),
};

/// Sunday is 0; 7 is accepted for it as well.
pub(super) const DAY_OF_WEEK: FieldSpec = FieldSpec {
    name: "day-of-week",
    unit: "week",
    min: 0,
    max: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    examples: ("1-5", "2"),
};

impl FieldSpec {
    /// Returns the values of a field as bits.
    pub(super) fn values(&self, text: &str) -> Result<u64, CronError> {
        text.split(',').try_fold(0, |values, part| Ok(values | self.part(part)?))
    }

    /// Returns the values of a part between commas as bits.
    pub(super) fn part(&self, part: &str) -> Result<u64, CronError> {
        let (range, step) = match part.split_once('/') {
            None => (part, None),
            Some((range, step)) => (range, Some(self.step(part, step)?)),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (self.value(part, first)?, self.range_end(part, first, last)?),
            None if range == "*" => (self.min, self.max),
            None => {
                let first = self.value(part, range)?;
                (first, if step.is_some() { self.max } else { first })
            }
        };
        // A range such as `22-2` or `fri-mon` goes over the end of the field.
        let size = self.max - self.min + 1;
        let length = if last >= first { last - first } else { size - (first - last) };
        let step = usize::try_from(step.unwrap_or(1)).unwrap_or(usize::MAX);
        let values = (0..=length).step_by(step).map(|offset| (first - self.min + offset) % size + self.min);
        Ok(values.fold(0, |bits, value| bits | 1 << value))
    }

    /// Returns the last value of a range. In the range `5-7` of weekdays, 7 is the Sunday behind the others.
    fn range_end(&self, part: &str, first: &str, last: &str) -> Result<u32, CronError> {
        let end = self.value(part, last)?;
        let is_last_sunday = self.max == DAY_OF_WEEK.max && last == "7" && first != "7";
        // One more than the last value wraps to the first one.
        Ok(if is_last_sunday { self.max + 1 } else { end })
    }

    fn value(&self, part: &str, text: &str) -> Result<u32, CronError> {
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(self.form_error(part));
        }
        let named = self.names.iter().zip(self.min..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        let is_sunday = self.max == DAY_OF_WEEK.max && text == "7";
        let number = || text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        let value = named.map(|(_, value)| value).or_else(|| if is_sunday { Some(0) } else { number() });
        value.filter(|value| (self.min..=self.max).contains(value)).ok_or_else(|| CronError::Value {
            field: self.name,
            part: part.to_owned(),
            min: self.min,
            max: self.max,
        })
    }

    fn step(&self, part: &str, text: &str) -> Result<u32, CronError> {
        let max = self.max - self.min;
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let step = is_number.then(|| text.parse().ok()).flatten().filter(|step| (1..=max).contains(step));
        step.ok_or_else(|| CronError::Step { field: self.name, part: part.to_owned(), max, unit: self.unit })
    }

    pub(super) fn form_error(&self, part: &str) -> CronError {
        let (example, step) = self.examples;
        CronError::Form { field: self.name, part: part.to_owned(), example, step }
    }
}
