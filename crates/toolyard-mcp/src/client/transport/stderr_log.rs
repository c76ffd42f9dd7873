//! Writes the standard error of a server process to the log: redacted, and rate limited.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use toolyard_core::SecretRedactor;

use crate::lines::{InputLine, LineReader};

/// Maximum length of a line in bytes. A longer line is not logged: a secret cut in two could not be redacted.
const MAX_LINE_BYTES: usize = 16 << 10;

/// Maximum length in bytes of a line whose ends are kept.
const MAX_READ_BYTES: usize = 256 << 10;

/// Maximum number of logged lines per second and process; stack traces fit. Further lines are counted: a server in a
/// loop must neither fill a disk nor drown other messages.
const MAX_LINES_PER_SECOND: u32 = 200;
const SECOND: Duration = Duration::from_secs(1);

/// Maximum number of lines that are kept, and of the bytes of each.
const MAX_LAST_LINES: usize = 10;
const MAX_LAST_BYTES: usize = 1 << 10;

/// The last lines that a program has written to its standard error, as they are. Clones share them.
#[derive(Clone, Default)]
pub struct ErrorLines {
    lines: Arc<Mutex<LastLines>>,
    /// True while the lines of a server that has failed before are not logged again.
    is_quiet: Arc<AtomicBool>,
}

#[derive(Default)]
struct LastLines {
    lines: VecDeque<String>,
    /// Number of lines so far.
    count: u64,
}

impl ErrorLines {
    /// Returns the lines, which may contain secrets.
    #[must_use]
    pub fn text(&self) -> String {
        self.since(0)
    }

    /// Returns the lines after the first `count`, as [`ErrorLines::text`] does.
    pub(in crate::client) fn since(&self, count: u64) -> String {
        let last = self.lock();
        let new = usize::try_from(last.count.saturating_sub(count)).unwrap_or(usize::MAX);
        let old = last.lines.len().saturating_sub(new);
        last.lines.iter().skip(old).map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Returns the number of lines so far.
    pub(in crate::client) fn count(&self) -> u64 {
        self.lock().count
    }

    /// Returns the last line.
    pub(in crate::client) fn last(&self) -> Option<String> {
        self.lock().lines.back().cloned()
    }

    /// Sets whether further lines are left out of the log.
    pub(in crate::client) fn set_quiet(&self, is_quiet: bool) {
        self.is_quiet.store(is_quiet, Ordering::Relaxed);
    }

    /// True if lines are left out of the log.
    pub(in crate::client) fn is_quiet(&self) -> bool {
        self.is_quiet.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, LastLines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line without the secrets. Of a long one the beginning and the end are kept: the reason of a failure is in
    /// one of them.
    pub(in crate::client) fn push(&self, line: &InputLine, secrets: &SecretRedactor) {
        let line = match line {
            InputLine::Whole(line) => ends_of(line.trim_ascii_end(), secrets),
            InputLine::TooLong(_) | InputLine::NoMemory(_) => long_line(MAX_READ_BYTES),
        };
        let mut last = self.lock();
        if last.lines.len() == MAX_LAST_LINES {
            last.lines.pop_front();
        }
        last.lines.push_back(line);
        last.count += 1;
    }
}

/// Returns a line without the secrets; of a long one the first and the last whole words. A secret that is not known could
/// be cut in two otherwise.
fn ends_of(line: &[u8], secrets: &SecretRedactor) -> String {
    let text = |part: &[u8]| secrets.hide(&String::from_utf8_lossy(part)).into_owned();
    if line.len() <= MAX_LAST_BYTES {
        return text(line);
    }
    // A known secret that is cut here is too far from the ends to be in what is kept.
    let half = line.len().min(MAX_LINE_BYTES);
    let (first, last) = (text(&line[..half]), text(&line[line.len() - half..]));
    let is_space = |(_, char): &(usize, char)| char.is_whitespace();
    let first_end =
        first.char_indices().take_while(|(at, _)| *at <= MAX_LAST_BYTES / 2).filter(is_space).last();
    let first = first_end.map_or("", |(end, _)| &first[..end]);
    let last_start = last
        .char_indices()
        .rev()
        .take_while(|(at, _)| last.len() - at <= MAX_LAST_BYTES / 2)
        .filter(is_space)
        .last();
    let last = last_start.map_or("", |(start, space)| &last[start + space.len_utf8()..]);
    match (first, last) {
        ("", "") => long_line(MAX_LAST_BYTES),
        (first, last) => format!("{first} … {last}").trim().to_owned(),
    }
}

fn long_line(limit: usize) -> String {
    format!("(line over {limit} bytes)")
}

/// Shows no line, because lines may contain secrets.
impl fmt::Debug for ErrorLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErrorLines")
    }
}

/// The destinations of the lines of a process.
pub(super) struct ErrorOutput {
    pub(super) name: Arc<str>,
    pub(super) secrets: SecretRedactor,
    pub(super) last: ErrorLines,
    /// The lines of this process alone.
    pub(super) own: ErrorLines,
}

