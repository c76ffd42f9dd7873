//! Attacks of a program and their expected results. Each is a few lines of Python after `prelude.py`, in which
//! `attempt` prints `ESCAPED` if the attack does not fail.

pub(crate) mod host;

/// An attack.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) script: &'static str,
    /// Accepted outputs. The first layer that refuses an attempt depends on the user.
    pub(crate) refused: &'static [&'static str],
    /// True if the attack succeeds without isolation and affects nothing but the test: then it also runs without
    /// isolation, to check that the test is effective. All others run only in a sandbox.
    pub(crate) control: bool,
}

const fn attack(
    name: &'static str,
    refused: &'static [&'static str],
    control: bool,
    script: &'static str,
) -> Attack {
    Attack { name, script, refused, control }
}

pub(crate) const NETWORK: [Attack; 7] = [
    attack(
        "TCP to loopback",
        &["EPERM"],
        true,
        "attempt(lambda: socket.create_connection(('127.0.0.1', int(port)), 2))",
    ),
    attack(
        "TCP over IPv6",
        &["EPERM"],
        false,
        "attempt(lambda: socket.socket(socket.AF_INET6).connect(('::1', int(port))))",
    ),
    attack(
        "UDP to loopback",
        &["EPERM"],
        true,
        "attempt(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', int(udp_port))))",
    ),
    attack("listen on loopback", &["EPERM"], true, "attempt(lambda: socket.create_server(('127.0.0.1', 0)))"),
    attack(
        "abstract socket",
        &["ECONNREFUSED", "EPERM"],
        true,
        "attempt(lambda: socket.socket(socket.AF_UNIX).connect('\\0' + abstract))",
    ),
    attack(
        "netlink",
        &["EPERM"],
        true,
        "attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))",
    ),
    attack(
        "packet",
        &["EPERM"],
        true,
        "attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))",
    ),
];

pub(crate) const FILES: [Attack; 17] = [
    attack("/etc/shadow", &["ENOENT"], true, "attempt(lambda: open('/etc/shadow'))"),
    attack("/etc/passwd", &["ENOENT"], true, "attempt(lambda: open('/etc/passwd'))"),
    attack("a file of the gateway", &["ENOENT"], true, "attempt(lambda: open(secret).read())"),
    attack(
        "a file of the gateway by the root of process 1",
        &["EACCES", "ENOENT"],
        false,
        "attempt(lambda: open('/proc/1/root' + secret).read())",
    ),
    attack(
        "the gateway's environment",
        &["clean"],
        true,
        "
seen, pid = b'', 'self'
# Itself and those above it: the gateway is among them.
while pid != '0':
    try:
        seen += open(f'/proc/{pid}/environ', 'rb').read()
    except OSError:
        pass
    if b'canary' in seen:
        break
    try:
        pid = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[1]
    except OSError:
        break
print('ESCAPED' if b'canary' in seen else 'clean')",
    ),
    attack(
        "the environment of process 1",
        &["EACCES", "ENOENT"],
        false,
        "attempt(lambda: open('/proc/1/environ', 'rb').read())",
    ),
    attack(
        "the request to process 1",
        &["clean"],
        false,
        "
try: text = open('/proc/1/cmdline').read()
except OSError as error: text = errno.errorcode[error.errno]
print(text if text not in ('EACCES', 'ENOENT') and ('{' in text or '/tmp' in text or 'cgroup' in text) else 'clean')",
    ),
    attack("the memory of process 1", &["EACCES", "ENOENT"], false, "attempt(lambda: open('/proc/1/mem', 'rb'))"),
    attack("the files of process 1", &["EACCES", "ENOENT"], false, "attempt(lambda: os.listdir('/proc/1/fd'))"),
    attack("write to /", &["EROFS", "EACCES"], false, "attempt(lambda: open('/x', 'w'))"),
    attack("write to /usr", &["EROFS", "EACCES"], false, "attempt(lambda: open('/usr/x', 'w'))"),
    attack("write to /dev", &["EROFS", "EACCES"], false, "attempt(lambda: open('/dev/x', 'w'))"),
    attack(
        "make a device",
        &["EPERM", "EACCES"],
        true,
        "
import stat
attempt(lambda: os.mknod(os.environ['HOME'] + '/' + token, stat.S_IFCHR | 0o600, os.makedev(1, 3)))
if os.path.exists(os.environ['HOME'] + '/' + token): os.remove(os.environ['HOME'] + '/' + token)",
    ),
    attack(
        "write to /proc/sys",
        &["EACCES", "EROFS", "EPERM", "ENOENT"],
        true,
        "attempt(lambda: open('/proc/sys/kernel/hostname', 'a'))",
    ),
    attack("write to /sys", &["ENOENT"], true, "attempt(lambda: os.listdir('/sys'))"),
    attack(
        "raise a limit",
        &["EPERM"],
        false,
        "
import resource
def more():
    try: resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
    except ValueError: raise OSError(errno.EPERM, '')
attempt(more)",
    ),
    attack(
        "leave the root by ..",
        &["['bin', 'dev', 'lib', 'lib64', 'proc', 'sbin', 'tmp', 'usr']"],
        false,
        "
os.chdir('/tmp')
try: print(sorted(name for name in os.listdir('../../../..') if name not in ('lib32', 'libx32')))
except OSError as error: print(errno.errorcode[error.errno])",
    ),
];

