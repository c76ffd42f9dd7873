use std::collections::HashMap;

use proptest::prelude::*;

use super::table::REMEMBERED;
use super::*;
use crate::overrides::Change;
use crate::registry::Registry;
use crate::testing::{self, FakeBackend};

/// A handler and the tools that it has.
#[derive(Debug, Clone)]
struct Has {
    handler: &'static str,
    tools: Vec<String>,
    prefix: Prefix,
    /// New names of tools; those without one are hidden.
    overrides: Vec<(&'static str, Option<&'static str>)>,
}

fn has(handler: &'static str, tools: &[&str]) -> Has {
    let tools = tools.iter().map(ToString::to_string).collect();
    Has { handler, tools, prefix: Prefix::OnClash, overrides: Vec::new() }
}

impl Has {
    fn prefix(self, prefix: Prefix) -> Self {
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

    fn part(&self) -> (Handler, Arc<Catalog>) {
        let change = |name: Option<&str>| match name {
            Some(name) => Override::Change(Change { name: Some(name.into()), ..Change::default() }),
            None => Override::Hide,
        };
        let overrides = self.overrides.iter().map(|(own, name)| (Arc::from(*own), change(*name))).collect();
        let handler = testing::handler(self.handler, FakeBackend::new(&[], Box::new(|_| unreachable!())));
        let handler = Handler { prefix: self.prefix, overrides: Arc::new(overrides), ..handler };
        (handler, Arc::new(testing::tools(&self.tools)))
    }
}

/// What everything is called, in the order of the list.
fn assemble(names: &mut Names, handlers: &[Has]) -> Vec<(String, String)> {
    let parts: Vec<_> = handlers.iter().map(Has::part).collect();
    let registry = Registry::assemble(&parts, names);
    let entries = registry.entries(Kind::Tools).iter();
    let called =
        entries.map(|entry| (format!("{}/{}", entry.handler.name, entry.own), entry.name.to_string()));
    called.collect()
}

/// Assembles again and again, as the manifest and the servers change, with one memory of names. Each line of
/// `expect` is what the tools are called then.
#[track_caller]
fn check(steps: &[Vec<Has>], expect: &[&str]) {
    let mut names = Names::default();
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
fn a_tool_keeps_its_name_where_that_is_free() {
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
    check(&[vec![has("a", tools).prefix(Prefix::Never)]], &["fs_read gr__e _"]);
}

#[test]
fn names_that_become_one_are_told_apart() {
    check(&[vec![has("a", &["x.y", "x y"])]], &["a_x_y a_x_y_ba072e2d"]);
    check(&[vec![has("x", &["read", "a_read"]), has("a", &["read"])]], &["read a_read a_read_9503720d"]);
    check(&[vec![has("a", &["x.y", "x y"]).prefix(Prefix::Never)]], &["x_y"]);
}

#[test]
fn long_names_are_shortened_with_a_stable_hash() {
    let long = &["n".repeat(70)];
    let tools = has("a", &[&long[0]]);
    check(&[vec![tools.clone()]], &[&format!("a_{}_73aaa18a", "n".repeat(53))]);
    check(&[vec![tools.prefix(Prefix::Never)]], &[&format!("{}_85069ddf", "n".repeat(55))]);
}

#[test]
fn prefixes() {
    use Prefix::{Always, Never};
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
fn the_manifest_wins_over_what_is_remembered() {
    let (a, b) = (has("a", &["read"]), has("b", &["read"]));
    // A prefix that is set, and taken back: the name is as free as it was.
    let always = b.clone().prefix(Prefix::Always);
    check(
        &[
            vec![b.clone()],
            vec![a.clone(), always.clone()],
            vec![a.clone(), b.clone()],
            vec![a.clone(), b.clone()],
        ],
        &["read", "read b_read", "read b_read", "read b_read"],
    );
    // A name that is asked for, and one that is asked for while another tool has it.
    let get = b.clone().named("read", "get");
    check(&[vec![b.clone()], vec![get.clone()], vec![a.clone(), get]], &["read", "get", "read get"]);
    let fetch = has("b", &["fetch"]);
    let steps = [vec![a.clone(), fetch.clone()], vec![a.clone(), fetch.named("fetch", "read")]];
    check(&steps, &["read fetch", "read b_read"]);
    // Two tools change their names for each other's.
    let swap = |a, b| vec![has("a", &["x", "y"]).named("x", a).named("y", b)];
    check(&[swap("one", "two"), swap("two", "one")], &["one two", "two one"]);
    // A name that was taken when it was asked for, and became free.
    let get = has("b", &["x"]).named("x", "read");
    let steps = [vec![a.clone()], vec![a.clone(), get.clone()], vec![a.hidden("read"), get]];
    check(&steps, &["read", "read b_read", "read"]);
}

#[test]
fn a_name_that_is_asked_for_goes_before_all_others() {
    let late = |tools| vec![has("a", &["read"]), has("b", tools).named("fetch", "read")];
    check(&[late(&["fetch"])], &["a_read read"]);
    // Whether its tool is there yet or not.
    check(&[late(&[]), late(&["fetch"])], &["a_read", "a_read read"]);
    // Between two that ask, the order of the manifest decides.
    let asks = |handler| has(handler, &["x"]).named("x", "read");
    check(&[vec![asks("a"), asks("b")]], &["read b_read"]);
    check(&[vec![asks("a"), asks("b").prefix(Prefix::Never)]], &["read"]);
    check(&[vec![asks("a").prefix(Prefix::Always)]], &["read"]);
}

#[test]
fn what_is_hidden_has_no_name() {
    let (a, b) = (has("a", &["read"]), has("b", &["read"]));
    let hidden = a.clone().hidden("read");
    check(
        &[vec![hidden.clone(), b.clone()], vec![a.clone(), b.clone()], vec![hidden, b]],
        &["read", "a_read read", "read"],
    );
}

#[test]
fn who_is_forgotten_begins_anew() {
    let (a, b) = (has("a", &["read"]), has("b", &["read"]));
    let mut names = Names::default();
    let called = |names: &mut Names, handlers: &[Has]| -> Vec<String> {
        assemble(names, handlers).into_iter().map(|(_, name)| name).collect()
    };
    assert_eq!(called(&mut names, &[a.clone(), b.clone()]), ["read", "b_read"]);
    names.forget("a");
    assert_eq!(called(&mut names, &[b.clone(), has("c", &["read"])]), ["b_read", "read"]);
    assert_eq!(called(&mut names, &[a, b]), ["a_read", "b_read"]);
}

#[test]
fn a_server_with_ever_new_tools_does_not_fill_the_memory() {
    let mut names = Names::default();
    let keeper = has("b", &["get"]).named("get", "kept");
    for round in 0..10 {
        let tools = (0..500).map(|number| format!("t{round}x{number}")).collect();
        assemble(&mut names, &[Has { tools, ..keeper.clone() }]);
        assert!(names.tools.owners.len() <= 500 + REMEMBERED + 1, "{}", names.tools.owners.len());
    }
    assert!(names.tools.owners.contains_key("kept"), "what the manifest asks for is not the server's");
}

#[test]
fn what_was_remarked_is_no_news() {
    let remark = |own: &str| Remark {
        handler: "a".into(),
        kind: Kind::Tools,
        own: own.into(),
        what: crate::registry::What::Twice,
    };
    let mut names = Names::default();
    let news = |own: &[&str]| {
        let remarks: Vec<_> = own.iter().map(|own| remark(own)).collect();
        names.news(&remarks).iter().map(|remark| remark.own.to_string()).collect::<Vec<_>>().join(" ")
    };
    let said = [&["x", "y"][..], &["x", "y"], &["y", "z"], &[], &["y"]].map(news);
    assert_eq!(said, ["x y", "", "z", "", "y"]);
}

#[test]
fn tools_and_prompts_do_not_take_each_others_names() {
    let (handler, _) = has("a", &[]).hidden("read").part();
    let mut names = Names::default();
    names.begin([&handler].into_iter());
    let read = Arc::from("read");
    assert_eq!(
        names.give(Kind::Prompts, &handler, &read).as_deref(),
        Ok("read"),
        "only tools are overridden"
    );
    let (other, _) = has("b", &[]).part();
    assert_eq!(names.give(Kind::Tools, &other, &read).as_deref(), Ok("read"));
    assert_eq!(names.give(Kind::Prompts, &other, &read).as_deref(), Ok("b_read"));
}

/// Handlers whose tools have few names among them, so that many are the same.
fn handlers() -> impl Strategy<Value = Vec<Has>> {
    let tool = prop_oneof![
        4 => prop::sample::select(vec!["read", "a_read", "b_read", "x.y", "x y", "x_y", "a_x_y"]).prop_map(str::to_owned),
        1 => "[a-c._ ü-]{1,3}",
        1 => "n{60,70}",
    ];
    let prefix = prop::sample::select(vec![Prefix::OnClash, Prefix::Always, Prefix::Never]);
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
    /// The handlers that answer are different ones each time; the manifest stays.
    #[test]
    fn names_are_legal_unique_and_stable(
        handlers in handlers(),
        arrivals in prop::collection::vec(prop::collection::vec(any::<bool>(), 4), 1..6),
    ) {
        let mut names = Names::default();
        let mut known = HashMap::<String, String>::new();
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
                let before = known.entry(tool.clone()).or_insert_with(|| name.clone());
                prop_assert_eq!(&*before, &name, "{}", tool);
            }
        }
    }

    /// The names do not depend on who was there first where the manifest gives them all.
    #[test]
    fn a_prefix_for_all_makes_names_independent_of_time(mut handlers in handlers(), late in 0..4_usize) {
        for handler in &mut handlers {
            handler.prefix = Prefix::Always;
            handler.tools.retain(|tool| is_legal(tool) && tool.len() < 60);
            handler.overrides.clear();
        }
        let expected = assemble(&mut Names::default(), &handlers);
        let mut names = Names::default();
        let mut first = handlers.clone();
        first.remove(late % handlers.len());
        assemble(&mut names, &first);
        prop_assert_eq!(assemble(&mut names, &handlers), expected);
    }
}
