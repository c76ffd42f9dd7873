//! The samples of a measurement, and their aggregation.

use std::time::Duration;

/// The measurement of one cell in one round.
pub(super) struct LoadSample {
    pub calls_per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// CPU time of the process under test per call.
    pub cpu_us: f64,
}

impl LoadSample {
    /// Summarizes the calls made in `elapsed`, during which the process under test used `cpu`.
    pub(super) fn new(mut latencies: Vec<Duration>, elapsed: Duration, cpu: Duration) -> LoadSample {
        latencies.sort_unstable();
        let calls = latencies.len() as f64;
        LoadSample {
            calls_per_second: calls / elapsed.as_secs_f64(),
            p50_us: micros(percentile(&latencies, 0.50)),
            p99_us: micros(percentile(&latencies, 0.99)),
            cpu_us: micros(cpu) / calls,
        }
    }
}

/// The samples of one cell, in the order of the rounds.
pub(super) struct SampleRounds(pub(super) Vec<LoadSample>);

impl SampleRounds {
    /// The median of a figure.
    pub(super) fn median(&self, figure: impl Fn(&LoadSample) -> f64) -> f64 {
        median(self.0.iter().map(figure).collect())
    }

    /// A figure of each round, computed from the sample and the one of `base` in the same round, so that a
    /// disturbance of both cancels out.
    pub(super) fn per_round(
        &self,
        base: &SampleRounds,
        figure: impl Fn(&LoadSample, &LoadSample) -> f64,
    ) -> Vec<f64> {
        self.0.iter().zip(&base.0).map(|(own, base)| figure(own, base)).collect()
    }
}

/// The middle value, or the mean of the two in the middle; NaN without values.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[half],
        _ => f64::midpoint(values[half - 1], values[half]),
    }
}

/// A duration in microseconds.
pub(super) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// The smallest latency that is not below the given share of all (nearest rank). `sorted` ascends.
fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let hundred: Vec<Duration> = (1..=100).map(Duration::from_micros).collect();
        assert_eq!(percentile(&hundred, 0.50), Duration::from_micros(50));
        assert_eq!(percentile(&hundred, 0.99), Duration::from_micros(99));
        assert_eq!(percentile(&hundred[..1], 0.99), Duration::from_micros(1));
        assert_eq!(percentile(&[], 0.99), Duration::ZERO);
    }

    #[test]
    fn median_is_the_middle_value() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn ratio_is_computed_within_each_round() {
        let rounds =
            |costs: [f64; 3]| SampleRounds(costs.map(|cpu_us| LoadSample { cpu_us, ..zero() }).into());
        let (own, base) = (rounds([2.0, 20.0, 2.0]), rounds([1.0, 10.0, 1.0]));
        assert_eq!(own.per_round(&base, |own, base| own.cpu_us / base.cpu_us), [2.0, 2.0, 2.0]);
    }

    fn zero() -> LoadSample {
        LoadSample { calls_per_second: 0.0, p50_us: 0.0, p99_us: 0.0, cpu_us: 0.0 }
    }
}
