//! A server program that a client starts.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::json;

/// A request that every server answers.
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// The example `reverse`, after its first response, when it handles signals.
struct Program {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Program {
    fn start() -> Self {
        let test = std::env::current_exe().unwrap();
        let example = test.ancestors().nth(2).unwrap().join("examples/reverse");
        let mut command = Command::new(example);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut program = Self { child, stdin, stdout };
        writeln!(program.stdin, "{PING}").unwrap();
        let mut answer = String::new();
        program.stdout.read_line(&mut answer).unwrap();
        assert_eq!(answer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
        program
    }
}

fn signal(id: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &id.to_string()]).status().unwrap().success());
}

/// Waits for the program; the test runner kills one that does not exit in time.
#[track_caller]
fn check(child: Child, code: i32, message: &str) {
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), stderr.trim_end()), (Some(code), message));
}

#[test]
fn program_exits_at_the_end_of_its_input() {
    let Program { child, stdin, stdout: _stdout } = Program::start();
    drop(stdin);
    check(child, 0, "");
}

#[test]
fn program_exits_on_a_signal_with_its_input_open() {
    for name in ["-TERM", "-INT"] {
        let Program { child, stdin: _stdin, stdout: _stdout } = Program::start();
        signal(child.id(), name);
        check(child, 0, "");
    }
}

#[test]
fn program_fails_when_its_output_is_closed() {
    let Program { child, mut stdin, stdout } = Program::start();
    drop(stdout);
    writeln!(stdin, "{PING}").unwrap();
    check(child, 1, "Error: lost the connection to the client: Broken pipe (os error 32)");
}

#[test]
fn second_signal_does_not_wait_for_a_slow_client() {
    let Program { child, mut stdin, mut stdout } = Program::start();
    // The response does not fit into a pipe, so the write does not complete.
    let params = json!({"name": "reverse_string", "arguments": {"input": "a".repeat(1 << 20)}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    writeln!(stdin, "{call}").unwrap();
    assert!(!stdout.fill_buf().unwrap().is_empty());
    signal(child.id(), "-TERM");
    signal(child.id(), "-INT");
    check(child, 0, "");
}
