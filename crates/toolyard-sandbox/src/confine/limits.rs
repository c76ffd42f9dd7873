//! Limits of each process, and the permanent drop of privileges.

use rustix::io;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs,
};

use super::{ResourceLimits, SetupError};

/// Disables core dumps, which could be large and readable by others.
pub(super) fn disable_core_dumps() -> io::Result<()> {
    limit(Resource::Core, 0)
}

pub(super) fn set(limits: &ResourceLimits) -> Result<(), SetupError> {
    let set = |what, value| limit(what, value).map_err(SetupError::at("set a resource limit"));
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

/// Sets a resource limit, but never raises it.
fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let value = getrlimit(resource).maximum.map_or(value, |maximum| maximum.min(value));
    setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
}

/// Makes the kernel kill this process before the gateway if the machine runs out of memory.
pub(super) fn raise_oom_score() {
    // Without /proc in the sandbox the score does not change: it is only a preference.
    let _stays = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// Drops all capabilities, also for programs executed later.
pub(super) fn drop_privileges(had_all: bool) -> Result<(), SetupError> {
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match remove_capability_from_bounding_set(capability) {
            // All capabilities of this kernel were dropped.
            Err(io::Errno::INVAL) => break,
            // Without capabilities the bounding set cannot change; `no_new_privs` makes it irrelevant.
            Err(io::Errno::PERM) if !had_all => break,
            done => done.map_err(SetupError::at("drop the bounding set"))?,
        }
    }
    // A kernel without an ambient set has nothing to clear.
    let _empty = clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(SetupError::at("drop capabilities"))?;
    set_no_new_privs(true).map_err(SetupError::at("set no_new_privs"))
}
