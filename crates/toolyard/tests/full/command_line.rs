//! The output of the commands.

mod accept;
mod add;
mod completions;
mod connect;
mod console;
mod defaults;
mod doctor;
mod help;
mod init;
mod keys;
mod manifests;
mod serve;
mod service;
mod store;
mod terminal;
mod tools_and_call;
mod usage_errors;
mod version;

use std::path::Path;

use tempfile::TempDir;
use toolyard_testing::process::{ProgramResult, run};

use crate::support::gateway::toolyard;

/// Runs `toolyard` with these arguments in an empty environment.
#[track_caller]
fn toolyard_with(args: &[&str]) -> ProgramResult {
    let state = TempDir::new().unwrap();
    run(toolyard(Path::new("/")).env("TOOLYARD_STATE_DIR", state.path()).args(args).current_dir("/"))
}
