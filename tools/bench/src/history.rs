//! The recorded instructions and allocations of a call, with which a run is compared.
//!
//! The counts of the thread that serves the calls are the same within a percent, as long as the profile and the compiler
//! are the same. Those of all threads depend on the number of timers and batches in the time of the run. Growth is
//! reported, and refused above [`ACCEPTED_GROWTH`] until it is recorded on purpose.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, ensure};

use super::instructions::InstructionRow;

/// Columns of the file.
const HEADS: &str =
    "date,profile,rustc,server,era,instructions,allocations,thread_instructions,thread_allocations,bytes";

/// Share of additional instructions or allocations that is accepted.
pub(super) const ACCEPTED_GROWTH: f64 = 0.10;

/// Share of additional instructions or allocations that is worth a line.
pub(super) const REPORTED_GROWTH: f64 = 0.03;

/// Builds whose figures can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BuildKind {
    pub profile: String,
    pub rustc: String,
}

/// The figures of one server in one era.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HistoryLine {
    date: String,
    build: BuildKind,
    server: String,
    era: String,
    instructions: f64,
    allocations: f64,
    thread_instructions: f64,
    thread_allocations: f64,
    /// Empty if it was not counted.
    bytes: String,
}

/// All recorded figures, the oldest first.
#[derive(Debug)]
pub(super) struct CountHistory(Vec<HistoryLine>);

impl CountHistory {
    fn path() -> PathBuf {
        xtask_support::root().join("tools/bench/history.csv")
    }

    /// Reads the file of the repository.
    pub(super) fn read() -> anyhow::Result<CountHistory> {
        let path = Self::path();
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        CountHistory::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<CountHistory> {
        let mut lines = text.lines();
        ensure!(lines.next() == Some(HEADS), "the first line is not `{HEADS}`");
        lines.map(HistoryLine::parse).collect::<anyhow::Result<_>>().map(CountHistory)
    }

    fn text(&self) -> String {
        let mut text = format!("{HEADS}\n");
        for line in &self.0 {
            let HistoryLine { date, build: BuildKind { profile, rustc }, server, era, bytes, .. } = line;
            let all = format!("{:.0},{:.1}", line.instructions, line.allocations);
            let thread = format!("{:.0},{:.1}", line.thread_instructions, line.thread_allocations);
            // Writing to a string cannot fail.
            let _written = writeln!(text, "{date},{profile},{rustc},{server},{era},{all},{thread},{bytes}");
        }
        text
    }

    /// Adds the figures of a run to the file. Those of the same day and build are replaced.
    pub(super) fn record(rows: &[InstructionRow], build: &BuildKind, date: &str) -> anyhow::Result<()> {
        let mut history = if Self::path().exists() { Self::read()? } else { CountHistory(Vec::new()) };
        history.0.retain(|line| {
            let is_replaced = |row: &InstructionRow| line.is_of(row, build) && line.date == date;
            !rows.iter().any(is_replaced)
        });
        history.0.extend(rows.iter().map(|row| HistoryLine::new(row, build, date)));
        std::fs::write(Self::path(), history.text()).context("cannot write the history")
    }

    /// True if the figures of a server in this build are recorded.
    pub(super) fn has(&self, row: &InstructionRow, build: &BuildKind) -> bool {
        self.0.iter().any(|line| line.is_of(row, build))
    }

    /// Compares a run with the latest figures of the same build. Returns a line for each figure that has grown by more
    /// than this share.
    pub(super) fn growths(&self, rows: &[InstructionRow], build: &BuildKind, share: f64) -> Vec<String> {
        rows.iter().flat_map(|row| self.growths_of(row, build, share)).collect()
    }

    fn growths_of(&self, row: &InstructionRow, build: &BuildKind, share: f64) -> Vec<String> {
        let name = format!("{}, {}", row.server.name(), row.era.name());
        let Some(line) = self.0.iter().rev().find(|line| line.is_of(row, build)) else { return Vec::new() };
        let figures = [
            ("instructions", row.thread_instructions, line.thread_instructions),
            ("allocations", row.thread_allocations, line.thread_allocations),
        ];
        let grown = figures.into_iter().filter(|(_, now, then)| *now > then * (1.0 + share));
        grown
            .map(|(what, now, then)| {
                let more = (now / then - 1.0) * 100.0;
                format!("{name}: {now:.0} {what} a call, {more:.1} % more than the recorded {then:.0}")
            })
            .collect()
    }
}

impl HistoryLine {
    fn new(row: &InstructionRow, build: &BuildKind, date: &str) -> HistoryLine {
        HistoryLine {
            date: date.to_owned(),
            build: build.clone(),
            server: row.server.name().to_owned(),
            era: row.era.name().to_owned(),
            instructions: row.instructions,
            allocations: row.allocations,
            thread_instructions: row.thread_instructions,
            thread_allocations: row.thread_allocations,
            bytes: row.allocated_bytes.map(|bytes| format!("{bytes:.0}")).unwrap_or_default(),
        }
    }

