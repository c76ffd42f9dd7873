//! Cgroups: limits of all processes of a sandbox together. Supports both versions, and machines that have some
//! controllers in one and some in the other.
//!
//! Creating and joining a new group takes tens of milliseconds, so groups are reused: a [`CgroupSlot`] has the groups
//! of one sandbox, and [`CgroupPool`] leases slots repeatedly. Groups are children of the gateway's own group and are
//! named after the gateway's process, so that a later gateway can recognise those of a dead one.

mod parents;
mod slot;

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use parents::{CgroupParents, CgroupSources};
pub(crate) use slot::{CgroupSlot, ResourceQuota};

use crate::IsolationLayer;

/// A controller of cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CgroupController {
    Memory,
    Cpu,
    Pids,
}

impl CgroupController {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Cpu, Self::Pids];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Pids => "pids",
        }
    }

    pub(crate) const fn layer(self) -> IsolationLayer {
        match self {
            Self::Memory => IsolationLayer::Memory,
            Self::Cpu => IsolationLayer::Cpu,
            Self::Pids => IsolationLayer::Processes,
        }
    }
}

/// The pool of slots. Idle slots are removed when it is dropped.
#[derive(Debug)]
pub(crate) struct CgroupPool {
    parents: CgroupParents,
    owner: String,
    idle: Mutex<IdleSlots>,
}

#[derive(Debug, Default)]
struct IdleSlots {
    slots: Vec<CgroupSlot>,
    created: u64,
}

/// A leased slot. Dropping it returns the slot.
#[derive(Debug)]
pub(crate) struct SlotLease {
    slot: Option<CgroupSlot>,
    pool: Arc<CgroupPool>,
}

impl CgroupPool {
    pub(crate) fn new(parents: CgroupParents) -> Self {
        let owner = format!("{}{}", parents::PREFIX, parents::gateway_id());
        Self { parents, owner, idle: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, IdleSlots> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leases an empty slot with these limits.
    pub(crate) fn acquire(self: &Arc<Self>, quota: &ResourceQuota) -> io::Result<SlotLease> {
        let free_slot = {
            let mut idle = self.lock();
            let free = idle.slots.iter().position(CgroupSlot::is_empty);
            free.map(|index| idle.slots.swap_remove(index))
        };
        let slot = match free_slot {
            Some(slot) => slot,
            None => self.make()?,
        };
        let mut lease = SlotLease { slot: Some(slot), pool: self.clone() };
        if let Some(slot) = &mut lease.slot {
            slot.limit(quota)?;
        }
        Ok(lease)
    }

    fn make(&self) -> io::Result<CgroupSlot> {
        let number = {
            let mut idle = self.lock();
            idle.created += 1;
            idle.created
        };
        CgroupSlot::make(&self.parents, &format!("{}-{number}", self.owner))
    }
}

impl SlotLease {
    pub(crate) fn slot(&self) -> Option<&CgroupSlot> {
        self.slot.as_ref()
    }

    /// Files that a process writes to in order to join the groups.
    pub(crate) fn procs_files(&self) -> Vec<std::path::PathBuf> {
        self.slot.iter().flat_map(CgroupSlot::procs_files).collect()
    }
}

impl Drop for SlotLease {
    fn drop(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        slot.kill();
        // The number of slots is at most the maximum number of concurrent programs.
        self.pool.lock().slots.push(slot);
    }
}

/// Removes the groups of dead gateways and kills the processes in them.
pub(crate) fn sweep(parents: &CgroupParents) {
    for parent in parents.folders() {
        let Ok(entries) = std::fs::read_dir(parent) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(parents::is_left_over) {
                slot::remove_group(&entry.path());
            }
        }
    }
}

fn write(path: &Path, value: impl AsRef<[u8]>) -> io::Result<()> {
    let with_path =
        |error: io::Error| io::Error::new(error.kind(), format!("write {}: {error}", path.display()));
    let mut file = std::fs::File::options().write(true).truncate(true).open(path).map_err(with_path)?;
    io::Write::write_all(&mut file, value.as_ref()).map_err(with_path)
}
