//! Lists that are longer than a page.

use insta::assert_snapshot;
use toolyard_mcp::server::FrontendLimits;

use crate::client::{Carrier, Client, LEGACY, MODERN};
use crate::script::OFFERED;
use crate::yard::{Offered, Setup, Yard};

const TOOLS: &[&str] =
    &[r#"{"name":"a","x":1.0}"#, r#"{"name":"b"}"#, r#"{"name":"c"}"#, r#"{"name":"d"}"#, r#"{"name":"e"}"#];

const CHANGED: &[&str] = &[r#"{"name":"new"}"#, TOOLS[0], TOOLS[2], TOOLS[3]];

fn yard() -> Yard {
    let limits = FrontendLimits { list_page: 2, ..FrontendLimits::default() };
    Yard::with(Setup { limits, offered: Offered { tools: TOOLS, ..OFFERED }, ..Setup::default() })
}

/// A page without what all responses have, and without its cursor; and that.
async fn page(client: &mut Client, method: &str, cursor: Option<&str>) -> (String, Option<String>) {
    let params = cursor.map(|cursor| format!(r#""cursor":"{cursor}""#)).unwrap_or_default();
    let answer = client.ask(method, &params).await;
    let start = answer.find(r#""result":"#).or(answer.find(r#""error":"#)).unwrap();
    let next =
        answer.split_once(r#""nextCursor":""#).map(|(_, rest)| rest.split_once('"').unwrap().0.to_owned());
    let shown = match &next {
        Some(cursor) => answer[start..].replace(cursor, "CURSOR"),
        None => answer[start..].to_owned(),
    };
    (shown, next)
}

async fn pages(client: &mut Client, method: &str) -> Vec<String> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let (shown, next) = page(client, method, cursor.as_deref()).await;
        pages.push(shown);
        cursor = Some(match next {
            Some(next) => next,
            None => return pages,
        });
    }
}

#[tokio::test]
async fn a_long_list_has_pages_and_a_short_one_has_one() {
    let yard = yard();
    let mut client = Client::new(&yard, Carrier::Web, LEGACY[3], "{}").await;
    assert_snapshot!(pages(&mut client, "tools/list").await.join("\n"), @r#"
    "result":{"tools":[{"name":"a","x":1.0},{"name":"b"}],"nextCursor":"CURSOR"}}
    "result":{"tools":[{"name":"c"},{"name":"d"}],"nextCursor":"CURSOR"}}
    "result":{"tools":[{"name":"e"}]}}
    "#);
    assert_snapshot!(pages(&mut client, "prompts/list").await.join("\n"), @r#"
    "result":{"prompts":[{"name":"greet"}]}}
    "#);
    // Each page says for how long and for whom it may be kept, and all say the same.
    let mut modern = Client::new(&yard, Carrier::Web, MODERN, "{}").await;
    assert_snapshot!(pages(&mut modern, "tools/list").await.join("\n"), @r#"
    "result":{"tools":[{"name":"a","x":1.0},{"name":"b"}],"nextCursor":"CURSOR","ttlMs":30000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"yard","version":"1"}}}}
    "result":{"tools":[{"name":"c"},{"name":"d"}],"nextCursor":"CURSOR","ttlMs":30000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"yard","version":"1"}}}}
    "result":{"tools":[{"name":"e"}],"ttlMs":30000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"yard","version":"1"}}}}
    "#);
}

#[tokio::test]
async fn a_list_that_changes_between_its_pages() {
    let (yard, same) = (yard(), yard());
    let mut client = Client::new(&yard, Carrier::Pipe, LEGACY[3], "{}").await;
    let (_, cursor) = page(&mut client, "tools/list", None).await;
    // `b`, the last one that was given, is gone, and there is another in front.
    yard.offer(Offered { tools: CHANGED, ..OFFERED });
    assert!(client.hear().await.contains("tools/list_changed"));
    let (second, next) = page(&mut client, "tools/list", cursor.as_deref()).await;
    assert_eq!((second.as_str(), next), (r#""result":{"tools":[{"name":"c"},{"name":"d"}]}}"#, None));
    // Another gateway takes the same cursor.
    let mut client = Client::new(&same, Carrier::Pipe, LEGACY[3], "{}").await;
    let (second, next) = page(&mut client, "tools/list", cursor.as_deref()).await;
    assert!(second.contains(r#"[{"name":"c"},{"name":"d"}]"#) && next.is_some(), "{second}");
    // What is a cursor of tools is none of prompts.
    let (refused, _) = page(&mut client, "prompts/list", cursor.as_deref()).await;
    assert_snapshot!(refused, @r#""error":{"code":-32602,"message":"`params.cursor` is none that was given out"}}"#);
}
