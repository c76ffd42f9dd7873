//! The server on standard input and output.

use std::io::{self, BufRead, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{ArenaPeer, LARGE_BYTES, PeerRequest, ServerFault, UNKNOWN_METHOD};

/// Delay of the first response with [`ServerFault::Slow`].
const SLOW_START: Duration = Duration::from_secs(10);

/// Number of lines in one write of [`ServerFault::Flood`]; a system call per line would slow it down.
const LINES_PER_WRITE: usize = 1000;

const UNSOLICITED_MESSAGE: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"unsolicited message"}}"#;

pub(super) fn serve(peer: &ArenaPeer) -> anyhow::Result<()> {
    std::thread::scope(|threads| {
        if matches!(peer.fault, Some((ServerFault::Flood, _))) {
            threads.spawn(|| flood(peer, UNSOLICITED_MESSAGE, io::stdout()));
            threads.spawn(|| flood(peer, "unsolicited log line", io::stderr()));
        }
        let outcome = serve_requests(peer);
        // Exit instead of returning, because the flood threads do not end.
        std::process::exit(i32::from(outcome.is_err()))
    })
}

fn serve_requests(peer: &ArenaPeer) -> io::Result<()> {
    let mut has_answered = false;
    for line in io::stdin().lock().split(b'\n') {
        let Some(request) = PeerRequest::parse(&line?) else { continue };
        if !has_answered && peer.trigger(ServerFault::Slow) {
            std::thread::sleep(SLOW_START);
        }
        has_answered = true;
        let is_call = request.method == "tools/call";
        if is_call && peer.trigger(ServerFault::Hang) {
            hang()?;
        }
        let answer = peer.answer(&request);
        if answer.as_ref().is_err_and(|(code, _)| *code == UNKNOWN_METHOD) && peer.trigger(ServerFault::Crash)
        {
            return Err(io::Error::other("unknown request"));
        }
        if is_call && peer.trigger(ServerFault::Large) {
            write_line(io::stderr(), "x".repeat(LARGE_BYTES))?;
        }
        if is_call && peer.trigger(ServerFault::Garbage) {
            write_line(
                io::stdout(),
                "Traceback (most recent call last):\n{\"jsonrpc\": \"2.0\",".to_owned(),
            )?;
            if peer.calls.load(Ordering::Relaxed).is_multiple_of(2) {
                continue;
            }
        }
        write_line(io::stdout(), request.response(answer))?;
    }
    Ok(())
}

/// Keeps reading, without any response.
fn hang() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
}

/// Writes a line at once, as other threads write to the same stream.
fn write_line(mut out: impl Write, mut line: String) -> io::Result<()> {
    line.push('\n');
    out.write_all(line.as_bytes())?;
    out.flush()
}

/// Writes while the fault is active, until the reader is gone.
fn flood(peer: &ArenaPeer, line: &str, mut out: impl Write) {
    let lines = format!("{line}\n").repeat(LINES_PER_WRITE);
    loop {
        if !peer.trigger(ServerFault::Flood) {
            std::thread::sleep(Duration::from_millis(20));
        } else if out.write_all(lines.as_bytes()).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}
