use insta::assert_snapshot;

use super::*;
use crate::access::Pattern;
use crate::backend::Catalog;
use crate::cache::CacheScope;
use crate::item::{Prompt, Resource, Template};
use crate::names::{Names, Prefix};
use crate::overrides::{Argument, Change, Override};
use crate::testing::{self, FakeBackend};

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn handler(name: &str, overrides: Overrides) -> Handler {
    let handler = testing::handler(name, FakeBackend::new(&[], Box::new(|_| unreachable!())));
    Handler { overrides: Arc::new(overrides), ..handler }
}

/// What a ready server offers: definitions of tools, prompts, resources and templates.
fn offers(tools: &[&str], prompts: &[&str], resources: &[&str], templates: &[&str]) -> Catalog {
    fn read<T, E: std::fmt::Debug>(texts: &[&str], read: fn(&Json) -> Result<T, E>) -> Vec<Arc<T>> {
        texts.iter().map(|text| Arc::new(read(&json(text)).unwrap())).collect()
    }
    Catalog {
        phase: Phase::Ready,
        tools: read(tools, Tool::from_definition),
        prompts: read(prompts, Prompt::from_definition),
        resources: read(resources, Resource::from_definition),
        templates: read(templates, Template::from_definition),
        ..Catalog::default()
    }
}

fn assemble(parts: Vec<(Handler, Catalog)>) -> Registry {
    let parts: Vec<_> = parts.into_iter().map(|(handler, catalog)| (handler, Arc::new(catalog))).collect();
    Registry::assemble(&parts, &mut Names::default())
}

fn texts(owned: &[String]) -> Vec<&str> {
    owned.iter().map(String::as_str).collect()
}

