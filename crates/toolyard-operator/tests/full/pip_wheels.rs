//! The pip wrapper of pods, with the pip of this machine and a package that attacks its builder.

#![expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]

use std::path::Path;
use std::process::{Command, Output};

const WHEELS: &str = include_str!("../../src/script/wheels.py");

/// Installs a package from one folder into another.
fn install(package: &Path, target: &Path) -> Output {
    let mut pip = Command::new("/usr/bin/python3");
    pip.args(["-I", "-c", WHEELS, "install", "--no-input", "--no-index", "--disable-pip-version-check"]);
    pip.args(["--no-build-isolation", "--only-binary=:all:", "--target"]).arg(target).arg("--").arg(package);
    pip.env("PIP_CONFIG_FILE", "/dev/null").output().unwrap()
}

#[test]
fn source_package_by_path_is_not_built() {
    let folder = tempfile::tempdir().unwrap();
    let (package, target) = (folder.path().join("package"), folder.path().join("target"));
    let ran = folder.path().join("ran");
    std::fs::create_dir(&package).unwrap();
    let attack = format!("open({:?}, 'w').close()\n", ran.to_str().unwrap());
    std::fs::write(package.join("setup.py"), &attack).unwrap();
    std::fs::write(package.join("backend.py"), &attack).unwrap();
    let backend = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n";
    std::fs::write(package.join("pyproject.toml"), backend).unwrap();
    let output = install(&package, &target);
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{log}");
    assert!(log.contains("packages are not built from source here: only wheels are installed"), "{log}");
    assert!(!ran.exists(), "code of the package ran");
}

#[test]
fn pip_gets_its_arguments() {
    let python = Command::new("/usr/bin/python3").args(["-I", "-c", WHEELS, "--version"]).output().unwrap();
    let output_text = String::from_utf8_lossy(&python.stdout).into_owned();
    assert!(output_text.starts_with("pip "), "{output_text} {}", String::from_utf8_lossy(&python.stderr));
}
