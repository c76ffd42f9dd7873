//! Counts of a program that runs under valgrind's callgrind: instructions in user space, and calls of the allocator.
//!
//! Functions of the C library have names in every program, so that calls of its allocator are counted in a program
//! without symbols, too.

#![expect(clippy::disallowed_methods, reason = "the bench asks valgrind and the compiler")]

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::process::Signal;
use xtask_support::measure;
use xtask_support::process::{LaunchedProcess, START_LIMIT};
use xtask_support::system::{self, SystemPackage};

const VALGRIND: SystemPackage = ("command -v valgrind && command -v vgdb", &["valgrind"]);

/// Time in which a program under valgrind ends: it is slower by a factor of about fifty, and writes its counts last.
const END_LIMIT: Duration = Duration::from_secs(60);

/// Counts of a program between two points in time, by thread.
pub(super) struct ThreadCounts(Vec<ProgramCounts>);

/// Counts of a thread, or of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ProgramCounts {
    /// Instructions in user space.
    pub instructions: u64,
    /// Calls that return new memory.
    pub allocations: u64,
    /// Calls that change the size of memory.
    pub reallocations: u64,
    /// Calls that free memory.
    pub frees: u64,
}

/// The allocator's function that a name stands for.
#[derive(Clone, Copy)]
enum AllocatorCall {
    Allocate,
    Reallocate,
    Free,
}

/// The counts of a program, one file for each point in time at which they were written.
pub(super) struct CallgrindFiles {
    path: PathBuf,
    written: usize,
}

impl CallgrindFiles {
    /// Files whose names begin with `path`. Installs valgrind.
    pub(super) fn new(path: PathBuf) -> anyhow::Result<CallgrindFiles> {
        system::install_packages(&[VALGRIND])?;
        Ok(CallgrindFiles { path, written: 0 })
    }

    /// The words in front of the command of a program.
    pub(super) fn runner(&self) -> Vec<String> {
        let mut words = valgrind("callgrind", &format!("--callgrind-out-file={}", self.path.display()));
        words.push("--separate-threads=yes".to_owned());
        words
    }

    /// Returns the counts since the call before, or since the start.
    pub(super) fn take(&mut self, program: &LaunchedProcess) -> anyhow::Result<ThreadCounts> {
        self.written += 1;
        let mut vgdb = Command::new("vgdb");
        vgdb.arg(format!("--pid={}", program.pid())).args(["--wait=30", "dump"]);
        let output = vgdb.stdin(std::process::Stdio::null()).output().context("start vgdb")?;
        let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        ensure!(output.status.success(), "vgdb cannot ask for the counts: {}", said());
        let threads =
            self.latest()?.iter().map(|file| ProgramCounts::read(file)).collect::<anyhow::Result<_>>();
        threads.map(ThreadCounts).with_context(said)
    }

    /// The files that were written last. valgrind adds the number of the request and that of the thread to the name.
    fn latest(&self) -> anyhow::Result<Vec<PathBuf>> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!("{name}.{}-", self.written);
        let folder = std::fs::read_dir(self.path.parent().context("no folder of the counts")?)?;
        let files = folder.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
        let is_latest =
            |file: &PathBuf| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix));
        let files: Vec<_> = files.into_iter().filter(is_latest).collect();
        ensure!(!files.is_empty(), "valgrind has written no counts");
        Ok(files)
    }
}

impl ThreadCounts {
    /// The counts of all threads.
    pub(super) fn total(&self) -> ProgramCounts {
        let sum = |count: fn(&ProgramCounts) -> u64| self.0.iter().map(count).sum();
        ProgramCounts {
            instructions: sum(|counts| counts.instructions),
            allocations: sum(|counts| counts.allocations),
            reallocations: sum(|counts| counts.reallocations),
            frees: sum(|counts| counts.frees),
        }
    }

    /// The counts of the thread that has most to do: the one that serves the calls. Timers and the writers of records
    /// and spans have others.
    pub(super) fn busiest(&self) -> ProgramCounts {
        self.0.iter().copied().max_by_key(|counts| counts.instructions).unwrap_or_default()
    }
}

