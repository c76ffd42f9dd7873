//! What a person reads on a terminal.

mod add;
mod ask;
mod completions;
mod connect;
mod doctor;
mod help;
mod keys;
mod manifests;
mod refusals;
mod serve;
mod store;
mod terminal;

use std::path::Path;

use tempfile::TempDir;

use crate::support::gateway::toolyard;
use crate::support::process::{Ended, run};

/// Runs `toolyard` with these arguments, away from everything.
#[track_caller]
fn toolyard_with(args: &[&str]) -> Ended {
    let state = TempDir::new().unwrap();
    run(toolyard(Path::new("/")).env("TOOLYARD_STATE_DIR", state.path()).args(args).current_dir("/"))
}
