//! `npx toolyard` and `uvx toolyard`, from files instead of the registries.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use xtask_support::peers::PeerSoftware;

use crate::release_files::{file, make, printed};
use crate::tool_list;

/// Checks the version and the list of tools of `toolyard`, as a launcher with these arguments runs it.
fn check(launcher: impl Fn() -> Command) {
    assert_eq!(printed(launcher().arg("--version")), format!("toolyard {}\n", env!("CARGO_PKG_VERSION")));
    tool_list::assert_demo(&tool_list::of(launcher().arg("stdio")));
}

#[test]
fn npx_runs_the_npm_package() {
    let release = make("npm");
    let package = file(&release, ".tgz");
    let home = TempDir::new().unwrap();
    check(|| {
        let mut npx = Command::new("npx");
        npx.args(["--yes", "--offline", "--package"]).arg(format!("file:{}", package.display()));
        npx.arg("toolyard").current_dir(&home).env("npm_config_cache", home.path().join("npm"));
        state_in(&mut npx, home.path());
        npx
    });
}

#[test]
fn uvx_runs_the_wheel() {
    let release = make("wheel");
    let package = file(&release, ".whl");
    let python = PeerSoftware::installed().unwrap().python();
    let home = TempDir::new().unwrap();
    check(|| {
        let mut uvx = Command::new(&python);
        uvx.args(["-m", "uv", "--quiet", "tool", "run", "--offline", "--python"]).arg(&python);
        uvx.arg("--from").arg(&package).arg("toolyard").current_dir(&home);
        uvx.env("UV_CACHE_DIR", home.path().join("uv")).env("UV_PYTHON_DOWNLOADS", "never");
        state_in(&mut uvx, home.path());
        uvx
    });
}

fn state_in(command: &mut Command, home: &Path) {
    command.env("TOOLYARD_STATE_DIR", home.join("state"));
}
