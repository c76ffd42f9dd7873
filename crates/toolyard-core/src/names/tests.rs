use std::collections::HashMap;

use proptest::prelude::*;

use super::table::REMEMBERED;
use super::*;
use crate::overrides::DefinitionOverride;
use crate::registry::Registry;
use crate::testing::{self, FakeBackend};

/// A handler with its tools.
#[derive(Debug, Clone)]
struct Has {
    handler: &'static str,
    tools: Vec<String>,
    prefix: PrefixPolicy,
    /// New names of tools; `None` hides a tool.
    overrides: Vec<(&'static str, Option<&'static str>)>,
}

fn has(handler: &'static str, tools: &[&str]) -> Has {
    let tools = tools.iter().map(ToString::to_string).collect();
    Has { handler, tools, prefix: PrefixPolicy::OnClash, overrides: Vec::new() }
}

impl Has {
    fn prefix(self, prefix: PrefixPolicy) -> Self {
        Self { prefix, ..self }
    }

    fn named(mut self, tool: &'static str, name: &'static str) -> Self {
        self.overrides.push((tool, Some(name)));
        self
    }

    fn hidden(mut self, tool: &'static str) -> Self {
        self.overrides.push((tool, None));
        self
    }

    fn part(&self) -> (HandlerEntry, Arc<Catalog>) {
        let change = |name: Option<&str>| match name {
            Some(name) => Override::Change(DefinitionOverride {
                name: Some(name.into()),
                ..DefinitionOverride::default()
            }),
            None => Override::Hide,
        };
        let overrides = self.overrides.iter().map(|(own, name)| (Arc::from(*own), change(*name))).collect();
        let handler = testing::handler(self.handler, FakeBackend::new(&[], Box::new(|_| unreachable!())));
        let handler = HandlerEntry { prefix: self.prefix, overrides: Arc::new(overrides), ..handler };
        (handler, Arc::new(testing::tools(&self.tools)))
    }
}

/// Returns the names in the order of the list.
fn assemble(names: &mut NameRegistry, handlers: &[Has]) -> Vec<(String, String)> {
    let parts: Vec<_> = handlers.iter().map(Has::part).collect();
    let registry = Registry::assemble(&parts, names);
    let entries = registry.entries(EntryKind::Tools).iter();
    let called =
        entries.map(|entry| (format!("{}/{}", entry.handler.name, entry.own), entry.name.to_string()));
    called.collect()
}

/// Assembles repeatedly with one memory of names, while manifest and servers change. Each line of `expect` has
/// the names after a step.
#[track_caller]
fn check(steps: &[Vec<Has>], expect: &[&str]) {
    let mut names = NameRegistry::default();
    let called: Vec<_> = steps
        .iter()
        .map(|handlers| {
            let called: Vec<_> = assemble(&mut names, handlers).into_iter().map(|(_, name)| name).collect();
            assert!(called.iter().all(|name| is_legal(name)), "{called:?}");
            assert_eq!(names.tools.owners.len(), names.tools.given.values().map(HashMap::len).sum::<usize>());
            called.join(" ")
        })
        .collect();
    assert_eq!(called, expect);
}

#[test]
fn tool_keeps_its_free_name() {
    check(&[vec![has("a", &["read", "write"]), has("b", &["getPetById"])]], &["read write getPetById"]);
}

#[test]
fn the_first_handler_keeps_the_bare_name() {
    check(&[vec![has("a", &["read"]), has("b", &["read"]), has("c", &["read"])]], &["read b_read c_read"]);
}

#[test]
fn illegal_names_are_made_legal() {
    let tools = &["fs.read", "grüße", ""];
    check(&[vec![has("a", tools)]], &["a_fs_read a_gr__e a_"]);
    check(&[vec![has("a", tools).prefix(PrefixPolicy::Never)]], &["fs_read gr__e _"]);
}

#[test]
fn legalized_names_stay_distinct() {
    check(&[vec![has("a", &["x.y", "x y"])]], &["a_x_y a_x_y_ba072e2d"]);
    let named = has("x", &["read", "other"]).named("other", "a_read");
    check(&[vec![named, has("a", &["read"])]], &["read a_read a_read_9503720d"]);
    check(&[vec![has("a", &["x.y", "x y"]).prefix(PrefixPolicy::Never)]], &["x_y"]);
}

#[test]
fn name_in_another_namespace_is_prefixed() {
    let shadow = || has("shadow", &["good_echo", "GOOD-run", "goodness", "shadow_good_x"]);
    let good = || has("good", &["echo", "good_echo"]);
    let prefixed = "shadow_good_echo shadow_GOOD-run goodness shadow_good_x";
    // In any order, also if one of them appears later or has another policy.
    check(&[vec![good(), shadow()]], &[&format!("echo good_echo {prefixed}")]);
    check(&[vec![shadow(), good()]], &[&format!("{prefixed} echo good_echo")]);
    check(
        &[vec![shadow(), has("good", &[])], vec![shadow(), good()]],
        &[prefixed, &format!("{prefixed} echo good_echo")],
    );
    check(&[vec![shadow().prefix(PrefixPolicy::Never), has("good", &[])]], &[prefixed]);
    // A handler that is declared later takes its namespace at once, and the manifest may give a full name.
    check(
        &[vec![shadow()], vec![shadow(), has("good", &[])]],
        &["good_echo GOOD-run goodness shadow_good_x", prefixed],
    );
    check(&[vec![has("shadow", &["x"]).named("x", "good_x"), has("good", &[])]], &["good_x"]);
}

