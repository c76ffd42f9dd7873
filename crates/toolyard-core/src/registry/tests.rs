use insta::assert_snapshot;

use super::*;
use crate::access::{AccessGrant, ScopePattern};
use crate::backend::{Catalog, OwnCatalog};
use crate::cache::CacheScope;
use crate::item::{Prompt, PublishedTemplate, Resource};
use crate::json::Object;
use crate::names::{NameRegistry, PrefixPolicy, qualified};
use crate::outcome::{CallOutput, Outcome};
use crate::overrides::{ArgumentChange, DefinitionOverride, Override};
use crate::testing::{self, FakeBackend};

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn handler(name: &str, overrides: Overrides) -> HandlerEntry {
    let handler = testing::handler(name, FakeBackend::new(&[], Box::new(|_| unreachable!())));
    HandlerEntry { overrides: Arc::new(overrides), ..handler }
}

/// Returns the catalog of a ready server from definitions of tools, prompts, resources and templates, with the required
/// members that they lack.
fn offers(tools: &[&str], prompts: &[&str], resources: &[&str], templates: &[&str]) -> Catalog {
    fn read<T, E: std::fmt::Debug>(
        texts: &[&str],
        required: (&str, &str),
        read: fn(&Json) -> Result<T, E>,
    ) -> Vec<Arc<T>> {
        let complete = |text: &&str| {
            let definition = Object::parse((*text).to_owned()).unwrap();
            let (member, value) = required;
            match definition.get(member) {
                Some(_) => json(text),
                None => definition.with(member, json(value)).to_json(),
            }
        };
        texts.iter().map(|text| Arc::new(read(&complete(text)).unwrap())).collect()
    }
    Catalog {
        phase: BackendPhase::Ready,
        tools: read(tools, ("inputSchema", r#"{"type":"object"}"#), Tool::from_definition),
        prompts: read(prompts, ("name", "0"), Prompt::from_definition),
        resources: read(resources, ("name", r#""r""#), Resource::from_definition),
        templates: read(templates, ("name", r#""r""#), PublishedTemplate::from_definition),
        ..Catalog::default()
    }
}

fn assemble(parts: Vec<(HandlerEntry, Catalog)>) -> Registry {
    let parts: Vec<_> = parts.into_iter().map(|(handler, catalog)| (handler, Arc::new(catalog))).collect();
    Registry::assemble(&parts, &mut NameRegistry::default())
}

fn texts(owned: &[String]) -> Vec<&str> {
    owned.iter().map(String::as_str).collect()
}

/// Formats the lists and notices of a registry.
fn summary(registry: &Registry) -> String {
    let lists = EntryKind::ALL.map(|kind| registry.list(kind).as_text().to_owned());
    let notice = |r: &PublishNotice| format!("{} {:?} {}: {}", r.handler, r.kind, r.own, r.what);
    lists.into_iter().chain(registry.notices().iter().map(notice)).collect::<Vec<_>>().join("\n")
}

#[test]
fn items_of_two_handlers_are_qualified() {
    let offer = || {
        let tools = [r#"{"x":1.10,"name":"read","y":{ }}"#];
        let prompts = [r#"{"name":"read"}"#, r#"{"name":"ask"}"#];
        offers(&tools, &prompts, &[r#"{"uri":"a:b","z":1}"#], &[r#"{"uriTemplate":"a:{b}"}"#])
    };
    let none = Overrides::default;
    let registry = assemble(vec![(handler("one", none()), offer()), (handler("two", none()), offer())]);
    assert_snapshot!(summary(&registry), @r#"
    [{"x":1.10,"name":"read","y":{ },"inputSchema":{"type":"object"}},{"x":1.10,"name":"two_read","y":{ },"inputSchema":{"type":"object"}}]
    [{"name":"read"},{"name":"ask"},{"name":"two_read"},{"name":"two_ask"}]
    [{"uri":"a:b","z":1,"name":"r"},{"uri":"two+a:b","z":1,"name":"r"}]
    [{"uriTemplate":"a:{b}","name":"r"},{"uriTemplate":"two+a:{b}","name":"r"}]
    "#);
    for (uri, expect) in
        [("a:b", "one a:b"), ("two+a:b", "two a:b"), ("a:c", "one a:c"), ("two+a:c", "two a:c")]
    {
        assert_eq!(owner(&registry, uri), expect);
    }
}

/// Returns the handler of a resource, and the handler's own URI for it.
fn owner(registry: &Registry, uri: &str) -> String {
    let Some(entry) = registry.resource(uri) else { return "none".to_owned() };
    let (target, qualifier) = entry.addressed(CallTarget::Resource(uri.into()));
    let published = qualifier.map_or_else(|| target.name().to_string(), |it| qualified(&it, target.name()));
    assert_eq!(published, uri);
    format!("{} {}", entry.handler.name, target.name())
}

/// A URI stays with its first handler when others appear and disappear.
#[test]
fn shared_uri_stays_with_its_first_handler() {
    let mut names = NameRegistry::default();
    let part = |name: &str, resources: &[&str]| {
        (handler(name, Overrides::default()), Arc::new(offers(&[], &[], resources, &[])))
    };
    let both = &[r#"{"uri":"a:b"}"#][..];
    let mut lists = Vec::new();
    for (one, two) in [(&[][..], both), (both, both), (both, &[]), (both, both)] {
        let registry = Registry::assemble(&[part("one", one), part("two", two)], &mut names);
        lists.push(summary(&registry).lines().nth(2).unwrap().to_owned());
    }
    names.forget("two");
    let registry = Registry::assemble(&[part("one", both), part("three_", both)], &mut names);
    lists.push(summary(&registry).lines().nth(2).unwrap().to_owned());
    assert_snapshot!(lists.join("\n"), @r#"
    [{"uri":"a:b","name":"r"}]
    [{"uri":"one+a:b","name":"r"},{"uri":"a:b","name":"r"}]
    [{"uri":"one+a:b","name":"r"}]
    [{"uri":"one+a:b","name":"r"},{"uri":"a:b","name":"r"}]
    [{"uri":"one+a:b","name":"r"},{"uri":"a:b","name":"r"}]
    "#);
}

/// A handler without a prefix, and one whose qualified URI belongs to another handler.
#[test]
fn resource_without_a_free_uri_is_not_published() {
    let offer = |uri: &str| offers(&[], &[], &[&format!(r#"{{"uri":"{uri}"}}"#)], &[]);
    let plain = HandlerEntry { prefix: PrefixPolicy::Never, ..handler("plain", Overrides::default()) };
    let named = |name| handler(name, Overrides::default());
    let registry = assemble(vec![
        (named("one"), offer("a:b")),
        (plain, offer("a:b")),
        (named("other"), offer("two+a:b")),
        (named("two"), offer("a:b")),
        (HandlerEntry { prefix: PrefixPolicy::Always, ..named("always") }, offer("a:always")),
    ]);
    assert_snapshot!(summary(&registry), @r#"
    []
    []
    [{"uri":"a:b","name":"r"},{"uri":"other+two+a:b","name":"r"},{"uri":"two+a:b","name":"r"},{"uri":"a:always","name":"r"}]
    []
    plain Resources a:b: not published: `a:b` is taken by the handler `one`
    other Resources two+a:b: published as `other+two+a:b`: its name looks like one of the handler `two`
    "#);
}

/// Two servers of MCP Apps with the same page: the links of each lead to its own.
#[test]
fn links_of_tools_follow_the_renamed_resource() {
    let tools = [
        r#"{"name":"show","_meta":{"x":1.0,"ui":{"resourceUri":"ui://widget/main.html","y":2}}}"#,
        r#"{"name":"old","_meta":{"ui/resourceUri":"ui://widget/main.html","openai/outputTemplate":"ui://t/1"}}"#,
        r#"{"name":"other","_meta":{"ui":{"resourceUri":"https://a.example"}}}"#,
    ];
    let offer = || {
        offers(&tools, &[], &[r#"{"uri":"ui://widget/main.html"}"#], &[r#"{"uriTemplate":"ui://t/{id}"}"#])
    };
    let named = |name| handler(name, Overrides::default());
    let registry = assemble(vec![(named("alpha"), offer()), (named("beta"), offer())]);
    assert_snapshot!(summary(&registry), @r#"
    [{"name":"show","_meta":{"x":1.0,"ui":{"resourceUri":"ui://widget/main.html","y":2}},"inputSchema":{"type":"object"}},{"name":"old","_meta":{"ui/resourceUri":"ui://widget/main.html","openai/outputTemplate":"ui://t/1"},"inputSchema":{"type":"object"}},{"name":"other","_meta":{"ui":{"resourceUri":"https://a.example"}},"inputSchema":{"type":"object"}},{"name":"beta_show","_meta":{"x":1.0,"ui":{"resourceUri":"ui://beta+widget/main.html","y":2}},"inputSchema":{"type":"object"}},{"name":"beta_old","_meta":{"ui/resourceUri":"ui://beta+widget/main.html","openai/outputTemplate":"ui://beta+t/1"},"inputSchema":{"type":"object"}},{"name":"beta_other","_meta":{"ui":{"resourceUri":"https://a.example"}},"inputSchema":{"type":"object"}}]
    []
    [{"uri":"ui://widget/main.html","name":"r"},{"uri":"ui://beta+widget/main.html","name":"r"}]
    [{"uriTemplate":"ui://t/{id}","name":"r"},{"uriTemplate":"ui://beta+t/{id}","name":"r"}]
    "#);
    for (uri, expect) in [
        ("ui://widget/main.html", "alpha ui://widget/main.html"),
        ("ui://beta+widget/main.html", "beta ui://widget/main.html"),
        ("ui://beta+t/1", "beta ui://t/1"),
        ("ui://t/1", "alpha ui://t/1"),
    ] {
        assert_eq!(owner(&registry, uri), expect);
    }
}

#[test]
fn links_of_results_follow_the_renamed_resource() {
    let offer = |resource: &str| offers(&[], &[], &[&format!(r#"{{"uri":"{resource}"}}"#)], &[]);
    let registry = assemble(vec![
        (handler("alpha", Overrides::default()), offer("ui://w/a")),
        (handler("beta", Overrides::default()), offer("ui://w/a")),
        (handler("gamma", Overrides::default()), offer("x:y")),
    ]);
    let check = |name: &str, result: &str, expected: &str| {
        let mut outcome =
            Outcome::Done(CallOutput { body: json(result).to_object().unwrap(), is_error: false });
        registry.follow_result_links(&Arc::from(name), &mut outcome);
        let Outcome::Done(output) = outcome else { unreachable!() };
        let expected = if expected.is_empty() { result } else { expected };
        assert_eq!(output.body.to_json().as_text(), expected);
    };
    let link =
        r#"{"content":[{"type":"text","text":"\"uri\""},{"type":"resource_link","uri":"ui://w/a","n":1.0}]}"#;
    check("alpha", link, "");
    check("beta", link, &link.replace("//w", "//beta+w"));
    // A page that is not its own.
    check("gamma", link, &link.replace("//w", "//gamma+w"));
    let embedded = r#"{"content":[{"type":"resource","resource":{"uri":"ui://w/a","text":""}}],"_meta":{"ui":{"resourceUri":"ui://w/a"}}}"#;
    check("beta", embedded, &embedded.replace("//w", "//beta+w"));
    let prompt = r#"{"messages":[{"role":"user","content":{"type":"resource_link","uri":"ui://w/a"}}]}"#;
    check("beta", prompt, &prompt.replace("//w", "//beta+w"));
    let in_blocks = r#"{"content":[{"type":"text","text":"","_meta":{"ui":{"resourceUri":"ui://w/a"}}},{"type":"resource","resource":{"uri":"own:1","_meta":{"ui/resourceUri":"ui://w/a"}}}]}"#;
    check("beta", in_blocks, &in_blocks.replace("//w", "//beta+w"));
    // Other URIs may be for the client.
    for kept in [
        r#"{"content":[{"type":"resource_link","uri":"x:y"},{"type":"text","uri":"ui://w/a"},7]}"#,
        r#"{"content":[{"type":"resource_link","uri":"https://a.example/"}],"_meta":{"ui":7}}"#,
        r#"{"structuredContent":{"uri":"ui://w/a"}}"#,
    ] {
        check("beta", kept, "");
    }
}

/// A link to a resource that no list has does not lead to another server.
#[test]
fn links_to_unlisted_resources_lead_back() {
    let unlisted = |resource: &str, template: &str| Catalog {
        unlisted: true,
        ..offers(
            &[],
            &[],
            &[&format!(r#"{{"uri":"{resource}"}}"#)],
            &[&format!(r#"{{"uriTemplate":"{template}"}}"#)],
        )
    };
    let registry = assemble(vec![
        (handler("alpha", Overrides::default()), unlisted("a:1", "a:{id}")),
        (handler("beta", Overrides::default()), unlisted("b:1", "{+any}")),
    ]);
    let check = |name: &str, uri: &str, expected: &str| {
        let link = |uri: &str| format!(r#"{{"content":[{{"type":"resource_link","uri":"{uri}"}}]}}"#);
        let mut outcome =
            Outcome::Done(CallOutput { body: json(&link(uri)).to_object().unwrap(), is_error: false });
        registry.follow_result_links(&Arc::from(name), &mut outcome);
        let Outcome::Done(output) = outcome else { unreachable!() };
        assert_eq!(output.body.to_json().as_text(), link(expected));
    };
    check("alpha", "file:///a", "alpha+file:///a");
    check("alpha", "a:2", "a:2");
    check("beta", "a:2", "beta+a:2");
    check("beta", "file:///a", "file:///a");
    // A client may open a page of the web itself.
    check("alpha", "https://a.example/", "https://a.example/");
}

/// A server cannot take the place of another one by its prefix, in either order.
#[test]
fn prefixes_of_handlers_are_reserved() {
    let offer = |resource: &str, template: &str| {
        let (resource, template) =
            (format!(r#"{{"uri":"{resource}"}}"#), format!(r#"{{"uriTemplate":"{template}"}}"#));
        offers(&[], &[], &[&resource], &[&template])
    };
    let named = |name| handler(name, Overrides::default());
    let evil = || (named("evil"), offer("ui://beta+w/a", "{scheme}+w/{+rest}"));
    let upper = || (named("upper"), offer("BETA+x:y", "ui://BETA+{a}"));
    let beta = || (named("beta"), offer("ui://w/a", "w/{+rest}"));
    let first = || (named("first"), offer("ui://w/a", "w/{+rest}"));
    for parts in [vec![first(), evil(), upper(), beta()], vec![first(), beta(), upper(), evil()]] {
        let registry = assemble(parts);
        for (uri, expect) in [
            ("ui://beta+w/a", "beta ui://w/a"),
            ("beta+w/x", "beta w/x"),
            ("ui://evil+beta+w/a", "evil ui://beta+w/a"),
            ("upper+BETA+x:y", "upper BETA+x:y"),
            ("other+w/x", "evil other+w/x"),
        ] {
            assert_eq!(owner(&registry, uri), expect);
        }
        let imitates = |notice: &&PublishNotice| matches!(notice.what, NoticeReason::Imitates { .. });
        assert_eq!(registry.notices().iter().filter(imitates).count(), 3);
    }
}

/// An unlisted resource resolves if only one handler can have it.
#[test]
fn unlisted_resources_resolve_to_one_handler() {
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
    // A scope with one handler is unambiguous; a URI outside of the scope is not found.
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
        let scope = [pattern.parse::<ScopePattern>().unwrap()].into_iter().collect();
        lines.push(format!("{pattern} sees {uri}: {}", owner(&several.view(&scope), uri)));
    }
    assert_snapshot!(lines.join("\n"), @"
    one, a:b: one a:b
    one, b:c: two b:c
    one, x:y: one x:y
    one, b:d: one b:d
    one, two+b:d: none
    one, one+x:y: one x:y
    one, y: one y
    several, http://a/y: one http://a/y
    several, http://b?y: two http://b?y
    several, http://b: two http://b
    several, http://c/y: none
    several, http:y: none
    several, mem:2: one mem:2
    several, file:///c: none
    several, db://x/z: one db://x/z
    several, log://b/1/2: two log://b/1/2
    several, log://c/1: two log://c/1
    several, x:y: none
    several, own:2: none
    several, one+http://b/y: one http://b/y
    several, two+x:y: two x:y
    several, closed+own:1: none
    several, no: none
    none, a:c: none
    none, one+a:b: none
    two/* sees x:y: two x:y
    two/* sees http://a/y: two http://a/y
    two/x:* sees x:y: two x:y
    two/x:* sees y:x: none
    two/x:* sees two+x:y: none
    two/two+* sees two+x:y: two x:y
    mem:* sees mem:2: one mem:2
    x:* sees x:y: none
    ");
}

#[test]
fn first_of_duplicate_items_counts() {
    let tools = [r#"{"name":"read","x":1}"#, r#"{"name":"read","x":2}"#];
    let prompts = [r#"{"name":"ask","x":1}"#, r#"{"name":"ask","x":2}"#];
    let offer = offers(&tools, &prompts, &[r#"{"uri":"a:b"}"#, r#"{"uri":"a:b"}"#], &[]);
    assert_snapshot!(summary(&assemble(vec![(handler("one", Overrides::default()), offer)])), @r#"
    [{"name":"read","x":1,"inputSchema":{"type":"object"}}]
    [{"name":"ask","x":1}]
    [{"uri":"a:b","name":"r"}]
    []
    one Tools read: offered twice: the first one counts
    one Prompts ask: offered twice: the first one counts
    one Resources a:b: offered twice: the first one counts
    "#);
}

#[test]
fn name_in_another_namespace_is_reported() {
    let shadow = offers(&[r#"{"name":"good_echo"}"#], &[r#"{"name":"good_ask"}"#], &[], &[]);
    let (none, empty) = (Overrides::default, Catalog::default());
    let parts = vec![(handler("shadow", none()), shadow.clone()), (handler("good", none()), empty)];
    assert_snapshot!(summary(&assemble(parts)), @r#"
    [{"name":"shadow_good_echo","inputSchema":{"type":"object"}}]
    [{"name":"shadow_good_ask"}]
    []
    []
    shadow Tools good_echo: published as `shadow_good_echo`: its name looks like one of the handler `good`
    shadow Prompts good_ask: published as `shadow_good_ask`: its name looks like one of the handler `good`
    "#);
    // Builtin tools keep their names.
    let builtin = HandlerEntry { is_builtin: true, ..handler("builtins", none()) };
    let registry = assemble(vec![(builtin, shadow), (handler("good", none()), Catalog::default())]);
    assert_eq!(registry.notices(), []);
}

#[test]
fn a_scope_names_what_a_handler_has_and_not_what_looks_like_it() {
    let named = |own: &str, name: &str| {
        let change = DefinitionOverride { name: Some(name.into()), ..DefinitionOverride::default() };
        Overrides::from([(Arc::from(own), Override::Change(change))])
    };
    let tools = |names: &[&str]| {
        let definitions: Vec<_> = names.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
        offers(&texts(&definitions), &[], &[], &[])
    };
    let registry = assemble(vec![
        (handler("good", Overrides::default()), tools(&["good_echo", "run"])),
        (handler("shadow", named("x", "good_x")), tools(&["good_run", "x", "other"])),
    ]);
    let cases = [
        ("*", "good_echo run shadow_good_run good_x other"),
        ("good_*", "good_echo"),
        ("good*", "good_echo good_x"),
        ("good_x", ""),
        ("shadow/*", "shadow_good_run good_x other"),
        ("shadow_*", "shadow_good_run"),
        ("good/*", "good_echo run"),
        ("*_x", "good_x"),
    ];
    for (pattern, seen) in cases {
        let scope = [pattern.parse::<ScopePattern>().unwrap()].into_iter().collect();
        let view = registry.view(&scope);
        let names: Vec<_> = view.entries(EntryKind::Tools).iter().map(|entry| &*entry.name).collect();
        assert_eq!(names.join(" "), seen, "{pattern}");
    }
}

#[test]
fn overrides_apply_to_published_tools() {
    let pin = |name: &str| (name.to_owned(), ArgumentChange::Pin(json("1")));
    let change = |name: &str| DefinitionOverride { name: Some(name.into()), ..DefinitionOverride::default() };
    let arguments = [pin("a"), pin("z")].into();
    let overrides = Overrides::from([
        ("read".into(), Override::Change(DefinitionOverride { arguments, ..change("get") })),
        ("write".into(), Override::Hide),
        ("list".into(), Override::Change(change("ls"))),
        ("raed".into(), Override::Hide),
    ]);
    let tools = [
        r#"{"name":"read","inputSchema":{"type":"object","properties":{"a":{},"b":{}},"required":["a"]}}"#,
        r#"{"name":"write"}"#,
        r#"{"name":"list"}"#,
    ];
    let first = handler("one", Overrides::from([("all".into(), Override::Change(change("ls")))]));
    let parts = vec![(first, Catalog::default()), (handler("two", overrides), offers(&tools, &[], &[], &[]))];
    let registry = assemble(parts);
    assert_snapshot!(summary(&registry), @r#"
    [{"name":"get","inputSchema":{"type":"object","properties":{"b":{}}}},{"name":"two_ls","inputSchema":{"type":"object"}}]
    []
    []
    []
    two Tools read: its argument `z` is overridden, but not among the properties of its schema
    two Tools write: hidden by its override
    two Tools list: published as `two_ls`: `ls` is taken by the handler `one`
    two Tools raed: overridden, but the handler does not offer it
    "#);
    for (name, is_found) in
        [("get", true), ("two_ls", true), ("read", false), ("write", false), ("list", false)]
    {
        assert_eq!(registry.tool(name).is_ok(), is_found, "{name}");
    }
    let get = registry.tool("get").unwrap();
    assert_eq!((&*get.own, get.additions.is_some()), ("read", true));
    assert!(registry.tool("two_ls").unwrap().additions.is_none());
}

/// A list with an invalid definition is refused as a whole by strict clients.
#[test]
fn invalid_definition_is_repaired_or_left_out() {
    let tools = [
        r#"{"name":"good","inputSchema":{ "type":"object" }}"#,
        r#"{"name":"null","inputSchema":null,"title":null}"#,
        r#"{"name":"text","inputSchema":{"type":"string"}}"#,
        r#"{"name":"hidden","inputSchema":1}"#,
    ];
    let hidden = Overrides::from([("hidden".into(), Override::Hide)]);
    let registry =
        assemble(vec![(handler("one", hidden), offers(&tools, &[], &[r#"{"uri":"a:b","name":1}"#], &[]))]);
    assert_snapshot!(summary(&registry), @r#"
    [{"name":"good","inputSchema":{ "type":"object" }},{"name":"null","inputSchema":{"type":"object"}}]
    []
    [{"uri":"a:b","name":"a:b"}]
    []
    one Tools null: invalid definition repaired: `title` is not a string: left out; `inputSchema` is null: any arguments are allowed
    one Tools text: left out: `inputSchema.type` is not `object`
    one Tools hidden: hidden by its override
    one Resources a:b: invalid definition repaired: `name` is not a string: left out; `name` is missing: added
    "#);
    // A call validates by the published schema.
    registry.tool("null").unwrap().tool.as_ref().unwrap().check_arguments(Some(&json("{}"))).unwrap();
    assert!(registry.tool("text").is_err());
}

/// A server can put what it was told into the names of its tools.
#[test]
fn notices_contain_no_secret() {
    let secrets = SecretRedactor::new(["hunter2".to_owned()]);
    let told = HandlerEntry { secrets, ..handler("one", Overrides::new()) };
    let registry =
        assemble(vec![(told, offers(&[r#"{"name":"token hunter2","inputSchema":null}"#], &[], &[], &[]))]);
    let own: Vec<_> = registry.notices().iter().map(|notice| &*notice.own).collect();
    assert_eq!(own, ["token [REDACTED]"]);
}

/// Overrides refer to the names of the server.
#[test]
fn illegal_argument_names_are_published_under_others() {
    let arguments = [
        ("$pinned".to_owned(), ArgumentChange::Pin(json("1"))),
        (
            "a[]".to_owned(),
            ArgumentChange::Show { default: Some(json("[]")), description: Some("All.".to_owned()) },
        ),
    ];
    let change = DefinitionOverride { arguments: arguments.into(), ..DefinitionOverride::default() };
    let tool = r#"{"name":"t","inputSchema":{"type":"object","properties":{"a[]":{},"$b":{},"$pinned":{}},"required":["a[]","$b"]}}"#;
    let published = |renames_arguments: bool, overrides: Overrides| {
        let entry = HandlerEntry { renames_arguments, ..handler("h", overrides) };
        let registry = assemble(vec![(entry, offers(&[tool], &[], &[], &[]))]);
        let entry = registry.tool("t").unwrap().clone();
        let sent = json(r#"{"b":2}"#);
        let sent = entry.additions.as_ref().map(|additions| additions.add_to(Some(&sent)).unwrap());
        (registry.list(EntryKind::Tools).as_text().to_owned(), sent.map(|sent| sent.as_text().to_owned()))
    };
    assert_eq!(published(false, Overrides::new()), (format!("[{tool}]"), None));
    let (list, sent) = published(true, [("t".into(), Override::Change(change))].into());
    assert_eq!(
        list,
        r#"[{"name":"t","inputSchema":{"type":"object","properties":{"a":{"description":"All. (Sent as `a[]`.)","default":[]},"b":{"description":"Sent as `$b`."}},"required":["b"]}}]"#
    );
    assert_eq!(sent.unwrap(), r#"{"$b":2,"$pinned":1,"a[]":[]}"#);
}

#[test]
fn tool_of_an_unavailable_server_is_found_but_not_listed() {
    let phase = BackendPhase::Unavailable { reason: "gone".into() };
    let gone = Catalog { phase, ..offers(&[r#"{"name":"read"}"#], &[], &[], &[]) };
    let registry = assemble(vec![(handler("one", Overrides::from([("no".into(), Override::Hide)])), gone)]);
    assert!(registry.tool("read").is_ok());
    assert_eq!((registry.list(EntryKind::Tools).as_text(), registry.notices()), ("[]", [].as_slice()));
}

#[test]
fn unknown_tool_may_be_that_of_a_starting_server() {
    let starting = Catalog { phase: BackendPhase::Connecting, ..offers(&[], &[], &[], &[]) };
    let ready = offers(&[r#"{"name":"read"}"#], &[], &[], &[]);
    let check = |one: &Catalog, scope: &[&str], expected: &str| {
        let parts = vec![
            (handler("one", Overrides::default()), one.clone()),
            (handler("two", Overrides::default()), ready.clone()),
        ];
        let view = Registry::view_for(Arc::new(assemble(parts)), &session("s", scope));
        let error = view.tool_or_nearest("write").err().unwrap();
        assert_eq!(format!("{:?}: {error}", error.code()), expected, "{scope:?}");
    };
    let (unknown, may_be) = (
        "ToolNotFound: Unknown tool: write",
        "Unavailable: Unknown tool: write. Servers that are still starting may have it: try again later",
    );
    check(&starting, &["*"], may_be);
    check(&starting, &["one/*"], may_be);
    check(&starting, &["read", "write"], may_be);
    // A caller does not learn of servers outside of its scope.
    check(&starting, &["two/*"], unknown);
    check(&starting, &["read"], unknown);
    check(&ready, &["*"], unknown);
    let gone = Catalog { phase: BackendPhase::Unavailable { reason: "gone".into() }, ..starting };
    check(&gone, &["*"], unknown);
}

#[test]
fn unknown_prompt_or_resource_may_be_that_of_a_starting_server() {
    let check = |phase: BackendPhase, scope: &[&str], expected: [ErrorCode; 2]| {
        let one = Catalog { phase, ..offers(&[], &[], &[], &[]) };
        let registry = assemble(vec![(handler("one", Overrides::default()), one)]);
        let view = Registry::view_for(Arc::new(registry), &session("s", scope));
        let targets = [CallTarget::Prompt("write".into()), CallTarget::Resource("file:///a".into())];
        let codes = targets.map(|target| view.resolve(&target).err().unwrap().code());
        assert_eq!(codes, expected, "{scope:?}");
    };
    let unknown = [ErrorCode::PromptNotFound, ErrorCode::ResourceNotFound];
    check(BackendPhase::Connecting, &["*"], [ErrorCode::Unavailable; 2]);
    check(BackendPhase::Connecting, &["one/*"], [ErrorCode::Unavailable; 2]);
    check(BackendPhase::Connecting, &["two/*"], unknown);
    check(BackendPhase::Ready, &["*"], unknown);
}

const PUBLIC: CacheScope = CacheScope::Public;
const PRIVATE: CacheScope = CacheScope::Private;

/// A task belongs to the handler that had the tool when the task started.
#[test]
fn task_stays_with_its_handler() {
    let registry =
        assemble(vec![(handler("a", Overrides::new()), offers(&[r#"{"name":"t"}"#], &[], &[], &[]))]);
    let task = |handler: &str| {
        let (tool, handler, id) = ("t".into(), handler.into(), "1".into());
        CallTarget::Task(TaskReference { tool, handler, id, action: crate::TaskAction::Get })
    };
    assert!(registry.resolve(&task("a")).is_ok());
    assert_eq!(registry.resolve(&task("b")).err().map(|error| error.code()), Some(ErrorCode::ToolNotFound));
}

fn hint(ttl: u64, scope: CacheScope) -> Option<CacheHint> {
    Some(CacheHint { ttl: Duration::from_secs(ttl), scope })
}

/// A list has the shortest lifetime of its parts, and is private if any part is; a view counts only its own parts.
#[test]
fn cache_hint_of_a_list_is_the_strictest() {
    let cases = [
        ([None, None], None, None),
        ([hint(7, PUBLIC), None], hint(7, PUBLIC), hint(7, PUBLIC)),
        ([None, hint(7, PRIVATE)], hint(7, PRIVATE), None),
        ([hint(7, PUBLIC), hint(3, PUBLIC)], hint(3, PUBLIC), hint(7, PUBLIC)),
        ([hint(7, PUBLIC), hint(9, PRIVATE)], hint(7, PRIVATE), hint(7, PUBLIC)),
        ([hint(0, PRIVATE), hint(9, PUBLIC)], hint(0, PRIVATE), hint(0, PRIVATE)),
    ];
    for (hints, of_all, of_the_first) in cases {
        let part = |(name, hint): (&str, Option<CacheHint>)| {
            let tool = format!(r#"{{"name":"{name}"}}"#);
            let mut by_kind = [None; 4];
            by_kind[EntryKind::Tools as usize] = hint;
            (
                handler(name, Overrides::default()),
                Catalog { hints: by_kind, ..offers(&[&tool], &[], &[], &[]) },
            )
        };
        let mut parts: Vec<_> = ["one", "two"].into_iter().zip(hints).map(part).collect();
        // A connecting handler does not affect the list.
        let (absent, mut catalog) = part(("three", hint(1, PRIVATE)));
        catalog.phase = BackendPhase::Connecting;
        parts.push((absent, catalog));
        let registry = assemble(parts);
        assert_eq!(registry.hint(EntryKind::Tools), of_all, "{hints:?}");
        assert_eq!(registry.hint(EntryKind::Prompts), None, "{hints:?}");
        let scope = ["one/*".parse::<ScopePattern>().unwrap()].into_iter().collect();
        assert_eq!(registry.view(&scope).hint(EntryKind::Tools), of_the_first, "{hints:?}");
    }
}

/// A scope for a part of a server excludes URIs whose dot segments lead out of it.
#[test]
fn a_uri_stays_in_its_scope() {
    let resources = [r#"{"uri":"res://open/a"}"#, r#"{"uri":"res://open/../secret/a"}"#];
    let templates =
        [r#"{"uriTemplate":"res://open/{+path}"}"#, r#"{"uriTemplate":"res://open/%2e%2e/{id}"}"#];
    let files = handler("files", Overrides::default());
    let registry = assemble(vec![(files, offers(&[], &[], &resources, &templates))]);
    let mut lines = Vec::new();
    for pattern in ["res://open/*", "files/res://open/*", "files/*", "*", "res://*"] {
        let scope: AccessScope = [pattern.parse::<ScopePattern>().unwrap()].into_iter().collect();
        let view = registry.view(&scope);
        let results = [
            "res://open/a",
            "res://open/b/c",
            "res://open/../secret/a",
            "res://open/%2e%2E/secret",
            "res://open/..%2fx",
        ]
        .map(|uri| if view.resource(uri).is_some() { "yes" } else { "no" });
        let counts = [EntryKind::Resources, EntryKind::Templates].map(|kind| view.entries(kind).len());
        lines.push(format!("{pattern}: {} {counts:?}", results.join(" ")));
    }
    assert_snapshot!(lines.join("\n"), @"
    res://open/*: yes yes no no no [1, 1]
    files/res://open/*: yes yes no no no [1, 1]
    files/*: yes yes yes yes yes [2, 2]
    *: yes yes yes yes yes [2, 2]
    res://*: yes yes no no no [1, 1]
    ");
}

fn session(name: &str, scope: &[&str]) -> Caller {
    let scope = scope.iter().map(|pattern| pattern.parse::<ScopePattern>().unwrap()).collect();
    let grant = Arc::new(AccessGrant { scope, ..AccessGrant::default() });
    Caller { session: Some(name.into()), grant: Some(grant), ..Caller::default() }
}

/// Returns the catalog with other lists for the session `s`.
fn with_own(catalog: Catalog, tools: &[&str], templates: Option<&[&str]>) -> Catalog {
    let lists = offers(tools, &[], &[], templates.unwrap_or_default());
    let own = OwnCatalog {
        client: ClientIdentity::Session("s".into()),
        tools: Some(lists.tools),
        prompts: None,
        resources: None,
        templates: templates.map(|_| lists.templates),
    };
    Catalog { own: vec![own], ..catalog }
}

/// The rules for names, overrides and scopes are those of the other lists.
#[test]
fn client_sees_its_own_lists() {
    const READ: &str = r#"{"name":"read"}"#;
    let one =
        offers(&[READ, r#"{"name":"old"}"#], &[r#"{"name":"ask"}"#], &[], &[r#"{"uriTemplate":"a:{b}"}"#]);
    let own = [READ, r#"{"name":"write"}"#, r#"{"name":"hidden"}"#, r#"{"name":"new"}"#];
    let one = with_own(one, &own, Some(&[r#"{"uriTemplate":"c:{d}"}"#]));
    let two = offers(&[r#"{"name":"write"}"#], &[], &[], &[]);
    let overrides = Overrides::from([("hidden".into(), Override::Hide)]);
    let registry = Arc::new(assemble(vec![
        (handler("two", Overrides::default()), two),
        (handler("one", overrides), one),
    ]));
    let lists = |caller: &Caller| {
        let view = Registry::view_for(registry.clone(), caller);
        let [tools, prompts, _, templates] = EntryKind::ALL.map(|kind| view.list(kind).as_text().to_owned());
        format!("{} {tools} {prompts} {templates}", view.is_of_one_client())
    };
    let names = [
        lists(&Caller::default()),
        lists(&session("other", &["*"])),
        lists(&Caller { principal: Some("s".into()), ..Caller::default() }),
        lists(&session("s", &["*"])),
        lists(&session("s", &["one/new", "one/old", "two/*"])),
    ];
    assert_snapshot!(names.join("\n"), @r#"
    false [{"name":"write","inputSchema":{"type":"object"}},{"name":"read","inputSchema":{"type":"object"}},{"name":"old","inputSchema":{"type":"object"}}] [{"name":"ask"}] [{"uriTemplate":"a:{b}","name":"r"}]
    false [{"name":"write","inputSchema":{"type":"object"}},{"name":"read","inputSchema":{"type":"object"}},{"name":"old","inputSchema":{"type":"object"}}] [{"name":"ask"}] [{"uriTemplate":"a:{b}","name":"r"}]
    false [{"name":"write","inputSchema":{"type":"object"}},{"name":"read","inputSchema":{"type":"object"}},{"name":"old","inputSchema":{"type":"object"}}] [{"name":"ask"}] [{"uriTemplate":"a:{b}","name":"r"}]
    true [{"name":"write","inputSchema":{"type":"object"}},{"name":"read","inputSchema":{"type":"object"}},{"name":"one_write","inputSchema":{"type":"object"}},{"name":"new","inputSchema":{"type":"object"}}] [{"name":"ask"}] [{"uriTemplate":"c:{d}","name":"r"}]
    true [{"name":"write","inputSchema":{"type":"object"}},{"name":"new","inputSchema":{"type":"object"}}] [] []
    "#);
    let view = Registry::view_for(registry.clone(), &session("s", &["*"]));
    let own_name = |target: CallTarget| view.resolve(&target).map(|entry| entry.own.to_string()).ok();
    let tool = |name: &str| own_name(CallTarget::Tool(name.into()));
    assert_eq!(
        ["write", "one_write", "new", "old", "hidden"].map(tool),
        [Some("write"), Some("write"), Some("new"), None, None].map(|own| own.map(str::to_owned))
    );
    let resource = |uri: &str| own_name(CallTarget::Resource(uri.into()));
    assert_eq!(["c:1", "a:1"].map(resource), [Some("c:{d}".to_owned()), None]);
    assert!(registry.tool("new").is_err() && registry.resource("c:1").is_none());
}

#[test]
fn tools_that_need_a_model_exist_for_clients_that_lend_theirs() {
    let tools = [r#"{"name":"spawn"}"#, r#"{"name":"read"}"#];
    let own = HandlerEntry { model_tools: &["spawn"], ..handler("own", Overrides::default()) };
    let other = handler("other", Overrides::default());
    let registry = Arc::new(assemble(vec![
        (own, offers(&tools, &[], &[], &[])),
        (other, offers(&tools, &[], &[], &[])),
    ]));
    let check = |caller: Caller, expected: &str| {
        let view = Registry::view_for(registry.clone(), &caller);
        let names: Vec<_> = view.entries(EntryKind::Tools).iter().map(|entry| &*entry.name).collect();
        assert_eq!(names.join(" "), expected, "{caller:?}");
        assert_eq!(view.tool("spawn").is_ok(), names.contains(&"spawn"), "{caller:?}");
        assert!(view.is_of_one_client(), "lists must not be cached for others");
    };
    let lending = |caller: Caller| Caller { lends_model: true, ..caller };
    check(Caller::default(), "read other_spawn other_read");
    check(lending(Caller::default()), "spawn read other_spawn other_read");
    check(session("s", &["own/*"]), "read");
    check(lending(session("s", &["own/*"])), "spawn read");
    check(session("s", &["*"]), "read other_spawn other_read");
}

/// The index of the search has the tools of all clients only.
#[test]
fn own_tools_are_always_advertised() {
    let disclosure = DisclosurePolicy {
        show: DisclosureMode::Search,
        budget: 0,
        pinned: Vec::new(),
        finders: vec!["find".into()],
        script_tools: Vec::new(),
        reader: None,
        output_schemas: None,
        unlisted: Vec::new(),
    };
    let finder = handler("finder", Overrides::default());
    let finder = HandlerEntry { disclosure: Some(Arc::new(disclosure)), ..finder };
    let one = with_own(
        offers(&[r#"{"name":"old"}"#], &[], &[], &[]),
        &[r#"{"name":"old"}"#, r#"{"name":"new"}"#],
        None,
    );
    let registry = Arc::new(assemble(vec![
        (finder, offers(&[r#"{"name":"find"}"#], &[], &[], &[])),
        (handler("one", Overrides::default()), one),
    ]));
    let advertised = |caller: &Caller| {
        let view = Registry::view_for(registry.clone(), caller);
        let names = view.advertised(EntryKind::Tools).entries().iter().map(|entry| entry.name.to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(advertised(&Caller::default()), "find");
    assert_eq!(advertised(&session("s", &["*"])), "find new");
    assert_eq!(advertised(&session("s", &["finder/*"])), "find");
}
