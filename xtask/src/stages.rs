//! The stages of a long command, and the time that each of them took.

use std::fmt;
use std::time::{Duration, Instant};

/// The stages of a run that have ended, in their order.
pub(crate) struct StageTimes {
    times: Vec<(&'static str, Duration)>,
    total: usize,
}

impl StageTimes {
    /// Returns the stages of a run that will have `total` of them.
    pub(crate) fn new(total: usize) -> Self {
        Self { times: Vec::new(), total }
    }

    /// Runs a stage, and prints where the run is and the time that the stage took, also if it fails.
    pub(crate) fn run<T>(
        &mut self,
        name: &'static str,
        stage: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        println!("\n==> {name} ({} of {})", self.times.len() + 1, self.total);
        let start = Instant::now();
        let outcome = stage();
        let time = start.elapsed();
        println!("==> {name} took {:.1} s", time.as_secs_f64());
        self.times.push((name, time));
        outcome.map_err(|error| error.context(format!("stage \"{name}\"")))
    }
}

impl fmt::Display for StageTimes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, time) in &self.times {
            writeln!(out, "{name:<30}{:>8.1} s", time.as_secs_f64())?;
        }
        let total: Duration = self.times.iter().map(|(_, time)| *time).sum();
        write!(out, "{:<30}{:>8.1} s", "total", total.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_stage_is_named_and_timed() {
        let mut stages = StageTimes::new(2);
        assert_eq!(stages.run("one", || Ok(1)).unwrap(), 1);
        let error = stages.run("two", || -> anyhow::Result<()> { anyhow::bail!("no") }).unwrap_err();
        assert_eq!(format!("{error:#}"), "stage \"two\": no");
        let table = stages.to_string();
        let names: Vec<_> = table.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, ["one", "two", "total"]);
    }
}
