//! How long each stage of a run took.

use std::fmt;
use std::time::{Duration, Instant};

/// The stages so far, in their order.
#[derive(Default)]
pub(crate) struct Stages(Vec<(&'static str, Duration)>);

impl Stages {
    /// Runs a stage. Its time is kept whether it succeeds or not.
    pub(crate) fn run<T>(
        &mut self,
        name: &'static str,
        stage: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        println!("==> {name}");
        let start = Instant::now();
        let outcome = stage();
        self.0.push((name, start.elapsed()));
        outcome.map_err(|error| error.context(format!("stage \"{name}\"")))
    }
}

impl fmt::Display for Stages {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, time) in &self.0 {
            writeln!(out, "{name:<20}{:>8.1} s", time.as_secs_f64())?;
        }
        let total: Duration = self.0.iter().map(|(_, time)| *time).sum();
        write!(out, "{:<20}{:>8.1} s", "total", total.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_stage_is_named_and_timed() {
        let mut stages = Stages::default();
        assert_eq!(stages.run("one", || Ok(1)).unwrap(), 1);
        let error = stages.run("two", || -> anyhow::Result<()> { anyhow::bail!("no") }).unwrap_err();
        assert_eq!(format!("{error:#}"), "stage \"two\": no");
        let table = stages.to_string();
        let names: Vec<_> = table.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(names, ["one", "two", "total"]);
    }
}
