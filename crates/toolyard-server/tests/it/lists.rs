//! Lists of prompts, resources and templates: what is on them, and when servers are asked for them.

use crate::gateway;
use crate::json;
use crate::stocked::{ERAS, LISTS, Stocked, clients, everything, listed, never};
use crate::upstream::{Era, Log, Received, Reply, Upstream, but};

/// Definitions are as they came; only a name that is none for models is another one.
const STOCK: &str = r#"[{"name":"t","inputSchema":{"type":"object"}}]
[{"name":"h_a_b","arguments":[{"name":"x","vendor":1.10}],"vendor":1.10}]
[{"uri":"res://one","name":"One","size":48e0,"vendor":{"b":1,"a":[]}}]
[{"uriTemplate":"doc://{id}/x","name":"Documents","vendor":1.10}]"#;

#[tokio::test]
async fn lists_of_every_kind() {
    for era in ERAS {
        let upstream = Upstream::start(Stocked::new(era, never));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        for client in &mut clients(&running).await {
            let mut lists = Vec::new();
            for list in LISTS {
                lists.push(listed(client, list).await);
            }
            assert_eq!(lists.join("\n"), STOCK, "{era:?} {:?}", client.speech);
        }
    }
}

#[tokio::test]
async fn lists_in_pages() {
    let pages = |request: &Received| {
        let (_, member) = LISTS.into_iter().find(|(method, _)| request.method() == *method)?;
        let is_second = request.params().find("cursor").is_some();
        let number = if is_second { 2 } else { 1 };
        let item = format!(r#"{{"name":"n{number}","uri":"u:{number}","uriTemplate":"t:{number}"}}"#);
        let next = if is_second { "" } else { r#","nextCursor":"next""# };
        Some(Reply::result(request, &format!(r#"{{"{member}":[{item}]{next}}}"#)))
    };
    for era in ERAS {
        let upstream = Upstream::start(but(Stocked::new(era, never), pages));
        for (limits, places) in [("", 2), ("limits: {toolsPerHandler: 1}", 1)] {
            let running = gateway(&[("h", upstream.address, "")], limits).await;
            let listed = everything(&running).await;
            let counts = listed.lines().map(|list| json::read(list).items().len());
            assert_eq!(counts.collect::<Vec<_>>(), [places; 4], "{listed}");
        }
    }
}

/// How a server fails.
type Failing = fn(&Received) -> Reply;

/// A server that fails at one list has the others.
#[tokio::test]
async fn a_list_that_fails() {
    let failures: [(&str, Failing); 5] = [
        ("an error", |r| {
            let error = r#"{"code":-32603,"message":"broken"}"#;
            Reply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, r.id()))
        }),
        ("500", |_| Reply::http(500, "", "")),
        ("garbage", |_| Reply::json("{")),
        ("no list", |r| Reply::result(r, "{}")),
        ("an end", |_| Reply::raw("")),
    ];
    for (failure, reply) in failures {
        for (broken, (method, _)) in LISTS.into_iter().enumerate().skip(1) {
            let fail = move |r: &Received| (r.method() == method).then(|| reply(r));
            let upstream = Upstream::start(but(Stocked::new(Era::Modern, never), fail));
            let running = gateway(&[("h", upstream.address, "")], "").await;
            let listed = everything(&running).await;
            let expected = STOCK.lines().enumerate().map(|(at, list)| if at == broken { "[]" } else { list });
            assert!(listed.lines().eq(expected), "{failure} at {method}: {listed}");
        }
    }
}

/// Who says that it has no such thing is not asked for it.
#[tokio::test]
async fn only_what_a_server_declares_is_asked_for() {
    let cases = [
        ("{}", [1, 0, 0, 0]),
        (r#"{"tools":{},"prompts":{}}"#, [1, 1, 0, 0]),
        (r#"{"resources":{"subscribe":false}}"#, [1, 0, 1, 1]),
        (r#"{"prompts":null,"resources":7}"#, [1, 0, 0, 0]),
    ];
    for (era, (capabilities, expected)) in ERAS.into_iter().flat_map(|era| cases.map(|case| (era, case))) {
        let upstream = Upstream::start(Stocked::new(era, never).with_capabilities(capabilities));
        let _running = gateway(&[("h", upstream.address, "")], "").await;
        assert_eq!(upstream.now(asked), expected, "{era:?} {capabilities}");
    }
}

/// How often each list was asked for.
fn asked(log: &Log) -> [usize; 4] {
    LISTS.map(|(method, _)| log.count(method))
}

/// A change of one list of one server is followed by one request, for that list, at that server.
#[tokio::test]
async fn what_has_changed_is_asked_for_again_and_nothing_else() {
    const CHANGES: [(&str, &str, [usize; 4]); 3] = [
        ("notifications/tools/list_changed", "tools/list", [1, 0, 0, 0]),
        ("notifications/prompts/list_changed", "prompts/list", [0, 1, 0, 0]),
        ("notifications/resources/list_changed", "resources/templates/list", [0, 0, 1, 1]),
    ];
    for era in ERAS {
        let servers = [(); 3].map(|()| Stocked::new(era, never));
        let upstreams = servers.clone().map(Upstream::start);
        let handlers = ["a", "b", "c"].into_iter().zip(&upstreams);
        let handlers: Vec<_> = handlers.map(|(name, upstream)| (name, upstream.address, "")).collect();
        let running = gateway(&handlers, "").await;
        let stream = if era == Era::Legacy { "GET" } else { "subscriptions/listen" };
        for upstream in &upstreams {
            upstream.saw(|log| log.count(stream) > 0, |_| ()).await;
        }
        for (notification, method, more) in CHANGES {
            let before = upstreams.each_ref().map(|upstream| upstream.now(asked));
            let mut registry = running.gateway().watch();
            registry.mark_unchanged();
            let (_, member) = LISTS.into_iter().find(|(list, _)| *list == method).unwrap();
            let item = r#"{"name":"new","uri":"u:new","uriTemplate":"t:new"}"#;
            servers[1].set(method, &format!(r#""{member}":[{item}]"#));
            servers[1].say(notification, "{}");
            registry.changed().await.unwrap();
            assert!(everything(&running).await.contains(item), "{notification}");
            let mut expected = before;
            for (count, more) in expected[1].iter_mut().zip(more) {
                *count += more;
            }
            let after = upstreams.each_ref().map(|upstream| upstream.now(asked));
            assert_eq!(after, expected, "{era:?} {notification}");
        }
    }
}
