//! Allocation of users.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::claims::BLOCK;
use super::*;

/// An allocator with this range, as for root, regardless of the user that runs the test.
fn users(first: u32, count: u32, folder: &Path) -> Arc<UserAllocator> {
    let uids = UidRange { first, count };
    let free = FreeUids { claims: UidClaims::new(uids, folder).unwrap(), uids: VecDeque::new() };
    let pool = UidPool { uids, gid: first, is_root: true, free: Mutex::new(free) };
    Arc::new(UserAllocator { source: UserSource::Own(pool) })
}

fn all(users: &Arc<UserAllocator>) -> Vec<UserLease> {
    std::iter::from_fn(|| users.lease().ok()).collect()
}

fn uids(leases: &[UserLease]) -> HashSet<u32> {
    let uid = |lease: &UserLease| match lease.user() {
        SandboxUser::Become(uid) | SandboxUser::Mapped { uid, .. } => uid,
        SandboxUser::Unchanged => panic!("not a uid of its own"),
    };
    leases.iter().map(uid).collect()
}

#[test]
fn each_uid_of_the_range_is_allocated_once() {
    let folder = tempfile::tempdir().unwrap();
    // Neither end is at a block boundary.
    let users = users(1_000_001, 150, &folder.path().join("run"));
    let leases = all(&users);
    assert_eq!(uids(&leases), (1_000_001..1_000_151).collect());
    assert_eq!(leases.len(), 150);
    assert_eq!(users.lease().unwrap_err().to_string(), "all 150 uids from 1000001 on are in use");
}

#[test]
fn returned_uid_is_reused_last() {
    let folder = tempfile::tempdir().unwrap();
    let users = users(BLOCK, 3, &folder.path().join("run"));
    let first = users.lease().unwrap();
    let user = first.user();
    drop(first);
    let next: Vec<_> = all(&users).iter().map(UserLease::user).collect();
    assert_eq!((next.len(), next.last()), (3, Some(&user)));
}

#[test]
fn gateways_never_share_a_uid() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("run");
    // Their ranges overlap but differ.
    let (one, other) = (users(0, 4 * BLOCK, &folder), users(BLOCK / 2, 4 * BLOCK, &folder));
    let mut leases = Vec::new();
    for _ in 0..BLOCK {
        leases.extend([one.lease().unwrap(), other.lease().unwrap()]);
    }
    assert_eq!(uids(&leases).len(), 2 * BLOCK as usize);
    leases.extend(all(&one));
    leases.extend(all(&other));
    assert_eq!(uids(&leases).len(), leases.len());
    // The uids of one are available to the other after its end.
    drop((leases, one));
    assert!(all(&other).len() >= 2 * BLOCK as usize);
}

#[test]
fn folder_that_others_can_write_to_is_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let range = UidRange { first: 0, count: 1 };
    let open = folder.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
    let link = folder.path().join("link");
    symlink(folder.path(), &link).unwrap();
    for path in [open, link, folder.path().join("not/there")] {
        assert!(UidClaims::new(range, &path).is_err(), "{}", path.display());
    }
}

#[test]
fn subordinate_uid_has_the_corresponding_gid() {
    let folder = tempfile::tempdir().unwrap();
    let uids = UidRange { first: 100_000, count: BLOCK };
    let claims = UidClaims::new(uids, &folder.path().join("run")).unwrap();
    let free = Mutex::new(FreeUids { claims, uids: VecDeque::new() });
    let pool = UidPool { uids, gid: 500_000, is_root: false, free };
    assert_eq!(pool.user(100_007), SandboxUser::Mapped { uid: 100_007, gid: 500_007 });
}

#[test]
fn maps_of_user_namespaces_are_parsed() {
    let all = "         0          0 4294967295\n";
    let cases = [
        (all, 65_534, 1, true),
        (all, 2_000_000_000, 65_536, true),
        ("0 100000 65536\n", 65_534, 1, true),
        ("0 100000 65536\n", 65_534, 3, false),
        ("0 100000 65536\n", 2_000_000_000, 65_536, false),
        ("0 1000 1\n", 65_534, 1, false),
        ("0 1000 1\n1 100000 65533\n", 65_534, 1, false),
        ("65534 1000 1\n", 65_534, 1, true),
        ("70000 1000 1\n", 65_534, 1, false),
        ("0 0 4294967295\n", 4_294_967_290, 100, false),
        ("", 0, 1, false),
        ("x", 0, 1, false),
    ];
    for (map, first, count, expected) in cases {
        assert_eq!(id_map::contains(map, UidRange { first, count }), expected, "{map:?} {first} {count}");
    }
}

#[test]
fn subordinate_ranges_are_parsed() {
    let text = "# none\nann:100000:10\nann:200000:65536\nbob:300000:65536\n1002:400000:5\nann:4294967290:65536\nann:x:9\n";
    let check = |name, uid, expected: Option<(u32, u32)>| {
        let range = subordinate::largest_range(text, name, uid).map(|range| (range.first, range.count));
        assert_eq!(range, expected, "{name:?} {uid}");
    };
    check(Some("ann"), 1000, Some((200_000, 65_536)));
    check(Some("bob"), 1001, Some((300_000, 65_536)));
    check(None, 1002, Some((400_000, 5)));
    check(Some("eve"), 1003, None);
    let users = "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/sh\n";
    assert_eq!((subordinate::user_name(users, 1000), subordinate::user_name(users, 9)), (Some("ann"), None));
}
