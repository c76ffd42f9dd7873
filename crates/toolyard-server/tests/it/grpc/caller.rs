//! The Python implementation of gRPC as a client: `grpc_caller.py`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::block_in_place;
use toolyard_testing::peers::{command, peer, root};
use toolyard_testing::scripted_server::script;

/// Returns the folder with the modules that grpcio-tools generates of our file of the protocol.
fn stubs() -> &'static Path {
    static STUBS: OnceLock<TempDir> = OnceLock::new();
    let folder = STUBS.get_or_init(|| {
        let folder = TempDir::new().unwrap();
        let out = folder.path().display();
        let mut generate = command(peer("grpc/bin/python"), folder.path());
        generate.args(["-m", "grpc_tools.protoc", "--proto_path=crates/toolyard-grpc/proto"]);
        generate.args([format!("--python_out={out}"), format!("--grpc_python_out={out}")]);
        let status = generate.arg("omnia/tools/v1/tools.proto").current_dir(root()).status().unwrap();
        assert!(status.success());
        folder
    });
    folder.path()
}

/// A running client. It is killed on drop.
pub(super) struct GrpcCaller {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl GrpcCaller {
    /// Starts a client of this address. Options are words such as `key=...`.
    pub(super) fn start(target: &str, options: &[String]) -> Self {
        let mut caller = command(peer("grpc/bin/python"), stubs());
        caller.arg(script("grpc_caller.py")).arg(stubs()).arg(target).args(options);
        let mut process = caller.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut caller = Self { process, stdin, stdout: BufReader::new(stdout) };
        assert_eq!(caller.line(), "ready");
        caller
    }

    /// Sends a request.
    pub(super) fn send(&mut self, request: &Value) {
        writeln!(self.stdin, "{request}").unwrap();
    }

    /// Reads an answer.
    pub(super) fn answer(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        block_in_place(|| self.stdout.read_line(&mut line)).unwrap();
        line.trim_end().to_owned()
    }

    /// Sends a request, and reads its answer.
    pub(super) fn ask(&mut self, request: &Value) -> Value {
        self.send(request);
        self.answer()
    }

    /// Calls a tool.
    pub(super) fn execute(&mut self, tool: &str, arguments: &str) -> Value {
        self.ask(&json!({"do": "execute", "tool": tool, "arguments": arguments}))
    }

    /// Kills the client.
    pub(super) fn kill(mut self) {
        self.process.kill().unwrap();
    }
}

impl Drop for GrpcCaller {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}
