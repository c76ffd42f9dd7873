//! The examples of the SDK, as their users have them: seen by the MCP Inspector and by the Python SDK, on every
//! transport and in both eras. What a client sees does not depend on the way to the server.

mod clients;
mod elicitation;
mod long_task;
mod multiply;
mod notes;
mod reverse;

use std::path::{Path, PathBuf};

use crate::support::peers;
use crate::support::process::Process;

/// The built example, which is beside the folder of this test.
#[track_caller]
fn built(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(example);
    assert!(path.exists(), "{} is not there: build all targets of the workspace", path.display());
    path
}

/// An example that serves over HTTP until it is dropped.
struct Served {
    _process: Process,
    url: String,
}

impl Served {
    #[track_caller]
    fn new(example: &str, home: &Path) -> Self {
        let mut command = peers::command(built(example), home);
        let process = Process::start(command.arg("127.0.0.1:0"));
        let url = process.stdout.wait_for("the URL", |text| {
            let (_, rest) = text.split_once("listening on ")?;
            rest.split_once('\n').map(|(url, _)| url.to_owned())
        });
        Self { _process: process, url }
    }
}
