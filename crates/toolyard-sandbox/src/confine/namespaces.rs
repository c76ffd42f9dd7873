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
    // In a namespace that has one user only, root is that user: an ordinary one.
    let users = fs::read_to_string("/proc/self/uid_map").map_err(Fault::at("see which users there are"))?;
    if !geteuid().is_root() || !has_nobody(&users) {
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

/// Whether a map of users, lines of the first inside, the first outside and how many, has nobody in it.
fn has_nobody(map: &str) -> bool {
    map.lines().any(|line| {
        let mut numbers = line.split_whitespace().map_while(|number| number.parse::<u32>().ok());
        let (Some(first), Some(_), Some(count)) = (numbers.next(), numbers.next(), numbers.next()) else {
            return false;
        };
        NOBODY.checked_sub(first).is_some_and(|after| after < count)
    })
}

fn map(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{NOBODY} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{NOBODY} {group} 1"))
}

#[cfg(test)]
mod tests {
    use super::has_nobody;

    #[test]
    fn whether_there_is_a_nobody_is_read() {
        let cases = [
            ("         0          0 4294967295\n", true),
            ("0 100000 65536\n", true),
            ("0 1000 1\n", false),
            ("0 1000 1\n1 100000 65533\n", false),
            ("65534 1000 1\n", true),
            ("70000 1000 1\n", false),
            ("", false),
            ("x", false),
        ];
        for (map, expected) in cases {
            assert_eq!(has_nobody(map), expected, "{map:?}");
        }
    }
}
