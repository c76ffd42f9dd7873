//! Lists of prompts, resources and templates: their content, and when the gateway requests them.

use toolyard_testing::json;
use toolyard_testing::upstream::{
    ReceivedRequest, RequestLog, ScriptedReply, TestUpstream, UpstreamEra, but,
};

use crate::catalog_server::{CatalogServer, ERAS, LISTS, all_lists, clients, list_text, never};
use crate::gateway::gateway;

/// Definitions pass unchanged, except for a name that models do not accept.
const STOCK: &str = r#"[{"name":"t","inputSchema":{"type":"object"}}]
[{"name":"h_a_b","arguments":[{"name":"x","vendor":1.10}],"vendor":1.10}]
[{"uri":"res://one","name":"One","size":48e0,"vendor":{"b":1,"a":[]}}]
[{"uriTemplate":"doc://{id}/x","name":"Documents","vendor":1.10}]"#;

#[tokio::test]
async fn lists_of_every_kind() {
    for era in ERAS {
        let upstream = TestUpstream::start(CatalogServer::new(era, never));
        let running = gateway(&[("h", upstream.address, "")], "").await;
        for client in &mut clients(&running).await {
            let mut lists = Vec::new();
            for list in LISTS {
                lists.push(list_text(client, list).await);
            }
            assert_eq!(lists.join("\n"), STOCK, "{era:?} {:?}", client.mode);
        }
    }
}

#[tokio::test]
async fn lists_in_pages() {
    let pages = |request: &ReceivedRequest| {
        let (_, member) = LISTS.into_iter().find(|(method, _)| request.method() == *method)?;
        let is_second = request.params().find("cursor").is_some();
        let number = if is_second { 2 } else { 1 };
        let item = format!(r#"{{"name":"n{number}","uri":"u:{number}","uriTemplate":"t:{number}"}}"#);
        let next = if is_second { "" } else { r#","nextCursor":"next""# };
        Some(ScriptedReply::result(request, &format!(r#"{{"{member}":[{item}]{next}}}"#)))
    };
    for era in ERAS {
        let upstream = TestUpstream::start(but(CatalogServer::new(era, never), pages));
        for (limits, places) in [("", 2), ("limits: {toolsPerHandler: 1}", 1)] {
            let running = gateway(&[("h", upstream.address, "")], limits).await;
            let lists = all_lists(&running).await;
            let counts = lists.lines().map(|list| json::read(list).items().len());
            assert_eq!(counts.collect::<Vec<_>>(), [places; 4], "{lists}");
        }
    }
}

/// A failing reply of a server.
type ListFailure = fn(&ReceivedRequest) -> ScriptedReply;

/// A server that fails to return one list still serves the others.
#[tokio::test]
async fn failing_list_leaves_the_others() {
    let failures: [(&str, ListFailure); 5] = [
        ("an error", |r| {
            let error = r#"{"code":-32603,"message":"broken"}"#;
            ScriptedReply::json(&format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, r.id()))
        }),
        ("500", |_| ScriptedReply::http(500, "", "")),
        ("garbage", |_| ScriptedReply::json("{")),
        ("no list", |r| ScriptedReply::result(r, "{}")),
        ("an end", |_| ScriptedReply::raw("")),
    ];
    for (failure, reply) in failures {
        for (broken, (method, _)) in LISTS.into_iter().enumerate().skip(1) {
            let fail = move |r: &ReceivedRequest| (r.method() == method).then(|| reply(r));
            let upstream = TestUpstream::start(but(CatalogServer::new(UpstreamEra::Modern, never), fail));
            let running = gateway(&[("h", upstream.address, "")], "").await;
            let lists = all_lists(&running).await;
            let expected = STOCK.lines().enumerate().map(|(at, list)| if at == broken { "[]" } else { list });
            assert!(lists.lines().eq(expected), "{failure} at {method}: {lists}");
        }
    }
}

/// The gateway does not request lists that a server does not declare.
#[tokio::test]
async fn undeclared_lists_are_not_requested() {
    let cases = [
        ("{}", [1, 0, 0, 0]),
        (r#"{"tools":{},"prompts":{}}"#, [1, 1, 0, 0]),
        (r#"{"resources":{"subscribe":false}}"#, [1, 0, 1, 1]),
        (r#"{"prompts":null,"resources":7}"#, [1, 0, 0, 0]),
    ];
    for (era, (capabilities, expected)) in ERAS.into_iter().flat_map(|era| cases.map(|case| (era, case))) {
        let upstream = TestUpstream::start(CatalogServer::new(era, never).with_capabilities(capabilities));
        let _running = gateway(&[("h", upstream.address, "")], "").await;
        assert_eq!(upstream.now(list_requests), expected, "{era:?} {capabilities}");
    }
}

/// Number of requests for each list.
fn list_requests(log: &RequestLog) -> [usize; 4] {
    LISTS.map(|(method, _)| log.count(method))
}

/// A change of one list of one server causes one request, for that list, at that server.
#[tokio::test]
async fn only_the_changed_list_is_requested_again() {
    const CHANGES: [(&str, &str, [usize; 4]); 3] = [
        ("notifications/tools/list_changed", "tools/list", [1, 0, 0, 0]),
        ("notifications/prompts/list_changed", "prompts/list", [0, 1, 0, 0]),
        ("notifications/resources/list_changed", "resources/templates/list", [0, 0, 1, 1]),
    ];
    for era in ERAS {
        let servers = [(); 3].map(|()| CatalogServer::new(era, never));
        let upstreams = servers.clone().map(TestUpstream::start);
        let handlers = ["a", "b", "c"].into_iter().zip(&upstreams);
        let handlers: Vec<_> = handlers.map(|(name, upstream)| (name, upstream.address, "")).collect();
        let running = gateway(&handlers, "").await;
        let stream = if era == UpstreamEra::Legacy { "GET" } else { "subscriptions/listen" };
        for upstream in &upstreams {
            upstream.saw(|log| log.count(stream) > 0, |_| ()).await;
        }
        for (notification, method, more) in CHANGES {
            let before = upstreams.each_ref().map(|upstream| upstream.now(list_requests));
            let mut registry = running.gateway().watch();
            registry.mark_unchanged();
            let (_, member) = LISTS.into_iter().find(|(list, _)| *list == method).unwrap();
            // A text of its own, which no earlier step has published.
            let item = format!(
                r#"{{"name":"{member}","inputSchema":{{"type":"object"}},"uri":"u:{member}","uriTemplate":"t:{member}"}}"#
            );
            servers[1].set(method, &format!(r#""{member}":[{item}]"#));
            servers[1].say(notification, "{}");
            while !all_lists(&running).await.contains(&item) {
                registry.changed().await.unwrap();
            }
            let mut expected = before;
            for (count, more) in expected[1].iter_mut().zip(more) {
                *count += more;
            }
            upstreams[1].saw(|log| list_requests(log) == expected[1], |_| ()).await;
            let after = upstreams.each_ref().map(|upstream| upstream.now(list_requests));
            assert_eq!(after, expected, "{era:?} {notification}");
        }
    }
}
