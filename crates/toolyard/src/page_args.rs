//! Arguments that select a page of a log: `toolyard audit` and `toolyard function logs`.

use std::time::{Duration, SystemTime};

use crate::duration::parse_duration;

/// A page of entries, newest first.
#[derive(clap::Args)]
pub(crate) struct PageArgs {
    /// Only entries newer than this: 10min, 1h, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    since: Option<Duration>,

    /// Maximum number of entries
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,

    /// Only entries before this number, which the note at the end of a page shows
    #[arg(long, value_name = "NUMBER")]
    pub(crate) before: Option<u64>,
}

impl PageArgs {
    /// Returns the time of the oldest entry, if the age is limited.
    pub(crate) fn since(&self) -> Option<SystemTime> {
        SystemTime::now().checked_sub(self.since?)
    }
}
