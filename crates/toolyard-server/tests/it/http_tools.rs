//! Handlers of the type `http`, from the manifest to the socket.

use std::sync::atomic::{AtomicBool, Ordering};

use toolyard_core::ErrorCode;
use toolyard_core::registry::EntryKind;
use toolyard_server::RunningGateway;
use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream};

use crate::gateway::{call, gateway_of};

/// Starts a server that never answers the first request, and answers all others with an empty object.
fn server() -> TestUpstream {
    let is_first = AtomicBool::new(true);
    TestUpstream::start(move |_: &ReceivedRequest| match is_first.swap(false, Ordering::Relaxed) {
        true => ScriptedReply::never(),
        false => ScriptedReply::http(200, "", "{}"),
    })
}

/// A gateway with one handler: `fields` of the handler, and `config` of its `httpConfig`.
async fn gateway(process: &str, fields: &str, config: &str) -> RunningGateway {
    let handler = format!(
        "  - name: api\n    type: http\n    tool: {{name: get, description: Gets, \
         inputSchema: {{type: object, properties: {{x: {{type: string}}}}}}, outputSchema: {{type: object}}}}\n    \
         {fields}\n    httpConfig: {{{config}}}\n"
    );
    gateway_of(&handler, process).await
}

#[tokio::test]
async fn each_attempt_has_the_handler_timeout() {
    let server = server();
    let address = server.address;
    let folder = std::env::temp_dir().join(format!("toolyard-secrets-{}", address.port()));
    std::fs::create_dir_all(folder.join("api")).unwrap();
    std::fs::write(folder.join("api/token"), "hunter2\n").unwrap();
    let fields = format!(
        "endpoint: {{url: 'http://{address}/a?b=c'}}\n    timeout: 200ms\n    retries: 1\n    \
         auth: {{type: bearer, secretRef: {{name: api, key: token}}}}"
    );
    let process = format!("secretsDir: '{}'", folder.display());
    let running = gateway(&process, &fields, "method: PUT, staticBody: {n: 1.5, s: [~, true]}").await;
    let tools = running.gateway().registry().list(EntryKind::Tools).as_text().to_owned();
    assert_eq!(
        tools,
        r#"[{"name":"get","description":"Gets","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}},"outputSchema":{"type":"object"}}]"#
    );
    let result = call(&running, "get", r#"{"x":"y"}"#).await.unwrap();
    assert_eq!(result, r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{}}"#);
    let requests = server.now(|log| log.requests.iter().map(ReceivedRequest::text).collect::<Vec<_>>());
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0], requests[1]);
    assert!(requests[0].starts_with("PUT /a?b=c HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].contains("\r\nauthorization: Bearer hunter2\r\n"), "{}", requests[0]);
    assert!(requests[0].ends_with(r#"{"n":1.5,"s":[null,true],"x":"y"}"#), "{}", requests[0]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn arguments_cannot_select_private_hosts() {
    let server = server();
    let address = server.address;
    let template = format!("method: GET, urlTemplate: 'http://{{x}}:{}/'", address.port());
    let running = gateway("", "", &template).await;
    for host in ["127.0.0.1", "localhost"] {
        let refused = call(&running, "get", &format!(r#"{{"x":"{host}"}}"#)).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Denied);
    }
    assert!(
        call(&running, "get", r#"{"x":5}"#).await.unwrap_err().message().starts_with("Invalid arguments: /x")
    );
    assert!(server.now(|log| log.requests.is_empty()));
}
