//! Handlers of the type `http`, from the manifest to the socket.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolyard_core::registry::EntryKind;
use toolyard_core::{Call, ErrorCode, Json, Outcome, ToolError};
use toolyard_server::{GatewayOptions, RunningGateway};

/// Starts a server that never answers the first request, and answers all others with an empty object. Returns its
/// address and the requests that it receives.
async fn server() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = requests.clone();
    tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 4096];
            let length = stream.read(&mut buffer).await.unwrap_or_default();
            seen.lock().unwrap().push(String::from_utf8_lossy(&buffer[..length]).into_owned());
            if silent.is_empty() {
                silent.push(stream);
                continue;
            }
            let response = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
            let _gone = stream.write_all(response).await;
        }
    });
    (address, requests)
}

/// A gateway with one handler: `fields` of the handler, and `config` of its `httpConfig`.
async fn gateway(process: &str, fields: &str, config: &str) -> RunningGateway {
    let text = format!(
        "apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {{listen: '127.0.0.1:0'{process}}}\n---\n\
         apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: test}}\n\
         spec:\n  handlers:\n  - name: api\n    type: http\n    tool: {{name: get, description: Gets, \
         inputSchema: {{type: object, properties: {{x: {{type: string}}}}}}, outputSchema: {{type: object}}}}\n    \
         {fields}\n    httpConfig: {{{config}}}\n"
    );
    let source = toolyard_manifest::ManifestSource { name: "test.yaml".into(), text };
    let manifest = toolyard_manifest::parse(&[source]).unwrap_or_else(|problems| panic!("{problems}"));
    let running = toolyard_server::start(&manifest, &GatewayOptions::default()).await.unwrap();
    running.gateway().settled().await;
    running
}

async fn call(running: &RunningGateway, arguments: &str) -> Result<String, ToolError> {
    let call = Call::tool("get", Json::parse(arguments.to_owned()).unwrap());
    match running.gateway().invoke(call).await? {
        Outcome::Done(output) => Ok(output.body.to_json().as_text().to_owned()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_attempt_has_the_handler_timeout() {
    let (address, requests) = server().await;
    let folder = std::env::temp_dir().join(format!("toolyard-secrets-{}", address.port()));
    std::fs::create_dir_all(folder.join("api")).unwrap();
    std::fs::write(folder.join("api/token"), "hunter2\n").unwrap();
    let fields = format!(
        "endpoint: {{url: 'http://{address}/a?b=c'}}\n    timeout: 200ms\n    retries: 1\n    \
         auth: {{type: bearer, secretRef: {{name: api, key: token}}}}"
    );
    let process = format!(", secretsDir: '{}'", folder.display());
    let running = gateway(&process, &fields, "method: PUT, staticBody: {n: 1.5, s: [~, true]}").await;
    let tools = running.gateway().registry().list(EntryKind::Tools).as_text().to_owned();
    assert_eq!(
        tools,
        r#"[{"name":"get","description":"Gets","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}},"outputSchema":{"type":"object"}}]"#
    );
    let result = call(&running, r#"{"x":"y"}"#).await.unwrap();
    assert_eq!(result, r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{}}"#);
    let requests = requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0], requests[1]);
    assert!(requests[0].starts_with("PUT /a?b=c HTTP/1.1\r\n"), "{}", requests[0]);
    assert!(requests[0].contains("\r\nauthorization: Bearer hunter2\r\n"), "{}", requests[0]);
    assert!(requests[0].ends_with(r#"{"n":1.5,"s":[null,true],"x":"y"}"#), "{}", requests[0]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn arguments_cannot_select_private_hosts() {
    let (address, requests) = server().await;
    let template = format!("method: GET, urlTemplate: 'http://{{x}}:{}/'", address.port());
    let running = gateway("", "", &template).await;
    for host in ["127.0.0.1", "localhost"] {
        let refused = call(&running, &format!(r#"{{"x":"{host}"}}"#)).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Denied);
    }
    assert!(call(&running, r#"{"x":5}"#).await.unwrap_err().message().starts_with("Invalid arguments: /x"));
    assert!(requests.lock().unwrap().is_empty());
}
