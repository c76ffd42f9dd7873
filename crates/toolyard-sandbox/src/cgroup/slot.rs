//! The groups of one cell.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{Controller, Places, write};

/// How often a slot is looked at whose processes were killed, and how long between.
const LOOKS: u32 = 40;
const BETWEEN: Duration = Duration::from_millis(5);

/// A period of the scheduler, in microseconds, of which a group has its share.
const PERIOD: u64 = 100_000;

/// What all processes of a cell have together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    pub(crate) memory_bytes: u64,
    pub(crate) cpu_millis: u32,
    pub(crate) processes: u32,
}

#[derive(Debug)]
pub(crate) struct Slot {
    memory: Option<Group>,
    cpu: Option<Group>,
    pids: Option<Group>,
    /// How many processes were killed for want of memory before the cell began.
    killed_before: u64,
}

#[derive(Clone, Debug)]
struct Group {
    folder: PathBuf,
    unified: bool,
}

impl Slot {
    pub(super) fn make(places: &Places, name: &str) -> io::Result<Self> {
        let make = |controller| -> io::Result<Option<Group>> {
            let Ok(place) = places.of(controller) else { return Ok(None) };
            let folder = place.folder.join(name);
            // In version 2 it is one group for all controllers.
            match fs::create_dir(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => Ok(Some(Group { folder, unified: place.unified })),
            }
        };
        let mut slot = Self { memory: None, cpu: None, pids: None, killed_before: 0 };
        slot.memory = make(Controller::Memory)?;
        slot.cpu = make(Controller::Cpu)?;
        slot.pids = make(Controller::Pids)?;
        Ok(slot)
    }

    fn folders(&self) -> Vec<&Path> {
        let groups = [&self.memory, &self.cpu, &self.pids].into_iter().flatten();
        let mut folders: Vec<_> = groups.map(|group| &*group.folder).collect();
        folders.dedup();
        folders
    }

    pub(super) fn join(&self) -> Vec<PathBuf> {
        self.folders().iter().map(|folder| folder.join("cgroup.procs")).collect()
    }

    pub(super) fn limit(&mut self, quota: &Quota) -> io::Result<()> {
        if let Some(Group { folder, unified }) = &self.memory {
            limit_memory(folder, *unified, quota.memory_bytes)?;
        }
        if let Some(Group { folder, unified }) = &self.cpu {
            limit_cpu(folder, *unified, quota.cpu_millis)?;
        }
        if let Some(Group { folder, .. }) = &self.pids {
            // The two above the program are counted, too.
            write(&folder.join("pids.max"), (u64::from(quota.processes) + 2).to_string())?;
        }
        self.killed_before = self.killed();
        Ok(())
    }

    /// How many processes were killed for want of memory so far.
    fn killed(&self) -> u64 {
        let Some(Group { folder, unified }) = &self.memory else { return 0 };
        let file = if *unified { "memory.events" } else { "memory.oom_control" };
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or_default()
    }

    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.killed() > self.killed_before
    }

    /// Memory in use now, what the kernel keeps for its processes included. Not so the cache of files that were
    /// read once, which goes when memory is needed, and may be of the cell before.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        let Group { folder, unified } = self.memory.as_ref()?;
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

    /// Kills all that is in it. Who forks meanwhile is found by looking again; what is killed is gone a moment later.
    pub(crate) fn kill(&self) {
        let Some(folder) = self.folders().first().copied() else { return };
        kill_all(folder);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        for folder in self.folders() {
            clear(folder);
        }
    }
}

fn limit_memory(folder: &Path, unified: bool, bytes: u64) -> io::Result<()> {
    let set = |file: &str, value: &str| write(&folder.join(file), value);
    let bytes = bytes.to_string();
    if unified {
        set("memory.max", &bytes)?;
        // Absent where the kernel does not swap.
        let _no_swap = set("memory.swap.max", "0");
        return set("memory.oom.group", "1");
    }
    // Memory and swap together may not be less than memory, so that the order depends on what was before.
    let _absent = set("memory.memsw.limit_in_bytes", "-1");
    set("memory.limit_in_bytes", &bytes)?;
    let _absent = set("memory.memsw.limit_in_bytes", &bytes);
    Ok(())
}

fn limit_cpu(folder: &Path, unified: bool, millis: u32) -> io::Result<()> {
    let quota = u64::from(millis) * PERIOD / 1000;
    if unified {
        return write(&folder.join("cpu.max"), format!("{quota} {PERIOD}"));
    }
    write(&folder.join("cpu.cfs_period_us"), PERIOD.to_string())?;
    write(&folder.join("cpu.cfs_quota_us"), quota.to_string())
}

fn members(folder: &Path) -> Vec<Pid> {
    let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    list.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

fn kill_all(folder: &Path) {
    // Version 2 does it in one; elsewhere there is no such file.
    if write(&folder.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    // Those that are killed stay in the list for a moment: only who is new there is a reason to look again.
    let mut known = Vec::new();
    loop {
        let new: Vec<_> = members(folder).into_iter().filter(|pid| !known.contains(pid)).collect();
        if new.is_empty() {
            return;
        }
        for pid in &new {
            let _gone = kill_process(*pid, Signal::KILL);
        }
        known.extend(new);
    }
}

/// Ends what is in a group, and removes it. One that the system holds on to stays; a later gateway tries again.
pub(super) fn clear(folder: &Path) {
    for _ in 0..LOOKS {
        kill_all(folder);
        if fs::remove_dir(folder).is_ok() || !folder.exists() {
            return;
        }
        std::thread::sleep(BETWEEN);
    }
}
