//! Principals that the surrounding application passes to handlers.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolyard_sdk::axum::Router;
use toolyard_sdk::axum::extract::Request;
use toolyard_sdk::axum::middleware::{Next, from_fn};
use toolyard_sdk::axum::response::Response;
use toolyard_sdk::{
    Context, ElicitRequest, ElicitResult, HttpPrincipal, InputRequired, JsonSchema, Server, ToolFailure,
    ToolReply,
};
use toolyard_testing::wire_client::WireConnection;

use crate::support::{Peer, serve_routes};

#[derive(Clone)]
struct Tenant(&'static str);

async fn authenticate(mut request: Request, next: Next) -> Response {
    let user = request.headers().get("x-user").and_then(|user| user.to_str().ok()).map(str::to_owned);
    if let Some(user) = user {
        request.extensions_mut().insert(HttpPrincipal(user.into()));
        request.extensions_mut().insert(Tenant("acme"));
    }
    next.run(request).await
}

fn whoami(ctx: Context) -> String {
    let Some(request) = ctx.http() else { return format!("{:?} without HTTP", ctx.principal()) };
    let tenant = request.extensions.get::<Tenant>().map(|tenant| tenant.0);
    format!("{:?} of {tenant:?} at {}", ctx.principal(), request.uri.path())
}

async fn nested(ctx: Context) -> Result<String, ToolFailure> {
    Ok(ctx.call_tool("whoami", &()).await?.text())
}

#[derive(serde::Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Asks for a name, with a state that the client carries.
fn rounds(ctx: Context) -> Result<ToolReply, ToolFailure> {
    match (ctx.state::<u32>()?, ctx.elicit_answer::<Name>("name")) {
        (Some(_), Some(ElicitResult::Accepted(name))) => Ok(ToolReply::new().text(name.name)),
        _ => Ok(InputRequired::new().ask("name", ElicitRequest::form::<Name>("Who?")).state(&1)?.into()),
    }
}

fn server() -> Server {
    let server = Server::new("test", "1.0.0").tool("whoami", "", whoami).unwrap();
    server.tool("nested", "", nested).unwrap().tool("rounds", "", rounds).unwrap()
}

async fn serve() -> (SocketAddr, JoinHandle<()>) {
    let app = Router::new().nest("/api", server().into_router()).layer(from_fn(authenticate));
    serve_routes(app, std::future::pending()).await
}

/// Calls a tool as this user in revision 2026-07-28, and returns the response.
async fn call(address: SocketAddr, user: Option<&str>, tool: &str, more: Value) -> Value {
    let mut params = json!({"name": tool, "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let user = user.map(|user| format!("X-User: {user}\r\n")).unwrap_or_default();
    let head = format!(
        "POST /api/mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: {tool}\r\n{user}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut connection = WireConnection::open(address).await;
    connection.send(format!("{head}{body}").as_bytes()).await;
    let answer = connection.response().await.unwrap();
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
}

#[tokio::test]
async fn principal_and_extensions_reach_the_handler() {
    let (address, serving) = serve().await;
    let cases = [
        (Some("alice"), "whoami", r#"Some("alice") of Some("acme") at /mcp"#),
        (Some("bob"), "nested", r#"Some("bob") of Some("acme") at /mcp"#),
        (None, "whoami", "None of None at /mcp"),
    ];
    for (user, tool, expect) in cases {
        let answer = call(address, user, tool, json!({})).await;
        assert_eq!(answer["result"]["content"][0]["text"], expect, "{answer}");
    }
    serving.abort();
}

#[tokio::test]
async fn state_of_another_principal_is_refused() {
    let (address, serving) = serve().await;
    let question = call(address, Some("alice"), "rounds", json!({})).await;
    let state = &question["result"]["requestState"];
    assert!(state.is_string(), "{question}");
    let entered = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    let more = json!({"requestState": state, "inputResponses": entered});
    for user in [None, Some("bob")] {
        let refused = call(address, user, "rounds", more.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let answer = call(address, Some("alice"), "rounds", more).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Ada", "{answer}");
    serving.abort();
}

#[tokio::test]
async fn pipe_has_no_http_request() {
    let mut peer = Peer::initialized(server()).await;
    assert_eq!(peer.text("whoami", json!({})).await, "None without HTTP");
}
