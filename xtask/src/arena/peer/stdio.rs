//! The server on standard input and output.

use std::io::{self, BufRead, Write};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Fault, LARGE, Peer, Request, UNKNOWN_METHOD};

/// How long [`Fault::Slow`] takes for its first answer.
const SLOW: Duration = Duration::from_secs(10);

/// Lines that [`Fault::Flood`] writes at once: a system call for each would slow it down.
const AT_ONCE: usize = 1000;

const NOTICE: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"nobody asked for this"}}"#;

pub(super) fn serve(peer: &Peer) -> anyhow::Result<()> {
    std::thread::scope(|threads| {
        if matches!(peer.fault, Some((Fault::Flood, _))) {
            threads.spawn(|| flood(peer, NOTICE, io::stdout()));
            threads.spawn(|| flood(peer, "nobody reads this", io::stderr()));
        }
        let served = converse(peer);
        // Not by returning: a flood does not end.
        std::process::exit(i32::from(served.is_err()))
    })
}

fn converse(peer: &Peer) -> io::Result<()> {
    let mut has_answered = false;
    for line in io::stdin().lock().split(b'\n') {
        let Some(request) = Request::parse(&line?) else { continue };
        if !has_answered && peer.commits(Fault::Slow) {
            std::thread::sleep(SLOW);
        }
        has_answered = true;
        let is_call = request.method == "tools/call";
        if is_call && peer.commits(Fault::Hang) {
            hang()?;
        }
        let answer = peer.answer(&request);
        if answer.as_ref().is_err_and(|(code, _)| *code == UNKNOWN_METHOD) && peer.commits(Fault::Crash) {
            return Err(io::Error::other("a question that nobody taught it"));
        }
        if is_call && peer.commits(Fault::Large) {
            say(io::stderr(), "x".repeat(LARGE))?;
        }
        if is_call && peer.commits(Fault::Garbage) {
            say(io::stdout(), "Traceback (most recent call last):\n{\"jsonrpc\": \"2.0\",".to_owned())?;
            if peer.calls.load(Ordering::Relaxed).is_multiple_of(2) {
                continue;
            }
        }
        say(io::stdout(), request.response(answer))?;
    }
    Ok(())
}

/// Reads on, and says nothing more.
fn hang() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
}

/// In one piece: others may write at the same time.
fn say(mut out: impl Write, mut line: String) -> io::Result<()> {
    line.push('\n');
    out.write_all(line.as_bytes())?;
    out.flush()
}

/// Writes for as long as the fault shows and somebody reads.
fn flood(peer: &Peer, line: &str, mut out: impl Write) {
    let lines = format!("{line}\n").repeat(AT_ONCE);
    loop {
        if !peer.commits(Fault::Flood) {
            std::thread::sleep(Duration::from_millis(20));
        } else if out.write_all(lines.as_bytes()).and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}
