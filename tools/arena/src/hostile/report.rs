//! The table of the attacks, and the failures in it.

use super::BYTES_IN_FLIGHT;
use super::attack_run::AttackRow;
use super::good_client::ANSWER_LIMIT;
use crate::report::{markdown_header, mib, seconds};

/// Maximum memory of an idle gateway in KiB, without the pages of files.
pub(super) const IDLE_MEMORY_LIMIT: u64 = 68 << 10;

/// Memory of 500 connections that the budget does not count, in KiB: the buffer of a head, and 16 KiB of a body.
const UNTRACKED_MEMORY: u64 = 500 * (64 + 16);

/// Maximum memory during an attack, in KiB.
const PEAK_MEMORY_LIMIT: u64 = IDLE_MEMORY_LIMIT + (BYTES_IN_FLIGHT >> 10) + UNTRACKED_MEMORY;

const COLUMNS: [&str; 7] = [
    "attack: attempts, refused",
    "calls of the good client: succeeded/sent",
    "`/health`: succeeded/sent",
    "slowest response",
    "memory: peak, afterwards",
    "CPU time",
    "SIGTERM",
];

/// The header of the table.
pub(super) fn table_header() -> String {
    markdown_header(&COLUMNS)
}

/// A row of the table.
pub(super) fn table_row(row: &AttackRow) -> String {
    format!("| {} |", cells(row).join(" | "))
}

/// The line below the table.
pub(super) fn footer() -> String {
    let (peak, rest) = (mib(PEAK_MEMORY_LIMIT), mib(IDLE_MEMORY_LIMIT));
    format!(
        "\nLimits: memory {peak} at the peak (`limits.bytesInFlight` is {}) and {rest} afterwards; response time {ANSWER_LIMIT:?}.",
        mib(BYTES_IN_FLIGHT >> 10)
    )
}

fn cells(row: &AttackRow) -> [String; COLUMNS.len()] {
    let slowest = row.answers.calls.slowest.max(row.answers.health.slowest);
    [
        format!("{} {}, {}", row.attack, row.completed, row.refused),
        row.answers.calls.to_string(),
        row.answers.health.to_string(),
        seconds(slowest),
        format!("{}, {}", mib(row.peak), mib(row.idle)),
        seconds(row.cpu),
        if row.terminated { "yes" } else { "no" }.to_owned(),
    ]
}

/// The failures of the gateway.
pub(super) fn problems(row: &AttackRow) -> Vec<String> {
    let (calls, health) = (&row.answers.calls, &row.answers.health);
    let rules = [
        (row.completed + row.refused > 0, "no attempt completed"),
        (calls.sent > 0 && calls.answered == calls.sent, "the good client lost calls"),
        (health.sent > 0 && health.answered == health.sent, "a health check failed"),
        (row.peak <= PEAK_MEMORY_LIMIT, "the gateway took too much memory"),
        (row.idle <= IDLE_MEMORY_LIMIT, "the gateway did not release its memory"),
        (row.terminated, "the gateway did not end on SIGTERM"),
    ];
    let broken = rules.into_iter().filter(|(is_met, _)| !is_met);
    broken.map(|(_, problem)| format!("{}: {problem}", row.attack)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::HostileAttack;
    use super::super::good_client::GoodClientTally;
    use super::*;
    use crate::report::tests::tally;

    fn good() -> AttackRow {
        AttackRow {
            attack: HostileAttack::UnreadAnswers,
            completed: 8,
            refused: 2,
            answers: GoodClientTally { calls: tally(40, 40), health: tally(20, 20) },
            peak: PEAK_MEMORY_LIMIT,
            idle: 20 << 10,
            cpu: Duration::from_millis(500),
            terminated: true,
        }
    }

    #[test]
    fn row_has_all_figures() {
        let row = "unread-answers 8, 2 | 40/40 | 20/20 | 0.0 s | 171.1 MiB, 20.0 MiB | 0.5 s | yes";
        assert_eq!(cells(&good()).join(" | "), row);
    }

    #[test]
    fn each_broken_rule_is_a_problem() {
        assert_eq!(problems(&good()), Vec::<String>::new());
        let answers = |calls, health| GoodClientTally { calls, health };
        let bad = [
            AttackRow { completed: 0, refused: 0, ..good() },
            AttackRow { answers: answers(tally(40, 39), tally(20, 20)), ..good() },
            AttackRow { answers: answers(tally(0, 0), tally(20, 20)), ..good() },
            AttackRow { answers: answers(tally(40, 40), tally(20, 19)), ..good() },
            AttackRow { peak: PEAK_MEMORY_LIMIT + 1, ..good() },
            AttackRow { idle: IDLE_MEMORY_LIMIT + 1, ..good() },
            AttackRow { terminated: false, ..good() },
        ];
        for row in bad {
            assert_eq!(problems(&row).len(), 1, "{:?}", cells(&row));
        }
    }
}
