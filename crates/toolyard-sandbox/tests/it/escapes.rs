//! Each attempt, by each user.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixListener};

use serde_json::json;

use crate::attacks::{Attack, FILES, KERNEL, NETWORK, RIGHTS};
use crate::machine::{USER, Who, python, run, unique};

/// What is there to be got at.
struct Targets {
    _tcp: TcpListener,
    _udp: UdpSocket,
    _abstract: UnixListener,
    _state: tempfile::TempDir,
    args: Vec<String>,
}

impl Targets {
    fn make() -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let token = unique();
        let name = SocketAddr::from_abstract_name(&token).unwrap();
        let socket = UnixListener::bind_addr(&name).unwrap();
        let state = tempfile::tempdir().unwrap();
        // The cell of a user is that user outside: by its rights alone it could read this.
        std::fs::set_permissions(state.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let secret = state.path().join("key");
        std::fs::write(&secret, "secret").unwrap();
        chown(&secret, Some(USER), Some(USER)).unwrap();
        let ports = [tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port()];
        let mut args: Vec<String> = ports.iter().map(ToString::to_string).collect();
        args.extend([
            token.clone(),
            secret.to_str().unwrap().to_owned(),
            std::process::id().to_string(),
            token,
        ]);
        Self { _tcp: tcp, _udp: udp, _abstract: socket, _state: state, args }
    }

    fn attempt(&self, who: Who, attack: &Attack) -> String {
        let script = format!("{}{}", include_str!("prelude.py"), attack.script);
        let ended = run(who, json!({"program": python(&script, &self.args)}));
        let out = ended["out"].as_str().map(str::trim).unwrap_or_default();
        if out.is_empty() { ended.to_string() } else { out.to_owned() }
    }
}

#[track_caller]
fn check(who: Who, attacks: &[Attack]) {
    let targets = Targets::make();
    let mut wrong = Vec::new();
    // Without walls only what does no harm is tried: the rest would be done.
    for attack in attacks.iter().filter(|attack| who != Who::Unprotected || attack.control) {
        let out = targets.attempt(who, attack);
        let right = match who {
            Who::Unprotected => out == "ESCAPED",
            Who::WithoutNamespaces => attack.refused.contains(&&*out) || out == "EACCES",
            _ => attack.refused.contains(&&*out),
        };
        if !right {
            wrong.push(format!("{}: {out}", attack.name));
        }
    }
    assert!(wrong.is_empty(), "{who:?}: {wrong:#?}");
}

macro_rules! escapes {
    ($($who:ident: $user:ident),* $(,)?) => {$(
        mod $who {
            use super::*;

            #[test]
            fn no_network_is_reached() {
                check(Who::$user, &NETWORK);
            }

            #[test]
            fn no_file_of_the_machine_is_read_or_written() {
                check(Who::$user, &FILES);
            }

            #[test]
            fn the_kernel_refuses_what_no_program_needs() {
                check(Who::$user, &KERNEL);
            }

            #[test]
            fn nobody_gets_more_rights() {
                check(Who::$user, &RIGHTS);
            }
        }
    )*};
}

escapes! {
    root: Root,
    a_user_with_a_cgroup: Delegated,
    a_user_without: Ordinary,
}

#[test]
fn landlock_and_seccomp_alone_keep_programs_from_what_is_not_theirs() {
    // Who is called root in a namespace of one user has no more to gain by that.
    let most = [&NETWORK[..], &FILES, &KERNEL];
    most.into_iter().for_each(|attacks| check(Who::WithoutNamespaces, attacks));
}

#[test]
fn without_walls_the_attempts_succeed() {
    let all = [&NETWORK[..], &FILES, &KERNEL, &RIGHTS];
    all.into_iter().for_each(|attacks| check(Who::Unprotected, attacks));
}
