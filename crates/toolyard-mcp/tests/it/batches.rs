//! Batches of messages, which one revision supports.

use insta::assert_snapshot;

use crate::client::{ABLE, Client, ELICIT, LEGACY, Transport, asking, tool_params};
use crate::test_gateway::TestGateway;

const TRANSPORTS: [Transport; 3] = [Transport::Pipe, Transport::Web, Transport::Sse];

/// Only 2025-03-26 has batches, over every transport.
#[tokio::test]
async fn only_2025_03_26_accepts_batches() {
    let gateway = TestGateway::new();
    let mut received = Vec::new();
    let over =
        |transport, revisions: &'static [_]| revisions.iter().map(move |revision| (transport, *revision));
    let all = over(Transport::Pipe, &LEGACY).chain(over(Transport::Web, &LEGACY[1..]));
    for (transport, revision) in all.chain(over(Transport::Sse, &LEGACY[..2])) {
        let mut client = Client::new(&gateway, transport, revision, "{}").await;
        let batch =
            format!(" [{}]", [client.text("7", "ping", ""), client.text("8", "nothing", "")].join(","));
        let answer = match transport {
            Transport::Web => client.web().exchange(&batch).await,
            Transport::Pipe => client.send_and_receive(&batch).await,
            // HTTP+SSE refuses an invalid message at once.
            Transport::Sse if revision == LEGACY[1] => client.send_and_receive(&batch).await,
            Transport::Sse => continue,
        };
        received.push(format!("{transport:?} {revision}: {answer}"));
    }
    assert_snapshot!(received.join("\n"), @r#"
    Pipe 2024-11-05: {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    Pipe 2025-03-26: [{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"Method not found: nothing"}}]
    Pipe 2025-06-18: {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    Pipe 2025-11-25: {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: a message is an object"}}
    Web 2025-03-26: 200 [{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"Method not found: nothing"}}]
    Web 2025-06-18: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is an object"}}
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

/// Notifications and requests of the calls precede the responses. On a stream of their own the responses are single
/// messages, which every client can read that reads streams.
#[tokio::test]
async fn notifications_and_requests_precede_responses() {
    let gateway = TestGateway::new();
    let mut outputs = Vec::new();
    for transport in TRANSPORTS {
        let mut client = Client::new(&gateway, transport, LEGACY[1], ABLE).await;
        client.request("logging/setLevel", r#""level":"emergency""#).await;
        let tell = format!(r#"{},"_meta":{{"progressToken":"t"}}"#, tool_params("tell", ""));
        let ask = tool_params("ask", &asking(&[ELICIT]));
        let batch = batch(&client, &[("tools/call", &tell), ("ping", ""), ("tools/call", &ask)]);
        client.send(&batch).await;
        let mut lines = vec![format!("{transport:?}"), client.receive_many(4).await];
        client.answer(0, r#"{"action":"decline"}"#).await;
        lines.push(client.receive_many(if transport == Transport::Web { 3 } else { 1 }).await);
        outputs.push(lines.join("\n"));
    }
    assert_snapshot!(outputs.join("\n"), @r#"
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

/// A client without streams gets no notifications and no requests, and all responses in one text.
#[tokio::test]
async fn json_only_client_gets_one_response() {
    let gateway = TestGateway::new();
    let mut client = Client::new(&gateway, Transport::Web, LEGACY[1], ABLE).await;
    client.web().accept_json_only();
    let (tell, ask) = (tool_params("tell", ""), tool_params("try", &asking(&[ELICIT])));
    let batch = batch(&client, &[("tools/call", &tell), ("tools/call", &ask)]);
    assert_snapshot!(client.send_and_receive(&batch).await, @r#"[{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{}"}]}},{"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"(the client does not support elicitation.form)"}]}}]"#);
}

/// A cancelled request has no response; a batch without responses is accepted.
#[tokio::test]
async fn cancelled_requests_have_no_response() {
    let gateway = TestGateway::new();
    let wait = tool_params("wait", "");
    for transport in TRANSPORTS {
        let mut client = Client::new(&gateway, transport, LEGACY[1], ABLE).await;
        let two = batch(&client, &[("tools/call", &wait), ("ping", "")]);
        client.send(&two).await;
        gateway.wait_for_running(1).await;
        client.cancel(7).await;
        assert!(
            client.receive().await.contains(r#"[{"jsonrpc":"2.0","id":8,"result":{}}]"#),
            "{transport:?}"
        );
        let one = batch(&client, &[("tools/call", &wait)]);
        client.send(&one).await;
        gateway.wait_for_running(1).await;
        client.cancel(7).await;
        if transport == Transport::Web {
            assert_eq!(client.receive().await, "202 ");
        }
        gateway.wait_for_running(0).await;
        assert_eq!(client.request("ping", "").await, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    }
}

/// A disconnect ends the calls, with or without a stream.
#[tokio::test]
async fn disconnect_cancels_batched_calls() {
    for (transport, tool) in
        TRANSPORTS.iter().flat_map(|transport| [(*transport, "wait"), (*transport, "ask")])
    {
        let gateway = TestGateway::new();
        let mut client = Client::new(&gateway, transport, LEGACY[1], ABLE).await;
        let batch = batch(&client, &[("tools/call", &tool_params(tool, &asking(&[ELICIT])))]);
        client.send(&batch).await;
        gateway.wait_for_running(1).await;
        if tool == "ask" {
            assert!(client.receive().await.contains("elicitation/create"));
        }
        match transport {
            Transport::Web => client.disconnect(0),
            Transport::Pipe | Transport::Sse => drop(client),
        }
        assert_eq!(gateway.ended(1).await, [format!("{tool} Err(Cancelled)")], "{transport:?}");
    }
}