/// Logs the lines of a process, and keeps the last ones. Drops `_logging` at the end.
pub(super) async fn forward_stderr(
    ErrorOutput { name, secrets, last, own }: ErrorOutput,
    stderr: impl AsyncRead + Unpin,
    _logging: oneshot::Sender<()>,
) {
    let mut lines = LineReader::new(stderr, MAX_READ_BYTES);
    let mut rate_limit = LogRateLimit::new();
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = sleep_until(rate_limit.end), if rate_limit.dropped > 0 => {
                rate_limit.start_next_second(&name);
                continue;
            }
        };
        if let Ok(Some(line)) = &line {
            last.push(line, &secrets);
            own.push(line, &secrets);
        }
        match line {
            Ok(Some(_)) if last.is_quiet() => {}
            Ok(Some(line)) if rate_limit.admit(&name) => log_line(&name, &secrets, &line),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return rate_limit.start_next_second(&name),
        }
    }
}

fn log_line(name: &str, secrets: &SecretRedactor, line: &InputLine) {
    match line {
        InputLine::Whole(line) if line.len() <= MAX_LINE_BYTES => {
            let line = String::from_utf8_lossy(line.trim_ascii_end());
            tracing::info!(handler = %name, "{}", secrets.hide(&line));
        }
        InputLine::Whole(_) | InputLine::TooLong(_) | InputLine::NoMemory(_) => {
            tracing::info!(handler = %name, "{}", long_line(MAX_LINE_BYTES))
        }
    }
}

/// The rate limit of the current second.
struct LogRateLimit {
    end: Instant,
    logged: u32,
    dropped: u64,
}

impl LogRateLimit {
    fn new() -> Self {
        Self { end: Instant::now() + SECOND, logged: 0, dropped: 0 }
    }

    /// True if another line is allowed.
    fn admit(&mut self, name: &str) -> bool {
        if Instant::now() >= self.end {
            self.start_next_second(name);
        }
        let is_admitted = self.logged < MAX_LINES_PER_SECOND;
        match is_admitted {
            true => self.logged += 1,
            false => self.dropped += 1,
        }
        is_admitted
    }

    /// Starts the next second, and logs the number of dropped lines.
    fn start_next_second(&mut self, name: &str) {
        if self.dropped > 0 {
            let lines = self.dropped;
            tracing::warn!(handler = %name, lines, "the server logs too much: dropped lines");
        }
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without a yield, all readable lines would be logged in one poll.
    #[tokio::test]
    async fn flood_of_log_lines_yields() {
        let (logging, _logged) = oneshot::channel();
        let stderr = std::io::Cursor::new("nobody reads this\n".repeat(10_000));
        let last = ErrorLines::default();
        let output = ErrorOutput {
            name: "flood".into(),
            secrets: SecretRedactor::default(),
            last: last.clone(),
            own: last.clone(),
        };
        let logging = tokio::spawn(forward_stderr(output, stderr, logging));
        tokio::task::yield_now().await;
        assert!(!logging.is_finished());
        logging.await.unwrap();
        assert_eq!(last.text(), ["nobody reads this"; MAX_LAST_LINES].join("\n"));
    }

    #[test]
    fn ends_of_a_long_line_are_kept() {
        #[track_caller]
        fn check(line: &str, expected: &str) {
            let secrets = SecretRedactor::new(["hunter2 hunter2".to_owned()]);
            let lines = ErrorLines::default();
            lines.push(&InputLine::Whole(line.to_owned().into()), &secrets);
            assert_eq!(lines.text(), expected, "{line}");
        }
        let (limit, long) = ("x".repeat(MAX_LAST_BYTES), "y".repeat(MAX_LAST_BYTES + 1));
        check("short  \n", "short");
        check(&limit, &limit);
        check(&long, "(line over 1024 bytes)");
        check(&format!("FATAL: cannot open a.conf {long}"), "FATAL: cannot open a.conf …");
        check(&format!("{long} no TOKEN"), "… no TOKEN");
        check(&format!("at start {} at end", "z".repeat(200_000)), "at start … at end");
        check(&format!("é hunter2 hunter2 {long} of hunter2 hunter2"), "é [REDACTED] … of [REDACTED]");
        // A secret is redacted before the line is cut, and an unknown word is not cut at all.
        let end = "z".repeat(MAX_LAST_BYTES / 2 - 8);
        check(&format!("{long} hunter2 hunter2 {end}"), &format!("… {end}"));
        check(&format!("{long} unknown-word{end} end"), "… end");
    }

    #[tokio::test(start_paused = true)]
    async fn lines_per_second_are_limited() {
        let mut pace = LogRateLimit::new();
        let admitted =
            |pace: &mut LogRateLimit| (0..MAX_LINES_PER_SECOND + 7).filter(|_| pace.admit("x")).count();
        assert_eq!((admitted(&mut pace), pace.dropped), (MAX_LINES_PER_SECOND as usize, 7));
        tokio::time::advance(SECOND).await;
        assert_eq!((admitted(&mut pace), pace.dropped), (MAX_LINES_PER_SECOND as usize, 7));
        pace.start_next_second("x");
        assert_eq!((pace.logged, pace.dropped), (0, 0));
    }
}
