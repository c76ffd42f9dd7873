//! Selects the advertised tools for clients whose model can search the others.

use std::sync::Arc;

use super::listing::SchemaChange;
use super::{EncodedListing, EntryKind, Registry, RegistryEntry};
use crate::access::ScopePattern;
use crate::definition::legacy_schema;
use crate::json::Json;
use crate::output_schema::{OutputForm, OutputSchemaMode, extend_schema, wrap_schema};

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
    /// Own names of the tools that find, describe and run others in scripts, for [`DisclosureMode::Code`]. For a caller
    /// without one of them it is [`DisclosureMode::Search`]. Empty: there are no scripts.
    pub script_tools: Vec<Arc<str>>,
    /// Own name of the tool that reads large results in chunks. `None`: no results are stored.
    pub reader: Option<Arc<str>>,
    /// Treatment of the output schemas of tools without one of
    /// [their own](crate::overrides::ChunkingPolicy::structured). `None`: results of any length pass.
    pub output_schemas: Option<OutputSchemaMode>,
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
    /// The tools for scripts and the pinned ones.
    Code,
}

impl Registry {
    /// Returns the advertised entries of one kind. Others can be called as well.
    #[must_use]
    pub fn advertised(&self, kind: EntryKind) -> &EncodedListing {
        if kind != EntryKind::Tools {
            return &self.part(kind).listing;
        }
        let fewer = || self.disclosure().and_then(|disclosure| self.fewer(disclosure.show));
        self.advertised.get_or_init(fewer).as_ref().unwrap_or_else(|| self.tools_for_models())
    }

    /// Returns the advertised entries of one kind for clients that [expect objects](crate::Client::expects_objects) as
    /// structured results, those of the legacy revisions: output schemas of other values are wrapped, and properties have
    /// objects as schemas.
    #[must_use]
    pub fn advertised_objects(&self, kind: EntryKind) -> &EncodedListing {
        let advertised = self.advertised(kind);
        if kind != EntryKind::Tools {
            return advertised;
        }
        let legacy = || advertised.with_definitions(legacy_definition);
        self.advertised_objects.get_or_init(legacy).as_ref().unwrap_or(advertised)
    }

    /// Returns all tools as models see them: without the [unlisted](DisclosurePolicy::unlisted) ones, and with output
    /// schemas that allow references to large results, or without these schemas.
    #[must_use]
    pub fn tools_for_models(&self) -> &EncodedListing {
        let all = &self.part(EntryKind::Tools).listing;
        let Some((handler, policy)) = &self.discloses else { return all };
        let changed = || {
            let usable = usable(all, handler, &policy.unlisted);
            let Some(default) = policy.output_schemas else { return usable };
            let listing = usable.as_ref().unwrap_or(all);
            let extended =
                listing.with_output_schemas(|entry, schema| match entry.chunking.output_schemas(default) {
                    OutputSchemaMode::Extend => {
                        extend_schema(schema).map_or(SchemaChange::Keep, SchemaChange::Replace)
                    }
                    OutputSchemaMode::Withdraw => SchemaChange::Remove,
                    OutputSchemaMode::Keep => SchemaChange::Keep,
                });
            extended.or(usable)
        };
        self.tools_for_models.get_or_init(changed).as_ref().unwrap_or(all)
    }

    /// Returns `true` if large results can be read in chunks, with the [reader](DisclosurePolicy::reader) of a handler.
    #[must_use]
    pub fn reads_chunks(&self) -> bool {
        let reader = |(handler, disclosure): &(Arc<str>, Arc<DisclosurePolicy>)| {
            disclosure.reader.as_ref().is_some_and(|own| self.lists(handler, own))
        };
        self.discloses.as_ref().is_some_and(reader)
    }

    /// Returns `true` if there are such tools of a handler, and all of them are listed here.
    fn lists_all(&self, handler: &Arc<str>, tools: &[Arc<str>]) -> bool {
        !tools.is_empty() && tools.iter().all(|own| self.lists(handler, own))
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
        let DisclosurePolicy { finders, script_tools, .. } = &**disclosure;
        let can_find = self.lists_all(handler, finders) || self.lists_all(handler, script_tools);
        can_find.then_some(disclosure)
    }

    /// Returns `true` if models here call tools in scripts: only the tools for these are listed.
    #[must_use]
    pub fn is_for_scripts(&self) -> bool {
        let is_code = |(handler, disclosure): &(Arc<str>, Arc<DisclosurePolicy>)| {
            disclosure.show == DisclosureMode::Code && self.lists_all(handler, &disclosure.script_tools)
        };
        self.discloses.as_ref().is_some_and(is_code)
    }

