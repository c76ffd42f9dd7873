//! Allocator settings that return the memory of large messages to the system.
//!
//! glibc returns a large buffer to the system when it is freed, but each time raises the threshold above which a buffer
//! is large, up to 32 MiB. An explicit threshold stays fixed. Small buffers stay in heaps.
//!
//! mimalloc 3 was measured and not taken. It saves a twelfth of the instructions of a call, but reserves a gigabyte of
//! writable memory, which exceeds the limit of the workers of functions, which are processes of this program.

/// Threshold in bytes above which a freed buffer returns to the system. It is the initial value of glibc.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 128 * 1024;

/// Number of heaps of the allocator. By default there are eight for each processor, and each keeps freed memory that
/// lies between buffers in use.
#[cfg(target_env = "gnu")]
const HEAPS: libc::c_int = 2;

/// Makes the allocator return large buffers to the system as soon as they are freed, and share its heaps among threads.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the setting of an allocator has no safe form")]
pub(crate) fn return_freed_memory() {
    // SAFETY: the arguments are numbers, and no other thread exists yet. glibc ignores a number that it does not accept.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_ARENA_MAX, HEAPS);
    }
}

/// Does nothing: other C libraries have no such threshold.
#[cfg(not(target_env = "gnu"))]
pub(crate) const fn return_freed_memory() {}
