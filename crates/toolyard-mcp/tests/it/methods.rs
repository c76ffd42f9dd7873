//! Every method in every revision, over every transport.

use insta::assert_snapshot;
use toolyard_mcp::server::{OfferedFeatures, TaskOffer};

use crate::client::{Client, LEGACY, MODERN, Transport};
use crate::test_gateway::{EVERYTHING, Setup, TestGateway};

/// Each method with valid parameters.
const METHODS: [(&str, &str); 19] = [
    ("server/discover", ""),
    ("ping", ""),
    ("tools/list", ""),
    ("tools/call", r#""name":"echo","arguments":{"n":1.10}"#),
    ("prompts/list", ""),
    ("prompts/get", r#""name":"greet""#),
    ("resources/list", ""),
    ("resources/templates/list", ""),
    ("resources/read", r#""uri":"mem:one""#),
    ("resources/read", r#""uri":"file:two""#),
    ("resources/subscribe", r#""uri":"mem:one""#),
    ("resources/unsubscribe", r#""uri":"mem:one""#),
    (
        "completion/complete",
        r#""ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":""}"#,
    ),
    (
        "completion/complete",
        r#""ref":{"type":"ref/resource","uri":"file:{id}"},"argument":{"name":"id","value":""}"#,
    ),
    ("logging/setLevel", r#""level":"error""#),
    ("tasks/get", r#""taskId":"x""#),
    ("tasks/update", r#""taskId":"x","inputResponses":{}"#),
    ("tasks/cancel", r#""taskId":"x""#),
    ("tasks/list", ""),
];

/// Returns the response to each request, after its method.
async fn answers(client: &mut Client, requests: &[(&str, &str)]) -> String {
    let mut lines = Vec::new();
    for (method, params) in requests {
        let answer = client.request(method, params).await;
        lines.push(format!("{method}: {}", result_of(&answer)));
    }
    lines.join("\n")
}

/// Returns a response without its envelope.
fn result_of(answer: &str) -> &str {
    let start = answer.find(r#""result":"#).or(answer.find(r#""error":"#)).unwrap();
    &answer[start..answer.len() - 1]
}

/// Returns the revisions of each transport.
fn with_transports(revisions: &[(Transport, &'static [&'static str])]) -> Vec<(Transport, &'static str)> {
    revisions
        .iter()
        .flat_map(|(transport, revisions)| revisions.iter().map(|revision| (*transport, *revision)))
        .collect()
}

#[tokio::test]
async fn legacy_methods() {
    let gateway = TestGateway::new();
    let mut outputs = Vec::new();
    for (transport, revision) in with_transports(&[
        (Transport::Pipe, &LEGACY),
        (Transport::Web, &LEGACY[1..]),
        (Transport::Sse, &LEGACY[..1]),
    ]) {
        let mut client = Client::new(&gateway, transport, revision, "{}").await;
        outputs.push(answers(&mut client, &METHODS[1..]).await);
        assert_eq!(outputs[0], *outputs.last().unwrap(), "{revision} over {transport:?}");
    }
    assert_snapshot!(outputs[0], @r#"
    ping: "result":{}
    tools/list: "result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"strict","inputSchema":{"type":"object","required":["n"]}},{"name":"tell","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object"}},{"name":"try","inputSchema":{"type":"object"}},{"name":"need","inputSchema":{"type":"object"}},{"name":"wait","inputSchema":{"type":"object"}},{"name":"fail","inputSchema":{"type":"object"}},{"name":"may","execution":{"taskSupport":"optional"},"inputSchema":{"type":"object"}},{"name":"must","execution":{"taskSupport":"required"},"inputSchema":{"type":"object"}}]}
    tools/call: "result":{"content":[{"type":"text","text":"{\"n\":1.10}"}]}
    prompts/list: "result":{"prompts":[{"name":"greet"}]}
    prompts/get: "result":{"description":"greet","messages":[]}
    resources/list: "result":{"resources":[{"uri":"mem:one","name":"one"},{"uri":"mem:gone","name":"gone"}]}
    resources/templates/list: "result":{"resourceTemplates":[{"uriTemplate":"file:{id}","name":"file"}]}
    resources/read: "result":{"contents":[{"uri":"mem:one","text":""}]}
    resources/read: "result":{"contents":[{"uri":"file:two","text":""}]}
    resources/subscribe: "result":{}
    resources/unsubscribe: "result":{}
    completion/complete: "result":{"completion":{"values":["of prompt greet"]}}
    completion/complete: "result":{"completion":{"values":["of template file:{id}"]}}
    logging/setLevel: "result":{}
    tasks/get: "error":{"code":-32601,"message":"Method not found: tasks/get"}
    tasks/update: "error":{"code":-32601,"message":"Method not found: tasks/update"}
    tasks/cancel: "error":{"code":-32601,"message":"Method not found: tasks/cancel"}
    tasks/list: "error":{"code":-32601,"message":"Method not found: tasks/list"}
    "#);
}

#[tokio::test]
async fn modern_methods() {
    let gateway = TestGateway::new();
    let mut outputs = Vec::new();
    for transport in [Transport::Pipe, Transport::Web] {
        let mut client = Client::new(&gateway, transport, MODERN, "{}").await;
        outputs.push(answers(&mut client, &METHODS).await);
    }
    assert_eq!(outputs[0], outputs[1]);
    assert_snapshot!(outputs[0], @r#"
    server/discover: "result":{"supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":30000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"gateway","version":"1"}}}
    ping: "error":{"code":-32601,"message":"Method not found: ping"}
    tools/list: "result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"strict","inputSchema":{"type":"object","required":["n"]}},{"name":"tell","inputSchema":{"type":"object"}},{"name":"ask","inputSchema":{"type":"object"}},{"name":"try","inputSchema":{"type":"object"}},{"name":"need","inputSchema":{"type":"object"}},{"name":"wait","inputSchema":{"type":"object"}},{"name":"fail","inputSchema":{"type":"object"}},{"name":"may","execution":{"taskSupport":"optional"},"inputSchema":{"type":"object"}},{"name":"must","execution":{"taskSupport":"required"},"inputSchema":{"type":"object"}}],"ttlMs":30000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"gateway","version":"1"}}}
    tools/call: "result":{"content":[{"type":"text","text":"{\"n\":1.10}"}],"resultType":"complete"}
    prompts/list: "result":{"prompts":[{"name":"greet"}],"ttlMs":30000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"gateway","version":"1"}}}
    prompts/get: "result":{"description":"greet","messages":[],"resultType":"complete"}
    resources/list: "result":{"resources":[{"uri":"mem:one","name":"one"},{"uri":"mem:gone","name":"gone"}],"ttlMs":30000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"gateway","version":"1"}}}
    resources/templates/list: "result":{"resourceTemplates":[{"uriTemplate":"file:{id}","name":"file"}],"ttlMs":30000,"cacheScope":"public","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"gateway","version":"1"}}}
    resources/read: "result":{"contents":[{"uri":"mem:one","text":""}],"resultType":"complete","ttlMs":0,"cacheScope":"private"}
    resources/read: "result":{"contents":[{"uri":"file:two","text":""}],"resultType":"complete","ttlMs":0,"cacheScope":"private"}
    resources/subscribe: "error":{"code":-32601,"message":"Method not found: resources/subscribe"}
    resources/unsubscribe: "error":{"code":-32601,"message":"Method not found: resources/unsubscribe"}
    completion/complete: "result":{"completion":{"values":["of prompt greet"]},"resultType":"complete"}
    completion/complete: "result":{"completion":{"values":["of template file:{id}"]},"resultType":"complete"}
    logging/setLevel: "error":{"code":-32601,"message":"Method not found: logging/setLevel"}
    tasks/get: "error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}
    tasks/update: "error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}
    tasks/cancel: "error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}
    tasks/list: "error":{"code":-32601,"message":"Method not found: tasks/list"}
    "#);
}

#[tokio::test]
async fn initialize_describes_the_server() {
    let gateway = TestGateway::new();
    let mut outputs = Vec::new();
    for (transport, revision) in
        with_transports(&[(Transport::Pipe, &LEGACY), (Transport::Web, &LEGACY), (Transport::Sse, &LEGACY)])
    {
        let mut client = Client::uninitialized(&gateway, transport, revision, "{}").await;
        outputs.push(client.initialize().await);
    }
    assert_eq!((&outputs[..4], &outputs[..4]), (&outputs[4..8], &outputs[8..]));
    assert_snapshot!(outputs[..4].join("\n"), @r#"
    {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}},"serverInfo":{"name":"gateway","version":"1"}}}
    {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}},"serverInfo":{"name":"gateway","version":"1"}}}
    {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}},"serverInfo":{"name":"gateway","version":"1"}}}
    {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}},"serverInfo":{"name":"gateway","version":"1"}}}
    "#);
}

