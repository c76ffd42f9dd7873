//! CPU time and memory of a process and its descendants, as reported by the kernel.
//!
//! A process that ends while it is read counts as nothing; the missing responses of a crashed target are noticed
//! anyway.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;

/// CPU time that a process and its descendants have used.
///
/// The sum over living threads, in nanoseconds; `utime` and `stime` include ended threads, but only in steps of 10
/// ms. The threads of the measured servers live as long as their process.
pub fn cpu_time(pid: u32) -> Duration {
    cpu_time_of(&process_tree(pid))
}

/// CPU time that these processes have used.
pub fn cpu_time_of(pids: &[u32]) -> Duration {
    pids.iter().copied().flat_map(threads).map(|task| thread_cpu_time(&task)).sum()
}

/// CPU time of a process and its descendants, including ended ones that were waited for, in steps of 10 ms.
pub fn cpu_time_with_ended_children(pid: u32) -> Duration {
    let ticks: u64 = process_tree(pid).into_iter().filter_map(ticks).sum();
    Duration::from_secs(ticks) / u32::try_from(clock_ticks_per_second()).unwrap_or(100)
}

/// CPU time of a process in user space and in the kernel, with that of its ended children, in clock ticks.
fn ticks(pid: u32) -> Option<u64> {
    let stat = read(&format!("/proc/{pid}/stat"));
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split(' ').skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum())
}

/// Memory of each child process whose command line is included, with its own descendants, in KiB. A shared page
/// counts in proportion for each process.
pub fn child_memory_shares(pid: u32, is_included: impl Fn(&str) -> bool) -> Vec<u64> {
    let children = process_tree(pid).into_iter().filter(|child| parent(*child) == Some(pid));
    let included = children.filter(|child| is_included(&read(&format!("/proc/{child}/cmdline"))));
    let share = |pid: u32| kibibytes(&read(&format!("/proc/{pid}/smaps_rollup")), "Pss:");
    included.map(|child| process_tree(child).into_iter().map(share).sum()).collect()
}

/// Memory of a process and its descendants, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Resident memory.
    pub resident: u64,
    /// Peak resident memory; for several processes, the sum of their peaks.
    pub peak: u64,
}

/// Reads the memory of a process and its descendants. Shared pages count for each process.
pub fn memory(pid: u32) -> ProcessMemory {
    let pids = process_tree(pid);
    let statuses: Vec<String> = pids.iter().map(|pid| read(&format!("/proc/{pid}/status"))).collect();
    let sum = |field| statuses.iter().map(|status| kibibytes(status, field)).sum();
    ProcessMemory { resident: sum("VmRSS:"), peak: sum("VmHWM:") }
}

/// Reads the memory of a process without the pages of files: how much of its program is resident depends on the code that
/// has run. The peak is the peak of all pages without the pages of files that are resident now.
pub fn anonymous_memory(pid: u32) -> ProcessMemory {
    anonymous_of(&read(&format!("/proc/{pid}/status")))
}

fn anonymous_of(status: &str) -> ProcessMemory {
    let files = kibibytes(status, "RssFile:") + kibibytes(status, "RssShmem:");
    ProcessMemory {
        resident: kibibytes(status, "RssAnon:"),
        peak: kibibytes(status, "VmHWM:").saturating_sub(files),
    }
}

/// The process and all its descendants, found through their parents, as not every kernel lists the children of a task.
fn process_tree(root: u32) -> Vec<u32> {
    let family: Vec<(u32, u32)> =
        numeric_entries("/proc").filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut pids = vec![root];
    let mut next = 0;
    while let Some(&pid) = pids.get(next) {
        pids.extend(family.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| *child));
        next += 1;
    }
    pids
}

/// The parent of a process. Fields are counted from the end of the command's name, which may contain anything.
fn parent(pid: u32) -> Option<u32> {
    let stat = read(&format!("/proc/{pid}/stat"));
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

fn threads(pid: u32) -> impl Iterator<Item = String> {
    numeric_entries(format!("/proc/{pid}/task"))
        .map(move |thread| format!("/proc/{pid}/task/{thread}/schedstat"))
}

/// CPU time of a thread: the first of its scheduler statistics, in nanoseconds.
fn thread_cpu_time(schedstat: &str) -> Duration {
    let line = read(schedstat);
    Duration::from_nanos(line.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or_default())
}

fn kibibytes(status: &str, field: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}

/// The processes whose command line contains this text.
pub fn pids_with_command(text: &str) -> Vec<u32> {
    let is_named = |pid: &u32| read(&format!("/proc/{pid}/cmdline")).contains(text);
    numeric_entries("/proc").filter(is_named).collect()
}

fn numeric_entries(folder: impl AsRef<Path>) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn read(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_uses_cpu_and_memory() {
        let started = std::time::Instant::now();
        while started.elapsed() < Duration::from_millis(5) {}
        let memory = memory(std::process::id());
        assert!(cpu_time(std::process::id()) >= Duration::from_millis(1));
        assert!(
            memory.resident > 100 && memory.peak >= memory.resident,
            "{} {}",
            memory.resident,
            memory.peak
        );
    }

    #[test]
    fn status_field_is_parsed_as_kibibytes() {
        assert_eq!(kibibytes("Name:\tx\nVmRSS:\t    1628 kB\n", "VmRSS:"), 1628);
        assert_eq!(kibibytes("Name:\tx\n", "VmRSS:"), 0);
    }

    #[test]
    fn pages_of_files_are_not_anonymous_memory() {
        let status =
            "VmHWM:\t 900 kB\nVmRSS:\t 700 kB\nRssAnon:\t 300 kB\nRssFile:\t 390 kB\nRssShmem:\t 10 kB\n";
        assert_eq!(super::anonymous_of(status), super::ProcessMemory { resident: 300, peak: 500 });
    }
}