/// Waits until a program under valgrind has finished its deferred work: writing records, sending spans.
pub(super) async fn await_idle(program: &LaunchedProcess) -> anyhow::Result<()> {
    /// Longer than the interval in which the gateway sends batches.
    const QUIET_TIME: Duration = Duration::from_millis(1200);
    /// CPU time of the timers of an idle gateway in that time, under valgrind.
    const IDLE_CPU_TIME: Duration = Duration::from_millis(100);
    const LIMIT: Duration = Duration::from_secs(60);
    let started = Instant::now();
    loop {
        let before = measure::cpu_time(program.pid());
        tokio::time::sleep(QUIET_TIME).await;
        let used = measure::cpu_time(program.pid()).saturating_sub(before);
        if used < IDLE_CPU_TIME {
            return Ok(());
        }
        ensure!(started.elapsed() < LIMIT, "still busy {LIMIT:?} after the last call");
    }
}

/// Ends a program under valgrind. One that is dropped is killed after seconds, while it still writes its counts.
pub(super) fn end(program: &mut LaunchedProcess) -> anyhow::Result<()> {
    let status = program.terminate_with(Signal::TERM, END_LIMIT);
    status.map(|_| ()).with_context(|| format!("the program has not ended within {END_LIMIT:?}"))
}

impl ProgramCounts {
    fn read(file: &Path) -> anyhow::Result<ProgramCounts> {
        let text = std::fs::read(file).with_context(|| format!("no counts in {}", file.display()))?;
        ProgramCounts::parse(&String::from_utf8_lossy(&text))
    }

    /// Parses the format of callgrind: a name is given once, with a number that stands for it from then on.
    fn parse(text: &str) -> anyhow::Result<ProgramCounts> {
        let mut counts = ProgramCounts::default();
        let mut total = None;
        let mut names: HashMap<&str, AllocatorCall> = HashMap::new();
        let mut callee = None;
        for line in text.lines() {
            if let Some(instructions) = line.strip_prefix("totals: ") {
                total = instructions.trim().parse().ok();
            } else if let Some(function) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
                let (number, name) = function.split_once(' ').unwrap_or((function, ""));
                if let Some(call) = AllocatorCall::named(name) {
                    names.insert(number, call);
                }
                if line.starts_with('c') {
                    callee = names.get(number).copied();
                }
            } else if let Some(calls) = line.strip_prefix("calls=") {
                let number = calls.split(' ').next().and_then(|number| number.parse::<u64>().ok());
                counts.add(callee.take(), number.context("invalid number of calls")?);
            }
        }
        counts.instructions = total.context("no totals in the counts of valgrind")?;
        Ok(counts)
    }

    fn add(&mut self, call: Option<AllocatorCall>, calls: u64) {
        match call {
            Some(AllocatorCall::Allocate) => self.allocations += calls,
            Some(AllocatorCall::Reallocate) => self.reallocations += calls,
            Some(AllocatorCall::Free) => self.frees += calls,
            None => {}
        }
    }
}

impl AllocatorCall {
    /// Functions of the C library, and of mimalloc in a program with symbols.
    fn named(name: &str) -> Option<AllocatorCall> {
        // valgrind marks levels of recursion.
        let name = name.split('\'').next().unwrap_or_default();
        match name.strip_prefix("__libc_").unwrap_or(name) {
            "malloc" | "calloc" | "memalign" | "posix_memalign" | "aligned_alloc" => {
                Some(AllocatorCall::Allocate)
            }
            "mi_malloc" | "mi_zalloc" | "mi_malloc_aligned" | "mi_zalloc_aligned" => {
                Some(AllocatorCall::Allocate)
            }
            "realloc" | "mi_realloc" | "mi_realloc_aligned" => Some(AllocatorCall::Reallocate),
            "free" | "cfree" | "mi_free" => Some(AllocatorCall::Free),
            _ => None,
        }
    }
}

/// Bytes that a program allocated from its start to its end, by valgrind's dhat.
pub(super) struct DhatFile(PathBuf);

