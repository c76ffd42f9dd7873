//! The descendants of a process, as the system reports them.

use std::fs;

use rustix::process::Pid;

/// All descendants of a process, parents before children. Empty if the system does not report them (a kernel without
/// `CONFIG_PROC_CHILDREN`, which all distributions enable).
///
/// Processes that start or exit meanwhile may be missed: call it again to find all of them.
pub(crate) fn descendants(ancestor: Pid) -> Vec<Pid> {
    let mut processes = children(ancestor);
    let mut next = 0;
    while let Some(&parent) = processes.get(next) {
        for child in children(parent) {
            if !processes.contains(&child) {
                processes.push(child);
            }
        }
        next += 1;
    }
    processes
}

/// The children of a process: each thread has a list of those that it started.
fn children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", parent.as_raw_pid())) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = |list: String| list.split_whitespace().filter_map(pid).collect::<Vec<_>>();
    lists.flat_map(pids).collect()
}

pub(crate) fn pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok().filter(|pid| *pid > 0)?)
}

/// Resident private memory of these processes, in bytes; `None` if the system does not report it.
pub(crate) fn memory_of(processes: &[Pid]) -> Option<u64> {
    processes.iter().filter_map(|pid| memory(*pid)).reduce(|sum, bytes| sum + bytes)
}

fn memory(pid: Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}
