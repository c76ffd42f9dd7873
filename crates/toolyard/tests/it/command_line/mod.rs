//! What a person reads on a terminal.

mod ask;
mod doctor;
mod help;
mod manifests;
mod refusals;
mod serve;

use std::path::Path;

use crate::support::gateway::toolyard;
use crate::support::process::{Ended, run};

/// Runs `toolyard` with these arguments, away from everything.
#[track_caller]
fn toolyard_with(args: &[&str]) -> Ended {
    run(toolyard(Path::new("/")).args(args).current_dir("/"))
}
