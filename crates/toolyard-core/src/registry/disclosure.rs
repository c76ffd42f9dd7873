//! Which tools are shown to clients whose model can find the others.

use std::sync::Arc;

use super::{Entry, Kind, Listing, Registry};
use crate::access::Pattern;

/// What is shown of all tools where a handler has some that find the others and call them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disclosure {
    /// How much.
    pub show: Show,
    /// How many tokens the definitions of all tools may have with [`Show::Auto`].
    pub budget: usize,
    /// Tools that are shown in any case.
    pub pinned: Vec<Pattern>,
    /// The tools that find and call the others, by the names that their handler has for them. Whoever may not use one of them
    /// is shown everything: it would never hear of the rest.
    pub finders: Vec<Arc<str>>,
}

/// How much is shown of all tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// All of them.
    All,
    /// The tools of the handler that finds others, and those that are pinned.
    Search,
    /// All of them as long as they are within the budget, else what [`Show::Search`] shows.
    Auto,
}

impl Registry {
    /// What is shown to a client of everything of one kind. Whatever is not shown can be called all the same.
    #[must_use]
    pub fn shown(&self, kind: Kind) -> &Listing {
        let all = &self.part(kind).listing;
        if kind != Kind::Tools {
            return all;
        }
        let fewer = self.shown.get_or_init(|| self.fewer(self.disclosure()?.show));
        fewer.as_ref().unwrap_or(all)
    }

    /// How much of all tools is shown; `None` where nothing of them can be found but by the list.
    #[must_use]
    pub fn disclosure(&self) -> Option<&Disclosure> {
        let (handler, disclosure) = self.discloses.as_ref()?;
        let finds = |own: &Arc<str>| {
            let entries = self.entries(Kind::Tools);
            entries.iter().any(|entry| entry.handler.name == *handler && entry.own == *own)
        };
        disclosure.finders.iter().all(finds).then_some(disclosure)
    }

    /// The tools that would be shown; `None`: all of them.
    #[must_use]
    pub fn fewer(&self, show: Show) -> Option<Listing> {
        let disclosure = self.disclosure()?;
        let all = &self.part(Kind::Tools).listing;
        let is_enough = match show {
            Show::All => true,
            Show::Search => false,
            Show::Auto => all.tokens() <= disclosure.budget,
        };
        (!is_enough).then(|| all.only(|entry| self.is_always_shown(disclosure, entry)))
    }

    fn is_always_shown(&self, disclosure: &Disclosure, entry: &Entry) -> bool {
        let finds = self.discloses.as_ref().is_some_and(|(handler, _)| *handler == entry.handler.name);
        finds || disclosure.pinned.iter().any(|pattern| pattern.matches(&entry.handler.name, &entry.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Catalog;
    use crate::names::Names;
    use crate::registry::Handler;
    use crate::testing::{self, FakeBackend};
    use crate::tokens;

    fn part(name: &str, tools: &[&str], disclosure: Option<Disclosure>) -> (Handler, Arc<Catalog>) {
        let handler = testing::handler(name, FakeBackend::new(&[], Box::new(|_| unreachable!())));
        let disclosure = disclosure.map(Arc::new);
        (Handler { disclosure, ..handler }, Arc::new(testing::tools(tools)))
    }

    /// A handler that finds tools in front of two others.
    fn registry(show: Show, budget: usize) -> Registry {
        let disclosure = Disclosure {
            show,
            budget,
            pinned: ["two/get_*".parse().expect("a pattern")].into(),
            finders: ["find".into(), "call".into()].into(),
        };
        let parts = [
            part("own", &["find", "call", "remember"], Some(disclosure)),
            part("one", &["get_a", "set_a"], None),
            part("two", &["get_b", "set_b"], None),
        ];
        Registry::assemble(&parts, &mut Names::default())
    }

    fn names(listing: &Listing) -> String {
        let names: Vec<_> = listing.entries().iter().map(|entry| &*entry.name).collect();
        assert_eq!(listing.json().to_items().map(|items| items.len()), Ok(names.len()));
        names.join(" ")
    }

    #[track_caller]
    fn check(show: Show, budget: usize, scope: &[&str], expected: &str) {
        let registry = registry(show, budget);
        let scope = scope.iter().map(|pattern| pattern.parse::<Pattern>().expect("a pattern")).collect();
        let view = registry.view(&scope);
        assert_eq!(names(view.shown(Kind::Tools)), expected, "{show:?} {budget} {scope:?}");
        // Whatever is not shown is there.
        let listed = view.entries(Kind::Tools);
        assert!(listed.iter().all(|entry| view.tool(&entry.name).is_ok()));
        assert!(listed.len() >= view.shown(Kind::Tools).entries().len());
    }

    #[test]
    fn what_is_shown() {
        let all = "find call remember get_a set_a get_b set_b";
        check(Show::All, 0, &["*"], all);
        check(Show::Search, 1000, &["*"], "find call remember get_b");
        check(Show::Search, 1000, &["own/*", "one/*"], "find call remember");
        check(Show::Search, 1000, &["find", "call", "two/*"], "find call get_b");
        check(Show::Auto, 1000, &["*"], all);
        check(Show::Auto, 20, &["*"], "find call remember get_b");
    }

    #[test]
    fn who_cannot_find_is_shown_everything() {
        check(Show::Search, 1000, &["one/*", "two/*"], "get_a set_a get_b set_b");
        check(Show::Search, 1000, &["one/*", "find"], "find get_a set_a");
        check(Show::Auto, 1, &["one/*", "call"], "call get_a set_a");
        check(Show::Search, 1000, &[], "");
    }

    /// The budget is that of what a caller sees.
    #[test]
    fn a_budget_is_each_callers_own() {
        let few = "find call get_a";
        let tokens = tokens::estimate(r#"[{"name":"find"},{"name":"call"},{"name":"get_a"}]"#.len());
        check(Show::Auto, tokens, &["find", "call", "get_a"], few);
        check(Show::Auto, tokens - 1, &["find", "call", "get_a"], "find call");
        check(Show::Auto, tokens, &["find", "call", "get_*"], "find call get_b");
    }

    #[test]
    fn what_each_setting_would_show() {
        let registry = registry(Show::All, 20);
        assert!(registry.fewer(Show::All).is_none());
        assert!(registry.fewer(Show::Auto).is_some());
        assert_eq!(
            registry.fewer(Show::Search).as_ref().map(names).as_deref(),
            Some("find call remember get_b")
        );
        assert!(
            Registry::default().disclosure().is_none() && Registry::default().fewer(Show::Search).is_none()
        );
    }
}
