//! Limits of each process, and what it may never do again.

use rustix::io;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

use super::{Fault, Limits};

/// What a crash leaves on the disk could be large, and could be read by others.
pub(super) fn no_core() -> io::Result<()> {
    limit(Resource::Core, 0)
}

pub(super) fn set(limits: &Limits) -> Result<(), Fault> {
    let set = |what, value| limit(what, value).map_err(Fault::at("limit a process"));
    set(Resource::Data, limits.data_bytes)?;
    set(Resource::Fsize, limits.file_bytes)?;
    set(Resource::Nofile, limits.files)?;
    set(Resource::Memlock, 64 << 10)?;
    set(Resource::Msgqueue, 0)?;
    set(Resource::Sigpending, 1024)?;
    if let Some(bytes) = limits.address_bytes {
        set(Resource::As, bytes)?;
    }
    limits.processes.map_or(Ok(()), |processes| set(Resource::Nproc, processes))
}

/// Never over what holds already.
fn limit(what: Resource, value: u64) -> io::Result<()> {
    let value = getrlimit(what).maximum.map_or(value, |maximum| maximum.min(value));
    setrlimit(what, Rlimit { current: Some(value), maximum: Some(value) })
}

/// Where memory runs out on the machine, this goes before the gateway does.
pub(super) fn prefer_to_be_killed() {
    // Where there is no /proc in the cell it stays as it is: a preference, no wall.
    let _stays = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// Gives up all capabilities, and that programs could give new ones.
pub(super) fn give_up_rights(had_all: bool) -> Result<(), Fault> {
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match remove_capability_from_bounding_set(capability) {
            // The last one that this kernel knows was before.
            Err(io::Errno::INVAL) => break,
            // Who has no capabilities cannot give up those of programs to come; there are none without new rights.
            Err(io::Errno::PERM) if !had_all => break,
            done => done.map_err(Fault::at("give up what programs could be given"))?,
        }
    }
    // Where the kernel has no ambient set it is empty.
    let _empty = clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(Fault::at("give up capabilities"))?;
    set_no_new_privs(true).map_err(Fault::at("give up new rights"))
}
