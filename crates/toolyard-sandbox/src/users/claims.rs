//! Claims on uids: a locked file for each block of uids. The kernel releases the lock when the gateway ends.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::UidRange;
use crate::home::random_u64;

/// Number of uids per claim. Blocks start at multiples of it in every range, so that gateways with different ranges use
/// the same file for the same block.
pub(super) const BLOCK: u32 = 64;

#[derive(Debug)]
pub(super) struct UidClaims {
    folder: PathBuf,
    uids: UidRange,
    /// Blocks of the range that this gateway has not claimed, in the order of attempts.
    others: VecDeque<u32>,
    /// Held locks.
    locks: Vec<File>,
}

impl UidClaims {
    /// Creates an empty set of claims. Attempts start at a random block, so that gateways that do not share the folder,
    /// as in two containers, rarely choose the same one.
    pub(super) fn new(uids: UidRange, folder: &Path) -> io::Result<Self> {
        make_private(folder).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot claim uids in {}: {error}", folder.display()))
        })?;
        let last = uids.first.saturating_add(uids.count.saturating_sub(1));
        let mut unclaimed: VecDeque<u32> = (uids.first / BLOCK..=last / BLOCK).collect();
        let start = random_u64()? % unclaimed.len() as u64;
        unclaimed.rotate_left(usize::try_from(start).unwrap_or_default());
        Ok(Self { folder: folder.to_owned(), uids, others: unclaimed, locks: Vec::new() })
    }

    /// Claims the next block that no other gateway has; an empty range if there is none.
    pub(super) fn claim_next(&mut self) -> io::Result<Range<u32>> {
        for _ in 0..self.others.len() {
            let Some(block) = self.others.pop_front() else { break };
            let path = self.folder.join(format!("uids-{}", block * BLOCK));
            let lock = File::options().create(true).truncate(false).write(true).open(path)?;
            match lock.try_lock() {
                Ok(()) => {
                    self.locks.push(lock);
                    return Ok(self.uids_of_block(block));
                }
                // The other gateway may have ended by the next attempt.
                Err(TryLockError::WouldBlock) => self.others.push_back(block),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(0..0)
    }

    /// Returns the part of a block that is in the range.
    fn uids_of_block(&self, block: u32) -> Range<u32> {
        let first = (block * BLOCK).max(self.uids.first);
        let end = (block * BLOCK).saturating_add(BLOCK);
        first..end.min(self.uids.first.saturating_add(self.uids.count))
    }
}

/// Creates a folder of this user that no other user can write to, or checks the existing one.
fn make_private(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let metadata = fs::symlink_metadata(folder)?;
    if !metadata.is_dir() || metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        return Err(io::Error::other("not a folder that only this user can write to"));
    }
    Ok(())
}
