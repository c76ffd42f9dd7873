//! The files of the manifest, followed.

use std::path::PathBuf;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use toolyard_manifest::Stamp;

/// How long files have to be left alone before an edit counts as finished: few editors write in one go.
const CALM: Duration = Duration::from_millis(50);

/// Files and folders that are looked at again and again.
///
/// No notices of the system are asked for: those do not come from network file systems, are lost with the folder, and
/// say little where a file is a link to a link, as in a volume of Kubernetes.
pub struct Edits {
    paths: Vec<PathBuf>,
    seen: Stamp,
}

impl Edits {
    /// Edits from now on.
    pub async fn of(paths: Vec<PathBuf>) -> Self {
        let seen = stamp(paths.clone()).await;
        Self { paths, seen }
    }

    /// Waits until the files are others than before, and have been left alone for a moment. They are looked at
    /// every so often.
    pub async fn next(&mut self, every: Duration) {
        loop {
            sleep(every).await;
            let mut now = stamp(self.paths.clone()).await;
            if now == self.seen {
                continue;
            }
            while now != self.seen {
                self.seen = now;
                sleep(CALM).await;
                now = stamp(self.paths.clone()).await;
            }
            return;
        }
    }
}

/// A file system may take its time.
async fn stamp(paths: Vec<PathBuf>) -> Stamp {
    spawn_blocking(move || Stamp::of(&paths)).await.unwrap_or_default()
}
