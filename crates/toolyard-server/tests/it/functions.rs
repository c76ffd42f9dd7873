//! Handlers of the types `function` and `cortexone`, from the manifest to the runtime of the function.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;
use toolyard_core::registry::EntryKind;
use toolyard_core::{BackendPhase, Call, ErrorCode, Json, MessageExchange, Object, ToolError};
use toolyard_manifest::{FunctionHandler, ProcessSettings};
use toolyard_process::{ProcessSpawner, ProcessTable};
use toolyard_server::RunningGateway;
use toolyard_server::build::{FunctionExchanges, HandlerBuilder};
use toolyard_testing::upstream::{ReceivedRequest, ScriptedReply, TestUpstream};

use crate::gateway::{call, gateway_of, manifest_of, result_text};

const KEY: &str = "RIV_0123456789";

/// The result of a request, as the sample functions return it.
fn sample_result(request: &Object) -> String {
    let result = match request.get_str("method").as_deref() {
        Some("initialize") => {
            r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}"#
        }
        Some("tools/list") => r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#,
        _ => r#"{"content":[{"type":"text","text":"said"}]}"#,
    };
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.get("id").unwrap().as_text())
}

/// The platform: the function `mcp` is a server, `add` is a single tool, and there are no others.
fn platform() -> TestUpstream {
    TestUpstream::start(|request: &ReceivedRequest| {
        let event = Object::parse(request.body.clone()).unwrap().get("event").unwrap().to_object().unwrap();
        let path = request.head.start.split(' ').nth(1).unwrap();
        match path {
            "/b/api/v1/functions/mcp/v1.2/invoke" => {
                let text = Json::string(&sample_result(&event));
                ScriptedReply::json(&format!(r#"{{"statusCode":200,"body":{}}}"#, text.as_text()))
            }
            "/b/api/v1/functions/add/latest/invoke" => {
                ScriptedReply::json(&format!(r#"{{"statusCode":200,"body":{}}}"#, event.to_json().as_text()))
            }
            _ => ScriptedReply::http(404, "", r#"{"error":"no such tool"}"#),
        }
    })
}

fn phase(running: &RunningGateway, handler: &str) -> BackendPhase {
    let registry = running.gateway().registry();
    let phase = registry.phases().iter().find(|(name, _)| **name == *handler).map(|(_, phase)| phase.clone());
    phase.unwrap()
}

#[tokio::test]
async fn platform_functions_are_served() {
    let platform = platform();
    let at = format!("baseURL: 'http://{}/b/', apiKey: {KEY}", platform.address);
    let handlers = format!(
        "  - {{name: mcp, type: cortexone, cortexoneConfig: {{id: mcp, version: v1.2, {at}}}}}\n  \
         - name: add\n    type: cortexone\n    tool: {{name: add, description: Adds, inputSchema: {{type: object}}}}\n    \
         cortexoneConfig: {{id: add, version: latest, {at}}}\n  \
         - {{name: gone, type: cortexone, cortexoneConfig: {{id: gone, version: '1', {at}}}}}\n"
    );
    let running = gateway_of(&handlers, "").await;
    let registry = running.gateway().registry();
    let tools: Vec<_> = registry.entries(EntryKind::Tools).iter().map(|entry| &*entry.name).collect();
    assert_eq!(tools, ["echo", "add"]);
    let echoed = r#"{"content":[{"type":"text","text":"said"}]}"#;
    assert_eq!(call(&running, "echo", r#"{"text":"a"}"#).await.unwrap(), echoed);
    let sum = r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}"#;
    assert_eq!(call(&running, "add", r#"{"a":1}"#).await.unwrap(), sum);

    let reason = "The platform has no such function, or no such version: HTTP status 404 Not Found: {\"error\":\"no such tool\"}";
    assert_eq!(phase(&running, "gone"), BackendPhase::Unavailable { reason: reason.into() });
}

#[tokio::test]
async fn unpublished_function_is_reported() {
    let running = gateway_of(
        "  - name: own\n    type: function\n    tool: {name: own, description: Own, inputSchema: {type: object}}\n    \
         functionConfig: {id: own}\n",
        "",
    )
    .await;
    let reason = r#"there is no function "own""#;
    assert_eq!(phase(&running, "own"), BackendPhase::Unavailable { reason: reason.into() });
    let refused = call(&running, "own", "{}").await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (ErrorCode::Unavailable, reason));
}

/// Hosts every function, and records the requested handlers.
#[derive(Default)]
struct RecordingHost(Mutex<Vec<FunctionHandler>>);

impl FunctionExchanges for RecordingHost {
    fn exchange(&self, handler: &FunctionHandler) -> Arc<dyn MessageExchange> {
        self.0.lock().unwrap().push(handler.clone());
        Arc::new(FunctionGateway { is_tool: handler.tool.is_some(), generation: watch::Sender::default() })
    }
}

struct FunctionGateway {
    is_tool: bool,
    generation: watch::Sender<u64>,
}

impl MessageExchange for FunctionGateway {
    fn exchange(&self, event: Json, _: Option<Instant>) -> BoxFuture<'_, Result<Json, ToolError>> {
        let returned = match self.is_tool {
            true => format!(r#"{{"statusCode":200,"body":{}}}"#, event.as_text()),
            false => sample_result(&event.to_object().unwrap()),
        };
        Box::pin(std::future::ready(Ok(Json::parse(returned).unwrap())))
    }

    fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}

#[tokio::test]
async fn hosted_functions_are_mcp_servers_or_tools() {
    let manifest = manifest_of(
        "  - {name: mcp, type: function, functionConfig: {id: mcp, version: '1.2'}}\n  \
         - name: own\n    type: function\n    tool: {name: own, description: Own, inputSchema: {type: object}}\n    \
         functionConfig: {path: functions/own}\n",
        "",
    );
    let host = Arc::<RecordingHost>::default();
    let processes = ProcessTable::new(ProcessSpawner::Direct, 1);
    let builder =
        HandlerBuilder::new(ProcessSettings::default(), processes).unwrap().with_functions(host.clone());
    let expected = [
        r#"{"content":[{"type":"text","text":"said"}]}"#,
        r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}"#,
    ];
    for (declared, expect) in manifest.handlers.iter().zip(expected) {
        let handler = builder.build(declared);
        let mut catalog = handler.backend.catalog();
        let catalog = catalog.wait_for(|catalog| catalog.phase == BackendPhase::Ready).await.unwrap().clone();
        let tool = catalog.tools[0].name.clone();
        let call = Call::tool(tool, Json::parse(r#"{"a":1}"#).unwrap());
        assert_eq!(result_text(handler.backend.call(call).await).unwrap(), expect);
    }
    let sources: Vec<_> =
        host.0.lock().unwrap().iter().map(|handler| format!("{:?}", handler.source)).collect();
    assert_eq!(sources, [r#"Published { id: "mcp", version: "1.2" }"#, r#"Folder("functions/own")"#]);
}