pub(crate) const KERNEL: [Attack; 20] = [
    attack("unshare", &["EPERM"], true, "attempt(lambda: call(libc.unshare(0x10000000)))"),
    attack(
        "clone with a namespace",
        &["EPERM"],
        true,
        "
def new():
    pid = syscall(56 if x86 else 220, 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
attempt(new)",
    ),
    attack("clone3", &["ENOSYS"], false, "attempt(lambda: syscall(435, 0, 0))"),
    attack(
        "setns",
        &["EPERM"],
        true,
        "
namespace = os.open('/proc/self/ns/uts', os.O_RDONLY)
attempt(lambda: call(libc.setns(namespace, 0)))",
    ),
    attack("ptrace", &["EPERM"], true, "attempt(lambda: call(libc.ptrace(0, 0, 0, 0)))"),
    attack(
        "process_vm_readv",
        &["EPERM"],
        true,
        "attempt(lambda: syscall(310 if x86 else 270, os.getpid(), 0, 0, 0, 0, 0))",
    ),
    attack(
        "io_uring",
        &["EPERM"],
        true,
        "
parameters = ctypes.create_string_buffer(120)
attempt(lambda: syscall(425, 1, parameters))",
    ),
    attack("userfaultfd", &["EPERM"], true, "attempt(lambda: syscall(323 if x86 else 282, 0))"),
    attack("keyctl", &["EPERM"], true, "attempt(lambda: syscall(250 if x86 else 219, 0, -3, 1))"),
    attack(
        "add_key",
        &["EPERM"],
        true,
        "attempt(lambda: syscall(248 if x86 else 217, b'user', b'toolyard-test', b'x', 1, -2))",
    ),
    attack(
        "bpf",
        &["EPERM"],
        true,
        "
attributes = ctypes.create_string_buffer(b'\\x02\\0\\0\\0\\x04\\0\\0\\0\\x04\\0\\0\\0\\x01\\0\\0\\0', 128)
attempt(lambda: syscall(321 if x86 else 280, 0, attributes, 128))",
    ),
    attack(
        "perf_event_open",
        &["EPERM"],
        false,
        "attempt(lambda: syscall(298 if x86 else 241, 0, 0, -1, -1, 0))",
    ),
    attack(
        "mount",
        &["EPERM"],
        false,
        "attempt(lambda: call(libc.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None)))",
    ),
    attack("umount", &["EPERM"], false, "attempt(lambda: call(libc.umount2(b'/tmp', 2)))"),
    attack("chroot", &["EPERM"], true, "attempt(lambda: os.chroot('/'))"),
    attack("pivot_root", &["EPERM"], false, "attempt(lambda: syscall(155 if x86 else 41, b'/', b'/tmp'))"),
    attack("open by handle", &["EPERM"], false, "attempt(lambda: syscall(304 if x86 else 265, 3, 0, 0))"),
    attack("personality", &["EPERM"], true, "attempt(lambda: call(libc.personality(0x0040000)))"),
    attack(
        "signal a process of the machine",
        &["ESRCH", "EPERM"],
        true,
        "attempt(lambda: os.kill(int(host_pid), 0))",
    ),
    attack(
        "calls by their second numbers",
        &["ENOSYS"],
        false,
        "
attempt(lambda: syscall(0x40000000 | 39) if x86 else syscall(435, 0, 0))",
    ),
];

pub(crate) const RIGHTS: [Attack; 3] = [
    attack("become root", &["EPERM", "EINVAL"], true, "attempt(lambda: os.setresuid(0, 0, 0))"),
    attack("change an owner", &["EPERM", "EINVAL"], true, "
open(os.environ['HOME'] + '/' + token, 'w').close()
attempt(lambda: os.chown(os.environ['HOME'] + '/' + token, 0, 0))
os.remove(os.environ['HOME'] + '/' + token)"),
    attack("a file that gives rights", &["65534 65534"], false, "
import shutil, subprocess
shutil.copy('/usr/bin/python3.11' if os.path.exists('/usr/bin/python3.11') else sys.executable, os.environ['HOME'] + '/own')
try: os.chmod(os.environ['HOME'] + '/own', 0o6755)
except OSError: pass
print(subprocess.run([os.environ['HOME'] + '/own', '-I', '-c', 'import os; print(os.geteuid(), os.getegid())'], capture_output=True, text=True).stdout.strip())"),
];
