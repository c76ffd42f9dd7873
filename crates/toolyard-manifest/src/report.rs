//! The state that the readers of all documents share: problems, the environment, and declared names.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use crate::{
    expand::ReferenceError,
    problem::{FieldPath, ManifestProblem, ManifestProblems, SourceLocation},
};

/// Looks up an environment variable. It is a parameter, so that tests control the whole input of a manifest.
pub type EnvironmentLookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Collects problems. Readers continue after a problem, so that one run reports them all.
pub(crate) struct ProblemReport<'a> {
    pub(crate) environment: &'a EnvironmentLookup<'a>,
    /// True if the targets of references may be missing.
    allows_missing: bool,
    /// False if the documents are for a gateway elsewhere, which has none of the files here.
    pub(crate) has_files: bool,
    /// True if the documents are copies for display, whose secrets are unknown.
    pub(crate) has_redacted: bool,
    problems: RefCell<Vec<ManifestProblem>>,
    declarations: RefCell<HashMap<(&'static str, String), SourceLocation>>,
    secret_references: RefCell<Vec<SourceLocation>>,
    secret_paths: RefCell<HashSet<FieldPath>>,
    bus_users: RefCell<Vec<SourceLocation>>,
    llm_users: RefCell<Vec<SourceLocation>>,
    reference_values: RefCell<Vec<String>>,
}

impl<'a> ProblemReport<'a> {
    pub(crate) fn new(environment: &'a EnvironmentLookup<'a>) -> Self {
        Self {
            environment,
            allows_missing: false,
            has_files: true,
            has_redacted: false,
            problems: RefCell::default(),
            declarations: RefCell::default(),
            secret_references: RefCell::default(),
            secret_paths: RefCell::default(),
            bus_users: RefCell::default(),
            llm_users: RefCell::default(),
            reference_values: RefCell::default(),
        }
    }

    /// Creates a report for documents that are not used yet: the targets of their references may be missing.
    pub(crate) fn lenient(environment: &'a EnvironmentLookup<'a>) -> Self {
        Self { allows_missing: true, ..Self::new(environment) }
    }

    /// Creates a report for documents of a gateway elsewhere: its environment is unknown, and no file is read.
    pub(crate) fn elsewhere() -> Self {
        Self { has_files: false, ..Self::lenient(&|_| None) }
    }

    /// Creates a report for an edited copy of documents for display, for a gateway elsewhere.
    pub(crate) fn of_copy() -> Self {
        Self { has_redacted: true, ..Self::elsewhere() }
    }

    pub(crate) const fn tolerates(&self, reference: &ReferenceError) -> bool {
        self.allows_missing
            && matches!(reference, ReferenceError::Unset(_) | ReferenceError::Unreadable { .. })
    }

    /// Number of problems so far.
    pub(crate) fn count(&self) -> usize {
        self.problems.borrow().len()
    }

    /// Removes and returns the problems since there were `count` of them.
    pub(crate) fn take_since(&self, count: usize) -> Vec<ManifestProblem> {
        self.problems.borrow_mut().split_off(count)
    }

    /// Creates a report for a part of these documents, whose references may lack their targets.
    pub(crate) fn of_part(&self) -> Self {
        Self { has_files: self.has_files, has_redacted: self.has_redacted, ..Self::lenient(self.environment) }
    }

    pub(crate) fn add(&self, problem: ManifestProblem) {
        self.problems.borrow_mut().push(problem);
    }

    /// Registers a name, and reports the second value with the same noun and name.
    ///
    /// The message does not repeat the name, which may come from the environment.
    pub(crate) fn declare(&self, noun: &'static str, name: &str, location: SourceLocation) {
        let first = self
            .declarations
            .borrow_mut()
            .entry((noun, name.to_owned()))
            .or_insert_with(|| location.clone())
            .clone();
        if first != location {
            let problem = ManifestProblem::new(location, format!("duplicate {noun}"));
            self.add(problem.hint(format!("first defined at {first}")));
        }
    }

    /// Stores the values of references.
    pub(crate) fn add_reference_values(&self, values: Vec<String>) {
        self.reference_values.borrow_mut().extend(values);
    }

    /// Returns the values of references since the last call.
    pub(crate) fn take_reference_values(&self) -> Vec<String> {
        self.reference_values.take()
    }

    /// Stores the path of a value that may be secret.
    pub(crate) fn add_secret_path(&self, path: FieldPath) {
        self.secret_paths.borrow_mut().insert(path);
    }

    /// Returns the paths of values that may be secret since the last call.
    pub(crate) fn take_secret_paths(&self) -> HashSet<FieldPath> {
        self.secret_paths.take()
    }

    /// Stores the location of a reference to a mounted secret: the document with `secretsDir` may come later.
    pub(crate) fn add_secret_reference(&self, location: SourceLocation) {
        self.secret_references.borrow_mut().push(location);
    }

    /// Reports all references to mounted secrets, because `secretsDir` is not set.
    pub(crate) fn report_missing_secrets_dir(&self) {
        for place in self.secret_references.take() {
            let problem = ManifestProblem::new(place, "`secretsDir` is not set");
            self.add(problem.hint(
                "set `secretsDir` in the Toolyard document: the key `token` of the secret `api` is the file \
                 `api/token` in it",
            ));
        }
    }

    /// Stores the location of a value that needs a message bus: the document with `bus` may come later.
    pub(crate) fn add_bus_user(&self, location: SourceLocation) {
        self.bus_users.borrow_mut().push(location);
    }

    /// Reports all values that need a message bus, because `bus.url` is not set.
    pub(crate) fn report_missing_bus(&self) {
        for place in self.bus_users.take() {
            let problem = ManifestProblem::new(place, "`bus.url` is not set");
            self.add(problem.hint(
                "set `bus.url` in the Toolyard document to the broker of the workers, such as \
                 nats://broker.example.com:4222",
            ));
        }
    }

    /// Stores the location of a value that needs a language model: the document with `llm` may come later.
    pub(crate) fn add_llm_user(&self, location: SourceLocation) {
        self.llm_users.borrow_mut().push(location);
    }

    /// Reports all values that need a language model, because `llm` is not set.
    pub(crate) fn report_missing_llm(&self) {
        for place in self.llm_users.take() {
            let problem = ManifestProblem::new(place, "`llm` is not set");
            self.add(problem.hint("set `llm` in the Toolyard document to the endpoint of a language model"));
        }
    }

    /// Returns `value` if there are no problems.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, ManifestProblems> {
        ManifestProblems::from_unsorted(self.problems.into_inner()).map_or(Ok(value), Err)
    }
}
