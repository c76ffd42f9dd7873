//! Tracks the secrets of a test and the output in which they must not appear.

use super::canary::CanarySet;

/// The canaries, the environment and the recorded output of a test.
#[derive(Default)]
pub(crate) struct SecretTracker {
    pub(crate) canaries: CanarySet,
    /// Environment variables that the manifest refers to.
    pub(crate) environment: Vec<(String, String)>,
    /// Recorded output by its source.
    outputs: Vec<(String, Vec<u8>)>,
}

impl SecretTracker {
    /// Creates a secret that is written to a place.
    pub(crate) fn secret(&mut self, place: &str) -> String {
        self.canaries.plant(place)
    }

    /// Creates a secret in the environment and returns a reference to it.
    pub(crate) fn reference(&mut self, place: &str) -> String {
        let name = format!("CANARY_{}", place.to_uppercase().replace('-', "_"));
        let secret = self.secret(place);
        self.environment.push((name.clone(), secret));
        format!("${{{name}}}")
    }

    pub(crate) fn record(&mut self, what: &str, output: impl Into<Vec<u8>>) {
        self.outputs.push((what.to_owned(), output.into()));
    }

    /// Returns each disclosed secret with its place and the output that contains it.
    fn leaks(&self) -> Vec<String> {
        let leaks = self.outputs.iter().flat_map(|(what, output)| {
            let leaked = self.canaries.leaked_in(output);
            leaked.into_iter().map(move |place| format!("{place} in {what}"))
        });
        leaks.collect()
    }

    #[track_caller]
    pub(crate) fn assert_no_leaks(&self) {
        assert!(!self.outputs.is_empty());
        let leaks = self.leaks();
        assert!(leaks.is_empty(), "{leaks:#?}\n{}", self.leak_locations().join("\n"));
    }

    /// Returns the lines of output that contain secrets, to find the cause.
    fn leak_locations(&self) -> Vec<String> {
        let outputs = self.outputs.iter().map(|(what, output)| (what, String::from_utf8_lossy(output)));
        let lines = outputs.flat_map(|(what, text)| {
            let lines = text.lines().filter(|line| !self.canaries.leaked_in(line.as_bytes()).is_empty());
            lines.map(|line| format!("{what}: {:.600}", line)).collect::<Vec<_>>()
        });
        lines.collect()
    }
}
