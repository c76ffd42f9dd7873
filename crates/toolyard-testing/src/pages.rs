//! Pages of the documentation, whose commands run as they are printed.
//!
//! A page is one session in an empty folder. In the order of the page,
//!
//! - a code block whose info string has a file name after the language (`yaml tools.yaml`) is written to that file;
//! - a `sh` block is run, and has to succeed. A block that begins with a command in `SERVERS` runs until the end of the
//!   page, and the page goes on once the gateway is ready;
//! - a `text` block directly after a `sh` block is the output of its commands. `…` stands for any text.
//!
//! The addresses of the documents are replaced by free ones, so that pages can run side by side.

mod steps;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use self::steps::{PageStep, steps};
use crate::process::{self, RunningProgram};
use crate::wait::until;
use crate::{http, peers};

/// Commands that run until they are stopped, and the option that gives them an address.
const SERVERS: [(&str, &str); 2] =
    [("toolyard serve", " --listen "), ("toolyard function dev", " --listen ")];

/// The address in the documents.
const DOCUMENTED_ADDRESS: &str = "127.0.0.1:8080";

/// The command of a service that stands in for the reader's own, and its address in the documents.
const SERVICE: (&str, &str) = ("python3 -m http.server --bind 127.0.0.1 9000", "127.0.0.1:9000");

/// The beginning of a script: exported variables are those of the page, not of a block.
const SESSION: &str = "[ ! -e .session ] || . ./.session\n";

/// A page in its folder.
pub struct PageSession<'a> {
    folder: PathBuf,
    /// Returns a command that runs a script with Bash in the folder.
    shell: &'a dyn Fn(&str) -> Command,
    /// Blocks that are not run, by their beginnings, and the reasons.
    not_run: &'a [(&'a str, &'a str)],
    address: String,
    service_port: u16,
    /// Programs that run until the end of the page.
    servers: Vec<RunningProgram>,
    /// The output of the last commands, if they were run.
    output: Option<String>,
}

impl<'a> PageSession<'a> {
    /// Returns a session in a folder, whose commands `shell` runs there. Blocks with the beginnings in `not_run` are
    /// left out.
    pub fn new(folder: &Path, shell: &'a dyn Fn(&str) -> Command, not_run: &'a [(&'a str, &'a str)]) -> Self {
        let address = format!("127.0.0.1:{}", peers::free_port());
        let service_port = peers::free_port();
        let folder = folder.to_owned();
        Self { folder, shell, not_run, address, service_port, servers: Vec::new(), output: None }
    }

    /// Runs the page of this path, which has commands.
    #[track_caller]
    pub fn run(mut self, page: &str) {
        let text = std::fs::read_to_string(peers::root().join(page)).unwrap();
        let steps = steps(&text);
        assert!(steps.iter().any(|step| matches!(step, PageStep::Commands(_))), "{page} has no commands");
        for step in &steps {
            self.take(step);
        }
    }

    #[track_caller]
    fn take(&mut self, step: &PageStep) {
        match step {
            PageStep::File { name, text } => self.write(name, text),
            PageStep::Commands(text) if self.not_run.iter().any(|(start, _)| text.starts_with(start)) => {
                self.output = None;
            }
            PageStep::Commands(text) => self.run_commands(&text.replace(DOCUMENTED_ADDRESS, &self.address)),
            PageStep::Output(expected) => {
                let Some(output) = &self.output else { return };
                let printed = output.replace(&self.address, DOCUMENTED_ADDRESS);
                assert!(steps::matches(expected, &printed), "expected\n{expected}\nprinted\n{printed}");
            }
        }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = text.replace(DOCUMENTED_ADDRESS, &self.address);
        let service = format!("127.0.0.1:{}", self.service_port);
        std::fs::write(path, text.replace(SERVICE.1, &service)).unwrap();
    }

    #[track_caller]
    fn run_commands(&mut self, commands: &str) {
        if let Some((_, option)) = SERVERS.iter().find(|(server, _)| commands.starts_with(server)) {
            let command = commands.lines().next().unwrap_or_default();
            let (command, _) = command.split_once(" #").unwrap_or((command, ""));
            let command = format!("exec {}{option}{}", command.trim_end(), self.address);
            self.servers.push(RunningProgram::start(&mut self.shell(&command)));
            let address = self.address.parse().unwrap();
            until("the gateway", || {
                std::net::TcpStream::connect(address).is_ok()
                    && http::send(address, "GET /health", &[], "").status == 200
            });
            return;
        }
        if commands.starts_with(SERVICE.0) {
            let command = format!("exec {}", commands.replace("9000", &self.service_port.to_string()));
            self.servers.push(RunningProgram::start(&mut self.shell(&command)));
            let address = ("127.0.0.1", self.service_port);
            until("the service", || std::net::TcpStream::connect(address).is_ok());
            return;
        }
        let result = process::run(&mut self.shell(&format!("trap 'export -p >.session' EXIT\n{commands}")));
        assert_eq!(result.code, 0, "{commands}\n{result}");
        self.output = Some(result.stdout);
    }

    fn shell(&self, script: &str) -> Command {
        let url = format!("export TOOLYARD_URL=http://{}\n", self.address);
        (self.shell)(&format!("set -euo pipefail\n{url}{SESSION}{script}"))
    }
}
