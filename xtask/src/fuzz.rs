//! Fuzzing: parsers of external input, with input that is mutated to reach new code.
//!
//! libFuzzer needs coverage instrumentation, an option of LLVM in the stable compiler. Sanitizers would need the
//! nightly compiler, and detect faults that safe Rust does not have. The build names its target, so that build
//! scripts are not instrumented.

use std::num::NonZero;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use xtask_support::process;

/// Targets that `cargo xtask test --full` runs: parsers of messages, resource scopes, package lists and schemas.
const DEFAULT_TARGETS: [&str; 7] =
    ["message", "sse", "headers", "scopes", "requirements", "schema", "envelope"];

/// The flags of `cargo fuzz`, without a sanitizer.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Maximum time of one input.
const INPUT_TIMEOUT: Duration = Duration::from_secs(10);

/// Arguments of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct FuzzArgs {
    /// Targets of `fuzz/fuzz_targets` to run [default: those of `cargo xtask test --full`]
    targets: Vec<String>,
    /// Run each of them for this many seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

/// Builds all targets, and runs the selected ones, as many at a time as there are processors.
pub(crate) fn run(args: &FuzzArgs) -> anyhow::Result<()> {
    build()?;
    let requested = args.targets.iter().map(String::as_str);
    let targets = if args.targets.is_empty() { DEFAULT_TARGETS.to_vec() } else { requested.collect() };
    let parallel = thread::available_parallelism().map_or(1, NonZero::get);
    run_all(&targets, parallel, |target| fuzz(target, args.seconds))
}

/// Runs all targets, so many at a time, and prints each result. All of them run to their end, even if one has findings.
fn run_all(
    targets: &[&str],
    parallel: usize,
    fuzz: impl Fn(&str) -> anyhow::Result<String> + Sync,
) -> anyhow::Result<()> {
    let (waiting, findings) = (Mutex::new(targets.iter()), Mutex::new(Vec::new()));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run_next = || {
        while let Some(target) = next() {
            match fuzz(target) {
                Ok(line) => println!("{line}"),
                Err(error) => {
                    println!("{error:#}");
                    findings.lock().unwrap_or_else(PoisonError::into_inner).push(*target);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..parallel.min(targets.len()) {
            scope.spawn(run_next);
        }
    });
    let mut findings = findings.into_inner().unwrap_or_else(PoisonError::into_inner);
    findings.sort_unstable();
    ensure!(findings.is_empty(), "findings or failures in {}", findings.join(", "));
    Ok(())
}

/// Builds all targets, and runs the default ones for 20 seconds each.
pub(crate) fn check() -> anyhow::Result<()> {
    run(&FuzzArgs { targets: Vec::new(), seconds: 20 })
}

/// The target folder. A folder of its own, as other flags would rebuild the workspace.
fn target_folder() -> PathBuf {
    xtask_support::root().join("target/fuzz")
}

fn build() -> anyhow::Result<()> {
    let mut build = process::cargo();
    build.args(["build", "--quiet", "--bins", "--manifest-path", "fuzz/Cargo.toml", "--target", TARGET]);
    process::run(build.arg("--target-dir").arg(target_folder()).env("RUSTFLAGS", FLAGS))
}

/// Runs a target, starting with the corpus of earlier runs, and returns a line about it.
fn fuzz(target: &str, seconds: u64) -> anyhow::Result<String> {
    let program = target_folder().join(TARGET).join("debug").join(target);
    ensure!(program.exists(), "no fuzz target {target}");
    let (corpus, artifacts) = (target_folder().join("corpus").join(target), target_folder().join("found"));
    for folder in [&corpus, &artifacts] {
        std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    let mut fuzz = Command::new(program);
    fuzz.arg(format!("-max_total_time={seconds}")).arg(format!("-timeout={}", INPUT_TIMEOUT.as_secs()));
    fuzz.arg(format!("-artifact_prefix={}/{target}-", artifacts.display())).arg("-verbosity=0").arg(corpus);
    let output = fuzz.output().with_context(|| format!("start {target}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{target}: {}\n{log}", output.status);
    Ok(format!("{target}: no findings in {seconds} s"))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn targets_with_findings_are_named_after_all_have_run() {
        let ran = Mutex::new(Vec::new());
        // Two targets wait for each other: they run at the same time.
        let pair = Barrier::new(2);
        let fuzz = |target: &str| {
            pair.wait();
            ran.lock().unwrap().push(target.to_owned());
            ensure!(!target.starts_with("bad"), "{target}: crash");
            Ok(format!("{target}: no findings"))
        };
        let error = run_all(&["bad-2", "good", "bad-1", "other"], 2, fuzz).unwrap_err();
        assert_eq!(error.to_string(), "findings or failures in bad-1, bad-2");
        assert_eq!(ran.into_inner().unwrap().len(), 4);
        assert!(run_all(&["one"], 2, |_| Ok(String::new())).is_ok());
    }
}
