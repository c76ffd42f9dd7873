//! Differences of CPU time: the cost of a layer, of operating features.

use serde::Serialize;
use xtask_client::McpEra;

use super::report::BenchReport;
use super::sample::{SampleRounds, median};
use super::table::{TableCell, number, table, text};
use super::targets::TargetKind;

/// The CPU time of a call without one layer of the gateway, and the saving.
#[derive(Serialize)]
pub(super) struct LayerCostRow {
    pub without: &'static str,
    pub cpu_us: f64,
    pub saved: CpuDifference,
}

/// The CPU time that operating features add to a call of an unaudited gateway.
#[derive(Serialize)]
pub(super) struct OperationCostRow {
    pub target: TargetKind,
    pub era: McpEra,
    pub in_flight: usize,
    pub added: CpuDifference,
}

/// A difference of CPU time: the median of the differences within each round, the minimum and the maximum. If these two
/// are far apart, the machine was too busy.
#[derive(Serialize)]
pub(super) struct CpuDifference {
    pub us: f64,
    pub least_us: f64,
    pub most_us: f64,
}

/// The cost of a call with some operating features, and the share of their records that was lost.
#[derive(Serialize)]
pub(super) struct OperationRow {
    pub with: &'static str,
    pub calls_per_second: f64,
    pub cpu_us: f64,
    /// Compared with the first row.
    pub added: CpuDifference,
    /// Share of audit records that were dropped; `None` without an audit trail.
    pub lost_records: Option<f64>,
    /// Share of sampled spans that were dropped; `None` without a collector.
    pub lost_spans: Option<f64>,
}

impl BenchReport {
    /// The CPU time that operating features add, for each load.
    pub(super) fn added_table(&self) -> String {
        let rows = self.added.iter().map(|row| {
            let cells = [text(row.era.name()), number(row.in_flight as f64, 0), text(row.target.name())];
            cells.into_iter().chain(row.added.cells()).collect()
        });
        let heads = ["era", "in flight", "target", "added us", "min", "max"];
        table("additional cpu us of a call, compared with unaudited", &heads, rows.collect())
    }

    pub(super) fn layer_table(&self) -> String {
        let rows = self.layers.iter();
        let rows = rows.map(|row| {
            let cells = [text(row.without), number(row.cpu_us, 1)];
            cells.into_iter().chain(row.saved.cells()).collect()
        });
        let heads = ["without", "cpu us", "saved us", "min", "max"];
        table("cost of each layer, modern, 16 in flight", &heads, rows.collect())
    }

    pub(super) fn operation_table(&self) -> String {
        let share = |share: Option<f64>| share.map_or(text("-"), |share| number(share * 100.0, 1));
        let rows = self.operation.iter().map(|row| {
            let cells = [text(row.with), number(row.calls_per_second, 0), number(row.cpu_us, 1)];
            let lost = [share(row.lost_records), share(row.lost_spans)];
            cells.into_iter().chain(row.added.cells()).chain(lost).collect()
        });
        let heads =
            ["with", "calls/s", "cpu us", "added us", "min", "max", "records lost, %", "spans lost, %"];
        table("cost of operating features, modern, 16 in flight", &heads, rows.collect())
    }
}

impl LayerCostRow {
    pub(super) fn new(without: &'static str, whole: &SampleRounds, reduced: &SampleRounds) -> LayerCostRow {
        let cpu_us = reduced.median(|sample| sample.cpu_us);
        LayerCostRow { without, cpu_us, saved: CpuDifference::of(whole, reduced) }
    }
}

impl OperationCostRow {
    pub(super) fn new(
        target: TargetKind,
        era: McpEra,
        in_flight: usize,
        plain: &SampleRounds,
        more: &SampleRounds,
    ) -> OperationCostRow {
        OperationCostRow { target, era, in_flight, added: CpuDifference::of(more, plain) }
    }
}

impl OperationRow {
    /// A row of a gateway that lost nothing.
    pub(super) fn new(with: &'static str, bare: &SampleRounds, rounds: &SampleRounds) -> OperationRow {
        OperationRow {
            with,
            calls_per_second: rounds.median(|sample| sample.calls_per_second),
            cpu_us: rounds.median(|sample| sample.cpu_us),
            added: CpuDifference::of(rounds, bare),
            lost_records: None,
            lost_spans: None,
        }
    }
}

impl CpuDifference {
    /// The additional cost of a call.
    fn of(more: &SampleRounds, less: &SampleRounds) -> CpuDifference {
        let differences = more.per_round(less, |more, less| more.cpu_us - less.cpu_us);
        CpuDifference {
            least_us: differences.iter().copied().fold(f64::INFINITY, f64::min),
            most_us: differences.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            us: median(differences),
        }
    }

    fn cells(&self) -> [TableCell; 3] {
        [self.us, self.least_us, self.most_us].map(|figure| number(figure, 1))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::sample::LoadSample;
    use super::*;

    fn rounds(costs: [f64; 3]) -> SampleRounds {
        let sample = |cpu_us| LoadSample { calls_per_second: 1000.0, p50_us: 0.0, p99_us: 0.0, cpu_us };
        SampleRounds(costs.map(sample).into())
    }

    #[test]
    fn difference_is_computed_within_each_round() {
        let difference = CpuDifference::of(&rounds([35.0, 47.0, 33.0]), &rounds([30.0, 40.0, 30.0]));
        assert_eq!([difference.us, difference.least_us, difference.most_us], [5.0, 3.0, 7.0]);
    }

    #[test]
    fn operation_table_shows_cost_and_losses() {
        let bare = rounds([30.0; 3]);
        let mut report = BenchReport::new(3, Duration::from_secs(1));
        report.operation.push(OperationRow::new("nothing", &bare, &bare));
        let operated = OperationRow::new("all", &bare, &rounds([35.0, 37.0, 36.0]));
        report.operation.push(OperationRow { lost_records: Some(0.0), lost_spans: Some(0.25), ..operated });
        let expected = "\
cost of operating features, modern, 16 in flight
  with     calls/s  cpu us  added us  min  max  records lost, %  spans lost, %
  nothing     1000    30.0       0.0  0.0  0.0  -                -
  all         1000    36.0       6.0  5.0  7.0              0.0           25.0
";
        assert_eq!(report.operation_table(), expected);
    }
}