#[test]
fn long_names_are_shortened_with_a_stable_hash() {
    let long = &["n".repeat(70)];
    let tools = has("a", &[&long[0]]);
    check(&[vec![tools.clone()]], &[&format!("a_{}_73aaa18a", "n".repeat(53))]);
    check(&[vec![tools.prefix(PrefixPolicy::Never)]], &[&format!("{}_85069ddf", "n".repeat(55))]);
}

#[test]
fn prefixes() {
    use PrefixPolicy::{Always, Never};
    let both = |a, b| vec![has("a", &["read", "list"]).prefix(a), has("b", &["read", "add"]).prefix(b)];
    check(&[both(Always, Always)], &["a_read a_list b_read b_add"]);
    check(&[both(Always, Never)], &["a_read a_list read add"]);
    check(&[both(Never, Always)], &["read list b_read b_add"]);
    check(&[both(Never, Never)], &["read list add"]);
}

#[test]
fn a_name_stays_with_its_tool_while_others_come_and_go() {
    let (a, b) = (has("a", &["read"]), has("b", &["read"]));
    let steps = [
        vec![has("a", &[]), b.clone()],
        vec![a.clone(), b.clone()],
        vec![a.clone(), has("b", &[])],
        vec![a.clone()],
        vec![a, b],
    ];
    check(&steps, &["read", "a_read read", "a_read", "a_read", "a_read read"]);
}

#[test]
fn manifest_overrides_remembered_names() {
    let (a, b) = (has("a", &["read"]), has("b", &["read"]));
    // A prefix that is set and withdrawn: the name is free as before.
    let always = b.clone().prefix(PrefixPolicy::Always);
    check(
        &[
            vec![b.clone()],
            vec![a.clone(), always.clone()],
            vec![a.clone(), b.clone()],
            vec![a.clone(), b.clone()],
        ],
        &["read", "read b_read", "read b_read", "read b_read"],
    );
    // A preferred name, and one that is preferred while another tool has it.
    let get = b.clone().named("read", "get");
    check(&[vec![b.clone()], vec![get.clone()], vec![a.clone(), get]], &["read", "get", "read get"]);
    let fetch = has("b", &["fetch"]);
    let steps = [vec![a.clone(), fetch.clone()], vec![a.clone(), fetch.named("fetch", "read")]];
    check(&steps, &["read fetch", "read b_read"]);
    // Two tools swap their names.
    let swap = |a, b| vec![has("a", &["x", "y"]).named("x", a).named("y", b)];
    check(&[swap("one", "two"), swap("two", "one")], &["one two", "two one"]);
    // A name that was taken when it was preferred, and became free.
    let get = has("b", &["x"]).named("x", "read");
    let steps = [vec![a.clone()], vec![a.clone(), get.clone()], vec![a.hidden("read"), get]];
    check(&steps, &["read", "read b_read", "read"]);
}

#[test]
fn preferred_name_wins_over_all_others() {
    let late = |tools| vec![has("a", &["read"]), has("b", tools).named("fetch", "read")];
    check(&[late(&["fetch"])], &["a_read read"]);
    // With and without the preferred tool.
    check(&[late(&[]), late(&["fetch"])], &["a_read", "a_read read"]);
    // The order of the manifest decides between equal preferences.
    let asks = |handler| has(handler, &["x"]).named("x", "read");
    check(&[vec![asks("a"), asks("b")]], &["read b_read"]);
    check(&[vec![asks("a"), asks("b").prefix(PrefixPolicy::Never)]], &["read"]);
    check(&[vec![asks("a").prefix(PrefixPolicy::Always)]], &["read"]);
}

#[test]
fn hidden_tool_has_no_name() {
    let (a, b) = (has("a", &["read"]), has("b", &["read"]));
    let hidden = a.clone().hidden("read");
    check(
        &[vec![hidden.clone(), b.clone()], vec![a.clone(), b.clone()], vec![hidden, b]],
        &["read", "a_read read", "read"],
    );
}

#[test]
fn forgotten_handler_loses_its_names() {
    let (a, b) = (has("a", &["read"]), has("b", &["read"]));
    let mut names = NameRegistry::default();
    let called = |names: &mut NameRegistry, handlers: &[Has]| -> Vec<String> {
        assemble(names, handlers).into_iter().map(|(_, name)| name).collect()
    };
    assert_eq!(called(&mut names, &[a.clone(), b.clone()]), ["read", "b_read"]);
    names.forget("a");
    assert_eq!(called(&mut names, &[b.clone(), has("c", &["read"])]), ["b_read", "read"]);
    assert_eq!(called(&mut names, &[a, b]), ["a_read", "b_read"]);
}

