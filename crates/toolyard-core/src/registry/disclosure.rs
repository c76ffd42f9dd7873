//! Which tools are shown to clients whose model can find the others, and what is promised of their results.

use std::sync::Arc;

use super::{Entry, Kind, Listing, Registry};
use crate::access::Pattern;

/// What is shown of all tools where a handler has some that find the others, and one that reads their results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disclosure {
    /// How much.
    pub show: Show,
    /// How many tokens the definitions of all tools may have with [`Show::Auto`].
    pub budget: usize,
    /// Tools that are shown in any case.
    pub pinned: Vec<Pattern>,
    /// The tools that find and call the others, by the names that their handler has for them. Whoever may not use one of them
    /// is shown everything: it would never hear of the rest. None: nothing is found but by the list.
    pub finders: Vec<Arc<str>>,
    /// The tool that reads large results in chunks. Whoever may use it is promised no structure of results that are
    /// [put aside](crate::overrides::Chunking::structured). None: no result is.
    pub reader: Option<Arc<str>>,
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
        self.shown.get_or_init(|| self.changed(all)).as_ref().unwrap_or(all)
    }

    /// The tools that are shown, where that is not the list of all as it is.
    fn changed(&self, all: &Listing) -> Option<Listing> {
        let fewer = self.disclosure().and_then(|disclosure| self.fewer(disclosure.show));
        let is_withdrawn = |entry: &Entry| entry.chunking.structured == Some(true);
        let shown = fewer.as_ref().unwrap_or(all);
        match self.reads_chunks() && shown.entries().iter().any(|entry| is_withdrawn(entry)) {
            true => Some(shown.without("outputSchema", is_withdrawn)),
            false => fewer,
        }
    }

    /// Whether large results can be read in chunks, by the tool that a handler [has for that](Disclosure::reader).
    #[must_use]
    pub fn reads_chunks(&self) -> bool {
        let reader = |(handler, disclosure): &(Arc<str>, Arc<Disclosure>)| {
            disclosure.reader.as_ref().is_some_and(|own| self.lists(handler, own))
        };
        self.discloses.as_ref().is_some_and(reader)
    }

    /// Whether a handler's tool is listed here.
    fn lists(&self, handler: &Arc<str>, own: &Arc<str>) -> bool {
        let entries = self.entries(Kind::Tools);
        entries.iter().any(|entry| entry.handler.name == *handler && entry.own == *own)
    }

    /// How much of all tools is shown; `None` where nothing of them can be found but by the list.
    #[must_use]
    pub fn disclosure(&self) -> Option<&Disclosure> {
        let (handler, disclosure) = self.discloses.as_ref()?;
        let finders = &disclosure.finders;
        let can_find = !finders.is_empty() && finders.iter().all(|own| self.lists(handler, own));
        can_find.then_some(disclosure)
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
    use crate::json::{Json, Object};
    use crate::names::Names;
    use crate::overrides::{Change, Chunking, Override};
    use crate::registry::Handler;
    use crate::testing::{self, FakeBackend};
    use crate::tokens;
    use crate::tool::Tool;

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
            reader: Some("remember".into()),
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
    fn who_reads_results_in_chunks_is_promised_no_structure_of_them() {
        let change = |structured| {
            let chunking = Chunking { structured, ..Chunking::default() };
            Override::Change(Change { chunking, ..Change::default() })
        };
        let schema = Json::parse(r#"{"type":"object"}"#).expect("JSON");
        let tool =
            |name: &str| Arc::new(Tool::named(name, Object::new().with("outputSchema", schema.clone())));
        let tools = vec![tool("loose"), tool("strict")];
        let overrides = [("loose".into(), change(Some(true))), ("strict".into(), change(None))];
        let (one, catalog) = part("one", &[], None);
        let one = Handler { overrides: Arc::new(overrides.into()), ..one };
        let catalog = Arc::new(Catalog { tools, ..(*catalog).clone() });
        let reader = Some("remember".into());
        let disclosure =
            Disclosure { show: Show::All, budget: 0, pinned: Vec::new(), finders: Vec::new(), reader };
        let parts = [part("own", &["remember"], Some(disclosure)), (one, catalog)];
        let registry = Registry::assemble(&parts, &mut Names::default());
        let promised = |scope: &str| {
            let view = registry.view(&[scope.parse::<Pattern>().expect("a pattern")].into_iter().collect());
            let shown = view.shown(Kind::Tools).json().as_text().matches("outputSchema").count();
            (shown, view.entries(Kind::Tools).len())
        };
        assert_eq!(promised("*"), (1, 3));
        assert_eq!(promised("one/*"), (2, 2));
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
