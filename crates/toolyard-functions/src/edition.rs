//! A version that is ready to run.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Semaphore;
use toolyard_core::Secrets;
use toolyard_core::access::Price;
use toolyard_sandbox::packages::Environment;

use crate::code::Code;
use crate::project::{Kind, TestCase};

/// A version that is ready to run. Who has one can go on calling it, whatever becomes of it in the store.
pub struct Edition {
    /// The function.
    pub id: Arc<str>,
    /// Its version, such as `1.2.0` or `draft`.
    pub version: Arc<str>,
    /// What it answers.
    pub kind: Kind,
    /// What a call costs.
    pub price: Price,
    /// What runs.
    pub code: Arc<Code>,
    /// What it has to answer before it is published.
    pub tests: Vec<TestCase>,
    /// What the host lends it, which is kept out of what is said of its failures.
    pub secrets: Secrets,
    /// Its packages, which stay for as long as this does.
    pub(crate) environment: Option<Arc<Environment>>,
}

impl Edition {
    /// Bytes of its files.
    pub(crate) fn bytes(&self) -> u64 {
        self.code.files.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// Whether its packages are kept for it.
    #[must_use]
    pub const fn has_packages(&self) -> bool {
        self.environment.is_some()
    }
}

impl fmt::Debug for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Edition({} {})", self.id, self.version)
    }
}

/// The place of a version that is, or may be, loaded.
pub(crate) struct Slot {
    digest: String,
    edition: RwLock<Option<Arc<Edition>>>,
    /// One at a time loads it; the others find it then.
    pub(crate) loading: Semaphore,
    /// When it was last used, in a count of uses.
    used: AtomicU64,
}

impl Slot {
    pub(crate) fn new(digest: String) -> Self {
        Self { digest, edition: RwLock::default(), loading: Semaphore::new(1), used: AtomicU64::new(0) }
    }

    /// What its content is called.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// What is loaded. `now` is the count of uses.
    pub(crate) fn get(&self, now: u64) -> Option<Arc<Edition>> {
        self.used.store(now, Ordering::Relaxed);
        self.edition.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, edition: Option<Arc<Edition>>) {
        *self.edition.write().unwrap_or_else(PoisonError::into_inner) = edition;
    }

    fn bytes(&self) -> u64 {
        let edition = self.edition.read().unwrap_or_else(PoisonError::into_inner);
        edition.as_ref().map_or(0, |edition| edition.bytes())
    }
}

/// Unloads those that were used longest ago, until the rest has no more than so many bytes.
pub(crate) fn unload<'a>(slots: impl Iterator<Item = &'a Arc<Slot>>, most: u64) {
    let mut loaded: Vec<_> = slots.map(|slot| (slot, slot.bytes())).filter(|(_, bytes)| *bytes > 0).collect();
    loaded.sort_by_key(|(slot, _)| std::cmp::Reverse(slot.used.load(Ordering::Relaxed)));
    let mut sum = 0_u64;
    for (number, (slot, bytes)) in loaded.into_iter().enumerate() {
        sum = sum.saturating_add(bytes);
        // The one that was used last stays, however large it is: it is about to be called.
        if sum > most && number > 0 {
            slot.set(None);
        }
    }
}
