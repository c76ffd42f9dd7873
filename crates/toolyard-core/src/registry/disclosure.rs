//! Selects the advertised tools for clients whose model can search the others.

use std::sync::Arc;

use super::{EncodedListing, EntryKind, Registry, RegistryEntry};
use crate::access::ScopePattern;

/// The policy for advertising tools, of a handler with search tools and a tool that reads large results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisclosurePolicy {
    /// Mode of advertising.
    pub show: DisclosureMode,
    /// Maximum number of tokens of all definitions for [`DisclosureMode::Auto`].
    pub budget: usize,
    /// Tools that are always advertised.
    pub pinned: Vec<ScopePattern>,
    /// Own names of the tools that find and call others. A caller without one of them sees every tool, because it could
    /// not find the rest. Empty: tools are found in the list only.
    pub finders: Vec<Arc<str>>,
    /// Own name of the tool that reads large results in chunks. Its callers see no output schema of tools whose results
    /// are [stored](crate::overrides::ChunkingPolicy::structured). `None`: no results are stored.
    pub reader: Option<Arc<str>>,
    /// Own names of tools that are never advertised, because this deployment has no use for them. They can be called.
    pub unlisted: Vec<Arc<str>>,
}

/// Modes of advertising tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisclosureMode {
    /// All tools.
    All,
    /// The search tools and the pinned ones.
    Search,
    /// All tools while they fit the budget, otherwise as [`DisclosureMode::Search`].
    Auto,
}

impl Registry {
    /// Returns the advertised entries of one kind. Others can be called as well.
    #[must_use]
    pub fn advertised(&self, kind: EntryKind) -> &EncodedListing {
        let all = &self.part(kind).listing;
        if kind != EntryKind::Tools {
            return all;
        }
        self.advertised.get_or_init(|| self.changed(all)).as_ref().unwrap_or(all)
    }

    /// Returns the advertised entries of one kind for clients that [expect objects](crate::Client::expects_objects) as
    /// structured results: output schemas of other values are wrapped.
    #[must_use]
    pub fn advertised_objects(&self, kind: EntryKind) -> &EncodedListing {
        let advertised = self.advertised(kind);
        if kind != EntryKind::Tools {
            return advertised;
        }
        let wrapped = || advertised.with_object_results();
        self.advertised_objects.get_or_init(wrapped).as_ref().unwrap_or(advertised)
    }

    /// Returns the advertised tools if they differ from the full listing.
    fn changed(&self, all: &EncodedListing) -> Option<EncodedListing> {
        let show = self.disclosure().map_or(DisclosureMode::All, |disclosure| disclosure.show);
        let fewer = self.fewer(show);
        let is_withdrawn = |entry: &RegistryEntry| entry.chunking.structured == Some(true);
        let listing = fewer.as_ref().unwrap_or(all);
        match self.reads_chunks() && listing.entries().iter().any(|entry| is_withdrawn(entry)) {
            true => Some(listing.without("outputSchema", is_withdrawn)),
            false => fewer,
        }
    }

    /// Returns `true` if large results can be read in chunks, with the [reader](DisclosurePolicy::reader) of a handler.
    #[must_use]
    pub fn reads_chunks(&self) -> bool {
        let reader = |(handler, disclosure): &(Arc<str>, Arc<DisclosurePolicy>)| {
            disclosure.reader.as_ref().is_some_and(|own| self.lists(handler, own))
        };
        self.discloses.as_ref().is_some_and(reader)
    }

    /// Returns `true` if a handler's tool is listed here.
    fn lists(&self, handler: &Arc<str>, own: &Arc<str>) -> bool {
        let entries = self.entries(EntryKind::Tools);
        entries.iter().any(|entry| entry.handler.name == *handler && entry.own == *own)
    }

    /// Returns the policy, or `None` if tools are found in the list only.
    #[must_use]
    pub fn disclosure(&self) -> Option<&DisclosurePolicy> {
        let (handler, disclosure) = self.discloses.as_ref()?;
        let finders = &disclosure.finders;
        let can_find = !finders.is_empty() && finders.iter().all(|own| self.lists(handler, own));
        can_find.then_some(disclosure)
    }

