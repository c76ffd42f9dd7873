//! A PostgreSQL server that ends with the test that started it.

#![expect(clippy::disallowed_methods, reason = "what tests start are not the gateway's programs")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A server with one empty database, reached by a socket in a folder of its own.
pub(crate) struct Server {
    /// None while it is dead.
    process: Option<Child>,
    folder: TempDir,
}

/// PostgreSQL does not run as root. Whoever this is owns nothing else.
const NOBODY: u32 = 65534;

/// A program of PostgreSQL. Debian keeps them where no search path leads.
fn program(name: &str) -> PathBuf {
    let mut versions: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin").join(name)).collect())
        .unwrap_or_default();
    versions.retain(|program: &PathBuf| program.exists());
    versions.sort();
    versions.pop().expect("PostgreSQL is not there: run `cargo xtask peers`")
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// With settings, such as `("ssl", "on")`. Files that they name belong into [`Server::prepare`]d folders.
    fn with(settings: &[(&str, &str)]) -> Self {
        Self::prepare().running(settings)
    }

    /// One that does not run yet.
    pub(crate) fn prepare() -> Self {
        let folder = TempDir::new().unwrap();
        if is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let mut initdb = as_nobody(&program("initdb"));
        initdb.args(["--username=toolyard", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"]);
        let done = initdb.arg("--pgdata").arg(folder.path().join("data")).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Self { process: None, folder }
    }

    pub(crate) fn running(mut self, settings: &[(&str, &str)]) -> Self {
        self.run(settings);
        self
    }

    /// Runs it until it can be connected to.
    pub(crate) fn run(&mut self, settings: &[(&str, &str)]) {
        // A server that was killed leaves children who need a moment to notice; until then there is no other.
        self.process = (0..50).find_map(|_| self.try_to_run(settings));
        assert!(self.process.is_some(), "PostgreSQL does not start");
    }

    fn try_to_run(&self, settings: &[(&str, &str)]) -> Option<Child> {
        // The kernel ends it with the thread of the test, however that ends; QUIT is the signal to stop at once.
        let mut command = as_nobody(Path::new("setpriv"));
        command.args(["--pdeathsig", "QUIT", "--"]).arg(program("postgres"));
        command.arg("-D").arg(self.folder.path().join("data")).arg("-k").arg(self.folder.path());
        for (name, value) in [("listen_addresses", ""), ("max_connections", "50")].iter().chain(settings) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let runs = log.any(|line| line.contains("ready to accept connections"));
        if !runs {
            process.wait().unwrap();
            return None;
        }
        // What it says later is read, so that it does not wait for somebody to.
        std::thread::spawn(move || log.for_each(drop));
        Some(process)
    }

    /// As a disaster would end it.
    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn url(&self) -> String {
        let folder = self.folder.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://toolyard:hunter2@{folder}/postgres")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // With QUIT its children end before it does, and none writes to the folder that goes next.
            let pid = rustix::process::Pid::from_child(process);
            rustix::process::kill_process(pid, rustix::process::Signal::QUIT).ok();
            process.wait().ok();
        }
    }
}

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new(program);
    // The folder of the test may be closed to others.
    command.current_dir("/").stdout(Stdio::null());
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Gives a file to the user that the server runs as.
pub(crate) fn give(path: &Path) {
    File::open(path).unwrap();
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