    /// Returns the tools that the mode would advertise; `None` for all of them.
    #[must_use]
    pub fn fewer(&self, show: DisclosureMode) -> Option<EncodedListing> {
        let disclosure = self.disclosure()?;
        let all = self.tools_for_models();
        let is_enough = match show {
            DisclosureMode::All => true,
            DisclosureMode::Search | DisclosureMode::Code => false,
            DisclosureMode::Auto => all.tokens() <= disclosure.budget,
        };
        let (handler, _) = self.discloses.as_ref()?;
        let script_tools = Some(&*disclosure.script_tools).filter(|_| show == DisclosureMode::Code);
        let finders = script_tools.filter(|tools| self.lists_all(handler, tools));
        (!is_enough).then(|| all.only(|entry| self.is_always_shown(disclosure, finders, entry)))
    }

    /// Returns `true` if a tool is advertised in any case. `finders` are the tools of the handler that are; `None` for all
    /// of them.
    fn is_always_shown(
        &self,
        disclosure: &DisclosurePolicy,
        finders: Option<&[Arc<str>]>,
        entry: &RegistryEntry,
    ) -> bool {
        let is_of_handler =
            self.discloses.as_ref().is_some_and(|(handler, _)| *handler == entry.handler.name);
        let finds = is_of_handler && finders.is_none_or(|finders| finders.contains(&entry.own));
        // The index of the search has the tools of all clients only.
        let is_own = self.own_tools.contains(&entry.name);
        finds
            || is_own
            || disclosure.pinned.iter().any(|pattern| pattern.matches(&entry.handler.name, &entry.name))
    }
}

/// Returns the definition of a tool for the legacy revisions; `None` if it stays as it is.
fn legacy_definition(entry: &RegistryEntry, definition: &Json) -> Option<Json> {
    let tool = entry.tool.as_ref()?;
    let mut object = definition.to_object().ok()?;
    let input = object.get("inputSchema").and_then(legacy_schema);
    let output = object.get("outputSchema").and_then(|schema| match tool.output_form() {
        OutputForm::Other => Some(wrap_schema(schema)),
        OutputForm::Object | OutputForm::Undeclared => legacy_schema(schema),
    });
    if input.is_none() && output.is_none() {
        return None;
    }
    for (member, schema) in [("inputSchema", input), ("outputSchema", output)] {
        if let Some(schema) = schema {
            object.set(member, schema);
        }
    }
    Some(object.to_json())
}

