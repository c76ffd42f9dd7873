//! Message brokers that end with the test that started them.

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::peers::free_port;
use crate::process::{RunningProgram, bound_to_thread, is_running};
use crate::wait::until;

/// A broker on a free port, with its data in a folder of its own, which it keeps when it is started again.
pub struct MessageBroker {
    kind: BrokerProgram,
    port: u16,
    folder: TempDir,
    /// `None` while the broker is stopped.
    process: Option<RunningProgram>,
    /// The daemon of RabbitMQ's runtime that knows the ports of nodes.
    port_mapper: Option<RunningProgram>,
}

/// A program of Debian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerProgram {
    /// RabbitMQ.
    RabbitMq,
    /// NATS with JetStream.
    Nats,
}

impl MessageBroker {
    /// Starts a broker, and waits until it accepts connections.
    #[track_caller]
    pub fn start(kind: BrokerProgram) -> Self {
        let mut broker = Self::prepare(kind);
        broker.run();
        broker
    }

    /// Chooses the port of a broker without starting it.
    pub fn prepare(kind: BrokerProgram) -> Self {
        Self { kind, port: free_port(), folder: TempDir::new().unwrap(), process: None, port_mapper: None }
    }

    /// Runs the broker until it accepts connections.
    #[track_caller]
    pub fn run(&mut self) {
        let mut command = match self.kind {
            BrokerProgram::Nats => self.nats(),
            BrokerProgram::RabbitMq => self.rabbitmq(),
        };
        let process = RunningProgram::start(command.current_dir("/"));
        let port = self.port;
        until("the broker to listen", || {
            assert!(is_running(process.id()), "{}{}", process.stdout.text(), process.stderr.text());
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
        });
        self.process = Some(process);
    }

    fn nats(&self) -> Command {
        let mut command = bound_to_thread("/usr/sbin/nats-server");
        command.args(["--addr", "127.0.0.1", "--jetstream", "--port"]).arg(self.port.to_string());
        command.arg("--store_dir").arg(self.folder.path());
        command
    }

    fn rabbitmq(&mut self) -> Command {
        let folder = self.folder.path().to_owned();
        for name in ["home", "log", "mnesia"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        std::fs::write(folder.join("plugins"), "[].").unwrap();
        std::fs::write(folder.join("rabbitmq.conf"), format!("listeners.tcp.1 = 127.0.0.1:{}\n", self.port))
            .unwrap();
        let (home, mapper_port) = (folder.join("home"), free_port().to_string());
        // Without it RabbitMQ starts a daemon, which would outlive the test.
        let mut mapper = bound_to_thread("epmd");
        mapper.args(["-address", "127.0.0.1", "-port", &mapper_port]);
        self.port_mapper = Some(RunningProgram::start(&mut mapper));
        let mapper_at = mapper_port.parse().unwrap();
        until("the port mapper to listen", || TcpStream::connect((Ipv4Addr::LOCALHOST, mapper_at)).is_ok());
        let mut command = bound_to_thread(rabbitmq_program());
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            // The program runs in the place of its script, so that a signal reaches it.
            .env("RABBITMQ_ALLOW_INPUT", "1")
            .env("RABBITMQ_NODENAME", format!("test{}@localhost", self.port))
            .env("RABBITMQ_DIST_PORT", free_port().to_string())
            .env("ERL_EPMD_PORT", mapper_port)
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_MNESIA_BASE", folder.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", folder.join("log"))
            .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq.conf"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("plugins"))
            .env("RABBITMQ_CONF_ENV_FILE", "/dev/null")
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-kernel inet_dist_use_interface {127,0,0,1} -noinput",
            );
        command
    }

    /// Kills the broker without a shutdown.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.signal(Signal::KILL);
            process.wait();
        }
        self.port_mapper = None;
    }

    /// Returns the URL with the user that the broker has by itself.
    pub fn url(&self) -> String {
        match self.kind {
            BrokerProgram::RabbitMq => format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port),
            BrokerProgram::Nats => format!("nats://127.0.0.1:{}", self.port),
        }
    }

    /// Returns the folder with the data and the log.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for MessageBroker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the program of RabbitMQ. That in the search path runs as another user.
fn rabbitmq_program() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/rabbitmq/lib").into_iter().flatten().flatten();
    let mut programs: Vec<_> = versions
        .map(|version| version.path().join("sbin/rabbitmq-server"))
        .filter(|path| path.exists())
        .collect();
    programs.sort();
    programs.pop().expect("RabbitMQ is not installed: run `cargo xtask peer-software`")
}
