//! Where a cell may write.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// The home of a cell.
#[derive(Debug)]
pub(crate) struct Home {
    path: PathBuf,
    /// Whether it is the machine's, and is removed when this is dropped.
    ours: bool,
}

impl Home {
    /// The one that a cell in namespaces makes for itself.
    pub(crate) fn within() -> Self {
        Self { path: PathBuf::from("/tmp"), ours: false }
    }

    /// A new folder of the machine, which only the program's user can enter.
    pub(crate) fn make(number: u64, for_nobody: bool) -> io::Result<Self> {
        let mut random = [0_u8; 8];
        io::Read::read_exact(&mut fs::File::open("/dev/urandom")?, &mut random)?;
        let random = u64::from_ne_bytes(random);
        let path = std::env::temp_dir().join(format!("toolyard-cell-{number}-{random:016x}"));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let home = Self { path, ours: true };
        if for_nobody && geteuid().is_root() {
            let nobody = Some(crate::confine::NOBODY);
            match chown(&home.path, nobody, nobody) {
                // In a namespace that has one user only, the program stays that user.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                done => done?,
            }
        }
        Ok(home)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.ours {
            // Whatever still writes there was killed already.
            let _left = fs::remove_dir_all(&self.path);
        }
    }
}
