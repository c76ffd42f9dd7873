//! Fuzzing: readers of what comes from outside, with input that is changed until it reaches code that none has reached.
//!
//! libFuzzer wants to be told which code runs. The pass of LLVM that does this is an option of the stable compiler;
//! what only the unstable one has are the sanitizers, which look for what safe Rust does not do. Everything is built
//! for a target that is named, so that build scripts stay as they are.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::process;

/// What carries messages: these run in the test command.
const CODECS: [&str; 3] = ["message", "sse", "headers"];

/// As `cargo fuzz` sets them, without a sanitizer.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// An input that takes longer is a finding.
const SLOWEST: Duration = Duration::from_secs(10);

/// What this command is told.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which targets run, of `fuzz/fuzz_targets`; those of the wire where none is named
    targets: Vec<String>,
    /// How long each of them runs
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

/// Builds all targets, and runs those that were named.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    build()?;
    let named = args.targets.iter().map(String::as_str);
    let targets = if args.targets.is_empty() { CODECS.to_vec() } else { named.collect() };
    targets.into_iter().try_for_each(|target| fuzz(target, args.seconds))
}

/// Builds all targets, and runs those of the wire for a minute.
pub(crate) fn check() -> anyhow::Result<()> {
    run(&Args { targets: Vec::new(), seconds: 20 })
}

/// Other flags would make the workspace's own build anew: this one has a folder of its own.
fn folder() -> PathBuf {
    crate::root().join("target/fuzz")
}

fn build() -> anyhow::Result<()> {
    let mut build = process::cargo();
    build.args(["build", "--quiet", "--bins", "--manifest-path", "fuzz/Cargo.toml", "--target", TARGET]);
    process::run(build.arg("--target-dir").arg(folder()).env("RUSTFLAGS", FLAGS))
}

/// What was found interesting in earlier runs is where this one begins.
fn fuzz(target: &str, seconds: u64) -> anyhow::Result<()> {
    let program = folder().join(TARGET).join("debug").join(target);
    ensure!(program.exists(), "no fuzz target is called {target}");
    let (corpus, found) = (folder().join("corpus").join(target), folder().join("found"));
    for folder in [&corpus, &found] {
        std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    let mut fuzz = Command::new(program);
    fuzz.arg(format!("-max_total_time={seconds}")).arg(format!("-timeout={}", SLOWEST.as_secs()));
    fuzz.arg(format!("-artifact_prefix={}/{target}-", found.display())).arg("-verbosity=0").arg(corpus);
    let output = fuzz.output().with_context(|| format!("start {target}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{target}: {}\n{said}", output.status);
    println!("{target}: nothing found in {seconds} s");
    Ok(())
}
