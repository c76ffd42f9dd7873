//! Change of the user, and new namespaces.

use std::fs;
use std::io;

use rustix::process::{
    DumpableBehavior, Gid, Signal, Uid, getegid, geteuid, set_dumpable_behavior,
    set_parent_process_death_signal,
};
use rustix::thread::{UnshareFlags, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::id_maps::IdMappers;
use super::{SetupError, raw};
use crate::users::SandboxUser;

/// User and group inside every sandbox; also outside if the gateway is root and sandboxes have no separate users.
pub(crate) const SANDBOX_ID: u32 = 65534;

/// The gateway's user inside the namespace of a sandbox that has a mapped user.
const GATEWAY_ID: u32 = 65533;

/// Switches from root to the user of the sandbox. Mapped users are switched to in their namespace.
pub(super) fn drop_root(user: SandboxUser) -> Result<(), SetupError> {
    let SandboxUser::Become(number) = user else { return Ok(()) };
    become_group(number)?;
    become_user(number)
}

/// Switches to a mapped user of the sandbox's namespace. The processes above the program keep the gateway's user.
pub(super) fn become_mapped_user(user: SandboxUser) -> Result<(), SetupError> {
    if matches!(user, SandboxUser::Mapped { .. }) { become_user(SANDBOX_ID) } else { Ok(()) }
}

fn become_group(number: u32) -> Result<(), SetupError> {
    let group = Gid::from_raw(number);
    set_thread_groups(&[]).map_err(SetupError::at("drop supplementary groups"))?;
    set_thread_res_gid(group, group, group).map_err(SetupError::at("change the group"))?;
    // Otherwise root owns the /proc files of this process, including the maps of the namespace.
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(SetupError::at("make the process dumpable"))
}

fn become_user(number: u32) -> Result<(), SetupError> {
    let user = Uid::from_raw(number);
    set_thread_res_uid(user, user, user).map_err(SetupError::at("change the user"))?;
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(SetupError::at("make the process dumpable"))
}

/// Enters new namespaces, except for the network namespace if the network is permitted. The caller is in the new
/// namespaces afterwards; its children are in the new pid namespace.
pub(super) fn unshare_all(network: bool, user: SandboxUser) -> Result<(), SetupError> {
    let (own, group) = (geteuid().as_raw(), getegid().as_raw());
    let mut flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    flags.set(UnshareFlags::NEWNET, !network);
    let unshare = || raw::unshare(flags).map_err(SetupError::at("enter new namespaces"));
    if let SandboxUser::Mapped { uid, gid } = user {
        // The mapping programs must run in the current namespace.
        let mappers = IdMappers::start(&[(GATEWAY_ID, own), (SANDBOX_ID, uid)], &[(SANDBOX_ID, gid)])?;
        unshare()?;
        mappers.map()?;
        become_group(SANDBOX_ID)?;
    } else {
        unshare()?;
        write_id_maps(own, group).map_err(SetupError::at("map a user into the namespace"))?;
    }
    // Set last, because a change of credentials resets it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(SetupError::at("set the parent-death signal"))
}

fn write_id_maps(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{SANDBOX_ID} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{SANDBOX_ID} {group} 1"))
}
