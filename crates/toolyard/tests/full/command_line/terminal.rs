//! Output that differs between terminals and pipes.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use toolyard_testing::peers;
use toolyard_testing::process::{RunningProgram, run};
use toolyard_testing::scripted_server::{ScriptedServer, script};

use super::toolyard_with;
use crate::support::gateway::{TestGateway, toolyard};

/// Returns a command that runs another on a terminal with typed input, in the same environment.
pub(super) fn at_terminal(typed: &str, command: &Command) -> Command {
    let mut terminal = peers::command(peers::peer("python/bin/python"), Path::new("/"));
    terminal.arg(script("terminal.py")).arg(typed).arg(command.get_program()).args(command.get_args());
    terminal.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    terminal
}

const ESCAPE: char = '\u{1b}';

#[test]
fn colours_are_for_terminals() {
    // Ctrl-D ends the input.
    let stdio = || {
        let mut stdio = toolyard(Path::new("/"));
        stdio.arg("stdio");
        stdio
    };
    let at = |command: &Command| run(&mut at_terminal("\u{4}", command));
    let seen = at(&stdio());
    assert!(seen.stdout.contains(ESCAPE) && seen.stdout.contains("stopped"), "{seen}");
    let seen = at(stdio().env("NO_COLOR", "1"));
    assert!(!seen.stdout.contains(ESCAPE) && seen.stdout.contains("stopped"), "{seen}");
    let logged = run(&mut stdio()).stderr;
    assert!(!logged.contains(ESCAPE) && logged.contains("stopped"), "{logged}");
}

/// On a terminal, a notice appears after a delay; in a pipe, none does.
#[test]
fn long_wait_is_announced_on_terminals() {
    let server = ScriptedServer::new("slow");
    let gateway = TestGateway::with_handlers(&[server.handler()]);
    let mut call = toolyard(gateway.folder.path());
    call.args(["call", "wait", "--url", &gateway.url()]);
    let mut person = RunningProgram::start(&mut at_terminal("", &call));
    let mut program = RunningProgram::start(&mut call);
    person.stdout.wait_for("the line", |text| text.contains("waiting for wait ...\n").then_some(()));
    server.open_gate();
    assert!(person.wait().success() && program.wait().success());
    assert_eq!(program.stderr.text(), "");
}

#[test]
fn errors_as_json() {
    let seen = toolyard_with(&["tools", "--url", "http://127.0.0.1:1/mcp", "--output", "json"]);
    let error: Value = serde_json::from_str(&seen.stderr).unwrap();
    assert_eq!((seen.code, &error["exitStatus"]), (1, &json!(1)));
    assert!(
        error["error"].as_str().unwrap().starts_with("cannot connect to http://127.0.0.1:1/mcp: "),
        "{error}"
    );
    let seen = toolyard_with(&["serve", "-f", "/missing.yaml", "--output", "json"]);
    let error: Value = serde_json::from_str(&seen.stderr).unwrap();
    assert_eq!((seen.code, &error["exitStatus"]), (2, &json!(2)));
}
