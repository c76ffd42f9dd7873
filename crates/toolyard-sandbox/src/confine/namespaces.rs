//! Another user, and namespaces of its own.

use std::fs;
use std::io;

use rustix::process::{
    DumpableBehavior, Gid, Signal, Uid, getegid, geteuid, set_dumpable_behavior,
    set_parent_process_death_signal,
};
use rustix::thread::{UnshareFlags, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::{Fault, raw};

/// The user and the group inside of a cell, and outside as well where the gateway is root: nobody.
pub(crate) const NOBODY: u32 = 65534;

/// Becomes nobody where this is root.
pub(super) fn leave_root() -> Result<(), Fault> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_thread_groups(&[]).map_err(Fault::at("give up groups"))?;
    set_thread_res_gid(group, group, group).map_err(Fault::at("become another group"))?;
    set_thread_res_uid(user, user, user).map_err(Fault::at("become another user"))?;
    // Else the files of this process below /proc are root's, the maps of the namespace among them.
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(Fault::at("own itself"))
}

/// Leaves all namespaces but the network's where that is allowed. The caller is in the new ones from now on, its
/// children are in the new one of processes.
pub(super) fn leave(network: bool) -> Result<(), Fault> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let mut flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    flags.set(UnshareFlags::NEWNET, !network);
    raw::unshare(flags).map_err(Fault::at("leave the namespaces"))?;
    map(user, group).map_err(Fault::at("map a user into the namespace"))?;
    // Only now: a change of rights undoes it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(Fault::at("end with the supervisor"))
}

fn map(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{NOBODY} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{NOBODY} {group} 1"))
}
