//! A quick run of the benchmark: every response is right, and the tables have all targets.

#![expect(clippy::disallowed_methods, reason = "the bench is a program of this workspace")]

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn every_target_responds_correctly() {
    let bench = Command::new(env!("CARGO_BIN_EXE_xtask-bench"))
        .args(["--quick", "--gateway"])
        .arg(built("toolyard"))
        .arg("--sdk-echo")
        .arg(built("examples/bench_echo"))
        .arg("--rmcp-echo")
        .arg(rmcp_echo())
        .arg("--functions")
        .arg(built("examples/bench_functions"))
        .arg("--descriptors")
        .arg(built("examples/bench_descriptors"))
        .output()
        .unwrap();
    let table = String::from_utf8(bench.stdout).unwrap();
    assert!(bench.status.success(), "{table}\n{}", String::from_utf8_lossy(&bench.stderr));
    assert!(table.contains("built here: dist\n"), "no profile in\n{table}");
    for target in [
        "direct",
        "nginx",
        "hop",
        "gateway",
        "unaudited",
        "operated",
        "sdk",
        "rmcp",
        "python",
        "javascript",
        "lua",
        "gRPC method",
    ] {
        assert!(table.contains(&format!("  {target}  ")), "{target} is missing in\n{table}");
    }
}

/// A program of the workspace, in the folder of the bench.
fn built(path: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_xtask-bench")).with_file_name(path);
    assert!(program.exists(), "build the whole workspace first: cargo build --workspace --bins --examples");
    program
}

/// The trivial tool on rmcp, which is built with the peers.
fn rmcp_echo() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let peers = std::env::var_os("TOOLYARD_PEERS").unwrap_or_else(|| "target/peers".into());
    let echo = root.join(peers).join("rmcp-server/debug/echo");
    assert!(echo.exists(), "{} is not installed: run `cargo xtask peer-software`", echo.display());
    echo
}