/// Features that are not offered are neither declared nor known.
#[tokio::test]
async fn other_features_are_unknown() {
    let none = OfferedFeatures::default();
    let one = [
        OfferedFeatures { tools: true, ..none },
        OfferedFeatures { prompts: true, ..none },
        OfferedFeatures { resources: true, ..none },
        OfferedFeatures { completions: true, ..none },
        OfferedFeatures { logging: true, ..none },
        OfferedFeatures { tasks: TaskOffer::Declared, ..none },
        EVERYTHING,
    ];
    let mut outputs = Vec::new();
    for offers in one {
        let gateway = TestGateway::with(Setup { offers, ..Setup::default() });
        let mut features = Vec::new();
        for revision in [LEGACY[3], MODERN] {
            let mut client = Client::uninitialized(&gateway, Transport::Pipe, revision, "{}").await;
            let described = match revision {
                MODERN => client.request("server/discover", "").await,
                _ => client.initialize().await,
            };
            let start = described.find(r#""capabilities":"#).unwrap();
            let end = described.find(r#","ttlMs"#).or(described.find(r#","serverInfo"#)).unwrap();
            features.push(described[start + 15..end].to_owned());
            for (method, params) in METHODS {
                if !client.request(method, params).await.contains(r#""code":-32601"#) {
                    features.push(method.to_owned());
                }
            }
        }
        outputs.push(features.join(" "));
    }
    assert_snapshot!(outputs.join("\n"), @r#"
    {"tools":{"listChanged":true}} server/discover ping tools/list tools/call {"tools":{"listChanged":true}} server/discover tools/list tools/call
    {"prompts":{"listChanged":true}} server/discover ping prompts/list prompts/get {"prompts":{"listChanged":true}} server/discover prompts/list prompts/get
    {"resources":{"subscribe":true,"listChanged":true}} server/discover ping resources/list resources/templates/list resources/read resources/read resources/subscribe resources/unsubscribe {"resources":{"subscribe":true,"listChanged":true}} server/discover resources/list resources/templates/list resources/read resources/read
    {"completions":{}} server/discover ping completion/complete completion/complete {"completions":{}} server/discover completion/complete completion/complete
    {"logging":{}} server/discover ping logging/setLevel {"logging":{}} server/discover
    {} server/discover ping {"extensions":{"io.modelcontextprotocol/tasks":{}}} server/discover tasks/get tasks/update tasks/cancel
    {"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{}} server/discover ping tools/list tools/call prompts/list prompts/get resources/list resources/templates/list resources/read resources/read resources/subscribe resources/unsubscribe completion/complete completion/complete logging/setLevel {"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},"logging":{},"extensions":{"io.modelcontextprotocol/tasks":{}}} server/discover tools/list tools/call prompts/list prompts/get resources/list resources/templates/list resources/read resources/read completion/complete completion/complete tasks/get tasks/update tasks/cancel
    "#);
}

/// Invalid requests in both eras, the legacy one first.
#[tokio::test]
async fn invalid_requests_fail() {
    let requests = [
        ("tools/call", r#""name":"unknown""#),
        ("tools/call", r#""name":"strict","arguments":{}"#),
        ("tools/call", r#""name":"fail""#),
        ("tools/call", r#""name":1"#),
        ("tools/list", r#""cursor":"1""#),
        ("prompts/get", r#""name":"unknown""#),
        ("prompts/get", ""),
        ("resources/read", r#""uri":"mem:none""#),
        ("resources/read", r#""uri":"mem:gone""#),
        ("resources/read", ""),
        ("resources/subscribe", r#""uri":"mem:none""#),
        ("resources/subscribe", ""),
        ("completion/complete", ""),
        ("completion/complete", r#""ref":{"type":"ref/prompt"}"#),
        ("completion/complete", r#""ref":{"type":"ref/tool","name":"echo"}"#),
        ("completion/complete", r#""ref":{"type":"ref/prompt","name":"unknown"}"#),
        ("completion/complete", r#""ref":{"type":"ref/resource","uri":"none:{id}"}"#),
        ("logging/setLevel", r#""level":"loud""#),
    ];
    let gateway = TestGateway::new();
    let mut legacy = Client::on_pipe(&gateway, LEGACY[3], "{}").await;
    assert_snapshot!(answers(&mut legacy, &requests).await, @r#"
    tools/call: "error":{"code":-32602,"message":"Unknown tool: unknown","data":{"code":"tool_not_found","reason":"no tool of this name","retryable":false}}
    tools/call: "result":{"content":[{"type":"text","text":"Invalid arguments: \"n\" is a required property"}],"isError":true}
    tools/call: "error":{"code":-32603,"message":"It is down","data":{"code":"unavailable","reason":"temporarily unavailable","retryable":true}}
    tools/call: "error":{"code":-32602,"message":"`params.name` is not a string"}
    tools/list: "error":{"code":-32602,"message":"invalid cursor"}
    prompts/get: "error":{"code":-32602,"message":"Unknown prompt: unknown","data":{"code":"prompt_not_found","reason":"no prompt of this name","retryable":false}}
    prompts/get: "error":{"code":-32602,"message":"`params.name` is not a string"}
    resources/read: "error":{"code":-32002,"message":"Resource not found","data":{"uri":"mem:none","code":"resource_not_found","retryable":false}}
    resources/read: "error":{"code":-32002,"message":"Resource not found","data":{"uri":"mem:gone","code":"resource_not_found","retryable":false}}
    resources/read: "error":{"code":-32602,"message":"`params.uri` is not a string"}
    resources/subscribe: "error":{"code":-32002,"message":"Resource not found","data":{"uri":"mem:none","code":"resource_not_found","retryable":false}}
    resources/subscribe: "error":{"code":-32602,"message":"`params.uri` is not a string"}
    completion/complete: "error":{"code":-32602,"message":"`params.ref` is not a reference to a prompt or a resource template"}
    completion/complete: "error":{"code":-32602,"message":"`params.ref` is not a reference to a prompt or a resource template"}
    completion/complete: "error":{"code":-32602,"message":"`params.ref` is not a reference to a prompt or a resource template"}
    completion/complete: "error":{"code":-32602,"message":"Unknown prompt: unknown","data":{"code":"prompt_not_found","reason":"no prompt of this name","retryable":false}}
    completion/complete: "error":{"code":-32002,"message":"Resource not found","data":{"uri":"none:{id}","code":"resource_not_found","retryable":false}}
    logging/setLevel: "error":{"code":-32602,"message":"`params.level` is not a log level"}
    "#);
    let mut modern = Client::on_pipe(&gateway, MODERN, "{}").await;
    assert_snapshot!(answers(&mut modern, &requests).await, @r#"
    tools/call: "error":{"code":-32602,"message":"Unknown tool: unknown","data":{"code":"tool_not_found","reason":"no tool of this name","retryable":false}}
    tools/call: "result":{"content":[{"type":"text","text":"Invalid arguments: \"n\" is a required property"}],"isError":true,"resultType":"complete"}
    tools/call: "error":{"code":-32603,"message":"It is down","data":{"code":"unavailable","reason":"temporarily unavailable","retryable":true}}
    tools/call: "error":{"code":-32602,"message":"`params.name` is not a string"}
    tools/list: "error":{"code":-32602,"message":"invalid cursor"}
    prompts/get: "error":{"code":-32602,"message":"Unknown prompt: unknown","data":{"code":"prompt_not_found","reason":"no prompt of this name","retryable":false}}
    prompts/get: "error":{"code":-32602,"message":"`params.name` is not a string"}
    resources/read: "error":{"code":-32602,"message":"Resource not found","data":{"uri":"mem:none","code":"resource_not_found","retryable":false}}
    resources/read: "error":{"code":-32602,"message":"Resource not found","data":{"uri":"mem:gone","code":"resource_not_found","retryable":false}}
    resources/read: "error":{"code":-32602,"message":"`params.uri` is not a string"}
    resources/subscribe: "error":{"code":-32601,"message":"Method not found: resources/subscribe"}
    resources/subscribe: "error":{"code":-32601,"message":"Method not found: resources/subscribe"}
    completion/complete: "error":{"code":-32602,"message":"`params.ref` is not a reference to a prompt or a resource template"}
    completion/complete: "error":{"code":-32602,"message":"`params.ref` is not a reference to a prompt or a resource template"}
    completion/complete: "error":{"code":-32602,"message":"`params.ref` is not a reference to a prompt or a resource template"}
    completion/complete: "error":{"code":-32602,"message":"Unknown prompt: unknown","data":{"code":"prompt_not_found","reason":"no prompt of this name","retryable":false}}
    completion/complete: "error":{"code":-32602,"message":"Resource not found","data":{"uri":"none:{id}","code":"resource_not_found","retryable":false}}
    logging/setLevel: "error":{"code":-32601,"message":"Method not found: logging/setLevel"}
    "#);
}

/// The HTTP status of a modern response, and requests without a session.
#[tokio::test]
async fn http_statuses_of_responses() {
    let gateway = TestGateway::new();
    let mut modern = Client::new(&gateway, Transport::Web, MODERN, "{}").await;
    let mut outputs = Vec::new();
    for (method, params) in [
        ("unknown", ""),
        ("ping", ""),
        ("initialize", r#""protocolVersion":"2025-11-25","capabilities":{}"#),
        ("tools/call", r#""name":"must""#),
        ("tools/call", r#""name":"unknown""#),
        ("tasks/get", r#""taskId":"x""#),
    ] {
        outputs.push(modern.request(method, params).await);
    }
    let mut bare = Client::uninitialized(&gateway, Transport::Web, LEGACY[3], "{}").await;
    for (method, params) in [
        ("ping", ""),
        ("tools/call", r#""name":"echo""#),
        ("resources/subscribe", r#""uri":"mem:one""#),
        ("resources/unsubscribe", r#""uri":"mem:one""#),
        ("logging/setLevel", r#""level":"error""#),
    ] {
        outputs.push(bare.request(method, params).await);
    }
    assert_snapshot!(outputs.join("\n"), @r#"
    404 {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: unknown"}}
    404 {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found: ping"}}
    404 {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found: initialize"}}
    400 {"jsonrpc":"2.0","id":4,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"Unknown tool: unknown","data":{"code":"tool_not_found","reason":"no tool of this name","retryable":false}}}
    400 {"jsonrpc":"2.0","id":6,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
    {"jsonrpc":"2.0","id":1,"result":{}}
    {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":""}]}}
    {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"this method needs a session"}}
    {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"this method needs a session"}}
    {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"this method needs a session"}}
    "#);
}
