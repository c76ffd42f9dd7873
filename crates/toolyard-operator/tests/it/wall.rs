//! What takes the network away from scripts, on this kernel.

#![expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]

use std::process::{Command, Output};

const WALL: &str = include_str!("../../src/script/wall.py");

/// A script behind the wall, or as it is.
fn run(wall: &str, script: &str) -> Output {
    let mut python = Command::new("python3");
    python.args(["-I", "-c", wall]).env("ROCKBOT_SCRIPT", script).output().unwrap()
}

const NO_WALL: &str =
    "import os, sys; os.execv(sys.executable, ['python', '-c', os.environ['ROCKBOT_SCRIPT']])";

/// Prints what becomes of an attempt.
fn attempt(attempt: &str) -> String {
    format!(
        "import ctypes, os, socket, subprocess, sys, threading\n\
         syscall = ctypes.CDLL(None, use_errno=True).syscall\n\
         def asked(*arguments):\n    \
             return os.strerror(ctypes.get_errno()) if syscall(*arguments) == -1 else 'done'\n\
         try:\n    print({attempt})\nexcept OSError as error:\n    print(error.strerror)\n"
    )
}

#[track_caller]
fn check(what: &str, with_wall: &str, without: Option<&str>) {
    let said = |wall| {
        let output = run(wall, &attempt(what));
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    assert_eq!(said(WALL).trim(), with_wall, "{what}");
    if let Some(without) = without {
        assert_eq!(said(NO_WALL).trim(), without, "{what}, without the wall");
    }
}

const REFUSED: &str = "Operation not permitted";

#[test]
fn a_script_can_open_no_socket_but_unix_ones() {
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
fn what_a_script_starts_is_behind_the_wall_too() {
    let child = r#"subprocess.run([sys.executable, "-c", "import socket; socket.socket()"], capture_output=True).stderr.splitlines()[-1].decode()"#;
    check(child, &format!("PermissionError: [Errno 1] {REFUSED}"), None);
}

#[test]
fn io_uring_makes_no_sockets() {
    check("asked(425, 0, 0)", REFUSED, None);
}

#[test]
fn other_abis_lead_nowhere() {
    if cfg!(target_arch = "x86_64") {
        // socket() of x32.
        check("asked(0x40000000 + 41, 2, 1, 0)", REFUSED, None);
        // socket() of 32 bits: it ends the process.
        let code = r"b'\xb8\x67\x01\x00\x00\xbb\x02\x00\x00\x00\xb9\x01\x00\x00\x00\x31\xd2\xcd\x80\xc3'";
        let script = format!(
            "import ctypes, mmap\n\
             page = mmap.mmap(-1, 4096, prot=7)\n\
             page.write({code})\n\
             start = ctypes.addressof(ctypes.c_char.from_buffer(page))\n\
             print(ctypes.CFUNCTYPE(ctypes.c_int)(start)())\n"
        );
        let output = run(WALL, &script);
        assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn a_script_is_itself_behind_the_wall() {
    let output = run(WALL, "import sys\nprint('a $HOME', sys.argv, __name__)\nsys.exit(3)");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a $HOME ['-c'] __main__\n");
}

#[test]
fn where_the_wall_cannot_be_built_nothing_runs() {
    let elsewhere = WALL.replace("os.uname().machine", "'pdp11'");
    let output = run(&elsewhere, "print('ran')");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "The network cannot be taken away from scripts here: KeyError('pdp11')\n");
}