    /// Returns the tools that the mode would advertise; `None` for all of them.
    #[must_use]
    pub fn fewer(&self, show: DisclosureMode) -> Option<EncodedListing> {
        let (usable, all) = (self.usable(), &self.part(EntryKind::Tools).listing);
        let Some(disclosure) = self.disclosure() else { return usable };
        let most = usable.as_ref().unwrap_or(all);
        let is_enough = match show {
            DisclosureMode::All => true,
            DisclosureMode::Search => false,
            DisclosureMode::Auto => most.tokens() <= disclosure.budget,
        };
        if is_enough { usable } else { Some(most.only(|entry| self.is_always_shown(disclosure, entry))) }
    }

    /// Returns the tools without the [unlisted](DisclosurePolicy::unlisted) ones; `None` if there are none of these.
    fn usable(&self) -> Option<EncodedListing> {
        let (handler, DisclosurePolicy { unlisted, .. }) =
            self.discloses.as_ref().map(|(handler, disclosure)| (handler, &**disclosure))?;
        let is_unlisted =
            |entry: &RegistryEntry| entry.handler.name == *handler && unlisted.contains(&entry.own);
        let all = &self.part(EntryKind::Tools).listing;
        let has_some = !unlisted.is_empty() && all.entries().iter().any(|entry| is_unlisted(entry));
        has_some.then(|| all.only(|entry| !is_unlisted(entry)))
    }

