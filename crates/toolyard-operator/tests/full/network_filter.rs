//! The network filter of scripts, on this kernel.

#![expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]

use std::process::{Command, Output};

const NETWORK_FILTER: &str = include_str!("../../src/script/network_filter.py");

/// Runs a script with or without the filter.
fn run(filter: &str, script: &str) -> Output {
    let mut python = Command::new("python3");
    python.args(["-I", "-c", filter]).env("ROCKBOT_SCRIPT", script).output().unwrap()
}

const NO_FILTER: &str =
    "import os, sys; os.execv(sys.executable, ['python', '-c', os.environ['ROCKBOT_SCRIPT']])";

/// Returns a program that prints the result of an attempt.
fn attempt(attempt: &str) -> String {
    format!(
        "import ctypes, os, socket, subprocess, sys, threading\n\
         syscall = ctypes.CDLL(None, use_errno=True).syscall\n\
         def call(*arguments):\n    \
             return os.strerror(ctypes.get_errno()) if syscall(*arguments) == -1 else 'done'\n\
         try:\n    print({attempt})\nexcept OSError as error:\n    print(error.strerror)\n"
    )
}

#[track_caller]
fn check(what: &str, with_filter: &str, without: Option<&str>) {
    let result = |filter| {
        let output = run(filter, &attempt(what));
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    assert_eq!(result(NETWORK_FILTER).trim(), with_filter, "{what}");
    if let Some(without) = without {
        assert_eq!(result(NO_FILTER).trim(), without, "{what}, without the filter");
    }
}

const REFUSED: &str = "Operation not permitted";

#[test]
fn script_can_open_only_unix_sockets() {
    let family =
        |family: &str, kind: &str| format!("socket.socket(socket.{family}, socket.{kind}) and 'open'");
    check(&family("AF_INET", "SOCK_STREAM"), REFUSED, Some("open"));
    check(&family("AF_INET", "SOCK_DGRAM"), REFUSED, Some("open"));
    check(&family("AF_NETLINK", "SOCK_RAW"), REFUSED, Some("open"));
    check(&family("AF_INET6", "SOCK_STREAM"), REFUSED, None);
    check(&family("AF_PACKET", "SOCK_RAW"), REFUSED, None);
    check(&family("AF_VSOCK", "SOCK_STREAM"), REFUSED, None);
    check(&family("AF_UNIX", "SOCK_STREAM"), "open", Some("open"));
    check("socket.socketpair() and 'open'", "open", Some("open"));
}

#[test]
fn child_processes_are_filtered() {
    let child = r#"subprocess.run([sys.executable, "-c", "import socket; socket.socket()"], capture_output=True).stderr.splitlines()[-1].decode()"#;
    check(child, &format!("PermissionError: [Errno 1] {REFUSED}"), None);
}

#[test]
fn io_uring_cannot_create_sockets() {
    check("call(425, 0, 0)", REFUSED, None);
}

#[test]
fn other_abis_are_denied() {
    if cfg!(target_arch = "x86_64") {
        // socket() of x32.
        check("call(0x40000000 + 41, 2, 1, 0)", REFUSED, None);
        // socket() of the 32-bit ABI: the process is killed.
        let code = r"b'\xb8\x67\x01\x00\x00\xbb\x02\x00\x00\x00\xb9\x01\x00\x00\x00\x31\xd2\xcd\x80\xc3'";
        let script = format!(
            "import ctypes, mmap\n\
             page = mmap.mmap(-1, 4096, prot=7)\n\
             page.write({code})\n\
             start = ctypes.addressof(ctypes.c_char.from_buffer(page))\n\
             print(ctypes.CFUNCTYPE(ctypes.c_int)(start)())\n"
        );
        let output = run(NETWORK_FILTER, &script);
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn script_itself_is_filtered() {
    let output = run(NETWORK_FILTER, "import sys\nprint('a $HOME', sys.argv, __name__)\nsys.exit(3)");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a $HOME ['-c'] __main__\n");
}

#[test]
fn script_does_not_run_without_the_filter() {
    let elsewhere = NETWORK_FILTER.replace("os.uname().machine", "'pdp11'");
    let output = run(&elsewhere, "print('ran')");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(stderr, "Cannot block the network for scripts: KeyError('pdp11')\n");
}
