//! Pagination of lists.

use insta::assert_snapshot;
use toolyard_mcp::server::FrontendLimits;

use crate::client::{Client, LEGACY, MODERN, Transport};
use crate::script::OFFERED;
use crate::test_gateway::{Offered, Setup, TestGateway};

const TOOLS: &[&str] =
    &[r#"{"name":"a","x":1.0}"#, r#"{"name":"b"}"#, r#"{"name":"c"}"#, r#"{"name":"d"}"#, r#"{"name":"e"}"#];

const CHANGED: &[&str] = &[r#"{"name":"new"}"#, TOOLS[0], TOOLS[2], TOOLS[3]];

fn gateway() -> TestGateway {
    let limits = FrontendLimits { list_page_size: 2, ..FrontendLimits::default() };
    TestGateway::with(Setup { limits, offered: Offered { tools: TOOLS, ..OFFERED }, ..Setup::default() })
}

/// Returns a page without its envelope and its cursor, and the cursor.
async fn page(client: &mut Client, method: &str, cursor: Option<&str>) -> (String, Option<String>) {
    let params = cursor.map(|cursor| format!(r#""cursor":"{cursor}""#)).unwrap_or_default();
    let answer = client.request(method, &params).await;
    let start = answer.find(r#""result":"#).or(answer.find(r#""error":"#)).unwrap();
    let next =
        answer.split_once(r#""nextCursor":""#).map(|(_, rest)| rest.split_once('"').unwrap().0.to_owned());
    let page_text = match &next {
        Some(cursor) => answer[start..].replace(cursor, "CURSOR"),
        None => answer[start..].to_owned(),
    };
    (page_text, next)
}

async fn pages(client: &mut Client, method: &str) -> Vec<String> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let (page_text, next) = page(client, method, cursor.as_deref()).await;
        pages.push(page_text);
        cursor = Some(match next {
            Some(next) => next,
            None => return pages,
        });
    }
}

#[tokio::test]
async fn long_lists_are_paginated() {
    let gateway = gateway();
    let mut client = Client::new(&gateway, Transport::Web, LEGACY[3], "{}").await;
    assert_snapshot!(pages(&mut client, "tools/list").await.join("\n"), @r#"
    "result":{"tools":[{"name":"a","x":1.0,"inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":"CURSOR"}}
    "result":{"tools":[{"name":"c","inputSchema":{"type":"object"}},{"name":"d","inputSchema":{"type":"object"}}],"nextCursor":"CURSOR"}}
    "result":{"tools":[{"name":"e","inputSchema":{"type":"object"}}]}}
    "#);
    assert_snapshot!(pages(&mut client, "prompts/list").await.join("\n"), @r#"
    "result":{"prompts":[{"name":"greet"}]}}
    "#);
    // All pages have the same cache hint.
    let mut modern = Client::new(&gateway, Transport::Web, MODERN, "{}").await;
    assert_snapshot!(pages(&mut modern, "tools/list").await.join("\n"), @r#"
    "result":{"tools":[{"name":"a","x":1.0,"inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}],"nextCursor":"CURSOR","ttlMs":30000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"gateway","version":"1"}}}}
    "result":{"tools":[{"name":"c","inputSchema":{"type":"object"}},{"name":"d","inputSchema":{"type":"object"}}],"nextCursor":"CURSOR","ttlMs":30000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"gateway","version":"1"}}}}
    "result":{"tools":[{"name":"e","inputSchema":{"type":"object"}}],"ttlMs":30000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"gateway","version":"1"}}}}
    "#);
}

#[tokio::test]
async fn cursor_survives_list_changes() {
    let (gateway, same) = (gateway(), gateway());
    let mut client = Client::new(&gateway, Transport::Pipe, LEGACY[3], "{}").await;
    let (_, cursor) = page(&mut client, "tools/list", None).await;
    // `b`, the last entry of the page, is gone, and there is a new first entry.
    gateway.offer(Offered { tools: CHANGED, ..OFFERED });
    assert!(client.receive().await.contains("tools/list_changed"));
    let (second, next) = page(&mut client, "tools/list", cursor.as_deref()).await;
    assert_eq!(
        (second.as_str(), next),
        (
            r#""result":{"tools":[{"name":"c","inputSchema":{"type":"object"}},{"name":"d","inputSchema":{"type":"object"}}]}}"#,
            None
        )
    );
    // Another gateway accepts the same cursor.
    let mut client = Client::new(&same, Transport::Pipe, LEGACY[3], "{}").await;
    let (second, next) = page(&mut client, "tools/list", cursor.as_deref()).await;
    assert!(
        second.contains(
            r#"[{"name":"c","inputSchema":{"type":"object"}},{"name":"d","inputSchema":{"type":"object"}}]"#
        ) && next.is_some(),
        "{second}"
    );
    // A cursor of tools is invalid for prompts.
    let (refused, _) = page(&mut client, "prompts/list", cursor.as_deref()).await;
    assert_snapshot!(refused, @r#""error":{"code":-32602,"message":"invalid cursor"}}"#);
}
