//! System calls without a safe wrapper. They are sound because the calling process is single-threaded.
#![expect(
    unsafe_code,
    reason = "fork, unshare, files by their numbers, close_range, mount_setattr and ioctl have no safe form"
)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use rustix::process::Pid;
use rustix::thread::UnshareFlags;

/// Side of a fork.
pub(super) enum ForkSide {
    /// The forking process, with the id of the child.
    Parent(Pid),
    /// The new process.
    Child,
}

/// Forks this process.
pub(super) fn fork() -> io::Result<ForkSide> {
    // SAFETY: there is no other thread whose locks the child could find locked.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid).map_or(ForkSide::Child, ForkSide::Parent)),
    }
}

/// Enters new namespaces.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: a thread must not stop sharing files or memory; there is one thread, and the flags are those of
    // namespaces.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Takes ownership of an inherited file descriptor and sets close-on-exec.
pub(super) fn take_fd(number: RawFd) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the parent process passed this descriptor; it is not a standard one, and is taken once.
    let file = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::CLOEXEC)?;
    Ok(file)
}

/// Closes all file descriptors except for the standard ones and this one.
pub(super) fn close_inherited(but: BorrowedFd<'_>) -> io::Result<()> {
    let except = but.as_raw_fd().cast_unsigned();
    for (first, last) in [(3, except - 1), (except + 1, u32::MAX)] {
        if first > last {
            continue;
        }
        // SAFETY: the arguments are not pointers; no other value that owns a descriptor is used after this.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0_u32) };
        if closed != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Brings up the loopback interface of this namespace.
pub(super) fn raise_loopback() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: zeroes are a valid value of a structure of numbers, addresses and pointers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request has the type that this call reads, and outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Remounts a mount read-only, `nosuid` and `nodev`; also the mounts below it if `recursive`.
pub(super) fn make_read_only(path: &Path, recursive: bool) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both pointers refer to values that outlive the call, and the size is that of the second.
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
