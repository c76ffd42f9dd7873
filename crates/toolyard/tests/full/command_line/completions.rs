//! `toolyard completions`: the scripts are valid in the shells.

use std::path::Path;

use serde_json::Value;
use toolyard_testing::peers;
use toolyard_testing::process::run;

use super::toolyard_with;

#[test]
fn for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = toolyard_with(&["completions", shell]);
        assert!(ended.code == 0 && ended.stdout.contains("doctor"), "{ended}");
        assert!(!ended.stdout.contains("supervise"), "{ended}");
        let as_json = toolyard_with(&["completions", shell, "--output", "json"]);
        let as_json: Value = serde_json::from_str(&as_json.stdout).unwrap();
        assert_eq!(as_json["script"].as_str().unwrap().trim_end(), ended.stdout.trim_end());
    }
}

#[test]
fn in_bash() {
    let script = toolyard_with(&["completions", "bash"]).stdout;
    let ask =
        "COMP_WORDS=(toolyard com); COMP_CWORD=1; _toolyard toolyard com toolyard; echo ${COMPREPLY[@]}";
    let mut bash = peers::command("bash", Path::new("/"));
    let ended = run(bash.args(["--noprofile", "--norc", "-c", &format!("{script}\n{ask}")]));
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "completions\n"), "{ended}");
}
