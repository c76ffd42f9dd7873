//! A version that is ready to run.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Semaphore;
use toolyard_core::SecretRedactor;
use toolyard_core::access::CallPrice;
use toolyard_sandbox::packages::PackageEnvironment;

use crate::code::FunctionCode;
use crate::project::{FunctionKind, TestCase};

/// A version that is ready to run. It remains callable even if it is deleted from the store.
pub struct LoadedVersion {
    /// Id of the function.
    pub id: Arc<str>,
    /// Version, such as `1.2.0` or `draft`.
    pub version: Arc<str>,
    /// Protocol of the function.
    pub kind: FunctionKind,
    /// Price of a call.
    pub price: CallPrice,
    /// Code to run.
    pub code: Arc<FunctionCode>,
    /// Test cases that must pass before publication.
    pub tests: Vec<TestCase>,
    /// Values of host variables, which are redacted in errors and logs.
    pub secrets: SecretRedactor,
    /// Installed packages, kept while this value exists.
    pub(crate) environment: Option<Arc<PackageEnvironment>>,
}

impl LoadedVersion {
    /// Size of all files, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.code.files.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// True if the version has installed packages.
    #[must_use]
    pub const fn has_packages(&self) -> bool {
        self.environment.is_some()
    }
}

impl fmt::Debug for LoadedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Edition({} {})", self.id, self.version)
    }
}

/// Slot of a version that may be loaded.
pub(crate) struct VersionSlot {
    digest: String,
    loaded: RwLock<Option<Arc<LoadedVersion>>>,
    /// Allows one loader at a time; others use its result.
    pub(crate) loading: Semaphore,
    /// Value of the use counter at the last use.
    used: AtomicU64,
}

impl VersionSlot {
    pub(crate) fn new(digest: String) -> Self {
        Self { digest, loaded: RwLock::default(), loading: Semaphore::new(1), used: AtomicU64::new(0) }
    }

    /// Digest of the content.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the loaded version. `now` is the use counter.
    pub(crate) fn get(&self, now: u64) -> Option<Arc<LoadedVersion>> {
        self.used.store(now, Ordering::Relaxed);
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, loaded: Option<Arc<LoadedVersion>>) {
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = loaded;
    }

    fn bytes(&self) -> u64 {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        loaded.as_ref().map_or(0, |loaded| loaded.bytes())
    }
}

/// Unloads the least recently used versions until the rest has at most so many bytes.
pub(crate) fn unload_unused<'a>(slots: impl Iterator<Item = &'a Arc<VersionSlot>>, most: u64) {
    let mut loaded: Vec<_> = slots.map(|slot| (slot, slot.bytes())).filter(|(_, bytes)| *bytes > 0).collect();
    loaded.sort_by_key(|(slot, _)| std::cmp::Reverse(slot.used.load(Ordering::Relaxed)));
    let mut sum = 0_u64;
    for (number, (slot, bytes)) in loaded.into_iter().enumerate() {
        sum = sum.saturating_add(bytes);
        // The most recently used version is kept regardless of its size, because it is about to be called.
        if sum > most && number > 0 {
            slot.set(None);
        }
    }
}
