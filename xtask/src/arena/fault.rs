//! What a server may do to the gateway.

use std::fmt;

use clap::ValueEnum;

use super::peer::Transport;
use crate::client::Era;

/// What is wrong with the faulty server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Fault {
    /// Its process is sent SIGKILL, again and again
    Kill,
    /// It takes a call and never says anything again
    Hang,
    /// It prints what is no JSON between its answers, and instead of every other one
    Garbage,
    /// It sends notifications and log lines that nobody wants, as fast as it can
    Flood,
    /// It ends at any question that it does not know, such as the one for its era
    Crash,
    /// Its sessions end after a few calls: it says 404, or 400 and why in words
    Expire,
    /// Its first answer comes after ten seconds
    Slow,
    /// Its results and log lines have 1 MB; some results are larger than the gateway takes
    Large,
    /// Nobody listens at its port
    Refuse,
}

impl Fault {
    pub(super) fn all() -> Vec<Fault> {
        Fault::value_variants().to_vec()
    }

    /// How the faulty server is reached.
    pub(super) fn transport(self) -> Transport {
        match self {
            Fault::Expire | Fault::Refuse => Transport::Http,
            Fault::Kill
            | Fault::Hang
            | Fault::Garbage
            | Fault::Flood
            | Fault::Crash
            | Fault::Slow
            | Fault::Large => Transport::Stdio,
        }
    }

    /// What the faulty server speaks.
    pub(super) fn era(self) -> Era {
        match self {
            // Modern servers have no sessions, and know the question for their era.
            Fault::Expire | Fault::Crash | Fault::Kill | Fault::Garbage => Era::Legacy,
            Fault::Hang | Fault::Flood | Fault::Slow | Fault::Large | Fault::Refuse => Era::Modern,
        }
    }

    /// Whether the fault is in how the server begins: it is never mended, and the gateway has to live with it.
    pub(super) fn is_of_the_start(self) -> bool {
        matches!(self, Fault::Crash | Fault::Slow)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        out.write_str(name.as_ref().map_or("", |name| name.get_name()))
    }
}
