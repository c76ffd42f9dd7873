//! The table of the faults, and the failures in it.

use std::fmt;
use std::time::Duration;

use super::fault_run::{FaultRow, RECOVERY_LIMIT};
use super::load::CallTally;

/// Maximum memory of the gateway without the pages of files, in KiB. A message of a server has at most 2 MB in the arena,
/// and several copies of it may exist at once.
const MEMORY_LIMIT: u64 = 20 * 1024;

const COLUMNS: [&str; 8] = [
    "fault, occurrences",
    "calls of the nine: succeeded/sent",
    "calls of the faulty one: succeeded/sent, failures",
    "recovered after",
    "memory: peak, at the end",
    "CPU time",
    "log",
    "left after SIGTERM, `kill -9`",
];

/// The header of the Markdown table.
pub(super) fn table_header() -> String {
    markdown_header(&COLUMNS)
}

/// The first two lines of a Markdown table.
pub(super) fn markdown_header(heads: &[&str]) -> String {
    format!("| {} |\n|{}", heads.join(" | "), " --- |".repeat(heads.len()))
}

/// A row of the table.
pub(super) fn table_row(row: &FaultRow) -> String {
    format!("| {} |", cells(row).join(" | "))
}

/// The text below the table.
pub(super) fn footer() -> String {
    format!("\nLimits: memory {}; recovery {RECOVERY_LIMIT:?}.", mib(MEMORY_LIMIT))
}

fn cells(row: &FaultRow) -> [String; COLUMNS.len()] {
    [
        format!("{} {}", row.fault, row.occurrences),
        row.good.to_string(),
        row.faulty.to_string(),
        row.recovery_time.map_or("never".to_owned(), seconds),
        format!("{}, {}", mib(row.memory.peak), mib(row.memory.resident)),
        seconds(row.cpu),
        mib(row.log_bytes / 1024),
        format!("{}, {}", row.left_after_term, row.left_after_kill),
    ]
}

/// The failures of the gateway.
pub(super) fn problems(row: &FaultRow) -> Vec<String> {
    let rules = [
        (row.occurrences > 0, "the fault did not occur"),
        (row.good.answered == row.good.sent, "the others lost calls"),
        (row.recovery_time.is_some(), "the server did not recover"),
        (row.memory.peak <= MEMORY_LIMIT, "the gateway took too much memory"),
        (row.left_after_term == 0, "processes remain after SIGTERM"),
        (row.left_after_kill == 0, "processes remain after kill -9"),
    ];
    let broken = rules.into_iter().filter(|(is_met, _)| !is_met);
    broken.map(|(_, problem)| format!("{}: {problem}", row.fault)).collect()
}

impl fmt::Display for CallTally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.answered, self.sent)?;
        self.failed.iter().try_for_each(|(kind, times)| write!(out, ", {kind} {times}"))
    }
}

pub(super) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

pub(super) fn mib(kibibytes: u64) -> String {
    format!("{:.1} MiB", kibibytes as f64 / 1024.0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fault::ServerFault;
    use xtask_support::measure::ProcessMemory;

    pub(crate) fn tally(sent: usize, answered: usize) -> CallTally {
        let failed = [("timeout".to_owned(), sent - answered)].into_iter().filter(|(_, times)| *times > 0);
        CallTally { sent, answered, failed: failed.collect(), slowest: Duration::ZERO }
    }

    fn good() -> FaultRow {
        FaultRow {
            fault: ServerFault::Hang,
            occurrences: 1,
            good: tally(90, 90),
            faulty: tally(4, 3),
            recovery_time: Some(Duration::from_millis(1_260)),
            memory: ProcessMemory { resident: 10 * 1024, peak: 20 * 1024 },
            cpu: Duration::from_millis(500),
            log_bytes: 512 * 1024,
            left_after_term: 0,
            left_after_kill: 0,
        }
    }

    #[test]
    fn row_has_all_figures() {
        let row = "hang 1 | 90/90 | 3/4, timeout 1 | 1.3 s | 20.0 MiB, 10.0 MiB | 0.5 s | 0.5 MiB | 0, 0";
        assert_eq!(cells(&good()).join(" | "), row);
    }

    #[test]
    fn each_broken_rule_is_a_problem() {
        assert_eq!(problems(&good()), Vec::<String>::new());
        let bad = [
            FaultRow { occurrences: 0, ..good() },
            FaultRow { good: tally(90, 89), ..good() },
            FaultRow { recovery_time: None, ..good() },
            FaultRow { memory: ProcessMemory { resident: 0, peak: MEMORY_LIMIT + 1 }, ..good() },
            FaultRow { left_after_term: 1, ..good() },
            FaultRow { left_after_kill: 1, ..good() },
        ];
        for row in bad {
            assert_eq!(problems(&row).len(), 1, "{:?}", cells(&row));
        }
    }
}
