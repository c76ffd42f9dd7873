//! Which system calls a program may not make: those by which it would get at parts of the kernel that no program in
//! a cell needs, and that had faults before.

use std::collections::BTreeMap;

use libc as sys;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Is, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::Fault;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Outcome<T> = Result<T, seccompiler::BackendError>;

/// Refused, whatever their arguments.
const REFUSED: [i64; 64] = [
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
    // System V objects have no limit of their own here.
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
const REFUSED_HERE: [i64; 7] = [
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

/// New namespaces by way of `clone`.
const NAMESPACES: i32 = sys::CLONE_NEWUSER
    | sys::CLONE_NEWNS
    | sys::CLONE_NEWPID
    | sys::CLONE_NEWNET
    | sys::CLONE_NEWIPC
    | sys::CLONE_NEWUTS
    | sys::CLONE_NEWCGROUP;

/// Terminals: what puts characters into the input of another program.
const TERMINALS: [u64; 2] = [sys::TIOCSTI, 0x541C];

/// `files_in_memory` are those of `memfd_create`.
pub(super) fn restrict(network: bool, files_in_memory: bool) -> Result<(), Fault> {
    let programs = programs(network, files_in_memory).map_err(Fault::at("seccomp"))?;
    programs.iter().try_for_each(|program| apply_filter(program)).map_err(Fault::at("seccomp"))
}

/// The kernel asks all of them, and does what the strictest says.
fn programs(network: bool, files_in_memory: bool) -> Outcome<Vec<BpfProgram>> {
    let mut rules: Rules = REFUSED.iter().chain(&REFUSED_HERE).map(|call| (*call, Vec::new())).collect();
    if !files_in_memory {
        rules.insert(sys::SYS_memfd_create, Vec::new());
    }
    rules.insert(sys::SYS_socket, sockets(network)?);
    rules.insert(sys::SYS_socketpair, sockets(false)?);
    let one = |arg, op, value| SeccompRule::new(vec![SeccompCondition::new(arg, Len::Dword, op, value)?]);
    let each = |bit: u32| {
        let flag = 1_u64 << bit;
        (NAMESPACES as u32 & (1 << bit) != 0).then(|| one(0, Is::MaskedEq(flag), flag))
    };
    rules.insert(sys::SYS_clone, (0..32).filter_map(each).collect::<Outcome<_>>()?);
    let terminals = TERMINALS.map(|request| one(1, Is::Eq, request));
    rules.insert(sys::SYS_ioctl, terminals.into_iter().collect::<Outcome<_>>()?);
    let refused = filter(rules, sys::EPERM)?;
    // Its flags are in memory, where no filter sees them. Who is told that there is none takes `clone`.
    let unknown = filter(Rules::from([(sys::SYS_clone3, Vec::new())]), sys::ENOSYS)?;
    Ok([Some(refused), Some(unknown), other_numbers()].into_iter().flatten().collect())
}

fn filter(rules: Rules, errno: i32) -> Outcome<BpfProgram> {
    let refuse = SeccompAction::Errno(errno.cast_unsigned());
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
}

/// Refuses each family that is not among those allowed.
fn sockets(network: bool) -> Outcome<Vec<SeccompRule>> {
    // The addresses of interfaces, which the search for a name's address asks for, come by netlink.
    let families = [sys::AF_UNIX, sys::AF_INET, sys::AF_INET6, sys::AF_NETLINK];
    let allowed = &families[..if network { families.len() } else { 1 }];
    let other =
        |family: &i32| SeccompCondition::new(0, Len::Dword, Is::Ne, u64::from(family.cast_unsigned()));
    Ok(vec![SeccompRule::new(allowed.iter().map(other).collect::<Outcome<_>>()?)?])
}

/// On x86-64 some kernels know each call by a second number, of which the rules say nothing.
fn other_numbers() -> Option<BpfProgram> {
    const SECOND: u32 = 0x4000_0000;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let load = step((sys::BPF_LD | sys::BPF_W | sys::BPF_ABS) as u16, 0, 0, 0);
    let is_second = step((sys::BPF_JMP | sys::BPF_JGE | sys::BPF_K) as u16, 0, 1, SECOND);
    let ends = |action| step((sys::BPF_RET | sys::BPF_K) as u16, 0, 0, action);
    let refuse = ends(sys::SECCOMP_RET_ERRNO | sys::ENOSYS.cast_unsigned());
    cfg!(target_arch = "x86_64").then(|| vec![load, is_second, refuse, ends(sys::SECCOMP_RET_ALLOW)])
}

/// Whether the kernel takes filters.
pub(super) fn probe() -> Result<(), String> {
    restrict(false, false).map_err(|Fault(why)| why)
}