impl DhatFile {
    pub(super) fn new(path: PathBuf) -> anyhow::Result<DhatFile> {
        system::install_packages(&[VALGRIND])?;
        Ok(DhatFile(path))
    }

    /// The words in front of the command of a program.
    pub(super) fn runner(&self) -> Vec<String> {
        valgrind("dhat", &format!("--dhat-out-file={}", self.0.display()))
    }

    /// Reads the total of a program that has ended.
    pub(super) fn total_bytes(&self) -> anyhow::Result<u64> {
        let text = std::fs::read(&self.0).context("no counts of dhat")?;
        sum_of_points(&serde_json::from_slice(&text).context("incomplete counts of dhat")?)
    }
}

/// Sums the bytes of all places that allocate.
fn sum_of_points(counts: &serde_json::Value) -> anyhow::Result<u64> {
    let points = counts["pps"].as_array().context("no places that allocate")?;
    Ok(points.iter().filter_map(|point| point["tb"].as_u64()).sum())
}

/// valgrind runs one thread at a time. Without a fair order, a busy thread can keep all others from running for seconds.
fn valgrind(tool: &str, file: &str) -> Vec<String> {
    let tool = format!("--tool={tool}");
    ["valgrind", "--quiet", "--fair-sched=try", &tool, file].map(str::to_owned).into()
}

/// Returns the time in which a program starts: under valgrind it is slower by a factor of about fifty.
pub(super) fn start_limit(runner: &[&OsStr]) -> Duration {
    if runner.is_empty() { START_LIMIT } else { 10 * START_LIMIT }
}

/// The words of a runner as arguments.
pub(super) fn words(runner: &[String]) -> Vec<&OsStr> {
    runner.iter().map(OsStr::new).collect()
}

/// Returns the version of the compiler, such as `1.95.0`.
pub(super) fn rustc_version() -> anyhow::Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut rustc = Command::new(rustc);
    let output = rustc.current_dir(xtask_support::root()).arg("--version").output().context("start rustc")?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "rustc --version has failed");
    Ok(text.split(' ').nth(1).context("unexpected version of rustc")?.to_owned())
}

/// Returns the date in UTC, such as `2026-11-23`.
pub(super) fn today() -> anyhow::Result<String> {
    let output = Command::new("date").args(["-u", "+%F"]).output().context("start date")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_the_allocator_are_summed() {
        let file = "events: Ir\n\nfn=(1) 0x00001\n0 10\ncfn=(2) malloc\ncalls=3 0 \n0 300\ncfn=(3) free\ncalls=2 0 \n0 9\n\n\
                    fn=(2)\n0 5\ncfn=(4) _int_malloc\ncalls=3 0 \n0 3\n\nfn=(5) main\ncfn=(2)\ncalls=4 +3 \n0 3\n\
                    cfn=(6) realloc'2\ncalls=1 0\n0 1\ntotals: 4711\n";
        let expected = ProgramCounts { instructions: 4711, allocations: 7, reallocations: 1, frees: 2 };
        assert_eq!(ProgramCounts::parse(file).unwrap(), expected);
    }

    #[test]
    fn threads_are_summed_and_the_busiest_is_found() {
        let thread =
            |instructions| ProgramCounts { instructions, allocations: 1, ..ProgramCounts::default() };
        let threads = ThreadCounts(vec![thread(5), thread(40), thread(7)]);
        assert_eq!((threads.total().instructions, threads.total().allocations), (52, 3));
        assert_eq!(threads.busiest(), thread(40));
    }

    #[test]
    fn counts_that_were_cut_off_are_an_error() {
        let error = ProgramCounts::parse("fn=(1) main\n0 10\n").unwrap_err();
        assert_eq!(error.to_string(), "no totals in the counts of valgrind");
    }

    #[test]
    fn bytes_of_all_places_are_summed() {
        let counts = serde_json::json!({"pps": [{"tb": 40, "tbk": 1}, {"tb": 2, "tbk": 1}]});
        assert_eq!(sum_of_points(&counts).unwrap(), 42);
    }
}
