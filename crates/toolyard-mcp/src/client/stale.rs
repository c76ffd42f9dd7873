//! Which lists of a server may not be what they were.

use tokio::sync::watch;
use toolyard_core::registry::Kind;

use crate::wire::method;

/// Some of the lists that a server has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lists(u8);

impl Lists {
    pub(super) const NONE: Self = Self(0);
    pub(super) const ALL: Self = Self::of(&Kind::ALL);

    pub(super) const fn of(kinds: &[Kind]) -> Self {
        let (mut lists, mut at) = (0, 0);
        while at < kinds.len() {
            lists |= 1 << kinds[at] as u8;
            at += 1;
        }
        Self(lists)
    }

    pub(super) const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// The lists that are others when a server says this.
    pub(super) fn changed_by(notification: &str) -> Self {
        match notification {
            method::TOOLS_CHANGED => Self::of(&[Kind::Tools]),
            method::PROMPTS_CHANGED => Self::of(&[Kind::Prompts]),
            method::RESOURCES_CHANGED => Self::of(&[Kind::Resources, Kind::Templates]),
            _ => Self::NONE,
        }
    }

    pub(super) const fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

/// The lists that are to be asked for again.
#[derive(Debug, Default)]
pub(super) struct Stale(watch::Sender<Lists>);

impl Stale {
    pub(super) fn note(&self, lists: Lists) {
        self.0.send_if_modified(|stale| {
            let before = std::mem::replace(stale, stale.and(lists));
            *stale != before
        });
    }

    /// Waits until there are some.
    pub(super) async fn wait(&self) {
        // We hold the sender ourselves.
        let _gone = self.0.subscribe().wait_for(|stale| *stale != Lists::NONE).await.map(drop);
    }

    /// Who takes them asks for them.
    pub(super) fn take(&self) -> Lists {
        self.0.send_replace(Lists::NONE)
    }
}
