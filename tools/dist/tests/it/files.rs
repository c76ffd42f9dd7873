//! The files themselves: their checksums, the list of what is linked, the unit of the service.

use std::process::Command;

use tempfile::TempDir;
use xtask_support::peers::PeerSoftware;

use crate::release_files::{file, make, make_in, printed};

#[test]
fn same_binary_gives_the_same_files() {
    let kinds = "tarball,deb,npm,wheel";
    let (one, other) = (make(kinds), TempDir::new().unwrap());
    make_in(other.path(), kinds);
    let sums = |folder: &TempDir| std::fs::read_to_string(folder.path().join("SHA256SUMS")).unwrap();
    assert_eq!(sums(&one), sums(&other));
    assert_eq!(sums(&one).lines().count(), 4);
    printed(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&one));
}

/// Judged by the library of the CycloneDX project.
#[test]
fn sbom_is_valid_and_has_every_crate() {
    let release = make("sbom");
    let sbom = file(&release, ".cdx.json");
    let judge = "import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(fault) if fault else 0)";
    let python = PeerSoftware::installed().unwrap().python_of("cyclonedx");
    printed(Command::new(python).args(["-c", judge]).arg(&sbom));
    let text = std::fs::read_to_string(sbom).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let components = document["components"].as_array().unwrap();
    for name in ["tokio", "libsqlite3-sys", "toolyard-mcp", "kube"] {
        assert!(components.iter().any(|component| component["name"] == name), "{name} is missing");
    }
    for component in components {
        assert!(component["licenses"].is_array(), "no licence: {component}");
        let is_ours = component["name"].as_str().unwrap().starts_with("toolyard-");
        assert_eq!(component["hashes"].is_array(), !is_ours, "{component}");
    }
}

#[test]
fn systemd_accepts_the_unit() {
    let root = TempDir::new().unwrap();
    let release = make("deb");
    printed(Command::new("dpkg-deb").arg("--extract").arg(file(&release, ".deb")).arg(root.path()));
    // systemd looks up the program in the file system of this machine.
    let unit = root.path().join("usr/lib/systemd/system/toolyard.service");
    let text = std::fs::read_to_string(&unit).unwrap();
    let binary = root.path().join("usr/bin/toolyard");
    std::fs::write(&unit, text.replace("/usr/bin/toolyard", binary.to_str().unwrap())).unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg("--man=no").arg(&unit).output().unwrap();
    // It warns about unknown settings on standard error, and succeeds.
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !warnings.contains("toolyard"), "{warnings}");
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--threshold=50"]);
    printed(security.arg(&unit));
}
