//! One listing of the tools of a server, without a lasting connection: for operators, which only report them.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use toolyard_core::{Backend, BackendPhase, Object};
use toolyard_net::body;
use toolyard_net::client::HttpClient;

use super::{ClientOptions, HttpEndpoint, McpBackend, ServerEndpoint};
use crate::wire::{RequestId, RpcMessage, message, method};

/// Path of a server whose URL has none.
const DEFAULT_PATH: &str = "/mcp";

/// Maximum number of pages of a list.
const PAGES: u64 = 100;

/// Lists the tools of a server over HTTP: by a bare `tools/list` without a handshake first, as the contract of
/// `LanguageTool` requires of servers, and with a handshake if the server refuses this. A URL without a path stands for
/// `/mcp`.
///
/// # Errors
/// If the server does not list its tools in either way. The text is safe for a status.
pub async fn list_tools(
    url: &Uri,
    client: &HttpClient,
    options: ClientOptions,
) -> Result<Vec<Object>, String> {
    if let Ok(tools) = list_bare(url, client, &options).await {
        return Ok(tools);
    }
    let endpoint = HttpEndpoint::new(url.clone(), client.clone());
    let server = McpBackend::start("tool", ServerEndpoint::Http(endpoint), options);
    let mut catalog = server.catalog();
    let connected = catalog.wait_for(|catalog| catalog.phase != BackendPhase::Connecting).await;
    let connected = connected.map(|catalog| Arc::clone(&catalog));
    let listed = match connected.as_ref().map(|catalog| (&catalog.phase, &catalog.tools)) {
        Ok((BackendPhase::Ready, tools)) => Ok(tools.iter().map(|tool| tool.definition.clone()).collect()),
        Ok((BackendPhase::Unavailable { reason }, _)) => Err(reason.to_string()),
        Ok((BackendPhase::Connecting, _)) | Err(_) => Err("the connection ended".to_owned()),
    };
    server.stop().await;
    listed
}

/// Lists the tools without a handshake. Answers that are not plain JSON, and errors, are left to the handshake.
async fn list_bare(url: &Uri, client: &HttpClient, options: &ClientOptions) -> Result<Vec<Object>, ()> {
    let url = with_default_path(url).ok_or(())?;
    let (mut tools, mut params) = (Vec::new(), Object::default());
    for id in 1..=PAGES {
        let page = request_page(&url, client, options, id, &params).await.ok_or(())?;
        let items = page.get("tools").and_then(|tools| tools.to_items().ok()).ok_or(())?;
        for item in items.into_iter().take(options.max_list_items.saturating_sub(tools.len())) {
            tools.push(item.to_object_within(options.max_depth).map_err(|_| ())?);
        }
        match page.get("nextCursor").filter(|cursor| !cursor.is_null()) {
            Some(cursor) if tools.len() < options.max_list_items => {
                params = Object::default().with("cursor", cursor.clone());
            }
            _ => break,
        }
    }
    Ok(tools)
}

async fn request_page(
    url: &Uri,
    client: &HttpClient,
    options: &ClientOptions,
    id: u64,
    params: &Object,
) -> Option<Object> {
    let body = message::request(&RequestId::number(id), method::TOOLS_LIST, params);
    let response = client.send(http_request(url, body)?).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let text = body::read(response.into_body(), options.max_message_bytes).await.ok()?;
    match RpcMessage::parse(text).ok()? {
        RpcMessage::Response { answer: Ok(result), .. } => result.to_object_within(options.max_depth).ok(),
        _ => None,
    }
}

fn http_request(url: &Uri, body: Bytes) -> Option<Request<Full<Bytes>>> {
    let json = HeaderValue::from_static("application/json");
    let accepted = HeaderValue::from_static("application/json, text/event-stream");
    let request = Request::builder().method(Method::POST).uri(url.clone());
    request.header(header::CONTENT_TYPE, json).header(header::ACCEPT, accepted).body(Full::new(body)).ok()
}

fn with_default_path(url: &Uri) -> Option<Uri> {
    if !matches!(url.path(), "" | "/") {
        return Some(url.clone());
    }
    let mut parts = url.clone().into_parts();
    parts.path_and_query = Some(DEFAULT_PATH.parse().ok()?);
    Uri::from_parts(parts).ok()
}
