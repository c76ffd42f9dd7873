//! Child processes: run to completion, or until the end of a test.

use std::ffi::OsStr;
use std::fmt;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::{LIMIT, eventually};

/// A program that runs until it is dropped.
pub struct RunningProgram {
    child: Child,
    /// The standard output so far.
    pub stdout: Arc<OutputCapture>,
    /// The standard error so far.
    pub stderr: Arc<OutputCapture>,
}

/// The captured output of a program.
#[derive(Default)]
pub struct OutputCapture {
    state: Mutex<OutputState>,
    changed: Condvar,
}

#[derive(Default)]
struct OutputState {
    bytes: Vec<u8>,
    ended: bool,
}

/// The result of a program. `Display` shows it as on a terminal.
#[derive(Debug)]
pub struct ProgramResult {
    /// The exit code.
    pub code: i32,
    /// The whole standard output.
    pub stdout: String,
    /// The whole standard error.
    pub stderr: String,
}

/// Runs a command to completion.
#[track_caller]
pub fn run(command: &mut Command) -> ProgramResult {
    run_with(command, Stdio::null())
}

/// Runs a command with this standard input to completion.
#[track_caller]
pub fn run_with(command: &mut Command, stdin: impl Into<Stdio>) -> ProgramResult {
    RunningProgram::start_with(command, stdin).into_result()
}

/// Returns a command that the kernel kills with the thread that starts it, so that a failed test leaves no process.
pub fn bound_to_thread(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Returns the arguments of all processes, each followed by a zero byte.
pub fn command_lines() -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok()).collect()
}

/// True if a process of this name runs on the machine.
pub fn is_named_running(name: &str) -> bool {
    command_lines().iter().any(|line| line.starts_with(name))
}

/// Returns a random word, for the name of a process that no other test starts.
pub fn unique_word() -> String {
    let mut random = [0; 8];
    std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut random).unwrap();
    format!("{:016x}", u64::from_ne_bytes(random))
}

/// True if a process is running. A zombie is not.
pub fn is_running(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The state follows the name, which is in parentheses and may contain any character.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

// === impl RunningProgram ===

impl RunningProgram {
    /// Starts a program without standard input.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self::start_with(command, Stdio::null())
    }

    /// Starts a program with this standard input.
    #[track_caller]
    pub fn start_with(command: &mut Command, stdin: impl Into<Stdio>) -> Self {
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("cannot start {command:?}: {error}"),
        };
        let stdout = OutputCapture::read(child.stdout.take().unwrap());
        let stderr = OutputCapture::read(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the program to exit.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        eventually("the end of a program", || self.child.try_wait().unwrap())
    }

    #[track_caller]
    fn into_result(mut self) -> ProgramResult {
        let code = self.wait().code().unwrap();
        ProgramResult { code, stdout: self.stdout.read_to_end(), stderr: self.stderr.read_to_end() }
    }
}

impl Drop for RunningProgram {
    /// Asks the program to exit first, so that it can end its own children.
    fn drop(&mut self) {
        const GRACE_PERIOD: Duration = Duration::from_secs(3);
        let start = Instant::now();
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
        }
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < GRACE_PERIOD {
            std::thread::sleep(Duration::from_millis(2));
        }
        // The program has usually exited already.
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            eprintln!("a program printed\n{}\nand logged\n{}", self.stdout.text(), self.stderr.text());
        }
    }
}

// === impl OutputCapture ===

impl OutputCapture {
    /// Reads a stream to its end, so that the program does not block on a full pipe.
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

    /// Returns the output so far.
    pub fn text(&self) -> String {
        // The lock may be poisoned by a failed test.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&state.bytes).into_owned()
    }

    /// Waits until `find` returns a value for the output.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
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
    fn read_to_end(&self) -> String {
        let (state, _) =
            self.changed.wait_timeout_while(self.state.lock().unwrap(), LIMIT, |state| !state.ended).unwrap();
        assert!(state.ended, "a program has ended, and another process holds its output open");
        String::from_utf8(state.bytes.clone()).unwrap()
    }
}

// === impl ProgramResult ===

impl fmt::Display for ProgramResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stdout)?;
        if !self.stderr.is_empty() {
            write!(f, "--- stderr\n{}", self.stderr)?;
        }
        write!(f, "--- exit status {}", self.code)
    }
}
