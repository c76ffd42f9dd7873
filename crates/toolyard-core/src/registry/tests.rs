use insta::assert_snapshot;

use super::*;
use crate::access::{AccessGrant, ScopePattern};
use crate::backend::{Catalog, OwnCatalog};
use crate::cache::CacheScope;
use crate::item::{Prompt, PublishedTemplate, Resource};
use crate::names::{NameRegistry, PrefixPolicy};
use crate::overrides::{ArgumentChange, DefinitionOverride, Override};
use crate::testing::{self, FakeBackend};

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn handler(name: &str, overrides: Overrides) -> HandlerEntry {
    let handler = testing::handler(name, FakeBackend::new(&[], Box::new(|_| unreachable!())));
    HandlerEntry { overrides: Arc::new(overrides), ..handler }
}

/// Returns the catalog of a ready server from definitions of tools, prompts, resources and templates.
fn offers(tools: &[&str], prompts: &[&str], resources: &[&str], templates: &[&str]) -> Catalog {
    fn read<T, E: std::fmt::Debug>(texts: &[&str], read: fn(&Json) -> Result<T, E>) -> Vec<Arc<T>> {
        texts.iter().map(|text| Arc::new(read(&json(text)).unwrap())).collect()
    }
    Catalog {
        phase: BackendPhase::Ready,
        tools: read(tools, Tool::from_definition),
        prompts: read(prompts, Prompt::from_definition),
        resources: read(resources, Resource::from_definition),
        templates: read(templates, PublishedTemplate::from_definition),
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

/// Returns the handler of a resource, and the handler's own URI for it.
fn owner(registry: &Registry, uri: &str) -> String {
    let Some(entry) = registry.resource(uri) else { return "none".to_owned() };
    let (target, qualifier) = entry.addressed(CallTarget::Resource(uri.into()));
    assert_eq!(format!("{qualifier}{}", target.name()), uri);
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
    [{"uri":"a:b"}]
    [{"uri":"one+a:b"},{"uri":"a:b"}]
    [{"uri":"one+a:b"}]
    [{"uri":"one+a:b"},{"uri":"a:b"}]
    [{"uri":"one+a:b"},{"uri":"a:b"}]
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
    [{"uri":"a:b"},{"uri":"two+a:b"},{"uri":"a:always"}]
    []
    plain Resources a:b: not published: `a:b` is taken by the handler `one`
    two Resources a:b: not published: `two+a:b` is taken by the handler `other`
    "#);
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
    one, two+b:d: one two+b:d
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
fn name_in_another_namespace_is_reported() {
    let shadow = offers(&[r#"{"name":"good_echo"}"#], &[r#"{"name":"good_ask"}"#], &[], &[]);
    let (none, empty) = (Overrides::default, Catalog::default());
    let parts = vec![(handler("shadow", none()), shadow.clone()), (handler("good", none()), empty)];
    assert_snapshot!(summary(&assemble(parts)), @r#"
    [{"name":"shadow_good_echo"}]
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
        r#"{"name":"read","inputSchema":{"properties":{"a":{},"b":{}},"required":["a"]}}"#,
        r#"{"name":"write"}"#,
        r#"{"name":"list"}"#,
    ];
    let first = handler("one", Overrides::from([("all".into(), Override::Change(change("ls")))]));
    let parts = vec![(first, Catalog::default()), (handler("two", overrides), offers(&tools, &[], &[], &[]))];
    let registry = assemble(parts);
    assert_snapshot!(summary(&registry), @r#"
    [{"name":"get","inputSchema":{"properties":{"b":{}}}},{"name":"two_ls"}]
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
    let tool = r#"{"name":"t","inputSchema":{"properties":{"a[]":{},"$b":{},"$pinned":{}},"required":["a[]","$b"]}}"#;
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
        r#"[{"name":"t","inputSchema":{"properties":{"a":{"description":"All. (Sent as `a[]`.)","default":[]},"b":{"description":"Sent as `$b`."}},"required":["b"]}}]"#
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
    false [{"name":"write"},{"name":"read"},{"name":"old"}] [{"name":"ask"}] [{"uriTemplate":"a:{b}"}]
    false [{"name":"write"},{"name":"read"},{"name":"old"}] [{"name":"ask"}] [{"uriTemplate":"a:{b}"}]
    false [{"name":"write"},{"name":"read"},{"name":"old"}] [{"name":"ask"}] [{"uriTemplate":"a:{b}"}]
    true [{"name":"write"},{"name":"read"},{"name":"one_write"},{"name":"new"}] [{"name":"ask"}] [{"uriTemplate":"c:{d}"}]
    true [{"name":"write"},{"name":"new"}] [] []
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
        view.advertised(EntryKind::Tools).json().as_text().to_owned()
    };
    assert_eq!(advertised(&Caller::default()), r#"[{"name":"find"}]"#);
    assert_eq!(advertised(&session("s", &["*"])), r#"[{"name":"find"},{"name":"new"}]"#);
    assert_eq!(advertised(&session("s", &["finder/*"])), r#"[{"name":"find"}]"#);
}
