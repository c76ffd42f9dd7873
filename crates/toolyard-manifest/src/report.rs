//! What the readers of all documents share: where problems go, the environment, and what was declared so far.

use std::{cell::RefCell, collections::HashMap};

use crate::{
    expand::BadReference,
    problem::{Place, Problem, Problems},
};

/// Looks up an environment variable. It is handed in, so that a manifest depends on nothing that a test
/// cannot see.
pub type Environment<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Readers go on after a problem; that is how one run reports them all.
pub(crate) struct Report<'a> {
    pub(crate) environment: &'a Environment<'a>,
    /// Whether what references refer to may be missing.
    is_forgiving: bool,
    problems: RefCell<Vec<Problem>>,
    declared: RefCell<HashMap<(&'static str, String), Place>>,
    keys: RefCell<Vec<Place>>,
    from_outside: RefCell<Vec<String>>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(environment: &'a Environment<'a>) -> Self {
        Self {
            environment,
            is_forgiving: false,
            problems: RefCell::default(),
            declared: RefCell::default(),
            keys: RefCell::default(),
            from_outside: RefCell::default(),
        }
    }

    /// A report for documents that are not used yet: what their references refer to may come later.
    pub(crate) fn forgiving(environment: &'a Environment<'a>) -> Self {
        Self { is_forgiving: true, ..Self::new(environment) }
    }

    pub(crate) const fn forgives(&self, reference: &BadReference) -> bool {
        self.is_forgiving && matches!(reference, BadReference::Unset(_) | BadReference::Unreadable { .. })
    }

    /// How many problems were reported so far.
    pub(crate) fn count(&self) -> usize {
        self.problems.borrow().len()
    }

    pub(crate) fn add(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    /// Reports the second of two things that have one name; `noun` says in a message what they are.
    ///
    /// The message does not repeat the name, which may have come from the environment.
    pub(crate) fn declare(&self, noun: &'static str, name: &str, place: Place) {
        let first = self
            .declared
            .borrow_mut()
            .entry((noun, name.to_owned()))
            .or_insert_with(|| place.clone())
            .clone();
        if first != place {
            let problem = Problem::new(place, format!("a second {noun}"));
            self.add(problem.hint(format!("the first one is at {first}")));
        }
    }

    /// Remembers what references stood for.
    pub(crate) fn came_from_outside(&self, values: Vec<String>) {
        self.from_outside.borrow_mut().extend(values);
    }

    /// What they stood for that were read since this was last asked for.
    pub(crate) fn take_from_outside(&self) -> Vec<String> {
        self.from_outside.take()
    }

    /// Remembers where the key of a mounted secret is named: the document that says where they are mounted may
    /// come later.
    pub(crate) fn key(&self, place: Place) {
        self.keys.borrow_mut().push(place);
    }

    /// Reports every such place, because no document said it.
    pub(crate) fn refuse_keys(&self) {
        for place in self.keys.take() {
            let problem = Problem::new(place, "there is no folder with secrets");
            self.add(problem.hint(
                "set `secretsDir` in the Toolyard document: the key `token` of the secret `api` is the file \
                 `api/token` in it",
            ));
        }
    }

    /// `value`, if nothing was reported.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Problems> {
        Problems::from_found(self.problems.into_inner()).map_or(Ok(value), Err)
    }
}