#[test]
fn remembered_names_are_limited() {
    let mut names = NameRegistry::default();
    let handler = has("b", &["get"]).named("get", "kept");
    for round in 0..10 {
        let tools = (0..500).map(|number| format!("t{round}x{number}")).collect();
        assemble(&mut names, &[Has { tools, ..handler.clone() }]);
        assert!(names.tools.owners.len() <= 500 + REMEMBERED + 1, "{}", names.tools.owners.len());
    }
    assert!(names.tools.owners.contains_key("kept"), "a name from the manifest does not count");
}

#[test]
fn repeated_notice_is_not_reported() {
    let notice = |own: &str| PublishNotice {
        handler: "a".into(),
        kind: EntryKind::Tools,
        own: own.into(),
        what: crate::registry::NoticeReason::Twice,
    };
    let mut names = NameRegistry::default();
    let news = |own: &[&str]| {
        let notices: Vec<_> = own.iter().map(|own| notice(own)).collect();
        names.new_notices(&notices).iter().map(|notice| notice.own.to_string()).collect::<Vec<_>>().join(" ")
    };
    let new_notices = [&["x", "y"][..], &["x", "y"], &["y", "z"], &[], &["y"]].map(news);
    assert_eq!(new_notices, ["x y", "", "z", "", "y"]);
}

#[test]
fn tools_and_prompts_do_not_take_each_others_names() {
    let (handler, _) = has("a", &[]).hidden("read").part();
    let mut names = NameRegistry::default();
    names.begin([&handler].into_iter());
    let read = Arc::from("read");
    assert_eq!(
        names.give(EntryKind::Prompts, &handler, &read).as_deref(),
        Ok("read"),
        "only tools are overridden"
    );
    let (other, _) = has("b", &[]).part();
    assert_eq!(names.give(EntryKind::Tools, &other, &read).as_deref(), Ok("read"));
    assert_eq!(names.give(EntryKind::Prompts, &other, &read).as_deref(), Ok("b_read"));
}

/// Generates handlers whose tools share few names, so that many clash.
fn handlers() -> impl Strategy<Value = Vec<Has>> {
    let tool = prop_oneof![
        4 => prop::sample::select(vec!["read", "a_read", "b_read", "x.y", "x y", "x_y", "a_x_y"]).prop_map(str::to_owned),
        1 => "[a-c._ ü-]{1,3}",
        1 => "n{60,70}",
    ];
    let prefix = prop::sample::select(vec![PrefixPolicy::OnClash, PrefixPolicy::Always, PrefixPolicy::Never]);
    let change = (
        prop::sample::select(vec!["read", "x.y", "x_y"]),
        prop::sample::select(vec![None, Some("read"), Some("a_read"), Some("other")]),
    );
    let handler = (prop::collection::vec(tool, 0..6), prefix, prop::collection::vec(change, 0..2));
    prop::collection::vec(handler, 1..5).prop_map(|handlers| {
        let names = ["a", "b", "c", "d"].into_iter();
        let has = |(handler, (tools, prefix, overrides))| Has { handler, tools, prefix, overrides };
        names.zip(handlers).map(has).collect()
    })
}

proptest! {
    /// The answering handlers change each time; the manifest stays.
    #[test]
    fn names_are_legal_unique_and_stable(
        handlers in handlers(),
        arrivals in prop::collection::vec(prop::collection::vec(any::<bool>(), 4), 1..6),
    ) {
        let mut names = NameRegistry::default();
        let mut first_names = HashMap::<String, String>::new();
        for arrived in arrivals {
            let mut there = handlers.clone();
            for (handler, _) in there.iter_mut().zip(arrived).filter(|(_, arrived)| !arrived) {
                handler.tools.clear();
            }
            let called = assemble(&mut names, &there);
            let unique: HashSet<_> = called.iter().map(|(_, name)| name).collect();
            prop_assert_eq!(unique.len(), called.len());
            for (tool, name) in called {
                prop_assert!(is_legal(&name), "{}", name);
                let before = first_names.entry(tool.clone()).or_insert_with(|| name.clone());
                prop_assert_eq!(&*before, &name, "{}", tool);
            }
        }
    }

    /// With names from the manifest alone, the order of appearance does not matter.
    #[test]
    fn a_prefix_for_all_makes_names_independent_of_time(mut handlers in handlers(), late in 0..4_usize) {
        for handler in &mut handlers {
            handler.prefix = PrefixPolicy::Always;
            handler.tools.retain(|tool| is_legal(tool) && tool.len() < 60);
            handler.overrides.clear();
        }
        let expected = assemble(&mut NameRegistry::default(), &handlers);
        let mut names = NameRegistry::default();
        let mut first = handlers.clone();
        first.remove(late % handlers.len());
        assemble(&mut names, &first);
        prop_assert_eq!(assemble(&mut names, &handlers), expected);
    }
}
