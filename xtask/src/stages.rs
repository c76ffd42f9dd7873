//! The stages of a long command, and the time that each of them took.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;

/// The stages of a run that have ended, in the order of their ends.
pub(crate) struct StageTimes {
    times: Vec<(&'static str, Duration)>,
    total: usize,
    start: Instant,
}

/// A stage that runs beside others, and the text that it prints at its end.
pub(crate) struct ParallelStage<'a> {
    pub name: &'static str,
    pub run: &'a (dyn Fn() -> anyhow::Result<String> + Sync),
}

impl StageTimes {
    /// Returns the stages of a run that will have `total` of them.
    pub(crate) fn new(total: usize) -> Self {
        Self { times: Vec::new(), total, start: Instant::now() }
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
        self.end(name, start);
        outcome.map_err(|error| in_stage(name, error))
    }

    /// Runs stages side by side. All of them run to their end, even if one fails.
    pub(crate) fn run_parallel(&mut self, stages: &[ParallelStage<'_>]) -> anyhow::Result<()> {
        let names: Vec<_> = stages.iter().map(|stage| stage.name).collect();
        let (first, last) = (self.times.len() + 1, self.times.len() + stages.len());
        println!("\n==> {} ({first} to {last} of {})", names.join(", "), self.total);
        let start = Instant::now();
        let ended = Mutex::new((self, Vec::new()));
        std::thread::scope(|scope| {
            for ParallelStage { name, run } in stages {
                let ended = &ended;
                scope.spawn(move || {
                    let outcome = run();
                    // Its lines stay together.
                    let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                    let (times, errors) = &mut *ended;
                    match outcome {
                        Ok(text) => println!("{text}"),
                        Err(error) => errors.push(format!("{:#}", in_stage(name, error))),
                    }
                    times.end(name, start);
                });
            }
        });
        let (_, errors) = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        ensure!(errors.is_empty(), "{}", errors.join("\n"));
        Ok(())
    }

    fn end(&mut self, name: &'static str, start: Instant) {
        let time = start.elapsed();
        println!("==> {name} took {:.1} s", time.as_secs_f64());
        self.times.push((name, time));
    }
}

fn in_stage(name: &str, error: anyhow::Error) -> anyhow::Error {
    error.context(format!("stage \"{name}\""))
}

impl fmt::Display for StageTimes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, time) in &self.times {
            writeln!(out, "{name:<30}{:>8.1} s", time.as_secs_f64())?;
        }
        // Not their sum: some of them ran side by side.
        write!(out, "{:<30}{:>8.1} s", "total", self.start.elapsed().as_secs_f64())
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
    #[test]
    fn parallel_stages_all_end_before_a_failure_is_reported() {
        let mut stages = StageTimes::new(3);
        let failing = |word: &'static str| move || -> anyhow::Result<String> { anyhow::bail!(word) };
        let error = stages
            .run_parallel(&[
                ParallelStage { name: "one", run: &failing("no") },
                ParallelStage { name: "two", run: &|| Ok("yes".to_owned()) },
                ParallelStage { name: "three", run: &failing("never") },
            ])
            .unwrap_err();
        let mut lines: Vec<_> = error.to_string().lines().map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines, ["stage \"one\": no", "stage \"three\": never"]);
        assert_eq!(stages.to_string().lines().count(), 4);
    }
}