/// What is listed, and what there is to remark.
fn shown(registry: &Registry) -> String {
    let lists = Kind::ALL.map(|kind| registry.list(kind).as_text().to_owned());
    let remark = |r: &Remark| format!("{} {:?} {}: {}", r.handler, r.kind, r.own, r.what);
    lists.into_iter().chain(registry.remarks().iter().map(remark)).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_two_servers_offer() {
    let offer = || {
        let tools = [r#"{"x":1.10,"name":"read","y":{ }}"#];
        let prompts = [r#"{"name":"read"}"#, r#"{"name":"ask"}"#];
        offers(&tools, &prompts, &[r#"{"uri":"a:b","z":1}"#], &[r#"{"uriTemplate":"a:{b}"}"#])
    };
    let none = Overrides::default;
    let registry = assemble(vec![(handler("one", none()), offer()), (handler("two", none()), offer())]);
    assert_snapshot!(shown(&registry), @r#"
    [{"x":1.10,"name":"read","y":{ }},{"x":1.10,"name":"two_read","y":{ }}]
    [{"name":"read"},{"name":"ask"},{"name":"two_read"},{"name":"two_ask"}]
    [{"uri":"a:b","z":1},{"uri":"two+a:b","z":1}]
    [{"uriTemplate":"a:{b}"},{"uriTemplate":"two+a:{b}"}]
    "#);
    for (uri, expect) in
        [("a:b", "one a:b"), ("two+a:b", "two a:b"), ("a:c", "one a:c"), ("two+a:c", "two a:c")]
    {
        assert_eq!(owner(&registry, uri), expect);
    }
}

/// Who has the resource of a URI, and what it calls it.
fn owner(registry: &Registry, uri: &str) -> String {
    let Some(entry) = registry.resource(uri) else { return "nobody".to_owned() };
    let (target, qualifier) = entry.addressed(Target::Resource(uri.into()));
    assert_eq!(format!("{qualifier}{}", target.name()), uri);
    format!("{} {}", entry.handler.name, target.name())
}

/// A URI stays with whom it was given to, whoever comes and goes.
#[test]
fn a_uri_that_two_servers_have() {
    let mut names = Names::default();
    let part = |name: &str, resources: &[&str]| {
        (handler(name, Overrides::default()), Arc::new(offers(&[], &[], resources, &[])))
    };
    let both = &[r#"{"uri":"a:b"}"#][..];
    let mut lists = Vec::new();
    for (one, two) in [(&[][..], both), (both, both), (both, &[]), (both, both)] {
        let registry = Registry::assemble(&[part("one", one), part("two", two)], &mut names);
        lists.push(shown(&registry).lines().nth(2).unwrap().to_owned());
    }
    names.forget("two");
    let registry = Registry::assemble(&[part("one", both), part("three_", both)], &mut names);
    lists.push(shown(&registry).lines().nth(2).unwrap().to_owned());
    assert_snapshot!(lists.join("\n"), @r#"
    [{"uri":"a:b"}]
    [{"uri":"one+a:b"},{"uri":"a:b"}]
    [{"uri":"one+a:b"}]
    [{"uri":"one+a:b"},{"uri":"a:b"}]
    [{"uri":"one+a:b"},{"uri":"a:b"}]
    "#);
}

/// A handler that wants no prefix, and one whose qualified URI is another one's own.
#[test]
fn a_uri_that_cannot_be_had() {
    let offer = |uri: &str| offers(&[], &[], &[&format!(r#"{{"uri":"{uri}"}}"#)], &[]);
    let plain = Handler { prefix: Prefix::Never, ..handler("plain", Overrides::default()) };
    let named = |name| handler(name, Overrides::default());
    let registry = assemble(vec![
        (named("one"), offer("a:b")),
        (plain, offer("a:b")),
        (named("other"), offer("two+a:b")),
        (named("two"), offer("a:b")),
        (Handler { prefix: Prefix::Always, ..named("always") }, offer("a:always")),
    ]);
    assert_snapshot!(shown(&registry), @r#"
    []
    []
    [{"uri":"a:b"},{"uri":"two+a:b"},{"uri":"a:always"}]
    []
    plain Resources a:b: not published: `a:b` is taken by the handler `one`
    two Resources a:b: not published: `two+a:b` is taken by the handler `other`
    "#);
}

/// What no list has is somebody's where it can be only one.
#[test]
fn resources_that_nobody_lists() {
    let registry = |handlers: &[(&str, bool, &[&str], &[&str])]| {
        let definitions = |member: &str, uris: &[&str]| -> Vec<String> {
            uris.iter().map(|uri| format!(r#"{{"{member}":"{uri}"}}"#)).collect()
        };
        let parts = handlers.iter().map(|(name, unlisted, resources, templates)| {
            let (resources, templates) =
                (definitions("uri", resources), definitions("uriTemplate", templates));

            let catalog = offers(&[], &[], &texts(&resources), &texts(&templates));
            (handler(name, Overrides::default()), Catalog { unlisted: *unlisted, ..catalog })
        });
        assemble(parts.collect())
    };
    let one = registry(&[("one", true, &["a:b"], &[]), ("two", false, &["b:c"], &[])]);
    let several = registry(&[
        ("one", true, &["http://a/x", "mem:1", "no uri", "file:///a"], &["db://{host}/x"]),
        ("two", true, &["http://b/x", "http:opaque", "file:///b"], &["log://b/{day}", "{scheme}://x/"]),
        ("closed", false, &["own:1"], &[]),
    ]);
    let none = registry(&[("one", false, &["a:b"], &[])]);
    let mut lines = Vec::new();
    for (name, registry, uris) in [
        ("one", &one, &["a:b", "b:c", "x:y", "b:d", "two+b:d", "one+x:y", "y"][..]),
        (
            "several",
            &several,
            &[
                "http://a/y",
                "http://b?y",
                "http://b",
                "http://c/y",
                "http:y",
                "mem:2",
                "file:///c",
                "db://x/z",
                "log://b/1/2",
                "log://c/1",
                "x:y",
                "own:2",
                "one+http://b/y",
                "two+x:y",
                "closed+own:1",
                "no",
            ],
        ),
        ("none", &none, &["a:c", "one+a:b"]),
    ] {
        lines.extend(uris.iter().map(|uri| format!("{name}, {uri}: {}", owner(registry, uri))));
    }
    // Who may use only one of them has no choice, and who may not use a URI does not find it.
    for (pattern, uri) in [
        ("two/*", "x:y"),
        ("two/*", "http://a/y"),
        ("two/x:*", "x:y"),
        ("two/x:*", "y:x"),
        ("two/x:*", "two+x:y"),
        ("two/two+*", "two+x:y"),
        ("mem:*", "mem:2"),
        ("x:*", "x:y"),
    ] {
        let scope = [pattern.parse::<Pattern>().unwrap()].into_iter().collect();
        lines.push(format!("{pattern} sees {uri}: {}", owner(&several.view(&scope), uri)));
    }
    assert_snapshot!(lines.join("\n"), @"
    one, a:b: one a:b
    one, b:c: two b:c
    one, x:y: one x:y
    one, b:d: one b:d
    one, two+b:d: one two+b:d
    one, one+x:y: one x:y
    one, y: one y
    several, http://a/y: one http://a/y
    several, http://b?y: two http://b?y
    several, http://b: two http://b
    several, http://c/y: nobody
    several, http:y: nobody
    several, mem:2: one mem:2
    several, file:///c: nobody
    several, db://x/z: one db://x/z
    several, log://b/1/2: two log://b/1/2
    several, log://c/1: two log://c/1
    several, x:y: nobody
    several, own:2: nobody
    several, one+http://b/y: one http://b/y
    several, two+x:y: two x:y
    several, closed+own:1: nobody
    several, no: nobody
    none, a:c: nobody
    none, one+a:b: nobody
    two/* sees x:y: two x:y
    two/* sees http://a/y: two http://a/y
    two/x:* sees x:y: two x:y
    two/x:* sees y:x: nobody
    two/x:* sees two+x:y: nobody
    two/two+* sees two+x:y: two x:y
    mem:* sees mem:2: one mem:2
    x:* sees x:y: nobody
    ");
}

#[test]
fn what_is_offered_twice() {
    let tools = [r#"{"name":"read","x":1}"#, r#"{"name":"read","x":2}"#];
    let prompts = [r#"{"name":"ask","x":1}"#, r#"{"name":"ask","x":2}"#];
    let offer = offers(&tools, &prompts, &[r#"{"uri":"a:b"}"#, r#"{"uri":"a:b"}"#], &[]);
    assert_snapshot!(shown(&assemble(vec![(handler("one", Overrides::default()), offer)])), @r#"
    [{"name":"read","x":1}]
    [{"name":"ask","x":1}]
    [{"uri":"a:b"}]
    []
    one Tools read: offered twice: the first one counts
    one Prompts ask: offered twice: the first one counts
    one Resources a:b: offered twice: the first one counts
    "#);
}

#[test]
fn what_is_overridden() {
    let pin = |name: &str| (name.to_owned(), Argument::Pin(json("1")));
    let change = |name: &str| Change { name: Some(name.into()), ..Change::default() };
    let arguments = [pin("a"), pin("z")].into();
    let overrides = Overrides::from([
        ("read".into(), Override::Change(Change { arguments, ..change("get") })),
        ("write".into(), Override::Hide),
        ("list".into(), Override::Change(change("ls"))),
        ("raed".into(), Override::Hide),
    ]);
    let tools = [
        r#"{"name":"read","inputSchema":{"properties":{"a":{},"b":{}},"required":["a"]}}"#,
        r#"{"name":"write"}"#,
        r#"{"name":"list"}"#,
    ];
    let first = handler("one", Overrides::from([("all".into(), Override::Change(change("ls")))]));
    let parts = vec![(first, Catalog::default()), (handler("two", overrides), offers(&tools, &[], &[], &[]))];
    let registry = assemble(parts);
    assert_snapshot!(shown(&registry), @r#"
    [{"name":"get","inputSchema":{"properties":{"b":{}}}},{"name":"two_ls"}]
    []
    []
    []
    two Tools read: its argument `z` is overridden, but not among the properties of its schema
    two Tools write: hidden by its override
    two Tools list: published as `two_ls`: `ls` is taken by the handler `one`
    two Tools raed: overridden, but the handler does not offer it
    "#);
    for (name, known) in [("get", true), ("two_ls", true), ("read", false), ("write", false), ("list", false)]
    {
        assert_eq!(registry.tool(name).is_ok(), known, "{name}");
    }
    let get = registry.tool("get").unwrap();
    assert_eq!((&*get.own, get.additions.is_some()), ("read", true));
    assert!(registry.tool("two_ls").unwrap().additions.is_none());
}

#[test]
fn a_tool_of_an_unavailable_server_is_found_and_not_listed() {
    let phase = Phase::Unavailable { reason: "gone".into() };
    let gone = Catalog { phase, ..offers(&[r#"{"name":"read"}"#], &[], &[], &[]) };
    let registry = assemble(vec![(handler("one", Overrides::from([("no".into(), Override::Hide)])), gone)]);
    assert!(registry.tool("read").is_ok());
    assert_eq!((registry.list(Kind::Tools).as_text(), registry.remarks()), ("[]", [].as_slice()));
}

const PUBLIC: CacheScope = CacheScope::Public;
const PRIVATE: CacheScope = CacheScope::Private;

/// A task belongs to who had the tool when it began.
#[test]
fn a_task_of_a_tool_that_is_another_ones_now() {
    let registry =
        assemble(vec![(handler("a", Overrides::new()), offers(&[r#"{"name":"t"}"#], &[], &[], &[]))]);
    let task = |handler: &str| {
        let (tool, handler, id) = ("t".into(), handler.into(), "1".into());
        Target::Task(Task { tool, handler, id, action: crate::TaskAction::Get })
    };
    assert!(registry.resolve(&task("a")).is_ok());
    assert_eq!(registry.resolve(&task("b")).err().map(|error| error.code()), Some(Code::ToolNotFound));
}

fn hint(ttl: u64, scope: CacheScope) -> Option<CacheHint> {
    Some(CacheHint { ttl: Duration::from_secs(ttl), scope })
}

/// A list may be kept no longer than any part of it, and by nobody else if any part is private; in a view only what is
/// seen there counts.
#[test]
fn how_long_a_list_may_be_kept() {
    let cases = [
        ([None, None], None, None),
        ([hint(7, PUBLIC), None], hint(7, PUBLIC), hint(7, PUBLIC)),
        ([None, hint(7, PRIVATE)], hint(7, PRIVATE), None),
        ([hint(7, PUBLIC), hint(3, PUBLIC)], hint(3, PUBLIC), hint(7, PUBLIC)),
        ([hint(7, PUBLIC), hint(9, PRIVATE)], hint(7, PRIVATE), hint(7, PUBLIC)),
        ([hint(0, PRIVATE), hint(9, PUBLIC)], hint(0, PRIVATE), hint(0, PRIVATE)),
    ];
    for (said, of_all, of_the_first) in cases {
        let part = |(name, said): (&str, Option<CacheHint>)| {
            let tool = format!(r#"{{"name":"{name}"}}"#);
            let mut hints = [None; 4];
            hints[Kind::Tools as usize] = said;
            (handler(name, Overrides::default()), Catalog { hints, ..offers(&[&tool], &[], &[], &[]) })
        };
        let mut parts: Vec<_> = ["one", "two"].into_iter().zip(said).map(part).collect();
        // Who is not there says nothing of the list.
        let (absent, mut catalog) = part(("three", hint(1, PRIVATE)));
        catalog.phase = Phase::Connecting;
        parts.push((absent, catalog));
        let registry = assemble(parts);
        assert_eq!(registry.hint(Kind::Tools), of_all, "{said:?}");
        assert_eq!(registry.hint(Kind::Prompts), None, "{said:?}");
        let scope = ["one/*".parse::<Pattern>().unwrap()].into_iter().collect();
        assert_eq!(registry.view(&scope).hint(Kind::Tools), of_the_first, "{said:?}");
    }
}
