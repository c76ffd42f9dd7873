//! The table, and what is wrong in it.

use std::fmt;
use std::time::Duration;

use super::load::Tally;
use super::round::{RECOVERY_LIMIT, Row};

/// What the gateway may hold in memory, in KiB. A message of a server has 2 MB at most in the arena, and is held a
/// few times while it passes.
const MEMORY_LIMIT: u64 = 64 * 1024;

const HEADS: [&str; 8] = [
    "fault, and how often it showed",
    "calls of the nine: answered/sent",
    "calls of the faulty one: answered/sent, why not",
    "recovered after",
    "memory: peak, at the end",
    "processor time",
    "log",
    "left after SIGTERM, `kill -9`",
];

/// What stands above the rows: a table of Markdown begins.
pub(super) fn head() -> String {
    format!("| {} |\n|{}", HEADS.join(" | "), " --- |".repeat(HEADS.len()))
}

/// A row of the table.
pub(super) fn line(row: &Row) -> String {
    format!("| {} |", cells(row).join(" | "))
}

/// What stands below the rows.
pub(super) fn foot() -> String {
    format!("\nBound of memory: {}; of recovery: {RECOVERY_LIMIT:?}.", mib(MEMORY_LIMIT))
}

fn cells(row: &Row) -> [String; HEADS.len()] {
    [
        format!("{} {}", row.fault, row.shown),
        row.good.to_string(),
        row.faulty.to_string(),
        row.recovered.map_or("never".to_owned(), seconds),
        format!("{}, {}", mib(row.memory.peak), mib(row.memory.resident)),
        seconds(row.cpu),
        mib(row.logged / 1024),
        format!("{}, {}", row.left_by_term, row.left_by_kill),
    ]
}

/// What the gateway has not stood.
pub(super) fn problems(row: &Row) -> Vec<String> {
    let rules = [
        (row.shown > 0, "the fault did not show"),
        (row.good.answered == row.good.sent, "the others lost calls"),
        (row.recovered.is_some(), "the server did not come back"),
        (row.memory.peak <= MEMORY_LIMIT, "the gateway took too much memory"),
        (row.left_by_term == 0, "processes are left after SIGTERM"),
        (row.left_by_kill == 0, "processes are left after kill -9"),
    ];
    let broken = rules.into_iter().filter(|(holds, _)| !holds);
    broken.map(|(_, problem)| format!("{}: {problem}", row.fault)).collect()
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.answered, self.sent)?;
        self.failed.iter().try_for_each(|(kind, times)| write!(out, ", {kind} {times}"))
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn mib(kibibytes: u64) -> String {
    format!("{:.1} MiB", kibibytes as f64 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::fault::Fault;
    use crate::measure::Memory;

    fn tally(sent: usize, answered: usize) -> Tally {
        let failed = [("timeout".to_owned(), sent - answered)].into_iter().filter(|(_, times)| *times > 0);
        Tally { sent, answered, failed: failed.collect() }
    }

    fn good() -> Row {
        Row {
            fault: Fault::Hang,
            shown: 1,
            good: tally(90, 90),
            faulty: tally(4, 3),
            recovered: Some(Duration::from_millis(1_260)),
            memory: Memory { resident: 10 * 1024, peak: 20 * 1024 },
            cpu: Duration::from_millis(500),
            logged: 512 * 1024,
            left_by_term: 0,
            left_by_kill: 0,
        }
    }

    #[test]
    fn a_row_has_all_that_was_seen() {
        let row = "hang 1 | 90/90 | 3/4, timeout 1 | 1.3 s | 20.0 MiB, 10.0 MiB | 0.5 s | 0.5 MiB | 0, 0";
        assert_eq!(cells(&good()).join(" | "), row);
    }

    #[test]
    fn each_broken_rule_is_a_problem() {
        assert_eq!(problems(&good()), Vec::<String>::new());
        let bad = [
            Row { shown: 0, ..good() },
            Row { good: tally(90, 89), ..good() },
            Row { recovered: None, ..good() },
            Row { memory: Memory { resident: 0, peak: MEMORY_LIMIT + 1 }, ..good() },
            Row { left_by_term: 1, ..good() },
            Row { left_by_kill: 1, ..good() },
        ];
        for row in bad {
            assert_eq!(problems(&row).len(), 1, "{:?}", cells(&row));
        }
    }
}
