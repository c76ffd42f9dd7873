//! The examples of the SDK with the MCP Inspector and the Python SDK, on every transport and in both eras. Transcripts
//! do not depend on the transport.

mod clients;
mod elicitation;
mod long_task;
mod multiply;
mod notes;
mod reverse;

use std::path::{Path, PathBuf};

use toolyard_testing::peers;
use toolyard_testing::process::RunningProgram;

/// Returns the path of the example_path example, beside the directory of this test.
#[track_caller]
fn example_path(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(example);
    assert!(path.exists(), "{} is not there: build all targets of the workspace", path.display());
    path
}

/// An example that serves HTTP until it is dropped.
struct HttpExample {
    _process: RunningProgram,
    url: String,
}

impl HttpExample {
    #[track_caller]
    fn new(example: &str, home: &Path) -> Self {
        let mut command = peers::command(example_path(example), home);
        let process = RunningProgram::start(command.arg("127.0.0.1:0"));
        let url = process.stdout.wait_for("the URL", |text| {
            let (_, rest) = text.split_once("listening on ")?;
            rest.split_once('\n').map(|(url, _)| url.to_owned())
        });
        Self { _process: process, url }
    }
}
