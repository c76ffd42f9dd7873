//! Execution of one script.

use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::FusedFuture;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::time::{Instant, timeout, timeout_at};
use toolyard_core::ToolError;
use toolyard_core::script::TIMED_OUT;
use toolyard_process::ChildPipes;

use super::errors;
use super::output::{BoundedOutput, OutputPart};
use super::payload::format_size;
use crate::{SandboxOutcome, SandboxedProcess};

/// Time limit for the end of killed processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Exit status of a killed process, as in shells.
const KILLED_STATUS: i32 = 128 + 9;

pub(super) struct ScriptLimits {
    pub(super) deadline: Instant,
    pub(super) output_bytes: usize,
    pub(super) memory_bytes: u64,
    pub(super) processes: u32,
}

/// Result of a script.
pub(super) struct ScriptOutput {
    pub(super) output: String,
    pub(super) stderr: String,
    pub(super) exit_code: i32,
}

/// Sends the payload to a script and collects its output until it ends or is killed at its deadline. In both cases its
/// descendants are killed.
pub(super) async fn run_to_end(
    process: &SandboxedProcess,
    pipes: ChildPipes,
    payload: &[u8],
    limits: &ScriptLimits,
) -> Result<ScriptOutput, ToolError> {
    let mut output = BoundedOutput::new(OutputPart::Beginning, limits.output_bytes);
    let mut stderr = BoundedOutput::new(OutputPart::End, limits.output_bytes);
    let in_time = {
        let communication = async {
            tokio::join!(
                write_payload(pipes.stdin, payload),
                output.read(pipes.stdout),
                stderr.read(pipes.stderr)
            );
        };
        let mut communication = pin!(communication.fuse());
        let mut ended = pin!(timeout_at(limits.deadline, process.outcome()));
        let in_time = loop {
            tokio::select! {
                outcome = &mut ended => break outcome.ok(),
                () = &mut communication => {}
            }
        };
        process.kill();
        let rest = async {
            process.ending().wait().await;
            if !communication.is_terminated() {
                communication.await;
            }
        };
        // Output so far is kept, even if another process still holds the pipes.
        let _held = timeout(KILL_TIMEOUT, rest).await;
        in_time
    };
    let (output, mut stderr) = (output.text(), stderr.text());
    let exit_code = in_time.map_or(Ok(TIMED_OUT), |outcome| exit_code(outcome, process))?;
    // Some of its processes may have been killed before the deadline.
    let outcome = in_time.or(process.outcome().now_or_never());
    if let Some(why) = outcome.and_then(|outcome| kill_reason(outcome, limits)) {
        append_line(&mut stderr, &why);
    }
    Ok(ScriptOutput { output, stderr, exit_code })
}

/// Sends the payload. A script that ends before it has read all of it is not an error.
async fn write_payload(mut stdin: ChildStdin, payload: &[u8]) {
    let _unread = stdin.write_all(payload).await;
}

fn exit_code(outcome: SandboxOutcome, process: &SandboxedProcess) -> Result<i32, ToolError> {
    match outcome {
        SandboxOutcome::Exited(code) => Ok(code),
        SandboxOutcome::Signalled(signal) => Ok(128 + signal),
        SandboxOutcome::OutOfMemory | SandboxOutcome::TooManyProcesses => Ok(KILLED_STATUS),
        SandboxOutcome::Refused => Err(errors::setup_error(process.refusal_reason())),
        SandboxOutcome::Killed | SandboxOutcome::Unknown => Err(errors::killed_externally()),
    }
}

/// Returns the message for a script that could not report the limit itself.
fn kill_reason(outcome: SandboxOutcome, limits: &ScriptLimits) -> Option<String> {
    let (reason, limit) = match outcome {
        SandboxOutcome::OutOfMemory => ("exceeded its memory limit", format_size(limits.memory_bytes)),
        SandboxOutcome::TooManyProcesses => ("exceeded its limit of processes", limits.processes.to_string()),
        _ => return None,
    };
    Some(format!("Killed: the script {reason} ({limit})."))
}

/// Appends a line.
fn append_line(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
}
