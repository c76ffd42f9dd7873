//! Root file system of a sandbox: a small read-only tree with the system's programs and libraries, four devices, the
//! processes of the sandbox, its writable folder, and its readable mounts.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, open};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_change,
    move_mount, open_tree, unmount,
};
use rustix::process::{chdir, chroot, fchdir, pivot_root};
use rustix::system::sethostname;
use rustix::thread::UnshareFlags;

use super::{HelperRequest, SANDBOX_ID, SetupError, raw};

/// Path at which the new root is built. It exists on every machine, and its content is opened before it is covered.
const STAGING_PATH: &str = "/usr";

/// Links to folders of /usr on most systems, folders on some.
const SYSTEM_FOLDERS: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Options of `/proc`: processes only, and of these only the ones that the program may inspect.
const PROC_OPTIONS: &CStr = c"subset=pid,hidepid=invisible";

/// Paths for name resolution and certificate checks, for sandboxes with a network.
const NETWORK_PATHS: [&str; 6] =
    ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki", "/etc/ca-certificates"];

/// Minimum number of inodes of a sandbox folder.
const MIN_INODES: u64 = 16 << 10;

/// Bytes per inode in larger folders.
const BYTES_PER_INODE: u64 = 8 << 10;

/// A cloned mount tree of the host.
struct ClonedMount {
    tree: OwnedFd,
    inside: PathBuf,
    folder: bool,
    read_only: bool,
}

pub(super) fn make(spec: &HelperRequest) -> Result<(), SetupError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(SetupError::at("make mounts private"))?;
    let pieces = open_mounts(spec).map_err(SetupError::at("open the visible paths"))?;
    let links = system_links();
    mount_tmpfs(STAGING_PATH, "size=1m,nr_inodes=4k,mode=0755").map_err(SetupError::at("mount the root"))?;
    for folder in ["proc", "tmp", "dev"] {
        fs::create_dir(Path::new(STAGING_PATH).join(folder))
            .map_err(SetupError::at("create a folder of the root"))?;
    }
    for (link, target) in links {
        symlink(target, in_staging(&link)).map_err(SetupError::at("create a link of the root"))?;
    }
    symlink("/tmp", in_staging(Path::new("/dev/shm")))
        .map_err(SetupError::at("create a link of the root"))?;
    let inodes = (spec.limits.file_bytes / BYTES_PER_INODE).max(MIN_INODES);
    let owner = format!("uid={SANDBOX_ID},gid={SANDBOX_ID}");
    let room = format!("size={},nr_inodes={inodes},mode=0700,{owner}", spec.limits.file_bytes);
    mount_tmpfs(&format!("{STAGING_PATH}/tmp"), &room)
        .map_err(SetupError::at("mount the folder of the sandbox"))?;
    // In a container whose own /proc is partly covered, the kernel refuses a new one. Programs run without it.
    let hardened = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _without = mount("proc", format!("{STAGING_PATH}/proc"), "proc", hardened, Some(PROC_OPTIONS));
    for piece in pieces {
        piece.attach().map_err(|error| SetupError(format!("mount {:?}: {error}", piece.inside)))?;
    }
    sethostname(b"cell").map_err(SetupError::at("set the host name"))?;
    pivot_to(STAGING_PATH).map_err(SetupError::at("change the root"))?;
    raw::make_read_only(Path::new("/"), false).map_err(SetupError::at("make the root read-only"))
}

fn in_staging(path: &Path) -> PathBuf {
    Path::new(STAGING_PATH).join(path.strip_prefix("/").unwrap_or(path))
}

fn mount_tmpfs(at: &str, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    Ok(mount("tmpfs", at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(options.as_c_str()))?)
}

fn system_links() -> Vec<(PathBuf, PathBuf)> {
    let link = |path: &&str| Some((PathBuf::from(path), fs::read_link(path).ok()?));
    SYSTEM_FOLDERS.iter().filter_map(link).collect()
}

/// Opens all visible paths, in the order in which they are attached.
fn open_mounts(spec: &HelperRequest) -> io::Result<Vec<ClonedMount>> {
    let is_folder = |path: &&&str| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let mut pieces = vec![ClonedMount::open(Path::new("/usr"), Path::new("/usr"), true)?];
    for path in SYSTEM_FOLDERS.iter().filter(is_folder) {
        pieces.push(ClonedMount::open(Path::new(path), Path::new(path), true)?);
    }
    for path in spec.devices() {
        pieces.push(ClonedMount::open(Path::new(path), Path::new(path), false)?);
    }
    for path in NETWORK_PATHS.iter().filter(|path| spec.network && Path::new(path).exists()) {
        pieces.push(ClonedMount::open(Path::new(path), Path::new(path), true)?);
    }
    let mut mounts: Vec<_> = spec.mounts.iter().collect();
    // Parents first, because a later mount covers earlier ones below it.
    mounts.sort_by_key(|mount| mount.inside.components().count());
    for mount in mounts {
        let piece = ClonedMount::open(&mount.host, &mount.inside, true);
        pieces.push(piece.map_err(|error| io::Error::other(format!("{:?}: {error}", mount.host)))?);
    }
    Ok(pieces)
}

/// Enters a mount namespace that has only an empty folder, and keeps the previous root. The files in `/proc` that list
/// mounts, with folders and disks of the host, then list the mounts of the empty namespace: none.
pub(super) fn hide_mounts() -> Result<(), SetupError> {
    let hide = || -> io::Result<()> {
        let root = open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        raw::unshare(UnshareFlags::NEWNS)?;
        mount_tmpfs("/tmp", "size=4k,nr_inodes=1")?;
        pivot_to("/tmp")?;
        fchdir(root)?;
        chroot(".")?;
        Ok(())
    };
    hide().map_err(SetupError::at("hide the mounts"))
}

/// Makes a mount the root and unmounts the old one.
fn pivot_to(to: &str) -> rustix::io::Result<()> {
    chdir(to)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")
}

impl ClonedMount {
    fn open(host: &Path, inside: &Path, read_only: bool) -> io::Result<Self> {
        let folder = fs::metadata(host)?.is_dir();
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(CWD, host, flags)?;
        Ok(Self { tree, inside: inside.to_owned(), folder, read_only })
    }

    fn attach(&self) -> io::Result<()> {
        let target = in_staging(&self.inside);
        if self.folder {
            fs::create_dir_all(&target)?;
        } else {
            target.parent().map_or(Ok(()), fs::create_dir_all)?;
            File::options().create(true).append(true).open(&target)?;
        }
        move_mount(&self.tree, "", CWD, &target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        if self.read_only { raw::make_read_only(&target, true) } else { Ok(()) }
    }
}
