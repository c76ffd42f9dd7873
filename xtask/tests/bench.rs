//! The benchmark works: every reply that it gets is right, and it prints its table.

#![expect(clippy::disallowed_methods, reason = "the bench is a program of this workspace")]

use std::path::Path;
use std::process::Command;

#[test]
fn every_target_answers_rightly() {
    let xtask = Path::new(env!("CARGO_BIN_EXE_xtask"));
    let gateway = xtask.with_file_name("toolyard");
    assert!(gateway.exists(), "build the whole workspace first: cargo build --workspace");
    let bench = Command::new(xtask).args(["bench", "--quick", "--gateway"]).arg(gateway).output().unwrap();
    let table = String::from_utf8(bench.stdout).unwrap();
    assert!(bench.status.success(), "{table}\n{}", String::from_utf8_lossy(&bench.stderr));
    for target in ["direct", "nginx", "gateway"] {
        assert!(table.contains(target), "{target} is missing in\n{table}");
    }
}
