//! The root of a cell: a small read-only file system with the system's programs and libraries, four devices, the
//! processes of the cell, its folder, and what it was given to read.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_change,
    move_mount, open_tree, unmount,
};
use rustix::process::{chdir, pivot_root};
use rustix::system::sethostname;

use super::{Fault, Spec, raw};

/// Where the new root is put together. It must be there on every machine; what it covers is held open before.
const PLACE: &str = "/usr";

/// Links to folders of /usr on most systems, folders on some.
const SYSTEM: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"];

/// What names are resolved and certificates are checked by, for cells with a network.
const NETWORK: [&str; 6] =
    ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/pki", "/etc/ca-certificates"];

/// Something of the machine, held open.
struct Piece {
    tree: OwnedFd,
    inside: PathBuf,
    folder: bool,
    read_only: bool,
}

pub(super) fn make(spec: &Spec) -> Result<(), Fault> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(Fault::at("keep mounts to itself"))?;
    let pieces = pieces(spec).map_err(Fault::at("find what the cell may read"))?;
    let links = links();
    tmpfs(PLACE, "size=1m,nr_inodes=4k,mode=0755").map_err(Fault::at("make a root"))?;
    for folder in ["proc", "tmp", "dev"] {
        fs::create_dir(Path::new(PLACE).join(folder)).map_err(Fault::at("make a folder of the root"))?;
    }
    for (link, target) in links {
        symlink(target, below(&link)).map_err(Fault::at("make a link of the root"))?;
    }
    symlink("/tmp", below(Path::new("/dev/shm"))).map_err(Fault::at("make a link of the root"))?;
    let room = format!("size={},nr_inodes=16k,mode=0700", spec.limits.file_bytes);
    tmpfs(&format!("{PLACE}/tmp"), &room).map_err(Fault::at("make the folder of the cell"))?;
    // In a container whose own /proc has parts covered, the kernel gives no new one. Programs can do without.
    let hardened = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let _without = mount("proc", format!("{PLACE}/proc"), "proc", hardened, None);
    for piece in pieces {
        piece.place().map_err(|error| Fault(format!("mount {:?}: {error}", piece.inside)))?;
    }
    sethostname(b"cell").map_err(Fault::at("name the cell"))?;
    turn().map_err(Fault::at("make it the root"))?;
    raw::protect(Path::new("/"), false).map_err(Fault::at("make the root read-only"))
}

fn below(path: &Path) -> PathBuf {
    Path::new(PLACE).join(path.strip_prefix("/").unwrap_or(path))
}

fn tmpfs(at: &str, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    Ok(mount("tmpfs", at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(options.as_c_str()))?)
}

fn links() -> Vec<(PathBuf, PathBuf)> {
    let link = |path: &&str| Some((PathBuf::from(path), fs::read_link(path).ok()?));
    SYSTEM.iter().filter_map(link).collect()
}

/// Holds all open that the cell gets to see, in the order in which it is put there.
fn pieces(spec: &Spec) -> io::Result<Vec<Piece>> {
    let is_folder = |path: &&&str| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let mut pieces = vec![Piece::open(Path::new("/usr"), Path::new("/usr"), true)?];
    for path in SYSTEM.iter().filter(is_folder) {
        pieces.push(Piece::open(Path::new(path), Path::new(path), true)?);
    }
    for path in DEVICES {
        pieces.push(Piece::open(Path::new(path), Path::new(path), false)?);
    }
    for path in NETWORK.iter().filter(|path| spec.network && Path::new(path).exists()) {
        pieces.push(Piece::open(Path::new(path), Path::new(path), true)?);
    }
    let mut mounts: Vec<_> = spec.mounts.iter().collect();
    // A path before those below it, which it would cover.
    mounts.sort_by_key(|mount| mount.inside.components().count());
    for mount in mounts {
        let piece = Piece::open(&mount.host, &mount.inside, true);
        pieces.push(piece.map_err(|error| io::Error::other(format!("{:?}: {error}", mount.host)))?);
    }
    Ok(pieces)
}

/// Makes the new root the root, and lets go of the old one.
fn turn() -> rustix::io::Result<()> {
    chdir(PLACE)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")
}

impl Piece {
    fn open(host: &Path, inside: &Path, read_only: bool) -> io::Result<Self> {
        let folder = fs::metadata(host)?.is_dir();
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        let tree = open_tree(CWD, host, flags)?;
        Ok(Self { tree, inside: inside.to_owned(), folder, read_only })
    }

    fn place(&self) -> io::Result<()> {
        let target = below(&self.inside);
        if self.folder {
            fs::create_dir_all(&target)?;
        } else {
            target.parent().map_or(Ok(()), fs::create_dir_all)?;
            File::options().create(true).append(true).open(&target)?;
        }
        move_mount(&self.tree, "", CWD, &target, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        if self.read_only { raw::protect(&target, true) } else { Ok(()) }
    }
}
