//! The secrets of one test, and what came out of the gateway that has them.

use super::plant::Canaries;

/// A yard full of secrets.
#[derive(Default)]
pub(crate) struct Yard {
    pub(crate) canaries: Canaries,
    /// The environment that the manifest refers to.
    pub(crate) environment: Vec<(String, String)>,
    /// What came out, and where.
    outputs: Vec<(String, Vec<u8>)>,
}

impl Yard {
    /// A secret, for a place where it is written out.
    pub(crate) fn secret(&mut self, place: &str) -> String {
        self.canaries.plant(place)
    }

    /// A reference to a secret, for this place.
    pub(crate) fn reference(&mut self, place: &str) -> String {
        let name = format!("CANARY_{}", place.to_uppercase().replace('-', "_"));
        let secret = self.secret(place);
        self.environment.push((name.clone(), secret));
        format!("${{{name}}}")
    }

    pub(crate) fn saw(&mut self, what: &str, output: impl Into<Vec<u8>>) {
        self.outputs.push((what.to_owned(), output.into()));
    }

    /// Every secret that came out, with where it stood and where it came out.
    fn leaks(&self) -> Vec<String> {
        let leaks = self.outputs.iter().flat_map(|(what, output)| {
            let found = self.canaries.found_in(output);
            found.into_iter().map(move |place| format!("{place} in {what}"))
        });
        leaks.collect()
    }

    #[track_caller]
    pub(crate) fn assert_kept(&self) {
        assert!(!self.outputs.is_empty());
        let leaks = self.leaks();
        assert!(leaks.is_empty(), "{leaks:#?}\n{}", self.lines_of_leaks().join("\n"));
    }

    /// For whoever has to find them.
    fn lines_of_leaks(&self) -> Vec<String> {
        let outputs = self.outputs.iter().map(|(what, output)| (what, String::from_utf8_lossy(output)));
        let lines = outputs.flat_map(|(what, text)| {
            let lines = text.lines().filter(|line| !self.canaries.found_in(line.as_bytes()).is_empty());
            lines.map(|line| format!("{what}: {:.600}", line)).collect::<Vec<_>>()
        });
        lines.collect()
    }
}
