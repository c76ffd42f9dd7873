//! Cgroups: what limits all processes of a cell together. Both versions, and machines that have some controllers
//! in one and some in the other.
//!
//! To make groups is slow and to join new ones is slower (tens of milliseconds), so that they are kept: a [`Slot`] is
//! the groups of one cell, and [`Slots`] lends them out again and again. They are made below the group that the
//! gateway is in, named after the gateway's process, so that a later gateway can tell what a dead one left.

mod place;
mod slot;

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use place::{Places, Sources};
pub(crate) use slot::{Quota, Slot};

use crate::Layer;

/// What a cgroup can limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controller {
    Memory,
    Cpu,
    Pids,
}

impl Controller {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Cpu, Self::Pids];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Pids => "pids",
        }
    }

    pub(crate) const fn layer(self) -> Layer {
        match self {
            Self::Memory => Layer::Memory,
            Self::Cpu => Layer::Cpu,
            Self::Pids => Layer::Processes,
        }
    }
}

/// The groups of cells. Those that nobody uses are removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Slots {
    places: Places,
    owner: String,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    slots: Vec<Slot>,
    made: u64,
}

/// A slot that is lent. It comes back when this is dropped.
#[derive(Debug)]
pub(crate) struct Lent {
    slot: Option<Slot>,
    home: Arc<Slots>,
}

impl Slots {
    pub(crate) fn new(places: Places) -> Self {
        let owner = format!("{}{}", place::PREFIX, place::owner());
        Self { places, owner, idle: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot in which nothing runs, with these limits.
    pub(crate) fn lend(self: &Arc<Self>, quota: &Quota) -> io::Result<Lent> {
        let found = {
            let mut idle = self.lock();
            let free = idle.slots.iter().position(Slot::is_empty);
            free.map(|index| idle.slots.swap_remove(index))
        };
        let slot = match found {
            Some(slot) => slot,
            None => self.make()?,
        };
        let mut lent = Lent { slot: Some(slot), home: self.clone() };
        if let Some(slot) = &mut lent.slot {
            slot.limit(quota)?;
        }
        Ok(lent)
    }

    fn make(&self) -> io::Result<Slot> {
        let number = {
            let mut idle = self.lock();
            idle.made += 1;
            idle.made
        };
        Slot::make(&self.places, &format!("{}-{number}", self.owner))
    }
}

impl Lent {
    pub(crate) fn slot(&self) -> Option<&Slot> {
        self.slot.as_ref()
    }

    /// Where a process is told to join.
    pub(crate) fn join(&self) -> Vec<std::path::PathBuf> {
        self.slot.iter().flat_map(Slot::join).collect()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        slot.kill();
        // As many are kept as were in use at a time, which is how many programs may run.
        self.home.lock().slots.push(slot);
    }
}

/// Removes what gateways left that have ended, and kills what still runs there.
pub(crate) fn sweep(places: &Places) {
    for parent in places.parents() {
        let Ok(entries) = std::fs::read_dir(parent) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.to_str().is_some_and(place::is_left_over) {
                slot::clear(&entry.path());
            }
        }
    }
}

fn write(path: &Path, value: impl AsRef<[u8]>) -> io::Result<()> {
    let said = |error: io::Error| io::Error::new(error.kind(), format!("write {}: {error}", path.display()));
    let mut file = std::fs::File::options().write(true).truncate(true).open(path).map_err(said)?;
    io::Write::write_all(&mut file, value.as_ref()).map_err(said)
}
