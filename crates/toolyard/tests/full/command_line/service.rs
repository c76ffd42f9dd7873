//! `toolyard service`, with a stand-in for systemctl that records its calls.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use insta::assert_snapshot;
use tempfile::TempDir;
use toolyard_testing::process::{ProgramResult, run};

use crate::support::gateway::toolyard;

struct ServiceHome(TempDir);

impl ServiceHome {
    /// Creates a home with a manifest. `systemctl` is the script of the stand-in; `journalctl` prints its arguments.
    fn new(systemctl: Option<&str>) -> Self {
        let home = Self(TempDir::new().unwrap());
        let manifest = "apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\n";
        fs::write(home.0.path().join("toolyard.yaml"), manifest).unwrap();
        fs::create_dir(home.0.path().join("bin")).unwrap();
        if let Some(script) = systemctl {
            home.program("systemctl", script);
            home.program("journalctl", "echo journalctl \"$@\"");
        }
        home
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.0.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = toolyard(self.0.path());
        let path = format!("{}:/nowhere", self.0.path().join("bin").display());
        command.current_dir(self.0.path()).env("PATH", path).arg("service").args(args);
        command
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        self.shown(&run(&mut self.command(args)))
    }

    fn shown(&self, ended: &ProgramResult) -> String {
        let root = self.0.path().canonicalize().unwrap();
        let text = ended.to_string().replace(env!("CARGO_BIN_EXE_toolyard"), "TOOLYARD");
        text.replace(root.to_str().unwrap(), "HOME").replace(self.0.path().to_str().unwrap(), "HOME")
    }

    fn unit(&self) -> PathBuf {
        self.0.path().join(".config/systemd/user/toolyard.service")
    }

    fn calls(&self) -> String {
        let calls = self.0.path().join("calls");
        let text = fs::read_to_string(&calls).unwrap_or_default();
        fs::remove_file(calls).ok();
        text
    }
}

const RECORD: &str = "echo \"$@\" >> \"$HOME/calls\"";

#[test]
fn unit_is_printed_without_being_written() {
    let home = ServiceHome::new(Some(RECORD));
    let install = ["install", "--print", "--listen", "127.0.0.1:9000", "--grpc", "127.0.0.1:50051"];
    assert_snapshot!(home.run(&install), @r#"
    # HOME/.config/systemd/user/toolyard.service
    # Written by `toolyard service install`.
    # `systemctl --user edit toolyard` changes settings; installing again replaces this file.
    [Unit]
    Description=Toolyard, a gateway for the tools of agents

    [Service]
    Type=exec
    ExecStart="TOOLYARD" "serve" "-f" "HOME/toolyard.yaml" "--listen" "127.0.0.1:9000" "--grpc" "127.0.0.1:50051"
    ExecReload=/bin/kill -HUP $MAINPID
    Environment="PATH=HOME/bin:/nowhere"
    EnvironmentFile=-%E/toolyard/environment
    Restart=on-failure
    RestartSec=2
    # Running calls may end: `timeouts.drain`.
    TimeoutStopSec=90
    KillMode=mixed
    # Limits of sandboxed code.
    Delegate=yes
    UMask=0077

    [Install]
    WantedBy=default.target

    # systemctl --user daemon-reload
    # systemctl --user enable toolyard.service
    # systemctl --user restart toolyard.service
    --- exit status 0
    "#);
    assert!(!home.unit().exists());
    assert_eq!(home.calls(), "");
}

#[test]
fn service_is_installed_and_removed() {
    let home = ServiceHome::new(Some(RECORD));
    assert_snapshot!(home.run(&["install"]), @"
    wrote HOME/.config/systemd/user/toolyard.service and started the service

    `toolyard service status` shows its state, and `toolyard service logs` its log
    --- exit status 0
    ");
    assert_snapshot!(home.calls(), @"
    --user daemon-reload
    --user enable toolyard.service
    --user restart toolyard.service
    ");
    let unit = fs::read_to_string(home.unit()).unwrap();
    assert!(unit.contains("ExecStart="), "{unit}");
    // Installing again updates it.
    assert!(home.run(&["install"]).contains("exit status 0"));
    assert_snapshot!(home.run(&["logs", "--follow", "--lines", "5"]), @"
    journalctl --user --unit toolyard.service --no-pager --lines=5 --follow
    --- exit status 0
    ");
    home.calls();
    assert_snapshot!(home.run(&["uninstall"]), @"
    removed HOME/.config/systemd/user/toolyard.service
    --- exit status 0
    ");
    assert_snapshot!(home.calls(), @"
    --user disable --now toolyard.service
    --user daemon-reload
    ");
    assert!(!home.unit().exists());
    assert_snapshot!(home.run(&["uninstall"]), @"
    --- stderr
    error: the service is not installed: no HOME/.config/systemd/user/toolyard.service
    --- exit status 2
    ");
}

#[test]
fn status_of_systemctl_is_passed_on() {
    let home = ServiceHome::new(Some("echo \"$@\"; exit 3"));
    assert_snapshot!(home.run(&["status"]), @"
    --user status --no-pager toolyard.service
    --- exit status 3
    ");
}

#[test]
fn failure_of_systemctl_is_explained() {
    let home = ServiceHome::new(Some("echo 'Failed to connect to bus' >&2; exit 1"));
    assert_snapshot!(home.run(&["install"]), @"
    --- stderr
    error: `systemctl --user daemon-reload` failed (exit status: 1): Failed to connect to bus
    --- exit status 1
    ");
}

#[test]
fn missing_systemctl_is_noted() {
    let home = ServiceHome::new(None);
    assert_snapshot!(home.run(&["install"]), @"
    wrote HOME/.config/systemd/user/toolyard.service
    --- stderr
    note: there is no systemctl here; run `systemctl --user daemon-reload` where systemd is
    note: there is no systemctl here; run `systemctl --user enable toolyard.service` where systemd is
    note: there is no systemctl here; run `systemctl --user restart toolyard.service` where systemd is
    --- exit status 0
    ");
    assert!(home.unit().exists());
    assert_snapshot!(home.run(&["status"]), @"
    --- stderr
    error: there is no systemctl here: services require systemd
    --- exit status 1
    ");
}

#[test]
fn foreign_unit_is_not_replaced() {
    let home = ServiceHome::new(Some(RECORD));
    fs::create_dir_all(home.unit().parent().unwrap()).unwrap();
    fs::write(home.unit(), "[Service]\n").unwrap();
    assert_snapshot!(home.run(&["install"]), @"
    --- stderr
    error: another program wrote HOME/.config/systemd/user/toolyard.service; `--force` replaces it
    --- exit status 2
    ");
    assert_snapshot!(home.run(&["uninstall"]), @"
    --- stderr
    error: another program wrote HOME/.config/systemd/user/toolyard.service; it is not removed
    --- exit status 2
    ");
    assert_eq!(home.calls(), "");
    assert!(home.run(&["install", "--force"]).contains("exit status 0"));
}

#[test]
fn service_without_manifest_is_refused() {
    let home = ServiceHome::new(Some(RECORD));
    fs::remove_file(home.0.path().join("toolyard.yaml")).unwrap();
    assert_snapshot!(home.run(&["install"]), @"
    --- stderr
    error: no manifest to serve: write one with `toolyard init`, or name one with `-f`
    --- exit status 2
    ");
}
