//! System calls that affect other processes, foreign files or shared resources. Namespaces, a separate uid and cgroups
//! prevent most of that; if one of them is missing, more calls are denied.

use libc as sys;
use seccompiler::SeccompCmpOp as Is;
use seccompiler::{SeccompCmpArgLen as Len, SeccompCondition, SeccompRule};

use super::{SeccompResult, SeccompRules, argument_rule};
use crate::confine::{HelperRequest, landlock};

/// Calls that affect a process, with the index of the argument that selects it; 0 is the caller itself.
const OTHER_PROCESS_CALLS: [(i64, u8); 6] = [
    (sys::SYS_prlimit64, 0),
    (sys::SYS_sched_setscheduler, 0),
    (sys::SYS_sched_setparam, 0),
    (sys::SYS_sched_setattr, 0),
    (sys::SYS_setpriority, 1),
    (sys::SYS_ioprio_set, 1),
];

/// Controls of `fcntl` that send signals to any process of the user or delay the opening of a file by others.
const FILE_CONTROLS: [i32; 4] = [sys::F_SETOWN, F_SETOWN_EX, F_SETSIG, sys::F_SETLEASE];
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;

/// Calls that send signals.
const SIGNALS: [i64; 6] = [
    sys::SYS_kill,
    sys::SYS_tkill,
    sys::SYS_tgkill,
    sys::SYS_rt_sigqueueinfo,
    sys::SYS_rt_tgsigqueueinfo,
    sys::SYS_pidfd_send_signal,
];

/// Calls that change attributes of a file. Landlock does not control them.
const ATTRIBUTES: [i64; 16] = [
    sys::SYS_fchmod,
    sys::SYS_fchmodat,
    FCHMODAT2,
    sys::SYS_fchown,
    sys::SYS_fchownat,
    sys::SYS_utimensat,
    sys::SYS_setxattr,
    sys::SYS_lsetxattr,
    sys::SYS_fsetxattr,
    SETXATTRAT,
    sys::SYS_removexattr,
    sys::SYS_lremovexattr,
    sys::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
    // Landlock of older kernels does not control it.
    sys::SYS_truncate,
];
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;

#[cfg(target_arch = "x86_64")]
const ATTRIBUTES_OF_ARCH: [i64; 6] =
    [sys::SYS_chmod, sys::SYS_chown, sys::SYS_lchown, sys::SYS_utime, sys::SYS_utimes, sys::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const ATTRIBUTES_HERE: [i64; 0] = [];

/// `FS_IOC_SETFLAGS` and `FS_IOC_FSSETXATTR`.
const FLAG_REQUESTS: [u64; 2] = [0x4008_6602, 0x401C_5820];

#[cfg(target_arch = "x86_64")]
const INOTIFY: [i64; 2] = [sys::SYS_inotify_init, sys::SYS_inotify_init1];
#[cfg(not(target_arch = "x86_64"))]
const INOTIFY: [i64; 1] = [sys::SYS_inotify_init1];

/// Socket options that set buffer sizes.
const BUFFER_OPTIONS: [i32; 4] = [sys::SO_SNDBUF, sys::SO_RCVBUF, sys::SO_SNDBUFFORCE, sys::SO_RCVBUFFORCE];

/// Adds the rules that a sandbox needs.
pub(super) fn deny(rules: &mut SeccompRules, spec: &HelperRequest) -> SeccompResult<()> {
    for (call, argument) in OTHER_PROCESS_CALLS {
        rules.insert(call, vec![argument_rule(argument, Is::Ne, 0)?]);
    }
    let controls = FILE_CONTROLS.map(|control| argument_rule(1, Is::Eq, u64::from(control.cast_unsigned())));
    rules.insert(sys::SYS_fcntl, controls.into_iter().collect::<SeccompResult<_>>()?);
    if !spec.is_memory_counted {
        deny_uncounted_memory(rules)?;
    }
    if !spec.user.is_counted_alone() {
        deny_always(rules, INOTIFY);
    }
    if !spec.user.is_own() && !spec.network {
        // These calls send file descriptors, whose number in flight is limited per user.
        deny_always(rules, [sys::SYS_sendmsg, sys::SYS_sendmmsg]);
    }
    if !spec.layers.namespaces {
        deny_host_access(rules, spec)?;
    }
    Ok(())
}

fn deny_always<const N: usize>(rules: &mut SeccompRules, calls: [i64; N]) {
    rules.extend(calls.map(|call| (call, Vec::new())));
}

/// Denies memory that the kernel holds for a program and no process owns, if no cgroup counts it.
fn deny_uncounted_memory(rules: &mut SeccompRules) -> SeccompResult<()> {
    deny_always(rules, [sys::SYS_memfd_create]);
    let buffer = |option: i32| {
        let is = |argument, value: i32| {
            SeccompCondition::new(argument, Len::Dword, Is::Eq, u64::from(value.cast_unsigned()))
        };
        SeccompRule::new(vec![is(1, sys::SOL_SOCKET)?, is(2, option)?])
    };
    rules.insert(sys::SYS_setsockopt, BUFFER_OPTIONS.into_iter().map(buffer).collect::<SeccompResult<_>>()?);
    // Anonymous shared memory remains even when no process maps it any more.
    let shared = u64::from((sys::MAP_SHARED | sys::MAP_ANONYMOUS).cast_unsigned());
    rules.insert(sys::SYS_mmap, vec![argument_rule(3, Is::MaskedEq(shared), shared)?]);
    // The watchdog cannot inspect a process that is not dumpable.
    rules.insert(
        sys::SYS_prctl,
        vec![argument_rule(0, Is::Eq, u64::from(sys::PR_SET_DUMPABLE.cast_unsigned()))?],
    );
    Ok(())
}

/// Denies changes of processes and files of the same user, if the sandbox sees those of the host.
fn deny_host_access(rules: &mut SeccompRules, spec: &HelperRequest) -> SeccompResult<()> {
    rules.insert(sys::SYS_sched_setaffinity, vec![argument_rule(0, Is::Ne, 0)?]);
    // A datagram socket could be connected again, to a socket of the host.
    let datagrams = u64::from(sys::SOCK_DGRAM.cast_unsigned());
    let pairs = rules.entry(sys::SYS_socketpair).or_default();
    pairs.push(argument_rule(1, Is::MaskedEq(0xF), datagrams)?);
    if spec.user.is_own() {
        return Ok(());
    }
    deny_always(rules, ATTRIBUTES);
    deny_always(rules, ATTRIBUTES_OF_ARCH);
    let flags = FLAG_REQUESTS
        .map(|request| argument_rule(1, Is::Eq, request))
        .into_iter()
        .collect::<SeccompResult<Vec<_>>>()?;
    rules.entry(sys::SYS_ioctl).or_default().extend(flags);
    if !spec.layers.landlock || !landlock::can_scope_signals() {
        // Only signals to the process itself remain; child processes cannot be signalled.
        let own = u64::from(std::process::id());
        for call in SIGNALS {
            rules.insert(call, vec![argument_rule(0, Is::Ne, own)?]);
        }
        deny_always(rules, [sys::SYS_tkill, sys::SYS_pidfd_send_signal]);
    }
    Ok(())
}
