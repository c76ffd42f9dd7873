//! A PostgreSQL server that ends with the test that started it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A server with one empty database, reached through a socket in its own folder.
pub struct PostgresServer {
    /// `None` while the server is stopped.
    process: Option<Child>,
    folder: TempDir,
}

/// PostgreSQL refuses to run as root. This user owns no other files.
const UNPRIVILEGED_UID: u32 = 65534;

/// Returns the path of a program of PostgreSQL. Debian installs them outside of the search path.
fn program(name: &str) -> PathBuf {
    let mut versions: Vec<_> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin").join(name)).collect())
        .unwrap_or_default();
    versions.retain(|program: &PathBuf| program.exists());
    versions.sort();
    versions.pop().expect("PostgreSQL is not installed: run `cargo xtask peer-software`")
}

impl PostgresServer {
    /// Starts a server with the default settings.
    pub fn start() -> Self {
        Self::prepare().running(&[])
    }

    /// Creates a server without starting it.
    pub fn prepare() -> Self {
        let folder = TempDir::new().unwrap();
        if is_root() {
            chown(folder.path(), Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).unwrap();
        }
        let mut initdb = unprivileged(&program("initdb"));
        initdb.args(["--username=toolyard", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"]);
        let done = initdb.arg("--pgdata").arg(folder.path().join("data")).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Self { process: None, folder }
    }

    /// Starts the prepared server with settings, such as `("ssl", "on")`. Files that they name are put into
    /// [`PostgresServer::folder`] before.
    pub fn running(mut self, settings: &[(&str, &str)]) -> Self {
        self.run(settings);
        self
    }

    /// Runs the server until it accepts connections.
    pub fn run(&mut self, settings: &[(&str, &str)]) {
        // Children of a killed server need a moment to end; until then no other server starts.
        self.process = (0..50).find_map(|_| self.try_to_run(settings));
        assert!(self.process.is_some(), "PostgreSQL does not start");
    }

    fn try_to_run(&self, settings: &[(&str, &str)]) -> Option<Child> {
        // The kernel ends the server with the thread of the test; QUIT makes it stop at once.
        let mut command = unprivileged(Path::new("setpriv"));
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
        // Drain the rest of the log, so that the server does not block on a full pipe.
        std::thread::spawn(move || log.for_each(drop));
        Some(process)
    }

    /// Kills the server without a shutdown.
    pub fn kill(&mut self) {
        let mut process = self.process.take().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Runs an SQL statement, which has to change something.
    pub fn execute(&self, statement: &str) {
        let mut psql = unprivileged(&program("psql"));
        psql.args(["--no-psqlrc", "--username=toolyard", "--dbname=postgres", "--host"])
            .arg(self.folder.path());
        let done = psql.args(["--command", statement]).stdout(Stdio::piped()).output().unwrap();
        let tag = String::from_utf8_lossy(&done.stdout);
        let changes = tag.split_whitespace().last().and_then(|count| count.parse::<u64>().ok());
        assert!(changes.is_some_and(|changes| changes > 0), "{tag}{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Returns the process of the server, whose children serve its connections.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("the server runs").id()
    }

    /// Returns the folder of the server.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the URL of the database.
    pub fn url(&self) -> String {
        let folder = self.folder.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://toolyard:hunter2@{folder}/postgres")
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // With QUIT its children end first, so that none writes to the folder while it is removed.
            let pid = rustix::process::Pid::from_child(process);
            rustix::process::kill_process(pid, rustix::process::Signal::QUIT).ok();
            process.wait().ok();
        }
    }
}

fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    // The user may not be allowed to read the folder of the test.
    command.current_dir("/").stdout(Stdio::null());
    if is_root() {
        command.uid(UNPRIVILEGED_UID).gid(UNPRIVILEGED_UID);
    }
    command
}

/// Gives a file to the user that runs the server.
pub fn give_to_server(path: &Path) {
    File::open(path).unwrap();
    if is_root() {
        chown(path, Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID)).unwrap();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
