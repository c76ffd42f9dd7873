//! What the kernel says about a process: CPU time and memory, of it and its descendants together.
//!
//! A process that vanishes while it is read counts as nothing: a target that died is noticed by its missing replies.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;

/// The CPU time that a process and its descendants have used until now.
///
/// It is the sum over the threads that live now, in nanoseconds; `utime` and `stime` would count the dead as well but
/// only in steps of 10 ms. The threads of the servers measured here live as long as their process.
pub(crate) fn cpu_time(pid: u32) -> Duration {
    cpu_time_of(&tree(pid))
}

/// The CPU time that these processes have used until now.
pub(crate) fn cpu_time_of(pids: &[u32]) -> Duration {
    pids.iter().copied().flat_map(threads).map(|task| on_cpu(&task)).sum()
}

/// The CPU time that a process and its descendants have used until now, those included that have ended and were waited
/// for. It is known in steps of 10 ms.
pub(crate) fn cpu_time_with_the_ended(pid: u32) -> Duration {
    let ticks: u64 = tree(pid).into_iter().filter_map(ticks).sum();
    Duration::from_secs(ticks) / u32::try_from(clock_ticks_per_second()).unwrap_or(100)
}

/// What a process has used in user space and in the kernel, and what its children have that it waited for.
fn ticks(pid: u32) -> Option<u64> {
    let stat = read(&format!("/proc/{pid}/stat"));
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split(' ').skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum())
}

/// The memory of each child of a process of whose command line `wanted` says so, with that of its own descendants, in KiB.
/// Of a page that several processes share each has a part.
pub(crate) fn shares_of_memory(pid: u32, wanted: impl Fn(&str) -> bool) -> Vec<u64> {
    let children = tree(pid).into_iter().filter(|child| parent(*child) == Some(pid));
    let wanted = children.filter(|child| wanted(&read(&format!("/proc/{child}/cmdline"))));
    let share = |pid: u32| kibibytes(&read(&format!("/proc/{pid}/smaps_rollup")), "Pss:");
    wanted.map(|child| tree(child).into_iter().map(share).sum()).collect()
}

/// The memory of a process and its descendants, in KiB.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    /// Resident now.
    pub resident: u64,
    /// The most that was resident at any time; of several processes, the sum of each one's.
    pub peak: u64,
}

/// Reads how much memory a process and its descendants hold. Pages that they share count for each of them.
pub(crate) fn memory(pid: u32) -> Memory {
    memory_of(&tree(pid))
}

/// Reads how much memory these processes hold.
pub(crate) fn memory_of(pids: &[u32]) -> Memory {
    let statuses: Vec<String> = pids.iter().map(|pid| read(&format!("/proc/{pid}/status"))).collect();
    let sum = |field| statuses.iter().map(|status| kibibytes(status, field)).sum();
    Memory { resident: sum("VmRSS:"), peak: sum("VmHWM:") }
}

/// The process and all its descendants, which are found by their parents: not every kernel lists a task's children.
fn tree(root: u32) -> Vec<u32> {
    let family: Vec<(u32, u32)> = numbers("/proc").filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        found.extend(family.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| *child));
        next += 1;
    }
    found
}

/// The command's name, in parentheses, may hold anything: the fields are counted from behind it.
fn parent(pid: u32) -> Option<u32> {
    let stat = read(&format!("/proc/{pid}/stat"));
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

fn threads(pid: u32) -> impl Iterator<Item = String> {
    numbers(format!("/proc/{pid}/task")).map(move |thread| format!("/proc/{pid}/task/{thread}/schedstat"))
}

/// The first of a thread's scheduler figures: nanoseconds on a CPU.
fn on_cpu(schedstat: &str) -> Duration {
    let line = read(schedstat);
    Duration::from_nanos(line.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or_default())
}

fn kibibytes(status: &str, field: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}

/// The processes whose command line has this text in it.
pub(crate) fn named(text: &str) -> Vec<u32> {
    let is_named = |pid: &u32| read(&format!("/proc/{pid}/cmdline")).contains(text);
    numbers("/proc").filter(is_named).collect()
}

fn numbers(folder: impl AsRef<Path>) -> impl Iterator<Item = u32> {
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
    fn this_process_has_used_cpu_and_memory() {
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(5) {}
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
    fn a_field_of_a_status_is_read_as_kibibytes() {
        assert_eq!(kibibytes("Name:\tx\nVmRSS:\t    1628 kB\n", "VmRSS:"), 1628);
        assert_eq!(kibibytes("Name:\tx\n", "VmRSS:"), 0);
    }
}
