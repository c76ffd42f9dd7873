//! Batches: several messages in one, which one revision has.

use insta::assert_snapshot;

use crate::client::{ABLE, Carrier, Client, ELICIT, LEGACY, asking, tool_params};
use crate::yard::Yard;

const CARRIERS: [Carrier; 3] = [Carrier::Pipe, Carrier::Web, Carrier::Sse];

/// Only 2025-03-26 has batches, whatever carries them.
#[tokio::test]
async fn who_may_send_one() {
    let yard = Yard::new();
    let mut heard = Vec::new();
    let over = |carrier, revisions: &'static [_]| revisions.iter().map(move |revision| (carrier, *revision));
    let all = over(Carrier::Pipe, &LEGACY).chain(over(Carrier::Web, &LEGACY[1..]));
    for (carrier, revision) in all.chain(over(Carrier::Sse, &LEGACY[..2])) {
        let mut client = Client::new(&yard, carrier, revision, "{}").await;
        let batch =
            format!(" [{}]", [client.text("7", "ping", ""), client.text("8", "nothing", "")].join(","));
        let answer = match carrier {
            Carrier::Web => client.web().exchange(&batch).await,
            Carrier::Pipe => client.said(&batch).await,
            // There a text that is no message is refused at once.
            Carrier::Sse if revision == LEGACY[1] => client.said(&batch).await,
            Carrier::Sse => continue,
        };
        heard.push(format!("{carrier:?} {revision}: {answer}"));
    }
    assert_snapshot!(heard.join("\n"), @r#"
    Pipe 2024-11-05: {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    Pipe 2025-03-26: [{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"Method not found: nothing"}}]
    Pipe 2025-06-18: {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    Pipe 2025-11-25: {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    Web 2025-03-26: 200 [{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"Method not found: nothing"}}]
    Web 2025-06-18: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    Web 2025-11-25: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    Sse 2025-03-26: [{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"Method not found: nothing"}}]
    "#);
}

/// A batch of these requests, with ids from 7 on.
fn batch(client: &Client, requests: &[(&str, &str)]) -> String {
    let texts =
        (7..).zip(requests).map(|(id, (method, params))| client.text(&id.to_string(), method, params));
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

/// What its calls say and ask comes before the responses: on a stream of their own these are single messages, which every
/// client can read that reads streams.
#[tokio::test]
async fn calls_that_tell_and_ask() {
    let yard = Yard::new();
    let mut said = Vec::new();
    for carrier in CARRIERS {
        let mut client = Client::new(&yard, carrier, LEGACY[1], ABLE).await;
        client.ask("logging/setLevel", r#""level":"emergency""#).await;
        let tell = format!(r#"{},"_meta":{{"progressToken":"t"}}"#, tool_params("tell", ""));
        let ask = tool_params("ask", &asking(&[ELICIT]));
        let batch = batch(&client, &[("tools/call", &tell), ("ping", ""), ("tools/call", &ask)]);
        client.say(&batch).await;
        let mut lines = vec![format!("{carrier:?}"), client.hear_all(4).await];
        client.answer(0, r#"{"action":"decline"}"#).await;
        lines.push(client.hear_all(if carrier == Carrier::Web { 3 } else { 1 }).await);
        said.push(lines.join("\n"));
    }
    assert_snapshot!(said.join("\n"), @r#"
    Pipe
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"t"}}
    {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"emergency","data":null}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":"t"}}
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?"}}
    [{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{}"}]}},{"jsonrpc":"2.0","id":8,"result":{}},{"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"{\"action\":\"decline\"}"}]}}]
    Web
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"t"}}
    {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"emergency","data":null}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":"t"}}
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?"}}
    {"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{}"}]}}
    {"jsonrpc":"2.0","id":8,"result":{}}
    {"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"{\"action\":\"decline\"}"}]}}
    Sse
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"t"}}
    {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"emergency","data":null}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2,"progressToken":"t"}}
    {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"who?"}}
    [{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{}"}]}},{"jsonrpc":"2.0","id":8,"result":{}},{"jsonrpc":"2.0","id":9,"result":{"content":[{"type":"text","text":"{\"action\":\"decline\"}"}]}}]
    "#);
}

/// Who takes no stream is told nothing and cannot be asked, and gets all responses in one text.
#[tokio::test]
async fn where_there_is_no_stream() {
    let yard = Yard::new();
    let mut client = Client::new(&yard, Carrier::Web, LEGACY[1], ABLE).await;
    client.web().wants_plain_answers();
    let (tell, ask) = (tool_params("tell", ""), tool_params("try", &asking(&[ELICIT])));
    let batch = batch(&client, &[("tools/call", &tell), ("tools/call", &ask)]);
    assert_snapshot!(client.said(&batch).await, @r#"[{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{}"}]}},{"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"(the client does not support elicitation.form)"}]}}]"#);
}

/// A withdrawn request has no response; a batch without any is taken.
#[tokio::test]
async fn requests_that_are_withdrawn() {
    let yard = Yard::new();
    let wait = tool_params("wait", "");
    for carrier in CARRIERS {
        let mut client = Client::new(&yard, carrier, LEGACY[1], ABLE).await;
        let two = batch(&client, &[("tools/call", &wait), ("ping", "")]);
        client.say(&two).await;
        yard.runs(1).await;
        client.withdraw(7).await;
        assert!(client.hear().await.contains(r#"[{"jsonrpc":"2.0","id":8,"result":{}}]"#), "{carrier:?}");
        let one = batch(&client, &[("tools/call", &wait)]);
        client.say(&one).await;
        yard.runs(1).await;
        client.withdraw(7).await;
        if carrier == Carrier::Web {
            assert_eq!(client.hear().await, "202 ");
        }
        yard.runs(0).await;
        assert_eq!(client.ask("ping", "").await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    }
}

/// The calls of who leaves are over, whether it has a stream yet or not.
#[tokio::test]
async fn who_leaves() {
    for (carrier, tool) in CARRIERS.iter().flat_map(|carrier| [(*carrier, "wait"), (*carrier, "ask")]) {
        let yard = Yard::new();
        let mut client = Client::new(&yard, carrier, LEGACY[1], ABLE).await;
        let batch = batch(&client, &[("tools/call", &tool_params(tool, &asking(&[ELICIT])))]);
        client.say(&batch).await;
        yard.runs(1).await;
        if tool == "ask" {
            assert!(client.hear().await.contains("elicitation/create"));
        }
        match carrier {
            Carrier::Web => client.hang_up(0),
            Carrier::Pipe | Carrier::Sse => drop(client),
        }
        assert_eq!(yard.ended(1).await, [format!("{tool} Err(Cancelled)")], "{carrier:?}");
    }
}
