//! Filter of system calls. It denies calls that reach rarely needed, historically vulnerable parts of the kernel, and
//! calls that affect other processes (`shared_resources`).

mod shared_resources;

use std::collections::BTreeMap;

use libc as sys;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Is, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::{HelperRequest, SetupError};

type SeccompRules = BTreeMap<i64, Vec<SeccompRule>>;
type SeccompResult<T> = Result<T, seccompiler::BackendError>;

/// System calls that are denied with any arguments.
const DENIED_CALLS: [i64; 65] = [
    // Namespaces and mounts.
    sys::SYS_unshare,
    sys::SYS_setns,
    sys::SYS_mount,
    sys::SYS_umount2,
    sys::SYS_pivot_root,
    sys::SYS_chroot,
    sys::SYS_move_mount,
    sys::SYS_open_tree,
    sys::SYS_fsopen,
    sys::SYS_fsmount,
    sys::SYS_fsconfig,
    sys::SYS_fspick,
    sys::SYS_mount_setattr,
    sys::SYS_sethostname,
    sys::SYS_setdomainname,
    // Other processes.
    sys::SYS_ptrace,
    sys::SYS_process_vm_readv,
    sys::SYS_process_vm_writev,
    sys::SYS_process_madvise,
    sys::SYS_pidfd_getfd,
    sys::SYS_kcmp,
    // Large parts of the kernel behind one call.
    sys::SYS_io_uring_setup,
    sys::SYS_io_uring_enter,
    sys::SYS_io_uring_register,
    sys::SYS_userfaultfd,
    sys::SYS_bpf,
    sys::SYS_perf_event_open,
    sys::SYS_keyctl,
    sys::SYS_add_key,
    sys::SYS_request_key,
    sys::SYS_fanotify_init,
    sys::SYS_fanotify_mark,
    sys::SYS_name_to_handle_at,
    sys::SYS_open_by_handle_at,
    sys::SYS_lookup_dcookie,
    sys::SYS_vmsplice,
    sys::SYS_mbind,
    sys::SYS_migrate_pages,
    sys::SYS_move_pages,
    sys::SYS_set_mempolicy,
    sys::SYS_memfd_secret,
    sys::SYS_personality,
    // The machine has a limit for all users together.
    sys::SYS_io_setup,
    // System V objects have no separate limit here.
    sys::SYS_shmget,
    sys::SYS_semget,
    sys::SYS_msgget,
    sys::SYS_mq_open,
    // The machine.
    sys::SYS_init_module,
    sys::SYS_finit_module,
    sys::SYS_delete_module,
    sys::SYS_kexec_load,
    sys::SYS_kexec_file_load,
    sys::SYS_reboot,
    sys::SYS_swapon,
    sys::SYS_swapoff,
    sys::SYS_acct,
    sys::SYS_quotactl,
    sys::SYS_quotactl_fd,
    sys::SYS_syslog,
    sys::SYS_settimeofday,
    sys::SYS_clock_settime,
    sys::SYS_clock_adjtime,
    sys::SYS_adjtimex,
    sys::SYS_vhangup,
    sys::SYS_nfsservctl,
];