    fn parse(line: &str) -> anyhow::Result<HistoryLine> {
        let invalid = || format!("invalid line: {line}");
        let cells: Vec<&str> = line.split(',').collect();
        let [date, profile, rustc, server, era, figures @ .., bytes] = &cells[..] else {
            return Err(anyhow::Error::msg(invalid()));
        };
        let figures = figures.iter().map(|cell| cell.parse::<f64>());
        let figures = figures.collect::<Result<Vec<_>, _>>().with_context(invalid)?;
        let [instructions, allocations, thread_instructions, thread_allocations] = figures[..] else {
            return Err(anyhow::Error::msg(invalid()));
        };
        Ok(HistoryLine {
            date: (*date).to_owned(),
            build: BuildKind { profile: (*profile).to_owned(), rustc: (*rustc).to_owned() },
            server: (*server).to_owned(),
            era: (*era).to_owned(),
            instructions,
            allocations,
            thread_instructions,
            thread_allocations,
            bytes: (*bytes).to_owned(),
        })
    }

    fn is_of(&self, row: &InstructionRow, build: &BuildKind) -> bool {
        self.build == *build && self.server == row.server.name() && self.era == row.era.name()
    }
}

#[cfg(test)]
mod tests {
    use xtask_client::McpEra;

    use super::super::instructions::CountedServer;
    use super::*;

    const FILE: &str =
        "date,profile,rustc,server,era,instructions,allocations,thread_instructions,thread_allocations,bytes
2026-11-01,dist,1.95.0,gateway,modern,120000,60.0,100000,50.0,9000
2026-11-02,dist,1.95.0,gateway,modern,110000,50.0,90000,40.0,
2026-11-02,dist,1.95.0,OpenAPI operation,modern,80000,30.5,80000,30.5,
";

    fn row(server: CountedServer, instructions: f64, allocations: f64) -> InstructionRow {
        InstructionRow {
            server,
            era: McpEra::Modern,
            instructions: instructions * 2.0,
            allocations: allocations * 2.0,
            thread_instructions: instructions,
            thread_allocations: allocations,
            reallocations: 0.0,
            frees: 0.0,
            allocated_bytes: None,
        }
    }

    fn growths(row: InstructionRow, share: f64) -> String {
        let build = BuildKind { profile: "dist".to_owned(), rustc: "1.95.0".to_owned() };
        CountHistory::parse(FILE).unwrap().growths(&[row], &build, share).join("\n")
    }

    #[test]
    fn file_is_written_as_it_was_read() {
        assert_eq!(CountHistory::parse(FILE).unwrap().text(), FILE);
        CountHistory::parse("date,profile\n").unwrap_err();
        CountHistory::parse(&format!("{HEADS}\n2026-11-01,dist\n")).unwrap_err();
    }

    #[test]
    fn figures_of_the_repository_are_valid() {
        CountHistory::read().unwrap();
    }

    #[test]
    fn growth_beyond_a_share_is_named() {
        let cases = [
            (row(CountedServer::Gateway, 92_600.0, 41.0), ""),
            (
                row(CountedServer::Gateway, 92_800.0, 40.0),
                "gateway, modern: 92800 instructions a call, 3.1 % more than the recorded 90000",
            ),
            (
                row(CountedServer::Gateway, 50_000.0, 42.0),
                "gateway, modern: 42 allocations a call, 5.0 % more than the recorded 40",
            ),
            (row(CountedServer::OpenApi, 80_000.0, 30.5), ""),
        ];
        for (row, expected) in cases {
            assert_eq!(growths(row, REPORTED_GROWTH), expected);
        }
        assert_eq!(growths(row(CountedServer::Gateway, 98_000.0, 43.0), ACCEPTED_GROWTH), "");
        let refused = growths(row(CountedServer::Gateway, 99_900.0, 40.0), ACCEPTED_GROWTH);
        assert_eq!(
            refused,
            "gateway, modern: 99900 instructions a call, 11.0 % more than the recorded 90000"
        );
    }

    #[test]
    fn another_compiler_has_no_recorded_figures() {
        let history = CountHistory::parse(FILE).unwrap();
        let row = row(CountedServer::Gateway, 1.0, 1.0);
        let has = |rustc: &str| {
            history.has(&row, &BuildKind { profile: "dist".to_owned(), rustc: rustc.to_owned() })
        };
        assert_eq!((has("1.95.0"), has("1.96.0")), (true, false));
    }
}
