//! Version 1 is covered by the integration tests; here files imitate version 2. The reaction of the kernel is not
//! tested.

use std::fs;
use std::path::Path;

use super::*;

/// Creates a group of version 2, as the kernel presents it.
fn group(folder: &Path, controllers: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("cgroup.controllers"), controllers).unwrap();
    let files = ["cgroup.procs", "cgroup.kill", "cpu.max", "memory.max", "memory.oom.group", "pids.max"];
    for file in files.into_iter().chain(["cgroup.subtree_control", "memory.events", "memory.current"]) {
        fs::write(folder.join(file), "").unwrap();
    }
}

fn unified(mount: &Path, root: &str, own: &str) -> CgroupSources {
    let mounts = format!("30 24 0:26 {root} {} rw,nosuid - cgroup2 cgroup2 rw\n", mount.display());
    CgroupSources { own_groups: format!("0::{own}\n"), mounts }
}

#[test]
fn group_of_version_2_has_the_limits_of_its_lease() {
    let mount = tempfile::tempdir().unwrap();
    let own = mount.path().join("service");
    group(&own, "cpu memory pids");
    let places = CgroupParents::find(&unified(mount.path(), "/", "/service"), None);
    let slots = Arc::new(CgroupPool::new(places));
    // The kernel populates a new group with files.
    let folder = own.join(format!("{}-1", slots.owner));
    group(&folder, "");
    let lease =
        slots.acquire(&ResourceQuota { memory_bytes: 256 << 20, cpu_millis: 500, processes: 62 }).unwrap();
    let limits = ["memory.max", "memory.oom.group", "cpu.max", "pids.max"]
        .map(|file| fs::read_to_string(folder.join(file)).unwrap());
    assert_eq!(limits, ["268435456", "1", "50000 100000", "64"]);
    assert_eq!(lease.procs_files(), [folder.join("cgroup.procs")]);
    let slot = lease.slot().unwrap();
    assert!(!slot.ran_out_of_memory());
    fs::write(folder.join("memory.events"), "low 0\noom 1\noom_kill 1\n").unwrap();
    fs::write(folder.join("memory.current"), "12288\n").unwrap();
    fs::write(folder.join("memory.stat"), "anon 4096\ninactive_file 8192\n").unwrap();
    assert_eq!((slot.ran_out_of_memory(), slot.memory_bytes()), (true, Some(4096)));
    slot.kill();
    assert_eq!(fs::read_to_string(folder.join("cgroup.kill")).unwrap(), "1");
    // No process of the next lease was killed yet.
    drop(lease);
    let next =
        slots.acquire(&ResourceQuota { memory_bytes: 8 << 20, cpu_millis: 1000, processes: 1 }).unwrap();
    assert!(!next.slot().unwrap().ran_out_of_memory());
    assert_eq!(fs::read_to_string(folder.join("memory.max")).unwrap(), "8388608");
}

#[test]
fn controllers_are_enabled_for_children() {
    let mount = tempfile::tempdir().unwrap();
    let own = mount.path().join("service");
    group(&own, "cpu memory pids");
    CgroupParents::find(&unified(mount.path(), "/", "/service"), None);
    // The imitated file keeps only the last value.
    assert_eq!(fs::read_to_string(own.join("cgroup.subtree_control")).unwrap(), "+pids");
}

#[test]
fn gateway_in_a_shared_group_returns_to_it() {
    let mount = tempfile::tempdir().unwrap();
    let own = mount.path().join("session");
    group(&own, "memory");
    // The kernel refuses this file if processes are in the group.
    fs::remove_file(own.join("cgroup.subtree_control")).unwrap();
    let leaf = own.join("toolyard.gateway");
    group(&leaf, "");
    let places = CgroupParents::find(&unified(mount.path(), "/", "/session"), None);
    assert!(places.memory.unwrap_err().contains("cgroup.subtree_control"));
    let us = std::process::id().to_string();
    for folder in [leaf, own] {
        assert_eq!(fs::read_to_string(folder.join("cgroup.procs")).unwrap(), us);
    }
}

#[test]
fn parent_groups_are_found_below_their_mounts() {
    #[track_caller]
    fn check(own: &str, mounts: &str, root: Option<&str>, expected: &str) {
        let sources = CgroupSources { own_groups: own.to_owned(), mounts: mounts.to_owned() };
        let place = parents::find_parent(&sources, CgroupController::Memory, root.map(Path::new));
        assert_eq!(place.map_or_else(|why| why, |place| place.folder.display().to_string()), expected);
    }
    let first = "33 32 0:29 / /cg/memory rw - cgroup cgroup rw,memory";
    let part = "33 32 0:29 /docker/1 /cg/memory rw - cgroup cgroup rw,memory";
    let both = "30 2 0:2 / /cg rw - cgroup2 none rw\n31 2 0:3 / /cg/mc rw - cgroup none rw,cpu,memory";
    check("4:memory:/a", first, None, "/cg/memory/a");
    check("4:memory:/a", first, Some("/b"), "/cg/memory/b");
    check("4:memory:/a", first, Some("b"), "/cg/memory/a/b");
    check("4:memory:/docker/1", part, None, "/cg/memory");
    check("0::/x\n4:cpu,memory:/a", both, None, "/cg/mc/a");
    check("0::/x", first, None, "no cgroup controller \"memory\" is mounted");
    check("", "", None, "no cgroup controller \"memory\" is mounted");
    let second = "30 2 0:2 / /cg rw - cgroup2 none rw";
    check("0::/x", second, None, "the controller \"memory\" is not delegated to the cgroup of this process");
}

#[test]
fn groups_of_dead_gateways_are_recognised_by_name() {
    let ours = format!("{}{}-7", parents::PREFIX, parents::gateway_id());
    let id = std::process::id();
    let cases = [
        (ours, false),
        (format!("toolyard-{id}-1-7"), true),
        ("toolyard-4194305-99-1".to_owned(), true),
        ("toolyard-test-x".to_owned(), false),
        ("toolyard.gateway".to_owned(), false),
        ("other-1-1-1".to_owned(), false),
    ];
    for (name, left) in cases {
        assert_eq!(parents::is_left_over(&name), left, "{name}");
    }
}
