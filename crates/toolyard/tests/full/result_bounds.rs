//! Results of unusual forms of a server on the Python SDK, at the Python SDK's client: all of a result is within its
//! bound, apart from media.

use serde_json::{Value, json};
use tempfile::TempDir;
use toolyard_testing::peers;
use toolyard_testing::process::run;
use toolyard_testing::scripted_server::script;

use crate::large_results::Archive;

/// The default bound in characters, with what surrounds texts.
const BOUND: usize = 65_000;

/// Forms of results that are no media.
const BOUNDED: [&str; 10] = [
    "binary text",
    "image of text",
    "audio of text",
    "empty texts",
    "letters",
    "annotation",
    "meta",
    "meta of a block",
    "error",
    "data of an error",
];

/// Returns the length of the result of each call in characters.
#[track_caller]
fn sizes(archive: &Archive, mode: &str, calls: &Value) -> Vec<usize> {
    let home = TempDir::new().unwrap();
    let mut client = peers::command(peers::peer("python/bin/python"), home.path());
    let arguments = [&archive.gateway.url(), mode, &archive.key, &calls.to_string()];
    let ended = run(client.arg(script("result_sizes.py")).args(arguments));
    assert_eq!(ended.code, 0, "{ended}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[track_caller]
fn check(mode: &str) {
    let archive = Archive::with_servers(&["unusual_results_server.py"], json!({"builtins": {}}));
    let direct = |form: &&str| json!(["form", {"name": form}]);
    let routed = |form: &&str| json!(["call_tool", {"name": "form", "arguments": {"name": form}}]);
    let calls: Vec<_> = BOUNDED.iter().flat_map(|form| [direct(form), routed(form)]).collect();
    for (call, size) in calls.iter().zip(sizes(&archive, mode, &json!(calls))) {
        assert!(size <= BOUND, "{mode} {call}: {size}");
    }
    let media: Vec<_> = ["image", "binary image"].iter().map(direct).collect();
    for (call, size) in media.iter().zip(sizes(&archive, mode, &json!(media))) {
        assert!(size > 400_000, "{mode} {call}: {size}");
    }
}

#[test]
fn python_client_gets_bounded_results_of_every_form() {
    check("2026-07-28");
}

#[test]
fn python_client_with_a_session_gets_bounded_results_of_every_form() {
    check("legacy");
}

/// Without the built-in tools the gateway relays whatever a server sends.
#[test]
fn results_pass_whole_without_built_in_tools() {
    let archive = Archive::with_servers(&["unusual_results_server.py"], json!({}));
    let forms = ["binary text", "letters", "meta", "error", "data of an error"];
    let calls: Vec<_> = forms.iter().map(|form| json!(["form", {"name": form}])).collect();
    for (call, size) in calls.iter().zip(sizes(&archive, "2026-07-28", &json!(calls))) {
        assert!(size > 390_000, "{call}: {size}");
    }
}
