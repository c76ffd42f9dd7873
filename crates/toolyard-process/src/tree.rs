//! What the system knows of the processes below another.

use std::fs;

use rustix::process::Pid;

/// All descendants of a process, parents before children. Where the system does not tell (a kernel without
/// `CONFIG_PROC_CHILDREN`, which all distributions have), there are none.
///
/// What forks or ends meanwhile may be missed: whoever wants all of them asks again.
pub(crate) fn descendants(of: Pid) -> Vec<Pid> {
    let mut found = children(of);
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        for child in children(parent) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found
}

/// Each thread has the children that it started itself.
fn children(of: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", of.as_raw_pid())) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = |list: String| list.split_whitespace().filter_map(pid).collect::<Vec<_>>();
    lists.flat_map(pids).collect()
}

pub(crate) fn pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok().filter(|pid| *pid > 0)?)
}

/// Memory that these processes have to themselves and that is in use now, in bytes; `None` where the system does
/// not tell.
pub(crate) fn memory_of(processes: &[Pid]) -> Option<u64> {
    processes.iter().filter_map(|pid| memory(*pid)).reduce(|sum, bytes| sum + bytes)
}

fn memory(pid: Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}
