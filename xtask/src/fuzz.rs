//! Fuzzing: parsers of external input, with input that is mutated to reach new code.
//!
//! libFuzzer needs coverage instrumentation, an option of LLVM in the stable compiler. Sanitizers would need the
//! nightly compiler, and detect faults that safe Rust does not have. The build names its target, so that build
//! scripts are not instrumented.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use xtask_support::process;

/// Targets that `cargo xtask test --rest` runs: parsers of messages, resource scopes, package lists and schemas.
const DEFAULT_TARGETS: [&str; 6] = ["message", "sse", "headers", "scopes", "requirements", "schema"];

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
    /// Targets of `fuzz/fuzz_targets` to run [default: those of `cargo xtask test --rest`]
    targets: Vec<String>,
    /// Run each of them for this many seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

/// Builds all targets, and runs the selected ones.
pub(crate) fn run(args: &FuzzArgs) -> anyhow::Result<()> {
    build()?;
    let requested = args.targets.iter().map(String::as_str);
    let targets = if args.targets.is_empty() { DEFAULT_TARGETS.to_vec() } else { requested.collect() };
    targets.into_iter().try_for_each(|target| fuzz(target, args.seconds))
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

/// Runs a target, starting with the corpus of earlier runs.
fn fuzz(target: &str, seconds: u64) -> anyhow::Result<()> {
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
    println!("{target}: no findings in {seconds} s");
    Ok(())
}