    fn is_always_shown(&self, disclosure: &DisclosurePolicy, entry: &RegistryEntry) -> bool {
        let finds = self.discloses.as_ref().is_some_and(|(handler, _)| *handler == entry.handler.name);
        // The index of the search has the tools of all clients only.
        let is_own = self.own_tools.contains(&entry.name);
        finds
            || is_own
            || disclosure.pinned.iter().any(|pattern| pattern.matches(&entry.handler.name, &entry.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Catalog;
    use crate::json::{Json, Object};
    use crate::names::NameRegistry;
    use crate::overrides::{ChunkingPolicy, DefinitionOverride, Override};
    use crate::registry::HandlerEntry;
    use crate::testing::{self, FakeBackend};
    use crate::tokens;
    use crate::tool::Tool;

    fn part(
        name: &str,
        tools: &[&str],
        disclosure: Option<DisclosurePolicy>,
    ) -> (HandlerEntry, Arc<Catalog>) {
        let handler = testing::handler(name, FakeBackend::new(&[], Box::new(|_| unreachable!())));
        let disclosure = disclosure.map(Arc::new);
        (HandlerEntry { disclosure, ..handler }, Arc::new(testing::tools(tools)))
    }

    /// Returns a registry with a search handler in front of two others.
    fn registry(show: DisclosureMode, budget: usize) -> Registry {
        let disclosure = DisclosurePolicy {
            show,
            budget,
            pinned: ["two/get_*".parse().expect("a pattern")].into(),
            finders: ["find".into(), "call".into()].into(),
            reader: Some("remember".into()),
            unlisted: vec!["retired".into()],
        };
        let parts = [
            part("own", &["find", "call", "remember", "retired"], Some(disclosure)),
            part("one", &["get_a", "set_a"], None),
            part("two", &["get_b", "set_b"], None),
        ];
        Registry::assemble(&parts, &mut NameRegistry::default())
    }

    fn names(listing: &EncodedListing) -> String {
        let names: Vec<_> = listing.entries().iter().map(|entry| &*entry.name).collect();
        assert_eq!(listing.json().to_items().map(|items| items.len()), Ok(names.len()));
        names.join(" ")
    }

    #[track_caller]
    fn check(show: DisclosureMode, budget: usize, scope: &[&str], expected: &str) {
        let registry = registry(show, budget);
        let scope = scope.iter().map(|pattern| pattern.parse::<ScopePattern>().expect("a pattern")).collect();
        let view = registry.view(&scope);
        assert_eq!(names(view.advertised(EntryKind::Tools)), expected, "{show:?} {budget} {scope:?}");
        // Tools that are not advertised still exist.
        let tools = view.entries(EntryKind::Tools);
        assert!(tools.iter().all(|entry| view.tool(&entry.name).is_ok()));
        assert!(tools.len() >= view.advertised(EntryKind::Tools).entries().len());
    }

    #[test]
    fn mode_and_budget_select_advertised_tools() {
        let all = "find call remember get_a set_a get_b set_b";
        check(DisclosureMode::All, 0, &["*"], all);
        check(DisclosureMode::Search, 1000, &["*"], "find call remember get_b");
        check(DisclosureMode::Search, 1000, &["own/*", "one/*"], "find call remember");
        check(DisclosureMode::Search, 1000, &["find", "call", "two/*"], "find call get_b");
        check(DisclosureMode::Auto, 1000, &["*"], all);
        check(DisclosureMode::Auto, 20, &["*"], "find call remember get_b");
    }

    #[test]
    fn scope_without_search_tools_sees_all_tools() {
        check(DisclosureMode::Search, 1000, &["one/*", "two/*"], "get_a set_a get_b set_b");
        check(DisclosureMode::Search, 1000, &["one/*", "find"], "find get_a set_a");
        check(DisclosureMode::Auto, 1, &["one/*", "call"], "call get_a set_a");
        check(DisclosureMode::Search, 1000, &[], "");
    }

    /// The budget applies to what each caller sees.
    #[test]
    fn budget_applies_to_each_caller() {
        let few = "find call get_a";
        let tokens = tokens::estimate(r#"[{"name":"find"},{"name":"call"},{"name":"get_a"}]"#.len());
        check(DisclosureMode::Auto, tokens, &["find", "call", "get_a"], few);
        check(DisclosureMode::Auto, tokens - 1, &["find", "call", "get_a"], "find call");
        check(DisclosureMode::Auto, tokens, &["find", "call", "get_*"], "find call get_b");
    }

    #[test]
    fn chunked_tools_have_no_output_schema() {
        let change = |structured| {
            let chunking = ChunkingPolicy { structured, ..ChunkingPolicy::default() };
            Override::Change(DefinitionOverride { chunking, ..DefinitionOverride::default() })
        };
        let schema = Json::parse(r#"{"type":"object"}"#).expect("JSON");
        let tool =
            |name: &str| Arc::new(Tool::named(name, Object::new().with("outputSchema", schema.clone())));
        let tools = vec![tool("loose"), tool("strict")];
        let overrides = [("loose".into(), change(Some(true))), ("strict".into(), change(None))];
        let (one, catalog) = part("one", &[], None);
        let one = HandlerEntry { overrides: Arc::new(overrides.into()), ..one };
        let catalog = Arc::new(Catalog { tools, ..(*catalog).clone() });
        let reader = Some("remember".into());
        let disclosure = DisclosurePolicy {
            show: DisclosureMode::All,
            budget: 0,
            pinned: Vec::new(),
            finders: Vec::new(),
            reader,
            unlisted: Vec::new(),
        };
        let parts = [part("own", &["remember"], Some(disclosure)), (one, catalog)];
        let registry = Registry::assemble(&parts, &mut NameRegistry::default());
        let count_schemas = |scope: &str| {
            let view =
                registry.view(&[scope.parse::<ScopePattern>().expect("a pattern")].into_iter().collect());
            let schemas = view.advertised(EntryKind::Tools).json().as_text().matches("outputSchema").count();
            (schemas, view.entries(EntryKind::Tools).len())
        };
        assert_eq!(count_schemas("*"), (1, 3));
        assert_eq!(count_schemas("one/*"), (2, 2));
    }

    #[test]
    fn every_mode_has_a_preview() {
        let registry = registry(DisclosureMode::All, 20);
        let all = registry.fewer(DisclosureMode::All);
        assert_eq!(all.as_ref().map(names).as_deref(), Some("find call remember get_a set_a get_b set_b"));
        assert!(registry.fewer(DisclosureMode::Auto).is_some());
        assert_eq!(
            registry.fewer(DisclosureMode::Search).as_ref().map(names).as_deref(),
            Some("find call remember get_b")
        );
        assert!(
            Registry::default().disclosure().is_none()
                && Registry::default().fewer(DisclosureMode::Search).is_none()
        );
    }
}
