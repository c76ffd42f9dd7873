//! Attacks on other processes, on visible files of the gateway, and on information about the machine.

use super::{Attack, attack};

/// Attacks on processes, sockets and files of the gateway; the sandbox of an ordinary user without a separate uid has
/// the same owner.
pub(crate) const OTHERS: [Attack; 17] = [
    attack(
        "prlimit on the process above",
        &["EPERM"],
        true,
        "
import resource
attempt(lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CPU))",
    ),
    attack(
        "the priority of the process above",
        &["EPERM"],
        true,
        "attempt(lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 0))",
    ),
    attack(
        "the priority of all processes of the user",
        &["EPERM"],
        false,
        "attempt(lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))",
    ),
    attack(
        "the scheduling of the process above",
        &["EPERM"],
        true,
        "attempt(lambda: os.sched_setscheduler(os.getppid(), os.SCHED_OTHER, os.sched_param(0)))",
    ),
    attack(
        "signals of a file for the process above",
        &["EPERM"],
        true,
        "
import fcntl
a, b = socket.socketpair()
attempt(lambda: fcntl.fcntl(a, fcntl.F_SETOWN, os.getppid()))",
    ),
    attack(
        "a signal to the gateway's processes",
        &["ESRCH", "EPERM"],
        false,
        "
def above():
    pid = os.getppid()
    os.kill(int(host_pid) if pid in (0, 1) else pid, 0)
attempt(above)",
    ),
    attack(
        "the machine's room for kernel AIO",
        &["EPERM"],
        true,
        "attempt(lambda: syscall(206 if x86 else 0, 1, ctypes.byref(ctypes.c_ulong(0))))",
    ),
    attack("the mode of a file", &["ENOENT", "EPERM"], true, "attempt(lambda: os.chmod(secret, 0o644))"),
    attack(
        "the mode of a file by fchmodat2",
        &["ENOENT", "EPERM"],
        false,
        "attempt(lambda: syscall(452, -100, secret.encode(), 0o644, 0))",
    ),
    attack("the times of a file", &["ENOENT", "EPERM"], true, "attempt(lambda: os.utime(secret, (1, 1)))"),
    attack(
        "an attribute of a file",
        &["ENOENT", "EPERM"],
        false,
        "attempt(lambda: os.setxattr(secret, b'user.x', b'x'))",
    ),
    attack(
        "the owner of a file",
        &["ENOENT", "EPERM"],
        true,
        "attempt(lambda: os.chown(secret, os.stat(secret).st_uid, -1))",
    ),
    attack("the length of a file", &["ENOENT", "EPERM"], true, "attempt(lambda: os.truncate(secret, 6))"),
    attack(
        "a UNIX socket of the machine",
        &["ENOENT", "EPERM"],
        true,
        "attempt(lambda: socket.socket(socket.AF_UNIX).connect(stream))",
    ),
    attack(
        "a UNIX socket by one of a pair",
        &["ENOENT", "EPERM"],
        true,
        "
def connect():
    a, b = socket.socketpair(type=socket.SOCK_DGRAM)
    a.connect(datagram)
attempt(connect)",
    ),
    attack(
        "a lease on a file",
        &["EPERM"],
        true,
        "
import fcntl
name = os.environ['HOME'] + '/' + token + '-lease'
os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
file = os.open(name, os.O_RDONLY)
attempt(lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK))
os.remove(name)",
    ),
    attack(
        "what is below the root of process 1",
        &["ENOENT", "EACCES", "EPERM"],
        false,
        "attempt(lambda: os.listdir('/proc/1/root/'))",
    ),
];

/// Information about the machine in `/proc`.
pub(crate) const MACHINE: [Attack; 7] = [
    attack(
        "the kernel's command line",
        &["ENOENT", "EACCES"],
        true,
        "attempt(lambda: open('/proc/cmdline'))",
    ),
    attack("its disks", &["ENOENT", "EACCES"], true, "attempt(lambda: open('/proc/diskstats'))"),
    attack("its partitions", &["ENOENT", "EACCES"], true, "attempt(lambda: open('/proc/partitions'))"),
    attack("its settings", &["ENOENT", "EACCES"], true, "attempt(lambda: os.listdir('/proc/sys'))"),
    attack(
        "its mounts",
        &["none", "EACCES"],
        true,
        "
try: seen = ''.join(open(f'/proc/self/{name}').read() for name in ('mounts', 'mountinfo', 'mountstats'))
except OSError as error: seen = errno.errorcode[error.errno]
print('ESCAPED' if '/' in seen else seen or 'none')",
    ),
    attack(
        "the mounts of others",
        &["none", "EACCES"],
        true,
        "
try:
    seen = []
    for name in os.listdir('/proc'):
        # One that ends meanwhile has none.
        try: seen += open(f'/proc/{name}/mountinfo').readlines()
        except OSError: pass
    print('ESCAPED' if seen else 'none')
except OSError as error: print(errno.errorcode[error.errno])",
    ),
    attack(
        "other processes",
        &["own", "EACCES"],
        true,
        "
try:
    pids = {name for name in os.listdir('/proc') if name.isdigit()}
    print('own' if pids == {str(os.getpid())} else 'ESCAPED')
except OSError as error: print(errno.errorcode[error.errno])",
    ),
];
