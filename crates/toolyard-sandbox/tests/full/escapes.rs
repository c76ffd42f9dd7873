//! All attacks by all users.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use serde_json::json;
use toolyard_testing::process::unique_word;
use toolyard_testing::users::ORDINARY_USER;

use crate::attacks::host::{MACHINE, OTHERS};
use crate::attacks::{Attack, FILES, KERNEL, NETWORK, RIGHTS};
use crate::machine::{TestUser, python, run};

/// Targets of the attacks.
struct Targets {
    _tcp: TcpListener,
    _udp: UdpSocket,
    _abstract: UnixListener,
    _stream: UnixListener,
    _datagram: UnixDatagram,
    _state: tempfile::TempDir,
    args: Vec<String>,
}

impl Targets {
    fn make() -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let token = unique_word();
        let name = SocketAddr::from_abstract_name(&token).unwrap();
        let socket = UnixListener::bind_addr(&name).unwrap();
        let state = tempfile::tempdir().unwrap();
        // A sandbox of a user has the same uid outside, so permissions alone would allow this.
        std::fs::set_permissions(state.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let secret = state.path().join("key");
        std::fs::write(&secret, "secret").unwrap();
        chown(&secret, Some(ORDINARY_USER), Some(ORDINARY_USER)).unwrap();
        let (stream, datagram) = (state.path().join("stream"), state.path().join("datagram"));
        let (listener, receiver) =
            (UnixListener::bind(&stream).unwrap(), UnixDatagram::bind(&datagram).unwrap());
        for socket in [&stream, &datagram] {
            std::fs::set_permissions(socket, PermissionsExt::from_mode(0o777)).unwrap();
        }
        let ports = [tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port()];
        let mut args: Vec<String> = ports.iter().map(ToString::to_string).collect();
        args.extend([
            token.clone(),
            secret.to_str().unwrap().to_owned(),
            std::process::id().to_string(),
            token,
            stream.to_str().unwrap().to_owned(),
            datagram.to_str().unwrap().to_owned(),
        ]);
        Self {
            _tcp: tcp,
            _udp: udp,
            _abstract: socket,
            _stream: listener,
            _datagram: receiver,
            _state: state,
            args,
        }
    }

    fn attempt(&self, user: TestUser, attack: &Attack) -> String {
        let script = format!("{}{}", include_str!("prelude.py"), attack.script);
        let result = run(user, json!({"program": python(&script, &self.args)}));
        let out = result["out"].as_str().map(str::trim).unwrap_or_default();
        if out.is_empty() { result.to_string() } else { out.to_owned() }
    }
}

#[track_caller]
fn check(user: TestUser, attacks: &[Attack]) {
    let targets = Targets::make();
    let mut wrong = Vec::new();
    // Without isolation only harmless attempts run.
    for attack in attacks.iter().filter(|attack| user != TestUser::Unprotected || attack.control) {
        let out = targets.attempt(user, attack);
        let right = match user {
            TestUser::Unprotected => out == "ESCAPED",
            TestUser::WithoutNamespaces => attack.refused.contains(&&*out) || out == "EACCES",
            _ => attack.refused.contains(&&*out),
        };
        if !right {
            wrong.push(format!("{}: {out}", attack.name));
        }
    }
    assert!(wrong.is_empty(), "{user:?}: {wrong:#?}");
}

macro_rules! escapes {
    ($($module:ident: $user:ident),* $(,)?) => {$(
        mod $module {
            use super::*;

            #[test]
            fn network_is_unreachable() {
                check(TestUser::$user, &NETWORK);
            }

            #[test]
            fn files_of_the_machine_are_inaccessible() {
                check(TestUser::$user, &FILES);
            }

            #[test]
            fn dangerous_system_calls_are_denied() {
                check(TestUser::$user, &KERNEL);
            }

            #[test]
            fn other_processes_and_their_files_are_unaffected() {
                check(TestUser::$user, &OTHERS);
            }

            #[test]
            fn information_about_the_machine_is_hidden() {
                check(TestUser::$user, &MACHINE);
            }

            #[test]
            fn privileges_cannot_be_gained() {
                check(TestUser::$user, &RIGHTS);
            }
        }
    )*};
}

escapes! {
    root: Root,
    user_with_cgroup: Delegated,
    user_without_cgroup: Ordinary,
    user_with_uid_range: Subordinate,
}

#[test]
fn landlock_and_seccomp_alone_prevent_escapes() {
    // In a namespace with a single user, that user is named root, so `RIGHTS` does not apply.
    let most = [&NETWORK[..], &FILES, &KERNEL, &OTHERS, &MACHINE];
    most.into_iter().for_each(|attacks| check(TestUser::WithoutNamespaces, attacks));
}

#[test]
fn attempts_succeed_without_isolation() {
    let all = [&NETWORK[..], &FILES, &KERNEL, &OTHERS, &MACHINE, &RIGHTS];
    all.into_iter().for_each(|attacks| check(TestUser::Unprotected, attacks));
}
