//! FastMCP's clients, which make objects of structured results by the listed output schemas: small results have the
//! members of the original, and large ones those of a reference.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::large_results::Archive;

/// The tools with their argument, and its values for a small and for a large result. The last two are FastMCP's, whose
/// results it wraps.
const TOOLS: [(&str, &str, [usize; 2]); 5] = [
    ("export", "rows", [2, 1000]),
    ("rows", "rows", [2, 1000]),
    ("log", "lines", [3, 2000]),
    ("entries", "rows", [2, 3000]),
    ("report", "rows", [2, 5000]),
];

/// Returns what an application sees of these calls.
#[track_caller]
fn calls(archive: &Archive, python: &str, calls: &Value) -> Vec<Value> {
    let home = TempDir::new().unwrap();
    let mut client = peers::command(peers::peer(python), home.path());
    client.arg(script("fastmcp_results.py")).args([&archive.gateway.url(), &archive.key, &calls.to_string()]);
    let ended = run(&mut client);
    assert_eq!(ended.code, 0, "{ended}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[track_caller]
fn check_version(python: &str) {
    let archive = Archive::with_servers(
        &["large_results_server.py", "fastmcp_large_server.py"],
        json!({"builtins": {"scripts": {"enabled": false}}}),
    );
    let sizes = |(tool, argument, sizes): &(&str, &str, [usize; 2])| {
        sizes.map(|size| json!([tool, {*argument: size}]))
    };
    let taken: Vec<_> = TOOLS.iter().flat_map(sizes).collect();
    let seen = calls(&archive, python, &json!(taken));
    for ((tool, ..), seen) in TOOLS.iter().zip(seen.chunks(2)) {
        let [small, large] = seen else { unreachable!() };
        for call in [small, large] {
            assert!(call["refused"].is_null(), "{python} {tool}: {call:.500}");
            assert_eq!(call["errors"], json!([]), "{python} {tool}");
        }
        let is_wrapped = ["entries", "report"].contains(tool);
        let structured = &small["structured"];
        let expected = if is_wrapped { &structured["result"] } else { structured };
        assert_eq!(without_absent(&small["data"]), *expected, "{python} {tool}");
        assert_eq!(small["is_object"], !is_wrapped, "{python} {tool}: {small}");

        let reference = &large["structured"]["storedResult"];
        assert!(reference["key"].as_str().is_some_and(|key| key.ends_with("-index")), "{large:.500}");
        // FastMCP takes the member `result` of a wrapped result, which a reference does not have.
        let expected = if is_wrapped { &Value::Null } else { reference };
        assert_eq!(without_absent(&large["data"])["storedResult"], *expected, "{python} {tool}");
        assert!(large["texts"][0].as_str().unwrap().contains("stored in working memory"), "{large:.500}");
    }
}

/// Returns the data of an object without the members that it does not have.
fn without_absent(data: &Value) -> Value {
    let members = data.as_object().map(|members| {
        let present = members.iter().filter(|(_, value)| !value.is_null());
        present.map(|(name, value)| (name.clone(), value.clone())).collect()
    });
    members.map_or_else(|| data.clone(), Value::Object)
}

#[test]
fn fastmcp_2_reads_results_and_references() {
    check_version("fastmcp-2.14/bin/python");
}

#[test]
fn fastmcp_3_reads_results_and_references() {
    check_version("fastmcp-3.4/bin/python");
}

#[test]
fn fastmcp_4_reads_results_and_references() {
    check_version("python/bin/python");
}
