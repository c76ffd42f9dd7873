//! What a server on stdio says on its standard error becomes lines of our log: without secrets, and not without end.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use toolyard_core::Secrets;

use crate::lines::{Line, Lines};

/// How long a line may be, in bytes. Of a longer one nothing is said: a secret could be cut in two, and not be seen.
const LINE: usize = 16 << 10;

/// How many lines of one process are logged in a second. The rest is counted: a server in a loop must not fill a disk, nor
/// hide what others say. A trace of a stack fits in.
const LINES: u32 = 200;
const SECOND: Duration = Duration::from_secs(1);

/// The task that passes a server's log on to ours. `_logging` ends with it.
pub(super) async fn log(
    name: Arc<str>,
    secrets: Secrets,
    stderr: impl AsyncRead + Unpin,
    _logging: oneshot::Sender<()>,
) {
    let mut lines = Lines::new(stderr, LINE);
    let mut pace = Pace::begin();
    loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = sleep_until(pace.end), if pace.left_out > 0 => {
                pace.renew(&name);
                continue;
            }
        };
        match line {
            Ok(Some(line)) if pace.admits(&name) => say(&name, &secrets, &line),
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return pace.renew(&name),
        }
    }
}

fn say(name: &str, secrets: &Secrets, line: &Line) {
    match line {
        Line::Whole(line) => {
            let line = String::from_utf8_lossy(line.trim_ascii_end());
            tracing::info!(handler = %name, "{}", secrets.hide(&line));
        }
        Line::Cut(_) => tracing::info!(handler = %name, "(a line of more than {LINE} bytes)"),
    }
}

/// The lines of one second.
struct Pace {
    end: Instant,
    logged: u32,
    left_out: u64,
}

impl Pace {
    fn begin() -> Self {
        Self { end: Instant::now() + SECOND, logged: 0, left_out: 0 }
    }

    /// Whether there is room for another line.
    fn admits(&mut self, name: &str) -> bool {
        if Instant::now() >= self.end {
            self.renew(name);
        }
        let is_admitted = self.logged < LINES;
        match is_admitted {
            true => self.logged += 1,
            false => self.left_out += 1,
        }
        is_admitted
    }

    /// Begins another second, and says what was left out in the last one.
    fn renew(&mut self, name: &str) {
        if self.left_out > 0 {
            let lines = self.left_out;
            tracing::warn!(handler = %name, lines, "the server logs too much: lines of it are left out");
        }
        *self = Self::begin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What can be read at once would otherwise be logged at once, however much it is.
    #[tokio::test]
    async fn a_flood_of_log_lines_lets_others_run() {
        let (logging, _logged) = oneshot::channel();
        let stderr = std::io::Cursor::new("nobody reads this\n".repeat(10_000));
        let logging = tokio::spawn(log("flood".into(), Secrets::default(), stderr, logging));
        tokio::task::yield_now().await;
        assert!(!logging.is_finished());
        logging.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_lines_a_second_are_admitted() {
        let mut pace = Pace::begin();
        let admitted = |pace: &mut Pace| (0..LINES + 7).filter(|_| pace.admits("x")).count();
        assert_eq!((admitted(&mut pace), pace.left_out), (LINES as usize, 7));
        tokio::time::advance(SECOND).await;
        assert_eq!((admitted(&mut pace), pace.left_out), (LINES as usize, 7));
        pace.renew("x");
        assert_eq!((pace.logged, pace.left_out), (0, 0));
    }
}
