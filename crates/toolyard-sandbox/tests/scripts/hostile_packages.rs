//! Packages that attack the installing machine, from a local index, as root, as an ordinary user, and as one with a uid
//! range.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::wait::until;

use crate::machine::{InstallerKind, TestUser, process, run, runs_with};
use crate::packages::open_folder;

/// Server of the packages.
const INDEX: &str = include_str!("index.py");

/// An index, and the targets of its packages.
struct Index {
    server: Child,
    port: String,
    folder: TempDir,
    /// A server of the machine that packages must not reach.
    foreign: TcpListener,
    cache: TempDir,
}

impl Index {
    fn start() -> Self {
        let (folder, cache) = (open_folder(), open_folder());
        let foreign = TcpListener::bind("127.0.0.1:0").unwrap();
        foreign.set_nonblocking(true).unwrap();
        std::fs::write(secret(&folder), "secret").unwrap();
        let mut server = process("/usr/bin/python3");
        server.args(["-c", INDEX]).arg(folder.path());
        server.arg(foreign.local_addr().unwrap().port().to_string()).arg(secret(&folder));
        let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { server, port: port.trim().to_owned(), folder, foreign, cache }
    }

    /// Installs each package for a separate script, and returns the results of the scripts.
    fn install(
        &self,
        user: TestUser,
        installer: InstallerKind,
        build: bool,
        packages: &[&str],
    ) -> Vec<Value> {
        let index = format!("http://reader:s3cret@127.0.0.1:{}/simple", self.port);
        let script = |name: &&str| {
            let module = name.split(['=', ' ']).next().unwrap();
            json!({"source": format!("import {module}; print({module}.FOUND)"), "packages": [name]})
        };
        let result = run(
            user,
            json!({
                "packages": self.cache.path(),
                "build": build,
                "uv": installer.uv(),
                "pip": [["PIP_INDEX_URL", index], ["PIP_CONFIG_FILE", "/dev/null"], ["PIP_RETRIES", "0"]],
                "scripts": packages.iter().map(script).collect::<Vec<_>>(),
            }),
        );
        assert!(self.foreign.accept().is_err(), "{user:?}: the machine's own server was reached");
        assert!(!ran(&self.folder).exists(), "{user:?}: code of a package ran outside its sandbox");
        assert!(!format!("{result:?}").contains("s3cret"), "{result:?}");
        result
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

fn secret(folder: &TempDir) -> PathBuf {
    folder.path().join("secret")
}

fn ran(folder: &TempDir) -> PathBuf {
    folder.path().join("secret.ran")
}

fn check_installed(user: TestUser) {
    for installer in InstallerKind::BOTH {
        let index = Index::start();
        // A link in an archive becomes a regular file with the target path as its content.
        let result = index.install(user, installer, false, &["needsgood==1.0", "linked"]);
        assert_eq!(result[0]["output"], "installed\n", "{user:?} {installer:?} {result:?}");
        assert_eq!(result[1]["output"], "installed\n", "{user:?} {installer:?} {result:?}");
    }
}

#[test]
fn packages_are_installed_with_dependencies_for_root() {
    check_installed(TestUser::Root);
}

#[test]
fn packages_are_installed_with_dependencies_for_a_user() {
    check_installed(TestUser::Ordinary);
}

#[test]
fn packages_are_installed_with_dependencies_for_a_user_with_uid_range() {
    check_installed(TestUser::Subordinate);
}

/// A refused package, and the errors with pip and with uv.
type Attack = (&'static str, &'static str, &'static str);

/// uv refuses all dependencies by URL.
const URL: &str = "URL dependencies must be expressed as direct requirements";

/// Packages that would need a build from source.
const SOURCES: [Attack; 4] = [
    ("sourceonly", "No matching distribution found for sourceonly", "sourceonly==1.0 has no usable wheels"),
    ("needssource", "No matching distribution found for sourceonly", "sourceonly==1.0 has no usable wheels"),
    ("needsownsource", "packages are not built from source here: only wheels are installed", URL),
    ("needsownlegacy", "packages are not built from source here: only wheels are installed", URL),
];

/// Packages that refer to other sources than the index.
const PLACES: [Attack; 4] = [
    ("needsforeign", "(not reached: 127.0.0.1:", URL),
    (
        "needsownwheel",
        "good-1.0.dist-info/direct_url.json: the package came from a URL, not from the index",
        URL,
    ),
    ("needsfile", "No such file or directory", URL),
    ("redirected", "(not reached: 127.0.0.1:", "(not reached: 127.0.0.1:"),
];

const PATH_FILE: &str = "pathfile.pth: a path file runs code when an interpreter starts";
const OTHER_DIGEST: &str = "otherdigest.py: content differs from the RECORD of its package";
const UNLISTED: &str = "unlisted.py: no SHA-256 digest in the RECORD of its package";

/// Packages with forbidden files.
const FILES: [Attack; 3] = [
    ("pathfile", PATH_FILE, PATH_FILE),
    ("otherdigest", OTHER_DIGEST, OTHER_DIGEST),
    ("unlisted", UNLISTED, UNLISTED),
];

#[track_caller]
fn check_refused(user: TestUser, attacks: &[Attack]) {
    let names: Vec<_> = attacks.iter().map(|(name, ..)| *name).collect();
    for installer in InstallerKind::BOTH {
        let index = Index::start();
        for ((name, by_pip, by_uv), result) in
            attacks.iter().zip(index.install(user, installer, false, &names))
        {
            let expected = if installer == InstallerKind::Pip { by_pip } else { by_uv };
            let message = result["message"].as_str();
            let message = message.unwrap_or_else(|| panic!("{user:?} {installer:?} {name}: {result}"));
            assert!(message.contains(expected), "{user:?} {installer:?} {name}: {message}");
            assert_eq!(result["code"], "execution_failed", "{user:?} {installer:?} {name}: {message}");
        }
        let entries = std::fs::read_dir(index.cache.path()).unwrap().count();
        assert_eq!(entries, 0, "{user:?} {installer:?}: refused packages leave nothing");
    }
}

/// pip refuses a file outside the target folder; uv omits it.
#[track_caller]
fn check_traversal(user: TestUser) {
    for installer in InstallerKind::BOTH {
        let index = Index::start();
        let result = index.install(user, installer, false, &["traversal"]).remove(0);
        match installer {
            InstallerKind::Pip => {
                // Some versions of pip omit the article.
                let message = result["message"].as_str().unwrap_or_default();
                let message = message.replace("outside target", "outside the target");
                assert!(message.contains("outside the target directory"), "{user:?}: {result}");
            }
            InstallerKind::Uv => assert_eq!(result["output"], "installed\n", "{user:?}: {result}"),
        }
        let output = process("find").arg(index.cache.path()).args(["/tmp", "-name", "escaped.py"]).output();
        assert_eq!(String::from_utf8_lossy(&output.unwrap().stdout), "", "{user:?} {installer:?}");
    }
}

#[test]
fn files_outside_the_target_are_not_written_for_root() {
    check_traversal(TestUser::Root);
}

#[test]
fn files_outside_the_target_are_not_written_for_a_user() {
    check_traversal(TestUser::Ordinary);
}

#[test]
fn files_outside_the_target_are_not_written_for_a_user_with_uid_range() {
    check_traversal(TestUser::Subordinate);
}

#[test]
fn source_packages_are_refused_for_root() {
    check_refused(TestUser::Root, &SOURCES);
}

#[test]
fn source_packages_are_refused_for_a_user() {
    check_refused(TestUser::Ordinary, &SOURCES);
}

#[test]
fn source_packages_are_refused_for_a_user_with_uid_range() {
    check_refused(TestUser::Subordinate, &SOURCES);
}

#[test]
fn packages_from_other_sources_are_refused_for_root() {
    check_refused(TestUser::Root, &PLACES);
}

#[test]
fn packages_from_other_sources_are_refused_for_a_user() {
    check_refused(TestUser::Ordinary, &PLACES);
}

#[test]
fn packages_from_other_sources_are_refused_for_a_user_with_uid_range() {
    check_refused(TestUser::Subordinate, &PLACES);
}

#[test]
fn packages_with_forbidden_files_are_refused_for_root() {
    check_refused(TestUser::Root, &FILES);
}

#[test]
fn packages_with_forbidden_files_are_refused_for_a_user() {
    check_refused(TestUser::Ordinary, &FILES);
}

#[test]
fn packages_with_forbidden_files_are_refused_for_a_user_with_uid_range() {
    check_refused(TestUser::Subordinate, &FILES);
}

fn check_built(user: TestUser, installer: InstallerKind) {
    let index = Index::start();
    let result = index.install(user, installer, true, &["prober", "linker"]);
    let expected = "{'secret': 'FileNotFoundError', 'passwd': 'FileNotFoundError', 'write': 'OSError', \
                    'network': 'ConnectionRefusedError', 'outside': 'OSError', 'user': 'not root'}\n";
    let findings = result[0]["output"].as_str().map(|output| output.replace("PermissionError", "OSError"));
    assert_eq!(findings.as_deref(), Some(expected), "{user:?} {installer:?} {result:?}");
    let secret = secret(&index.folder);
    until("what a build has started ends with it", || {
        !runs_with("import time; time.sleep(1000)", secret.to_str().unwrap())
    });
    let message =
        result[1]["message"].as_str().unwrap_or_else(|| panic!("{user:?} {installer:?} {result:?}"));
    assert!(message.contains("there is a symbolic link"), "{user:?} {installer:?} {message}");
}

#[test]
fn builds_stay_in_their_sandbox_for_root() {
    InstallerKind::BOTH.into_iter().for_each(|installer| check_built(TestUser::Root, installer));
}

#[test]
fn builds_stay_in_their_sandbox_for_a_user() {
    InstallerKind::BOTH.into_iter().for_each(|installer| check_built(TestUser::Ordinary, installer));
}

#[test]
fn builds_stay_in_their_sandbox_for_a_user_with_uid_range() {
    InstallerKind::BOTH.into_iter().for_each(|installer| check_built(TestUser::Subordinate, installer));
}

#[test]
fn options_that_build_from_source_are_refused() {
    let index = Index::start();
    let lines =
        ["legacy==1.0 --no-binary=legacy", "legacy==1.0 --no-binary legacy", "good==1.0 --global-option=x"];
    for (line, result) in lines.iter().zip(index.install(TestUser::Root, InstallerKind::Uv, false, &lines)) {
        assert_eq!(result["code"], "invalid_arguments", "{line:?} {result}");
    }
}
