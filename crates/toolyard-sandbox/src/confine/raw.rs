//! The system calls that no safe function makes. The process that makes them has one thread, which is what makes
//! them sound.
#![expect(
    unsafe_code,
    reason = "fork, unshare, files by their numbers, close_range and mount_setattr have no safe form"
)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::process::Pid;
use rustix::thread::UnshareFlags;

/// Where one is after a fork.
pub(super) enum Side {
    /// The one that forked, and whom it made.
    Parent(Pid),
    /// The one that was made.
    Child,
}

/// Makes a second process of this one.
pub(super) fn fork() -> io::Result<Side> {
    // SAFETY: there is no other thread whose locks the child could find held.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid).map_or(Side::Child, Side::Parent)),
    }
}

/// Leaves these namespaces for new ones.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: what threads may not do is to cease sharing files or memory; there is one thread, and the flags are
    // those of namespaces.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Owns a file that was inherited open, and keeps it from programs.
pub(super) fn take(number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: whoever gave us the number gave us the file; it is no standard one, and is taken once.
    let file = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::CLOEXEC)?;
    Ok(file)
}

/// Closes all files but the three standard ones and this one.
pub(super) fn close_inherited(but: BorrowedFd<'_>) -> io::Result<()> {
    let but = but.as_raw_fd().cast_unsigned();
    for (first, last) in [(3, but - 1), (but + 1, u32::MAX)] {
        if first > last {
            continue;
        }
        // SAFETY: the numbers are no pointers; no other value of ours that owns a file is used after this.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) };
        if closed != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Makes what is mounted there read-only, and the programs there unable to give rights. With all that is mounted
/// below, if asked for.
pub(super) fn protect(path: &Path, recursive: bool) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both pointers are to values that live as long as the call, and the size is that of the second.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
