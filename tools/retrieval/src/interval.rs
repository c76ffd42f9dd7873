//! Confidence intervals of means.

/// Quantile of the normal distribution for 95 % between both tails.
const NORMAL_QUANTILE: f64 = 1.959_964;

/// The mean of a sample, with half the width of its confidence interval of 95 %.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeanInterval {
    pub(super) mean: f64,
    pub(super) margin: f64,
}

impl MeanInterval {
    /// The mean of independent values, with Student's distribution. One value has an infinite interval.
    pub(super) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        if values.len() < 2 {
            return Self { mean, margin: f64::INFINITY };
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        Self { mean, margin: student_quantile(count - 1.0) * error }
    }

    /// The mean of the differences of two samples with the same elements.
    pub(super) fn of_differences(one: &[f64], other: &[f64]) -> Self {
        Self::of(&one.iter().zip(other).map(|(one, other)| one - other).collect::<Vec<_>>())
    }
}

/// The quantile of Student's distribution, by the first terms of its series around the normal distribution (Abramowitz and
/// Stegun, 26.7.5).
fn student_quantile(degrees: f64) -> f64 {
    let z = NORMAL_QUANTILE;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / degrees + second / degrees.powi(2) + third / degrees.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_equal_those_of_tables() {
        for (degrees, expected) in [(4.0, 2.776), (7.0, 2.365), (30.0, 2.042), (1000.0, 1.962)] {
            let quantile = student_quantile(degrees);
            assert!((quantile - expected).abs() < 0.01, "{degrees}: {quantile}, not {expected}");
        }
    }

    #[test]
    fn interval_surrounds_the_mean() {
        let MeanInterval { mean, margin } =
            MeanInterval::of_differences(&[3.0, 4.0, 5.0, 6.0, 7.0], &[1.0; 5]);
        assert!((mean - 4.0).abs() < 1e-9);
        assert!((margin - 2.776 * 0.5_f64.sqrt()).abs() < 0.01, "{margin}");
        assert!(MeanInterval::of(&[1.0]).margin.is_infinite());
    }
}
