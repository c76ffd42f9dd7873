//! The era of each call, at servers that speak both.
//!
//! A server asks its client by requests in the legacy era, and by results in the modern one (2026-07-28,
//! basic/patterns/mrtr). Many tools know the first way only: called in the modern era, they fail. The shared connection
//! speaks the modern era with a server that knows it, so that a call whose tool may have to ask uses a dedicated
//! connection of the legacy era instead, if the server speaks that as well and opens a session in it.
//!
//! - A client with a session that can be asked uses the legacy era from its first call on: the state of a session must
//!   not be split.
//! - A client without a session uses the modern era, and the legacy one for targets that have failed in the modern era
//!   with evidence of a missing channel.
//! - Targets that have answered `input_required` or with a task stay modern, for all clients: some SDKs cannot convert
//!   such answers. So does a target that runs only as a task.
//! - A target that only a dedicated connection of the client lists is called there.
//! - All other calls, and all calls at servers with `lane: shared`, use the shared connection.
//!
//! A call whose first era is the legacy one waits for its connection, within its deadline and the time for connecting. If
//! that cannot be opened, the call is refused and may be retried: in the other era it would run, and fail. Only a handshake
//! which shows that the server does not speak the legacy era, or opens no session in it, makes the modern era final.
//!
//! # Evidence
//!
//! The evidence of a missing channel is an error of a server that speaks both eras, for a call whose client could have
//! been asked. Such a server is known by its handshake in the legacy era, which is tried once it matters. The error is
//! one of these:
//!
//! - the JSON-RPC error -32600 or -32601: the gateway's request is valid and its method exists, so the server means a
//!   request of its own (SDK for Python);
//! - the JSON-RPC error -32021 that requires a capability for requests which the client has declared;
//! - any other JSON-RPC error, or a tool's result with `isError`, whose text has the method of a request to clients, or
//!   a name of such requests together with the revision of the call (FastMCP, and the SDKs for TypeScript and Rust, leave
//!   no more than a text). A text alone decides nothing for good: the legacy call that follows shows whether the tool asks.
//!
//! In the legacy era, the evidence of an answer that only the modern era has is the JSON-RPC error -32603 with the text
//! of the SDK for Python about a result that it cannot send, -32021, for a capability that exists in the modern era only,
//! or another one whose text names `input_required` (FastMCP, SDK for TypeScript). It counts unless the tool has asked. Any
//! other -32603 is an ordinary failure.
//! The modern call that follows decides: unless that is answered with `input_required` or a task, the tool stays legacy.
//!
//! A failed call is made again only if its target is read-only or idempotent and has sent no progress, or if the server
//! refused it with -32021. Otherwise its error says that the next call uses the other era.
//!
//! What is known ends with the connection that was lost; the number of known targets is limited as that of listed items.

pub(super) mod dual_era_call;
mod evidence;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use toolyard_core::CallTarget;

use crate::wire::{ProtocolEra, target_method};

/// The eras in which a server is spoken to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EraPreference {
    /// The modern era if the server speaks it, and the legacy era for calls that may ask their client.
    #[default]
    Automatic,
    /// The legacy era only.
    Legacy,
    /// The modern era only.
    Modern,
}

impl EraPreference {
    /// Returns the only permitted era, if there is one.
    pub(super) const fn only(self) -> Option<ProtocolEra> {
        match self {
            Self::Automatic => None,
            Self::Legacy => Some(ProtocolEra::Legacy),
            Self::Modern => Some(ProtocolEra::Modern),
        }
    }
}

/// The knowledge about the eras of one server and of its targets.
pub(super) struct ServerEras {
    known: RwLock<KnownEras>,
    /// Maximum number of known targets.
    capacity: usize,
}

#[derive(Default)]
struct KnownEras {
    /// True if a modern server also speaks the legacy era; `None` before the first handshake.
    speaks_legacy: Option<bool>,
    targets: HashMap<TargetKey, TargetEra>,
}

/// The method and the name of a target.
type TargetKey = (&'static str, Arc<str>);

/// The era of a tool, a prompt or a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TargetEra {
    /// It has answered `input_required` or with a task.
    Modern,
    /// It has asked in the legacy era, or has no answer that only the modern era has.
    Legacy,
    /// It has failed in the modern era, and the next call shows more.
    LegacyTrial,
    /// It has failed in the legacy era, and the next call shows more.
    ModernTrial,
}

impl ServerEras {
    pub(super) fn new(capacity: usize) -> Self {
        Self { known: RwLock::default(), capacity }
    }

    /// True unless the server is known to speak the modern era only.
    pub(super) fn may_speak_legacy(&self) -> bool {
        self.read(|known| known.speaks_legacy) != Some(false)
    }

    /// True if the server is known to speak the legacy era.
    fn speaks_legacy(&self) -> bool {
        self.read(|known| known.speaks_legacy) == Some(true)
    }

    /// Records a handshake in the legacy era. A failure after a success is temporary.
    pub(super) fn record_legacy_handshake(&self, succeeded: bool) {
        self.write(|known| {
            if succeeded || known.speaks_legacy.is_none() {
                known.speaks_legacy = Some(succeeded);
            }
        });
    }

    /// Records a target that runs only as a task.
    pub(super) fn record_task_tool(&self, name: &Arc<str>) {
        self.record(&CallTarget::Tool(name.clone()), TargetEra::Modern);
    }

    /// Forgets everything: the server may be another one.
    pub(super) fn reset(&self) {
        self.write(|known| *known = KnownEras::default());
    }

    /// True if a target is called in the modern era by all clients.
    fn is_modern(&self, target: &CallTarget) -> bool {
        matches!(self.target(target), Some(TargetEra::Modern | TargetEra::ModernTrial))
    }

    fn target(&self, target: &CallTarget) -> Option<TargetEra> {
        let key = (target_method(target), target.name().clone());
        self.read(|known| known.targets.get(&key).copied())
    }

    fn record(&self, target: &CallTarget, era: TargetEra) {
        if self.target(target) == Some(era) {
            return;
        }
        let key = (target_method(target), target.name().clone());
        self.write(|known| {
            if known.targets.len() < self.capacity || known.targets.contains_key(&key) {
                known.targets.insert(key, era);
            }
        });
    }

    fn read<T>(&self, read: impl FnOnce(&KnownEras) -> T) -> T {
        read(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, write: impl FnOnce(&mut KnownEras)) {
        write(&mut self.known.write().unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_known_targets_is_limited() {
        let eras = ServerEras::new(2);
        let tool = |name: &str| CallTarget::Tool(name.into());
        for name in ["a", "b", "c"] {
            eras.record(&tool(name), TargetEra::LegacyTrial);
        }
        eras.record(&tool("a"), TargetEra::Legacy);
        let targets = ["a", "b", "c"].map(|name| eras.target(&tool(name)));
        assert_eq!(targets, [Some(TargetEra::Legacy), Some(TargetEra::LegacyTrial), None]);
        assert_eq!(eras.target(&CallTarget::Prompt("a".into())), None);
        eras.reset();
        assert_eq!(eras.target(&tool("a")), None);
    }

    #[test]
    fn failed_handshake_after_a_successful_one_is_temporary() {
        for (handshakes, expected) in
            [(&[][..], true), (&[false], false), (&[true, false], true), (&[false, true], true)]
        {
            let eras = ServerEras::new(1);
            handshakes.iter().for_each(|succeeded| eras.record_legacy_handshake(*succeeded));
            assert_eq!(eras.may_speak_legacy(), expected, "{handshakes:?}");
        }
    }
}
