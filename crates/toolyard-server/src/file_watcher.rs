//! Detects edits of the manifest's files.

use std::path::PathBuf;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use toolyard_manifest::ManifestFingerprint;

/// Time for which files must stay unchanged before they are read. Few programs write a file atomically, and a truncated
/// document may be valid.
///
/// It is measured with the local clock, because another machine may have set the files' own times.
const SETTLE_TIME: Duration = Duration::from_millis(200);

/// Polls files and folders for changes.
///
/// It polls because change notifications do not come from network file systems, are lost with a deleted folder, and say
/// little about a link to a link, as in a Kubernetes volume.
pub(crate) struct FileWatcher {
    paths: Vec<PathBuf>,
    last_read: ManifestFingerprint,
    settle_time: Duration,
}

impl FileWatcher {
    /// Starts watching from the current state.
    pub(crate) async fn of(paths: Vec<PathBuf>) -> Self {
        let last_read = fingerprint(paths.clone()).await;
        Self { paths, last_read, settle_time: SETTLE_TIME }
    }

    /// Sets the time for which files must stay unchanged before they are read.
    pub(crate) fn settling(self, settle_time: Duration) -> Self {
        Self { settle_time, ..self }
    }

    /// Waits until the files differ from the last read, polling at the interval `every`.
    pub(crate) async fn next(&self, every: Duration) {
        loop {
            sleep(every).await;
            if fingerprint(self.paths.clone()).await != self.last_read {
                return;
            }
        }
    }

    /// Runs `read` once the files have settled, and again if they change meanwhile. Returns the last result.
    pub(crate) async fn read<T: Send + 'static>(
        &mut self,
        read: impl Fn() -> T + Clone + Send + 'static,
    ) -> T {
        loop {
            self.settle().await;
            let result = blocking(read.clone()).await;
            if fingerprint(self.paths.clone()).await == self.last_read {
                return result;
            }
        }
    }

    async fn settle(&mut self) {
        loop {
            self.last_read = fingerprint(self.paths.clone()).await;
            sleep(self.settle_time).await;
            if fingerprint(self.paths.clone()).await == self.last_read {
                return;
            }
        }
    }
}

async fn fingerprint(paths: Vec<PathBuf>) -> ManifestFingerprint {
    blocking(move || ManifestFingerprint::of(&paths)).await
}

/// Runs file system work on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::fs;
    use std::sync::{Arc, Mutex};

    use tokio::time::Instant;

    use super::*;

    /// Returns the text read and the number of reads, while each read is followed by the next of these saves.
    async fn texts(saves: &[&'static str]) -> (String, usize) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.yaml");
        fs::write(&path, "the first").expect("a file");
        let mut edits = FileWatcher::of(vec![path.clone()]).await;
        let saves = Arc::new(Mutex::new(saves.iter().copied().collect::<VecDeque<_>>()));
        let readings = Arc::new(Mutex::new(0));
        let counter = readings.clone();
        let read = move || {
            let text = fs::read_to_string(&path).expect("a text");
            *counter.lock().expect("a lock") += 1;
            if let Some(save) = saves.lock().expect("a lock").pop_front() {
                fs::write(&path, save).expect("a file");
            }
            text
        };
        let text = edits.read(read).await;
        let readings = *readings.lock().expect("a lock");
        (text, readings)
    }

    #[tokio::test(start_paused = true)]
    async fn file_changed_during_a_read_is_read_again() {
        let cases: [(&[&str], &str, usize); 3] =
            [(&[], "the first", 1), (&["", "half", "the whole"], "the whole", 4), (&[""], "", 2)];
        for (saves, text, readings) in cases {
            assert_eq!(texts(saves).await, (text.to_owned(), readings), "{saves:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn file_is_read_after_it_has_settled() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.yaml");
        fs::write(&path, "").expect("a file");
        let mut edits = FileWatcher::of(vec![path.clone()]).await;
        let start = Instant::now();
        let writer = async {
            for length in 1..=5 {
                fs::write(&path, "x".repeat(length)).expect("a file");
                sleep(SETTLE_TIME / 2).await;
            }
            start.elapsed()
        };
        let file = path.clone();
        let (write_time, text) =
            tokio::join!(writer, edits.read(move || fs::read_to_string(&file).expect("a text")));
        assert_eq!(text, "xxxxx");
        assert!(start.elapsed() >= write_time + SETTLE_TIME / 2, "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn read_state_is_not_a_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.yaml");
        let mut edits = FileWatcher::of(vec![path.clone()]).await;
        let every = Duration::from_secs(1);
        let is_changed =
            async |edits: &FileWatcher| tokio::time::timeout(every * 3, edits.next(every)).await.is_ok();
        assert!(!is_changed(&edits).await, "nothing has changed");
        fs::write(&path, "1").expect("a file");
        assert!(is_changed(&edits).await, "a file has come");
        assert!(is_changed(&edits).await, "it has not been read");
        edits.read(|| ()).await;
        assert!(!is_changed(&edits).await, "it has been read");
    }
}
