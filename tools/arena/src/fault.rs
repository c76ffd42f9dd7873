//! Faults of an upstream server.

use std::fmt;

use clap::ValueEnum;
use xtask_client::McpEra;

use super::peer::PeerTransport;

/// The fault of the faulty server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum ServerFault {
    /// Kill its process with SIGKILL, again and again
    Kill,
    /// Accept a call and never respond again
    Hang,
    /// Print invalid JSON between its responses, and instead of every second one
    Garbage,
    /// Send unsolicited notifications and log lines at full speed
    Flood,
    /// Exit at any unknown request, such as the era probe
    Crash,
    /// End sessions after a few calls: with status 404, or with 400 and a text
    Expire,
    /// Delay the first response by ten seconds
    Slow,
    /// Send results and log lines of 1 MB, some beyond the response limit of the gateway
    Large,
    /// Close the port
    Refuse,
}

impl ServerFault {
    /// The transport of the faulty server.
    pub(super) fn transport(self) -> PeerTransport {
        match self {
            ServerFault::Expire | ServerFault::Refuse => PeerTransport::Http,
            ServerFault::Kill
            | ServerFault::Hang
            | ServerFault::Garbage
            | ServerFault::Flood
            | ServerFault::Crash
            | ServerFault::Slow
            | ServerFault::Large => PeerTransport::Stdio,
        }
    }

    /// The era of the faulty server.
    pub(super) fn era(self) -> McpEra {
        match self {
            // Modern servers have no sessions, and know the era probe.
            ServerFault::Expire | ServerFault::Crash | ServerFault::Kill | ServerFault::Garbage => {
                McpEra::Legacy
            }
            ServerFault::Hang
            | ServerFault::Flood
            | ServerFault::Slow
            | ServerFault::Large
            | ServerFault::Refuse => McpEra::Modern,
        }
    }

    /// `true` if the fault is in the start of the server: it stays, and the gateway has to cope with it.
    pub(super) fn affects_startup(self) -> bool {
        matches!(self, ServerFault::Crash | ServerFault::Slow)
    }
}

impl fmt::Display for ServerFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        out.write_str(name.as_ref().map_or("", |name| name.get_name()))
    }
}