/// Returns the tools without the unlisted ones of a handler; `None` if there are none of these.
fn usable(all: &EncodedListing, handler: &Arc<str>, unlisted: &[Arc<str>]) -> Option<EncodedListing> {
    let is_unlisted = |entry: &RegistryEntry| entry.handler.name == *handler && unlisted.contains(&entry.own);
    let has_some = !unlisted.is_empty() && all.entries().iter().any(|entry| is_unlisted(entry));
    has_some.then(|| all.only(|entry| !is_unlisted(entry)))
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
            script_tools: ["find".into(), "run".into()].into(),
            reader: Some("remember".into()),
            output_schemas: None,
            unlisted: vec!["retired".into()],
        };
        let parts = [
            part("own", &["find", "call", "run", "remember", "retired"], Some(disclosure)),
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
        let all = "find call run remember get_a set_a get_b set_b";
        check(DisclosureMode::All, 0, &["*"], all);
        check(DisclosureMode::Search, 1000, &["*"], "find call run remember get_b");
        check(DisclosureMode::Search, 1000, &["own/*", "one/*"], "find call run remember");
        check(DisclosureMode::Search, 1000, &["find", "call", "two/*"], "find call get_b");
        check(DisclosureMode::Auto, 1000, &["*"], all);
        check(DisclosureMode::Auto, 20, &["*"], "find call run remember get_b");
    }

    #[test]
    fn scripts_are_listed_alone() {
        check(DisclosureMode::Code, 1000, &["*"], "find run get_b");
        check(DisclosureMode::Code, 1000, &["find", "run", "one/*"], "find run");
        // Without the tools for scripts.
        check(DisclosureMode::Code, 1000, &["find", "call", "one/*"], "find call");
        check(DisclosureMode::Code, 1000, &["call", "run", "one/*"], "call run get_a set_a");
        let is_for_scripts = |show, scope: &str| {
            let scope = [scope.parse::<ScopePattern>().expect("a pattern")].into_iter().collect();
            registry(show, 1000).view(&scope).is_for_scripts()
        };
        assert!(is_for_scripts(DisclosureMode::Code, "own/*"));
        assert!(!is_for_scripts(DisclosureMode::Code, "find"));
        assert!(!is_for_scripts(DisclosureMode::Search, "own/*"));
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
        let tools = ["find", "call", "get_a"];
        let definitions =
            tools.map(|name| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#));
        let tokens = tokens::estimate(format!("[{}]", definitions.join(",")).len());
        check(DisclosureMode::Auto, tokens, &["find", "call", "get_a"], few);
        check(DisclosureMode::Auto, tokens - 1, &["find", "call", "get_a"], "find call");
        check(DisclosureMode::Auto, tokens, &["find", "call", "get_*"], "find call get_b");
    }

    /// Returns a registry with tools that withdraw their output schemas, keep them, or leave it to the policy.
    fn with_output_schemas(output_schemas: Option<OutputSchemaMode>) -> Registry {
        let change = |structured| {
            let chunking = ChunkingPolicy { structured, ..ChunkingPolicy::default() };
            Override::Change(DefinitionOverride { chunking, ..DefinitionOverride::default() })
        };
        let tool = |(name, schema): (&str, &str)| {
            let schema = Json::parse(schema.to_owned()).expect("JSON");
            Arc::new(Tool::named(name, Object::new().with("outputSchema", schema)))
        };
        let object = r#"{"type":"object"}"#;
        let tools = [("true", object), ("false", object), ("unset", object), ("list", r#"{"type":"array"}"#)];
        let overrides = [("true".into(), change(Some(true))), ("false".into(), change(Some(false)))];
        let (one, catalog) = part("one", &[], None);
        let one = HandlerEntry { overrides: Arc::new(overrides.into()), ..one };
        let catalog = Arc::new(Catalog { tools: tools.map(tool).into(), ..(*catalog).clone() });
        let disclosure = DisclosurePolicy {
            show: DisclosureMode::All,
            budget: 0,
            pinned: Vec::new(),
            finders: Vec::new(),
            script_tools: Vec::new(),
            reader: Some("remember".into()),
            output_schemas,
            unlisted: Vec::new(),
        };
        let parts = [part("own", &["remember"], Some(disclosure)), (one, catalog)];
        Registry::assemble(&parts, &mut NameRegistry::default())
    }

    #[test]
    fn output_schemas_follow_policy_and_override() {
        let check = |mode, expected: [&str; 3]| {
            let registry = with_output_schemas(mode);
            // A model may get a truncated result even if it cannot read chunks.
            for scope in ["*", "one/*"] {
                let scope = [scope.parse::<ScopePattern>().expect("a pattern")].into_iter().collect();
                let view = registry.view(&scope);
                let listings = [
                    view.full_listing(EntryKind::Tools),
                    view.advertised(EntryKind::Tools),
                    view.advertised_objects(EntryKind::Tools),
                ];
                let seen = listings.map(|listing| schemas(listing.json()));
                assert_eq!(seen.each_ref().map(String::as_str), expected, "{mode:?} {scope:?}");
            }
        };
        let all = "true=object false=object unset=object list=array";
        let wrapped = "true=object false=object unset=object list=object{array}";
        check(None, [all, all, wrapped]);
        check(
            Some(OutputSchemaMode::Keep),
            [all, "false=object unset=object list=array", "false=object unset=object list=object{array}"],
        );
        check(Some(OutputSchemaMode::Withdraw), [all, "false=object", "false=object"]);
        check(
            Some(OutputSchemaMode::Extend),
            [
                all,
                "false=object unset=object|object|stored list=|array|stored",
                "false=object unset=object|object|stored list=object{|array|stored}",
            ],
        );
    }

    /// Returns the names of the tools with the types in their output schemas.
    fn schemas(list: &Json) -> String {
        fn types(schema: &serde_json::Value) -> String {
            if schema["properties"]["storedResult"].is_object() {
                return "stored".to_owned();
            }
            let kind = schema["type"].as_str().unwrap_or_default();
            let forms = schema["anyOf"].as_array().map_or(&[][..], Vec::as_slice).iter();
            let forms: String = forms.map(|form| format!("|{}", types(form))).collect();
            let result = &schema["properties"]["result"];
            let result = if result.is_null() { String::new() } else { format!("{{{}}}", types(result)) };
            format!("{kind}{forms}{result}")
        }
        let tools = list.to_value();
        let tools =
            tools.as_array().expect("a list").iter().filter(|tool| tool.get("outputSchema").is_some());
        let named = tools.map(|tool| {
            format!("{}={}", tool["name"].as_str().expect("a name"), types(&tool["outputSchema"]))
        });
        named.collect::<Vec<_>>().join(" ")
    }

    /// The size of a list is that of the schemas that models see.
    #[test]
    fn budget_applies_to_extended_schemas() {
        let all = with_output_schemas(None).advertised(EntryKind::Tools).tokens();
        let extended = with_output_schemas(Some(OutputSchemaMode::Extend)).tools_for_models().tokens();
        assert!(extended > all, "{extended} tokens");
    }

    #[test]
    fn every_mode_has_a_preview() {
        let registry = registry(DisclosureMode::All, 20);
        assert!(registry.fewer(DisclosureMode::All).is_none());
        assert_eq!(names(registry.tools_for_models()), "find call run remember get_a set_a get_b set_b");
        assert!(registry.fewer(DisclosureMode::Auto).is_some());
        assert_eq!(
            registry.fewer(DisclosureMode::Search).as_ref().map(names).as_deref(),
            Some("find call run remember get_b")
        );
        assert!(
            Registry::default().disclosure().is_none()
                && Registry::default().fewer(DisclosureMode::Search).is_none()
        );
    }
}
