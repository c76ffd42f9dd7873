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
use crate::confine::REFUSED;
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
    let verdict = {
        let talk = async {
            tokio::join!(feed(pipes.stdin, payload), output.read(pipes.stdout), stderr.read(pipes.stderr));
        };
        let mut talk = pin!(talk.fuse());
        let mut ended = pin!(timeout_at(limits.deadline, confined.verdict()));
        let verdict = loop {
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
        verdict
    };
    told(verdict, output.text(), stderr.text(), limits)
}

/// A script that ends before it has read all is no error.
async fn feed(mut stdin: ChildStdin, payload: &[u8]) {
    let _unread = stdin.write_all(payload).await;
}

/// `None`: it took too long.
fn told(
    verdict: Option<Verdict>,
    output: String,
    mut stderr: String,
    limits: &Limits,
) -> Result<Ended, ToolError> {
    let exit_code = match verdict {
        None => TIMED_OUT,
        Some(Verdict::Exited(code)) => code,
        Some(Verdict::Signalled(signal)) => 128 + signal,
        Some(Verdict::OutOfMemory) => {
            let memory = size(limits.memory_bytes);
            add(&mut stderr, &format!("Killed: the script needed more memory than it may have ({memory})."));
            KILLED
        }
        Some(Verdict::TooManyProcesses) => {
            let processes = limits.processes;
            add(&mut stderr, &format!("Killed: the script was more processes than it may be ({processes})."));
            KILLED
        }
        Some(Verdict::Refused) => refusal::of_walls(&stderr).map_or(Ok(REFUSED), Err)?,
        Some(Verdict::Killed | Verdict::Unknown) => return Err(refusal::lost()),
    };
    Ok(Ended { output, stderr, exit_code })
}

/// Adds a line.
fn add(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
}
