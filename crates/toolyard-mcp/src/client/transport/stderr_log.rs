//! Writes the standard error of a server process to the log: redacted, and rate limited.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use toolyard_core::SecretRedactor;

use crate::lines::{InputLine, LineReader};

/// Maximum length of a line in bytes. A longer line is not logged: a secret cut in two could not be redacted.
const MAX_LINE_BYTES: usize = 16 << 10;

/// Maximum number of logged lines per second and process; stack traces fit. Further lines are counted: a server in a
/// loop must neither fill a disk nor drown other messages.
const MAX_LINES_PER_SECOND: u32 = 200;
const SECOND: Duration = Duration::from_secs(1);

/// Logs the lines of a process. Drops `_logging` at the end.
pub(super) async fn forward_stderr(
    name: Arc<str>,
    secrets: SecretRedactor,
    stderr: impl AsyncRead + Unpin,
    _logging: oneshot::Sender<()>,
) {
    let mut lines = LineReader::new(stderr, MAX_LINE_BYTES);
    let mut rate_limit = LogRateLimit::new();
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = sleep_until(rate_limit.end), if rate_limit.dropped > 0 => {
                rate_limit.start_next_second(&name);
                continue;
            }
        };
        match line {
            Ok(Some(line)) if rate_limit.admit(&name) => log_line(&name, &secrets, &line),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return rate_limit.start_next_second(&name),
        }
    }
}

fn log_line(name: &str, secrets: &SecretRedactor, line: &InputLine) {
    match line {
        InputLine::Whole(line) => {
            let line = String::from_utf8_lossy(line.trim_ascii_end());
            tracing::info!(handler = %name, "{}", secrets.hide(&line));
        }
        InputLine::TooLong(_) | InputLine::NoMemory(_) => {
            tracing::info!(handler = %name, "(line over {MAX_LINE_BYTES} bytes)")
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
        let logging =
            tokio::spawn(forward_stderr("flood".into(), SecretRedactor::default(), stderr, logging));
        tokio::task::yield_now().await;
        assert!(!logging.is_finished());
        logging.await.unwrap();
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
