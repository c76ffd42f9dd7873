//! What something adds to a call, or takes off it.

use serde::Serialize;

use super::report::Report;
use super::sample::{Rounds, median};
use super::table::{Cell, number, table, text};
use crate::client::Era;

/// What a call costs without one layer of the gateway, and how much less that is.
#[derive(Serialize)]
pub(super) struct LayerRow {
    pub without: &'static str,
    pub cpu_us: f64,
    pub saved: Difference,
}

/// What a key, the audit trail and telemetry add to the CPU time of a call.
#[derive(Serialize)]
pub(super) struct AddedRow {
    pub era: Era,
    pub in_flight: usize,
    pub added: Difference,
}

/// A difference of CPU time: the median of the differences within each round, the least and the most. Where the last two
/// lie far apart the machine was too busy to tell.
#[derive(Serialize)]
pub(super) struct Difference {
    pub us: f64,
    pub least_us: f64,
    pub most_us: f64,
}

/// What a call costs with some of what operating takes, and how much of that was lost.
#[derive(Serialize)]
pub(super) struct OperationRow {
    pub with: &'static str,
    pub calls_per_second: f64,
    pub cpu_us: f64,
    /// To the first of the rows.
    pub added: Difference,
    /// The share of the audit trail's records that there was no room for, where there is a trail.
    pub lost_records: Option<f64>,
    /// The share of the sampled spans that there was no room for, where there is a collector.
    pub lost_spans: Option<f64>,
}

impl Report {
    /// What operating adds to each of the loads.
    pub(super) fn added_table(&self) -> String {
        let rows = self.added.iter().map(|row| {
            let cells = [text(row.era.name()), number(row.in_flight as f64, 0)];
            cells.into_iter().chain(row.added.cells()).collect()
        });
        let heads = ["era", "in flight", "added us", "least", "most"];
        table("cpu us of a call that operated has more than gateway", &heads, rows.collect())
    }

    pub(super) fn layer_table(&self) -> String {
        let rows = self.layers.iter();
        let rows = rows.map(|row| {
            let cells = [text(row.without), number(row.cpu_us, 1)];
            cells.into_iter().chain(row.saved.cells()).collect()
        });
        let heads = ["without", "cpu us", "saved us", "least", "most"];
        table("a layer's cost, modern, 16 in flight", &heads, rows.collect())
    }

    pub(super) fn operation_table(&self) -> String {
        let share = |share: Option<f64>| share.map_or(text("-"), |share| number(share * 100.0, 1));
        let rows = self.operation.iter().map(|row| {
            let cells = [text(row.with), number(row.calls_per_second, 0), number(row.cpu_us, 1)];
            let lost = [share(row.lost_records), share(row.lost_spans)];
            cells.into_iter().chain(row.added.cells()).chain(lost).collect()
        });
        let heads =
            ["with", "calls/s", "cpu us", "added us", "least", "most", "records lost, %", "spans lost, %"];
        table("what operating adds to a call, modern, 16 in flight", &heads, rows.collect())
    }
}

impl LayerRow {
    pub(super) fn new(without: &'static str, whole: &Rounds, reduced: &Rounds) -> LayerRow {
        let cpu_us = reduced.median(|sample| sample.cpu_us);
        LayerRow { without, cpu_us, saved: Difference::of(whole, reduced) }
    }
}

impl AddedRow {
    pub(super) fn new(era: Era, in_flight: usize, plain: &Rounds, operated: &Rounds) -> AddedRow {
        AddedRow { era, in_flight, added: Difference::of(operated, plain) }
    }
}

impl OperationRow {
    /// A row of a gateway that has lost nothing.
    pub(super) fn new(with: &'static str, bare: &Rounds, rounds: &Rounds) -> OperationRow {
        OperationRow {
            with,
            calls_per_second: rounds.median(|sample| sample.calls_per_second),
            cpu_us: rounds.median(|sample| sample.cpu_us),
            added: Difference::of(rounds, bare),
            lost_records: None,
            lost_spans: None,
        }
    }
}

impl Difference {
    /// What a call costs more in the one than in the other.
    fn of(more: &Rounds, less: &Rounds) -> Difference {
        let differences = more.beside(less, |more, less| more.cpu_us - less.cpu_us);
        Difference {
            least_us: differences.iter().copied().fold(f64::INFINITY, f64::min),
            most_us: differences.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            us: median(differences),
        }
    }

    fn cells(&self) -> [Cell; 3] {
        [self.us, self.least_us, self.most_us].map(|figure| number(figure, 1))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::sample::Sample;
    use super::*;

    fn rounds(costs: [f64; 3]) -> Rounds {
        let sample = |cpu_us| Sample { calls_per_second: 1000.0, p50_us: 0.0, p99_us: 0.0, cpu_us };
        Rounds(costs.map(sample).into())
    }

    #[test]
    fn a_difference_is_taken_within_each_round() {
        let difference = Difference::of(&rounds([35.0, 47.0, 33.0]), &rounds([30.0, 40.0, 30.0]));
        assert_eq!([difference.us, difference.least_us, difference.most_us], [5.0, 3.0, 7.0]);
    }

    #[test]
    fn what_was_lost_stands_beside_what_was_added() {
        let bare = rounds([30.0; 3]);
        let mut report = Report::new(3, Duration::from_secs(1));
        report.operation.push(OperationRow::new("nothing", &bare, &bare));
        let operated = OperationRow::new("all", &bare, &rounds([35.0, 37.0, 36.0]));
        report.operation.push(OperationRow { lost_records: Some(0.0), lost_spans: Some(0.25), ..operated });
        let expected = "\
what operating adds to a call, modern, 16 in flight
  with     calls/s  cpu us  added us  least  most  records lost, %  spans lost, %
  nothing     1000    30.0       0.0    0.0   0.0  -                -
  all         1000    36.0       6.0    5.0   7.0              0.0           25.0
";
        assert_eq!(report.operation_table(), expected);
    }
}