#[cfg(target_arch = "x86_64")]
const DENIED_CALLS_OF_ARCH: [i64; 7] = [
    sys::SYS_iopl,
    sys::SYS_ioperm,
    sys::SYS_modify_ldt,
    sys::SYS_uselib,
    sys::SYS_ustat,
    sys::SYS_sysfs,
    sys::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: [i64; 0] = [];

/// Flags of `clone` that create namespaces.
const NAMESPACES: i32 = sys::CLONE_NEWUSER
    | sys::CLONE_NEWNS
    | sys::CLONE_NEWPID
    | sys::CLONE_NEWNET
    | sys::CLONE_NEWIPC
    | sys::CLONE_NEWUTS
    | sys::CLONE_NEWCGROUP;

/// Terminal requests that inject characters into the input of another program.
const TERMINAL_INJECTION: [u64; 2] = [sys::TIOCSTI, 0x541C];

/// Installs the filters permanently; they deny more calls if other layers are missing.
pub(super) fn restrict(spec: &HelperRequest) -> Result<(), SetupError> {
    let programs = filter_programs(spec).map_err(SetupError::at("seccomp"))?;
    programs.iter().try_for_each(|program| apply_filter(program)).map_err(SetupError::at("seccomp"))
}

/// Returns the filters. The kernel evaluates all of them and applies the strictest result.
fn filter_programs(spec: &HelperRequest) -> SeccompResult<Vec<BpfProgram>> {
    let mut rules: SeccompRules =
        DENIED_CALLS.iter().chain(&DENIED_CALLS_OF_ARCH).map(|call| (*call, Vec::new())).collect();
    rules.insert(sys::SYS_socket, socket_rules(&socket_families(spec))?);
    rules.insert(sys::SYS_socketpair, socket_rules(&[sys::AF_UNIX])?);
    let each = |bit: u32| {
        let flag = 1_u64 << bit;
        (NAMESPACES as u32 & (1 << bit) != 0).then(|| argument_rule(0, Is::MaskedEq(flag), flag))
    };
    rules.insert(sys::SYS_clone, (0..32).filter_map(each).collect::<SeccompResult<_>>()?);
    let terminals = TERMINAL_INJECTION.map(|request| argument_rule(1, Is::Eq, request));
    rules.insert(sys::SYS_ioctl, terminals.into_iter().collect::<SeccompResult<_>>()?);
    shared_resources::deny(&mut rules, spec)?;
    let refused = build_filter(rules, sys::EPERM)?;
    // The flags of clone3 are in memory, which a filter cannot read. With ENOSYS, libraries fall back to `clone`.
    let unknown = build_filter(SeccompRules::from([(sys::SYS_clone3, Vec::new())]), sys::ENOSYS)?;
    Ok([Some(refused), Some(unknown), x32_filter(), Some(filter_denial()?)].into_iter().flatten().collect())
}

/// Returns the last of the filters: it refuses further ones, which would outlive the call of a function that adds them.
fn filter_denial() -> SeccompResult<BpfProgram> {
    let set_seccomp = argument_rule(0, Is::Eq, sys::PR_SET_SECCOMP as u64)?;
    let rules = SeccompRules::from([(sys::SYS_seccomp, Vec::new()), (sys::SYS_prctl, vec![set_seccomp])]);
    build_filter(rules, sys::EPERM)
}

/// Returns a rule about the lower half of one argument.
fn argument_rule(argument: u8, is: Is, value: u64) -> SeccompResult<SeccompRule> {
    SeccompRule::new(vec![SeccompCondition::new(argument, Len::Dword, is, value)?])
}

fn build_filter(rules: SeccompRules, errno: i32) -> SeccompResult<BpfProgram> {
    let refuse = SeccompAction::Errno(errno.cast_unsigned());
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
}

/// Returns the socket families that a program may use.
fn socket_families(spec: &HelperRequest) -> Vec<i32> {
    // Without namespaces, Unix sockets would reach the services of the host.
    let local = spec.layers.namespaces.then_some(sys::AF_UNIX);
    // Name resolution lists the addresses of interfaces by netlink.
    let network = [sys::AF_INET, sys::AF_INET6, sys::AF_NETLINK];
    let network = network.into_iter().filter(|_| spec.network || spec.loopback);
    local.into_iter().chain(network).collect()
}

/// Returns rules that deny all other families.
fn socket_rules(allowed: &[i32]) -> SeccompResult<Vec<SeccompRule>> {
    let other =
        |family: &i32| SeccompCondition::new(0, Len::Dword, Is::Ne, u64::from(family.cast_unsigned()));
    match allowed {
        [] => Ok(Vec::new()),
        allowed => Ok(vec![SeccompRule::new(allowed.iter().map(other).collect::<SeccompResult<_>>()?)?]),
    }
}

/// Returns a filter of the second call numbers (x32) of x86-64, which the other rules do not cover.
fn x32_filter() -> Option<BpfProgram> {
    const SECOND: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let load = step((sys::BPF_LD | sys::BPF_W | sys::BPF_ABS) as u16, 0, 0, 0);
    let is_second = step((sys::BPF_JMP | sys::BPF_JGE | sys::BPF_K) as u16, 0, 1, SECOND);
    let ends = |action| step((sys::BPF_RET | sys::BPF_K) as u16, 0, 0, action);
    let refuse = ends(sys::SECCOMP_RET_ERRNO | sys::ENOSYS.cast_unsigned());
    cfg!(target_arch = "x86_64").then(|| vec![load, is_second, refuse, ends(sys::SECCOMP_RET_ALLOW)])
}

/// Checks that the kernel supports filters.
pub(super) fn probe(spec: &HelperRequest) -> Result<(), String> {
    restrict(spec).map_err(|SetupError(why)| why)
}
