//! Groups of one sandbox.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{CgroupController, CgroupParents, write};

/// Attempts to remove a group whose processes were killed, and the time between two.
const REMOVAL_ATTEMPTS: u32 = 40;
const REMOVAL_INTERVAL: Duration = Duration::from_millis(5);

/// Scheduler period, in microseconds.
const CPU_PERIOD_US: u64 = 100_000;

/// Limits of all processes of a sandbox together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceQuota {
    pub(crate) memory_bytes: u64,
    pub(crate) cpu_millis: u32,
    pub(crate) processes: u32,
}

#[derive(Debug)]
pub(crate) struct CgroupSlot {
    memory: Option<ControllerGroup>,
    cpu: Option<ControllerGroup>,
    pids: Option<ControllerGroup>,
    /// Number of processes killed because of the memory limit before the current lease.
    oom_kills_before: u64,
}

#[derive(Clone, Debug)]
struct ControllerGroup {
    folder: PathBuf,
    is_v2: bool,
}

impl CgroupSlot {
    pub(super) fn make(places: &CgroupParents, name: &str) -> io::Result<Self> {
        let make = |controller| -> io::Result<Option<ControllerGroup>> {
            let Ok(place) = places.get(controller) else { return Ok(None) };
            let folder = place.folder.join(name);
            // In version 2 all controllers share one group.
            match fs::create_dir(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => Ok(Some(ControllerGroup { folder, is_v2: place.is_v2 })),
            }
        };
        let mut slot = Self { memory: None, cpu: None, pids: None, oom_kills_before: 0 };
        slot.memory = make(CgroupController::Memory)?;
        slot.cpu = make(CgroupController::Cpu)?;
        slot.pids = make(CgroupController::Pids)?;
        Ok(slot)
    }

    fn folders(&self) -> Vec<&Path> {
        let groups = [&self.memory, &self.cpu, &self.pids].into_iter().flatten();
        let mut folders: Vec<_> = groups.map(|group| &*group.folder).collect();
        folders.dedup();
        folders
    }

    pub(super) fn procs_files(&self) -> Vec<PathBuf> {
        self.folders().iter().map(|folder| folder.join("cgroup.procs")).collect()
    }

    pub(super) fn limit(&mut self, quota: &ResourceQuota) -> io::Result<()> {
        if let Some(ControllerGroup { folder, is_v2: unified }) = &self.memory {
            limit_memory(folder, *unified, quota.memory_bytes)?;
        }
        if let Some(ControllerGroup { folder, is_v2: unified }) = &self.cpu {
            limit_cpu(folder, *unified, quota.cpu_millis)?;
        }
        if let Some(ControllerGroup { folder, .. }) = &self.pids {
            // The two processes above the program count, too.
            write(&folder.join("pids.max"), (u64::from(quota.processes) + 2).to_string())?;
        }
        self.oom_kills_before = self.oom_kills();
        Ok(())
    }

    /// Number of processes killed because of the memory limit so far.
    fn oom_kills(&self) -> u64 {
        let Some(ControllerGroup { folder, is_v2: unified }) = &self.memory else { return 0 };
        let file = if *unified { "memory.events" } else { "memory.oom_control" };
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
    }

    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.oom_kills() > self.oom_kills_before
    }

    /// Memory in use, including kernel memory. Excludes inactive file cache, which the kernel frees when needed and
    /// which may belong to a previous sandbox.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        let ControllerGroup { folder, is_v2: unified } = self.memory.as_ref()?;
        let (file, cache) = if *unified {
            ("memory.current", "inactive_file ")
        } else {
            ("memory.usage_in_bytes", "total_inactive_file ")
        };
        let used: u64 = fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()?;
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let cache = stat.lines().find_map(|line| line.strip_prefix(cache)?.parse().ok());
        Some(used.saturating_sub(cache.unwrap_or_default()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.folders().iter().all(|folder| members(folder).is_empty())
    }

    /// Kills all processes in the slot, including those forked meanwhile; they disappear a moment later.
    pub(crate) fn kill(&self) {
        let Some(folder) = self.folders().first().copied() else { return };
        kill_all(folder);
    }
}

impl Drop for CgroupSlot {
    fn drop(&mut self) {
        for folder in self.folders() {
            remove_group(folder);
        }
    }
}

fn limit_memory(folder: &Path, is_v2: bool, bytes: u64) -> io::Result<()> {
    let set = |file: &str, value: &str| write(&folder.join(file), value);
    let bytes = bytes.to_string();
    if is_v2 {
        set("memory.max", &bytes)?;
        // Absent if the kernel does not support swap.
        let _no_swap = set("memory.swap.max", "0");
        return set("memory.oom.group", "1");
    }
    // The limit of memory and swap must not be below that of memory, so the order depends on the previous limits.
    let _absent = set("memory.memsw.limit_in_bytes", "-1");
    set("memory.limit_in_bytes", &bytes)?;
    let _absent = set("memory.memsw.limit_in_bytes", &bytes);
    Ok(())
}

fn limit_cpu(folder: &Path, is_v2: bool, millis: u32) -> io::Result<()> {
    let quota = u64::from(millis) * CPU_PERIOD_US / 1000;
    if is_v2 {
        return write(&folder.join("cpu.max"), format!("{quota} {CPU_PERIOD_US}"));
    }
    write(&folder.join("cpu.cfs_period_us"), CPU_PERIOD_US.to_string())?;
    write(&folder.join("cpu.cfs_quota_us"), quota.to_string())
}

fn members(folder: &Path) -> Vec<Pid> {
    let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    list.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

fn kill_all(folder: &Path) {
    // Version 2 kills all processes at once; version 1 lacks this file.
    if write(&folder.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    // Killed processes stay in the list for a moment: only new ones require another pass.
    let mut signalled = Vec::new();
    loop {
        let new: Vec<_> = members(folder).into_iter().filter(|pid| !signalled.contains(pid)).collect();
        if new.is_empty() {
            return;
        }
        for pid in &new {
            let _gone = kill_process(*pid, Signal::KILL);
        }
        signalled.extend(new);
    }
}

/// Kills the processes in a group and removes it. A later gateway removes a group that is still busy.
pub(super) fn remove_group(folder: &Path) {
    for _ in 0..REMOVAL_ATTEMPTS {
        kill_all(folder);
        if fs::remove_dir(folder).is_ok() || !folder.exists() {
            return;
        }
        std::thread::sleep(REMOVAL_INTERVAL);
    }
}
