//! The commands in the README and in `docs` run as they are printed.
//!
//! A page is one session in an empty folder, with an empty home. In the order of the page,
//!
//! - a code block whose info string has a file name after the language (`yaml tools.yaml`) is written to that file;
//! - a `sh` block is run, and has to succeed. A block that begins with a command in [`SERVERS`] runs until the end of the
//!   page, and the page goes on once the gateway is ready;
//! - a `text` block directly after a `sh` block is the output of its commands. `…` stands for any text.
//!
//! The address of the documents is replaced by a free one, so that pages can run side by side.

mod page;

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use toolyard_testing::process::{self, RunningProgram};
use toolyard_testing::wait::until;
use toolyard_testing::{http, peers};

use self::page::{PageStep, steps};

/// Commands that run until they are stopped, and the option that gives them an address.
const SERVERS: [(&str, &str); 2] =
    [("toolyard serve", " --listen "), ("toolyard function dev", " --listen ")];

/// The address in the documents.
const DOCUMENTED_ADDRESS: &str = "127.0.0.1:8080";

/// The beginning of a script: exported variables are those of the page, not of a block.
const SESSION: &str = "[ ! -e .session ] || . ./.session\n";

/// Blocks that are not run, by their beginnings, and the reasons.
const NOT_RUN: [(&str, &str); 9] = [
    ("podman ", "needs the files of a release: the tests of `cargo xtask dist`"),
    ("npx --package ", "needs the files of a release: the tests of `cargo xtask dist`"),
    ("sudo TOOLYARD_STATE_DIR", "changes the machine: the tests of the packages"),
    ("cargo build ", "the build of the tests has built it"),
    ("cargo xtask ", "the suites themselves, which CI runs"),
    ("cargo run --release ", "a release build: CI builds the same program"),
    ("cargo install ", "a release build"),
    ("kubectl ", "needs a cluster: the tests of toolyard-operator"),
    ("sudo ", "changes the machine: the tests of the packages"),
];

/// A page in its folder.
struct PageSession {
    home: TempDir,
    address: String,
    /// Programs that run until the end of the page.
    servers: Vec<RunningProgram>,
    /// The output of the last commands, if they were run.
    output: Option<String>,
}

impl PageSession {
    fn new() -> Self {
        let address = format!("127.0.0.1:{}", peers::free_port());
        let home = TempDir::new().unwrap();
        // The programs of the repository are built already.
        let target = Path::new(env!("CARGO_BIN_EXE_toolyard")).ancestors().nth(2).unwrap();
        std::os::unix::fs::symlink(target, home.path().join("target")).unwrap();
        Self { home, address, servers: Vec::new(), output: None }
    }

    #[track_caller]
    fn take(&mut self, step: &PageStep) {
        match step {
            PageStep::File { name, text } => self.write(name, text),
            PageStep::Commands(text) if NOT_RUN.iter().any(|(start, _)| text.starts_with(start)) => {
                self.output = None;
            }
            PageStep::Commands(text) => self.run(&text.replace(DOCUMENTED_ADDRESS, &self.address)),
            PageStep::Output(expected) => {
                let Some(output) = &self.output else { return };
                let printed = output.replace(&self.address, DOCUMENTED_ADDRESS);
                assert!(page::matches(expected, &printed), "expected\n{expected}\nprinted\n{printed}");
            }
        }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace(DOCUMENTED_ADDRESS, &self.address)).unwrap();
    }

    #[track_caller]
    fn run(&mut self, commands: &str) {
        if let Some((_, option)) = SERVERS.iter().find(|(server, _)| commands.starts_with(server)) {
            let command = commands.lines().next().unwrap_or_default();
            let (command, _) = command.split_once(" #").unwrap_or((command, ""));
            let command = format!("{SESSION}exec {}{option}{}", command.trim_end(), self.address);
            self.servers.push(RunningProgram::start(&mut self.shell(&command)));
            let address = self.address.parse().unwrap();
            until("the gateway", || {
                std::net::TcpStream::connect(address).is_ok()
                    && http::send(address, "GET /health", &[], "").status == 200
            });
            return;
        }
        let script = format!("{SESSION}trap 'export -p >.session' EXIT\n{commands}");
        let result = process::run(&mut self.shell(&script));
        assert_eq!(result.code, 0, "{commands}\n{result}");
        self.output = Some(result.stdout);
    }

    fn shell(&self, script: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_toolyard")).parent().unwrap();
        let mut path = std::ffi::OsString::from(program);
        path.push(":");
        path.push(peers::search_path());
        let mut shell = peers::command("bash", self.home.path());
        shell.current_dir(&self.home).env("PATH", path);
        shell.env("TOOLYARD_URL", format!("http://{}", self.address));
        shell.args(["-euo", "pipefail", "-c", script]);
        shell
    }
}

/// Runs the page of this path.
#[track_caller]
fn check(path: &str) {
    let text = std::fs::read_to_string(peers::root().join(path)).unwrap();
    let steps = steps(&text);
    assert!(steps.iter().any(|step| matches!(step, PageStep::Commands(_))), "{path} has no commands");
    let mut session = PageSession::new();
    for step in &steps {
        session.take(step);
    }
}

/// Declares a test for each page with commands, and the list of these pages.
macro_rules! pages {
    ($($test:ident: $path:literal,)*) => {
        $(
            #[test]
            fn $test() {
                check($path);
            }
        )*

        const PAGES: &[&str] = &[$($path),*];
    };
}

pages! {
    readme: "README.md",
    index: "docs/index.md",
    install: "docs/install.md",
    upgrade: "docs/upgrade.md",
    editor_servers: "docs/start/editor-servers.md",
    api: "docs/start/api.md",
    team: "docs/start/team.md",
    python_tool: "docs/start/python-tool.md",
    rust_tool: "docs/start/rust-tool.md",
    arena: "docs/arena.md",
    benchmarks: "docs/benchmarks.md",
    functions: "docs/functions.md",
    kubernetes_scripts: "docs/kubernetes-scripts.md",
    manifest: "docs/manifest.md",
    rest_api: "docs/rest-api.md",
}

#[test]
fn every_page_with_commands_is_run() {
    let root = peers::root();
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/start"] {
        let files = std::fs::read_dir(root.join(folder)).unwrap().flatten();
        pages.extend(files.map(|file| format!("{folder}/{}", file.file_name().to_str().unwrap())));
    }
    let has_commands = |path: &String| {
        path.ends_with(".md")
            && steps(&std::fs::read_to_string(root.join(path)).unwrap())
                .iter()
                .any(|step| matches!(step, PageStep::Commands(_)))
    };
    pages.retain(has_commands);
    pages.sort();
    let mut tested = PAGES.to_vec();
    tested.sort_unstable();
    assert_eq!(pages, tested);
}
