//! One script from its start to its end.

use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::FusedFuture;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::time::{Instant, timeout, timeout_at};
use toolyard_core::ToolError;
use toolyard_core::script::TIMED_OUT;
use toolyard_process::Pipes;

use super::output::{Kept, Part};
use super::payload::size;
use super::refusal;
use crate::{Confined, Verdict};

/// How long the system may take to end what was killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The status of what was killed, as shells have it.
const KILLED: i32 = 128 + 9;

pub(super) struct Limits {
    pub(super) deadline: Instant,
    pub(super) output_bytes: usize,
    pub(super) memory_bytes: u64,
    pub(super) processes: u32,
}

/// What came of it.
pub(super) struct Ended {
    pub(super) output: String,
    pub(super) stderr: String,
    pub(super) exit_code: i32,
}

/// Gives a script what it is to have, and keeps what it writes until it has ended, or is killed at its deadline. What
/// it has started is killed in both cases.
pub(super) async fn hold(
    confined: &Confined,
    pipes: Pipes,
    payload: &[u8],
    limits: &Limits,
) -> Result<Ended, ToolError> {
    let mut output = Kept::new(Part::Beginning, limits.output_bytes);
    let mut stderr = Kept::new(Part::End, limits.output_bytes);
    let in_time = {
        let talk = async {
            tokio::join!(feed(pipes.stdin, payload), output.read(pipes.stdout), stderr.read(pipes.stderr));
        };
        let mut talk = pin!(talk.fuse());
        let mut ended = pin!(timeout_at(limits.deadline, confined.verdict()));
        let in_time = loop {
            tokio::select! {
                verdict = &mut ended => break verdict.ok(),
                () = &mut talk => {}
            }
        };
        confined.kill();
        let rest = async {
            confined.ending().wait().await;
            if !talk.is_terminated() {
                talk.await;
            }
        };
        // What it wrote so far is kept, whoever still holds its pipes.
        let _held = timeout(PATIENCE, rest).await;
        in_time
    };
    let (output, mut stderr) = (output.text(), stderr.text());
    let exit_code = in_time.map_or(Ok(TIMED_OUT), |verdict| status(verdict, confined))?;
    // Some of its processes may have been killed before its time was over.
    let verdict = in_time.or(confined.verdict().now_or_never());
    if let Some(why) = verdict.and_then(|verdict| why_killed(verdict, limits)) {
        add(&mut stderr, &why);
    }
    Ok(Ended { output, stderr, exit_code })
}

/// A script that ends before it has read all is no error.
async fn feed(mut stdin: ChildStdin, payload: &[u8]) {
    let _unread = stdin.write_all(payload).await;
}

fn status(verdict: Verdict, confined: &Confined) -> Result<i32, ToolError> {
    match verdict {
        Verdict::Exited(code) => Ok(code),
        Verdict::Signalled(signal) => Ok(128 + signal),
        Verdict::OutOfMemory | Verdict::TooManyProcesses => Ok(KILLED),
        Verdict::Refused => Err(refusal::of_walls(confined.why_refused())),
        Verdict::Killed | Verdict::Unknown => Err(refusal::lost()),
    }
}

/// What a script is told that could not say it itself.
fn why_killed(verdict: Verdict, limits: &Limits) -> Option<String> {
    let (what, most) = match verdict {
        Verdict::OutOfMemory => ("needed more memory than it may have", size(limits.memory_bytes)),
        Verdict::TooManyProcesses => ("was more processes than it may be", limits.processes.to_string()),
        _ => return None,
    };
    Some(format!("Killed: the script {what} ({most})."))
}

/// Adds a line.
fn add(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
}
