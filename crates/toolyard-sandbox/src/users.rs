//! Users of sandboxes. Each sandbox has its own uid if the machine permits it, so that kernel limits per user (inotify
//! instances, files in flight, pipes, signals) and permissions per user (`prlimit`, signals, files) apply to that
//! sandbox only.
//!
//! - [`UidRange`]: the range of available uids;
//! - [`UserAllocator`]: allocates uids and takes them back;
//! - `claims`: prevents two gateways of one machine from using the same uid at the same time;
//! - `subordinate`: the uids of an ordinary user from `/etc/subuid`.

mod claims;
mod id_map;
mod subordinate;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::confine::SANDBOX_ID;
use claims::UidClaims;

/// A range of uids, and of the gids with the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UidRange {
    /// First uid.
    pub first: u32,
    /// Number of uids.
    pub count: u32,
}

impl Default for UidRange {
    /// A range that no distribution assigns to users, services or containers.
    fn default() -> Self {
        Self { first: 2_000_000_000, count: 65_536 }
    }
}

/// User of a sandbox, as seen outside its namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SandboxUser {
    /// The user of the gateway.
    Unchanged,
    /// A uid, with the gid of the same number, to which root switches.
    Become(u32),
    /// A uid and a gid that `newuidmap` and `newgidmap` map into the user namespace of the sandbox.
    Mapped { uid: u32, gid: u32 },
}

impl SandboxUser {
    /// True if neither another sandbox nor the gateway has this user at the same time.
    pub(crate) fn is_own(self) -> bool {
        !matches!(self, Self::Unchanged | Self::Become(SANDBOX_ID))
    }

    /// True if the kernel counts per-user resources that span namespaces, such as inotify instances, for this user
    /// alone. Those of a mapped user count for the gateway's user, too.
    pub(crate) fn is_counted_alone(self) -> bool {
        self.is_own() && matches!(self, Self::Become(_))
    }
}

/// Allocates users of sandboxes.
#[derive(Debug)]
pub(crate) struct UserAllocator {
    source: UserSource,
}

#[derive(Debug)]
enum UserSource {
    Own(UidPool),
    Shared { user: SandboxUser, reason: String },
}

/// Pool of uids and gids.
#[derive(Debug)]
struct UidPool {
    uids: UidRange,
    /// First gid, which belongs to the first uid.
    gid: u32,
    is_root: bool,
    free: Mutex<FreeUids>,
}

#[derive(Debug)]
struct FreeUids {
    claims: UidClaims,
    uids: VecDeque<u32>,
}

/// A user allocated to one sandbox. Dropping the lease frees it.
#[derive(Debug)]
pub(crate) struct UserLease {
    user: SandboxUser,
    /// The uid to return, and its allocator.
    owned: Option<(u32, Arc<UserAllocator>)>,
}

impl UserAllocator {
    /// Detects the available users. `range` applies to gateways that run as root; others use the range of
    /// `/etc/subuid`. `runtime` is the folder of the claims.
    pub(crate) fn find(range: UidRange, runtime: &Path) -> Self {
        let is_root = geteuid().is_root();
        let own = if is_root { id_map::check(range).map(|()| (range, range)) } else { subordinate::ranges() };
        let pool = own.and_then(|(uids, gids)| {
            let uids = UidRange { count: uids.count.min(gids.count), ..uids };
            let claims = UidClaims::new(uids, runtime).map_err(|error| error.to_string())?;
            let free = Mutex::new(FreeUids { claims, uids: VecDeque::new() });
            Ok(UidPool { uids, gid: gids.first, is_root, free })
        });
        match pool {
            Ok(pool) => Self { source: UserSource::Own(pool) },
            Err(why) => Self::shared(&why),
        }
    }

    /// Returns an allocator with one user for all sandboxes, for this reason.
    pub(crate) fn shared(why: &str) -> Self {
        let user = shared_user();
        let uid = if user == SandboxUser::Unchanged { geteuid().as_raw() } else { SANDBOX_ID };
        Self {
            source: UserSource::Shared { user, reason: format!("all sandboxes share the uid {uid}: {why}") },
        }
    }

    /// Returns an allocator with the gateway's own user for all programs.
    pub(crate) fn without_isolation() -> Arc<Self> {
        let why = "isolation is disabled".to_owned();
        Arc::new(Self { source: UserSource::Shared { user: SandboxUser::Unchanged, reason: why } })
    }

    /// Reason why sandboxes share a uid; `None` if they do not.
    pub(crate) fn sharing_reason(&self) -> Option<&str> {
        match &self.source {
            UserSource::Own(_) => None,
            UserSource::Shared { reason: why, .. } => Some(why),
        }
    }

    /// Allocates a user for one sandbox.
    pub(crate) fn lease(self: &Arc<Self>) -> io::Result<UserLease> {
        match &self.source {
            UserSource::Shared { user, .. } => Ok(UserLease { user: *user, owned: None }),
            UserSource::Own(pool) => {
                let uid = pool.take()?;
                Ok(UserLease { user: pool.user(uid), owned: Some((uid, self.clone())) })
            }
        }
    }
}

impl UidPool {
    fn lock(&self) -> MutexGuard<'_, FreeUids> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> io::Result<u32> {
        let mut free = self.lock();
        if let Some(uid) = free.uids.pop_front() {
            return Ok(uid);
        }
        let claimed = free.claims.claim_next()?;
        free.uids.extend(claimed);
        free.uids.pop_front().ok_or_else(|| {
            let UidRange { first, count } = self.uids;
            io::Error::other(format!("all {count} uids from {first} on are in use"))
        })
    }

    fn user(&self, uid: u32) -> SandboxUser {
        if self.is_root {
            return SandboxUser::Become(uid);
        }
        SandboxUser::Mapped { uid, gid: self.gid + (uid - self.uids.first) }
    }
}

impl UserLease {
    pub(crate) fn user(&self) -> SandboxUser {
        self.user
    }
}

impl Drop for UserLease {
    fn drop(&mut self) {
        let Some((uid, users)) = self.owned.take() else { return };
        if let UserSource::Own(pool) = &users.source {
            // Last in the queue: processes of its sandbox may take a moment to end.
            pool.lock().uids.push_back(uid);
        }
    }
}

/// Returns the user of all sandboxes if they cannot have separate ones.
pub(crate) fn shared_user() -> SandboxUser {
    // In a namespace with a single user, root is that ordinary user.
    if geteuid().is_root() && id_map::contains_id(SANDBOX_ID) {
        SandboxUser::Become(SANDBOX_ID)
    } else {
        SandboxUser::Unchanged
    }
}

/// Returns the folder of the files that running gateways of one user share.
pub(crate) fn runtime_folder() -> PathBuf {
    let uid = geteuid();
    if uid.is_root() {
        return PathBuf::from("/run/toolyard");
    }
    let session = PathBuf::from(format!("/run/user/{}", uid.as_raw()));
    if session.is_dir() { session.join("toolyard") } else { format!("/tmp/toolyard-{}", uid.as_raw()).into() }
}
