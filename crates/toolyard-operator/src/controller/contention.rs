//! Objects that other field managers change back as often as the operator restores them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::error::doubled_delay;

/// Number of times that an object is restored without a delay.
const AT_ONCE: u32 = 3;

/// Time after which an object that stayed as it was restored counts as undisturbed.
const UNDISTURBED: Duration = Duration::from_secs(600);

/// Maximum number of objects that are remembered.
const MAX_OBJECTS: usize = 10_000;

/// The last writes of objects: a write of the same content restores what was changed since.
#[derive(Debug, Default)]
pub struct RestoredObjects {
    written: Mutex<HashMap<String, LastWrite>>,
}

#[derive(Debug)]
struct LastWrite {
    digest: String,
    time: Instant,
    /// Number of writes of this content after the first one.
    restored: u32,
}

impl LastWrite {
    fn is_forgotten(&self) -> bool {
        self.time.elapsed() >= UNDISTURBED
    }

    fn is_contended(&self) -> bool {
        self.restored >= AT_ONCE && !self.is_forgotten()
    }
}

impl RestoredObjects {
    /// Returns the time until an object should be written with this content: zero, unless it was restored several times
    /// already. The delay doubles with each time, up to 5 min.
    #[must_use]
    pub fn delay(&self, object: &str, digest: &str) -> Duration {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let last = written.get(object).filter(|last| last.digest == digest && last.is_contended());
        last.map_or(Duration::ZERO, |last| {
            doubled_delay(last.restored - AT_ONCE + 1).saturating_sub(last.time.elapsed())
        })
    }

    /// Returns `true` if another manager changes an object back as often as it is restored.
    #[must_use]
    pub fn is_contended(&self, object: &str) -> bool {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.get(object).is_some_and(LastWrite::is_contended)
    }

    /// Remembers a write.
    pub fn written(&self, object: &str, digest: &str) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= MAX_OBJECTS {
            written.retain(|_, last| !last.is_forgotten());
        }
        if written.len() >= MAX_OBJECTS {
            written.clear();
        }
        let again = written.get(object).filter(|last| last.digest == digest && !last.is_forgotten());
        let restored = again.map_or(0, |last| last.restored.saturating_add(1));
        written.insert(
            object.to_owned(),
            LastWrite { digest: digest.to_owned(), time: Instant::now(), restored },
        );
    }

    /// Forgets an object that was deleted.
    pub fn forget(&self, object: &str) {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).remove(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Restores an object each time that it may be written, and returns the seconds between the writes.
    async fn delays(restored: &RestoredObjects, writes: usize) -> Vec<f32> {
        let mut delays = Vec::new();
        for _ in 0..writes {
            let delay = restored.delay("a", "1");
            delays.push(delay.as_secs_f32());
            tokio::time::advance(delay).await;
            restored.written("a", "1");
        }
        delays
    }

    #[tokio::test(start_paused = true)]
    async fn delay_doubles_once_an_object_was_restored_several_times() {
        let restored = RestoredObjects::default();
        assert_eq!(delays(&restored, 8).await, [0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 2.0, 4.0]);
        assert!(restored.is_contended("a"));
        let last = delays(&restored, 10).await.pop();
        assert_eq!(last, Some(300.0));
    }

    #[tokio::test(start_paused = true)]
    async fn other_content_and_undisturbed_objects_are_written_at_once() {
        let check = async |name: &str,
                           change: &dyn Fn(&RestoredObjects),
                           pause: Duration,
                           digest: &str,
                           expected: f32| {
            let restored = RestoredObjects::default();
            delays(&restored, 6).await;
            change(&restored);
            tokio::time::advance(pause).await;
            assert_eq!(restored.delay("a", digest).as_secs_f32(), expected, "{name}");
        };
        let nothing = |_: &RestoredObjects| {};
        check("contended", &nothing, Duration::ZERO, "1", 2.0).await;
        check("later", &nothing, Duration::from_secs(1), "1", 1.0).await;
        check("other content", &nothing, Duration::ZERO, "2", 0.0).await;
        check("other object", &|restored| restored.written("b", "1"), Duration::ZERO, "1", 2.0).await;
        check("undisturbed", &nothing, UNDISTURBED, "1", 0.0).await;
        check("deleted", &|restored| restored.forget("a"), Duration::ZERO, "1", 0.0).await;
        check("written otherwise", &|restored| restored.written("a", "2"), Duration::ZERO, "1", 0.0).await;
    }

    #[test]
    fn number_of_objects_is_limited() {
        let restored = RestoredObjects::default();
        (0..=MAX_OBJECTS).for_each(|number| restored.written(&number.to_string(), ""));
        assert_eq!(restored.written.lock().unwrap().len(), 1);
    }
}
