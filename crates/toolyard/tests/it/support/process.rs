//! Other programs: run to their end, or kept for a test.

use std::fmt;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{LIMIT, eventually};

/// A program that runs until this is dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) stdout: Arc<Printed>,
    pub(crate) stderr: Arc<Printed>,
}

/// What a program has printed so far.
#[derive(Default)]
pub(crate) struct Printed {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    ended: bool,
}

/// A program that has ended. Shown as a person sees it in a terminal.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command to its end.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Ended {
    run_with(command, Stdio::null())
}

/// The same for one that reads something.
#[track_caller]
pub(crate) fn run_with(command: &mut Command, stdin: impl Into<Stdio>) -> Ended {
    Process::start_with(command, stdin).into_ended()
}

/// Whether a process runs. One that has ended and waits for its parent to notice does not.
pub(crate) fn is_running(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The state stands behind the name, which is in parentheses and may contain anything.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

// === impl Process ===

impl Process {
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::start_with(command, Stdio::null())
    }

    /// Starts one that reads something.
    #[track_caller]
    pub(crate) fn start_with(command: &mut Command, stdin: impl Into<Stdio>) -> Self {
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("cannot start {command:?}: {error}"),
        };
        let stdout = Printed::read(child.stdout.take().unwrap());
        let stderr = Printed::read(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end, which somebody else must bring about.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        eventually("the end of a program", || self.child.try_wait().unwrap())
    }

    #[track_caller]
    fn into_ended(mut self) -> Ended {
        let code = self.wait().code().unwrap();
        Ended { code, stdout: self.stdout.to_end(), stderr: self.stderr.to_end() }
    }
}

impl Drop for Process {
    /// A program may have children of its own, which it ends when it is asked to end.
    fn drop(&mut self) {
        const PATIENCE: Duration = Duration::from_secs(3);
        let asked = Instant::now();
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
        }
        while matches!(self.child.try_wait(), Ok(None)) && asked.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(2));
        }
        // Gone already, most of the time.
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            eprintln!("a program printed\n{}\nand logged\n{}", self.stdout.text(), self.stderr.text());
        }
    }
}

// === impl Printed ===

impl Printed {
    /// Reads a stream to its end, so that nobody blocks on a full pipe.
    fn read(mut stream: impl Read + Send + 'static) -> Arc<Self> {
        let printed = Arc::new(Self::default());
        let ours = printed.clone();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            loop {
                let length = stream.read(&mut chunk).unwrap_or(0);
                let mut state = ours.state.lock().unwrap();
                state.bytes.extend_from_slice(&chunk[..length]);
                state.ended = length == 0;
                ours.changed.notify_all();
                if state.ended {
                    return;
                }
            }
        });
        printed
    }

    /// What was printed so far.
    pub(crate) fn text(&self) -> String {
        // It is asked for also where a test has failed in the middle of a look.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&state.bytes).into_owned()
    }

    /// Waits until what was printed has something in it.
    #[track_caller]
    pub(crate) fn wait_for<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let start = Instant::now();
        let mut state = self.state.lock().unwrap();
        loop {
            let text = String::from_utf8_lossy(&state.bytes);
            if let Some(found) = find(&text) {
                return found;
            }
            let left = LIMIT.saturating_sub(start.elapsed());
            assert!(!state.ended && !left.is_zero(), "waited in vain for {what} in\n{text}");
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    #[track_caller]
    fn to_end(&self) -> String {
        let (state, _) =
            self.changed.wait_timeout_while(self.state.lock().unwrap(), LIMIT, |state| !state.ended).unwrap();
        assert!(state.ended, "a program has ended, and somebody else holds its output open");
        String::from_utf8(state.bytes.clone()).unwrap()
    }
}

// === impl Ended ===

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stdout)?;
        if !self.stderr.is_empty() {
            write!(f, "--- stderr\n{}", self.stderr)?;
        }
        write!(f, "--- exit status {}", self.code)
    }
}
