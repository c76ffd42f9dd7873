//! Handlers of the types `function` and `cortexone`, from the manifest to who runs the function.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::Instant;
use toolyard_core::registry::Kind;
use toolyard_core::{Call, Code, Exchange, Json, Object, Outcome, Phase, ToolError};
use toolyard_manifest::{FunctionHandler, Manifest, Process};
use toolyard_process::{Processes, Spawner};
use toolyard_server::build::{Builder, Functions};
use toolyard_server::{Options, Running};

use crate::upstream::{Received, Reply, Upstream};

const KEY: &str = "RIV_0123456789";

/// The result of a request, as the samples give it.
fn result_of(request: &Object) -> String {
    let result = match request.get_str("method").as_deref() {
        Some("initialize") => {
            r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}"#
        }
        Some("tools/list") => r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#,
        _ => r#"{"content":[{"type":"text","text":"said"}]}"#,
    };
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.get("id").unwrap().as_text())
}

/// The platform: the function `mcp` is a server, `add` one tool, and there are no others.
fn platform() -> Upstream {
    Upstream::start(|request: &Received| {
        let event = Object::parse(request.body.clone()).unwrap().get("event").unwrap().to_object().unwrap();
        let path = request.head.start.split(' ').nth(1).unwrap();
        match path {
            "/b/api/v1/functions/mcp/v1.2/invoke" => {
                let text = Json::string(&result_of(&event));
                Reply::json(&format!(r#"{{"statusCode":200,"body":{}}}"#, text.as_text()))
            }
            "/b/api/v1/functions/add/latest/invoke" => {
                Reply::json(&format!(r#"{{"statusCode":200,"body":{}}}"#, event.to_json().as_text()))
            }
            _ => Reply::http(404, "", r#"{"error":"no such tool"}"#),
        }
    })
}

fn manifest(handlers: &str) -> Manifest {
    let text = format!(
        "apiVersion: toolyard.dev/v1alpha1\nkind: Toolyard\nspec: {{listen: '127.0.0.1:0'}}\n---\n\
         apiVersion: omnia.altairalabs.ai/v1alpha1\nkind: ToolRegistry\nmetadata: {{name: test}}\n\
         spec:\n  handlers:\n{handlers}"
    );
    let source = toolyard_manifest::Source { name: "test.yaml".into(), text };
    toolyard_manifest::parse(&[source]).unwrap_or_else(|problems| panic!("{problems}"))
}

async fn gateway(handlers: &str) -> Running {
    let running = toolyard_server::start(&manifest(handlers), &Options::default()).await.unwrap();
    running.gateway().settled().await;
    running
}

fn text_of(outcome: Result<Outcome, ToolError>) -> Result<String, ToolError> {
    match outcome? {
        Outcome::Done(output) => Ok(output.body.to_json().as_text().to_owned()),
        other => panic!("{other:?}"),
    }
}

async fn call(running: &Running, tool: &str, arguments: &str) -> Result<String, ToolError> {
    let arguments = Json::parse(arguments.to_owned()).unwrap();
    text_of(running.gateway().invoke(Call::tool(tool, arguments)).await)
}

fn phase(running: &Running, handler: &str) -> Phase {
    let registry = running.gateway().registry();
    let phase = registry.phases().iter().find(|(name, _)| **name == *handler).map(|(_, phase)| phase.clone());
    phase.unwrap()
}

#[tokio::test]
async fn functions_of_the_platform_are_served() {
    let platform = platform();
    let at = format!("baseURL: 'http://{}/b/', apiKey: {KEY}", platform.address);
    let running = gateway(&format!(
        "  - {{name: mcp, type: cortexone, cortexoneConfig: {{id: mcp, version: v1.2, {at}}}}}\n  \
         - name: add\n    type: cortexone\n    tool: {{name: add, description: Adds, inputSchema: {{type: object}}}}\n    \
         cortexoneConfig: {{id: add, version: latest, {at}}}\n  \
         - {{name: gone, type: cortexone, cortexoneConfig: {{id: gone, version: '1', {at}}}}}\n"
    ))
    .await;
    let registry = running.gateway().registry();
    let listed: Vec<_> = registry.entries(Kind::Tools).iter().map(|entry| &*entry.name).collect();
    assert_eq!(listed, ["echo", "add"]);
    let said = r#"{"content":[{"type":"text","text":"said"}]}"#;
    assert_eq!(call(&running, "echo", r#"{"text":"a"}"#).await.unwrap(), said);
    let sum = r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}"#;
    assert_eq!(call(&running, "add", r#"{"a":1}"#).await.unwrap(), sum);

    let reason = "The platform has no such function, or no such version: HTTP status 404 Not Found: {\"error\":\"no such tool\"}";
    assert_eq!(phase(&running, "gone"), Phase::Unavailable { reason: reason.to_owned() });
}

#[tokio::test]
async fn a_function_that_nobody_has_published_says_so() {
    let running = gateway(
        "  - name: own\n    type: function\n    tool: {name: own, description: Own, inputSchema: {type: object}}\n    \
         functionConfig: {id: own}\n",
    )
    .await;
    let reason = r#"there is no function "own""#;
    assert_eq!(phase(&running, "own"), Phase::Unavailable { reason: reason.to_owned() });
    let refused = call(&running, "own", "{}").await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::Unavailable, reason));
}

/// Hosts every function; notes which were wanted.
#[derive(Default)]
struct Host(Mutex<Vec<FunctionHandler>>);

impl Functions for Host {
    fn exchange(&self, handler: &FunctionHandler) -> Arc<dyn Exchange> {
        self.0.lock().unwrap().push(handler.clone());
        Arc::new(Hosted { is_tool: handler.tool.is_some(), generation: watch::Sender::default() })
    }
}

struct Hosted {
    is_tool: bool,
    generation: watch::Sender<u64>,
}

impl Exchange for Hosted {
    fn exchange(&self, event: Json, _: Option<Instant>) -> BoxFuture<'_, Result<Json, ToolError>> {
        let returned = match self.is_tool {
            true => format!(r#"{{"statusCode":200,"body":{}}}"#, event.as_text()),
            false => result_of(&event.to_object().unwrap()),
        };
        Box::pin(std::future::ready(Ok(Json::parse(returned).unwrap())))
    }

    fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}

#[tokio::test]
async fn hosted_functions_are_servers_or_tools() {
    let manifest = manifest(
        "  - {name: mcp, type: function, functionConfig: {id: mcp, version: '1.2'}}\n  \
         - name: own\n    type: function\n    tool: {name: own, description: Own, inputSchema: {type: object}}\n    \
         functionConfig: {path: functions/own}\n",
    );
    let host = Arc::<Host>::default();
    let processes = Processes::new(Spawner::Direct, 1);
    let builder = Builder::new(Process::default(), processes).unwrap().with_functions(host.clone());
    let expected = [
        r#"{"content":[{"type":"text","text":"said"}]}"#,
        r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}"#,
    ];
    for (declared, expect) in manifest.handlers.iter().zip(expected) {
        let handler = builder.build(declared);
        let mut catalog = handler.backend.catalog();
        let catalog = catalog.wait_for(|catalog| catalog.phase == Phase::Ready).await.unwrap().clone();
        let tool = catalog.tools[0].name.clone();
        let call = Call::tool(tool, Json::parse(r#"{"a":1}"#).unwrap());
        assert_eq!(text_of(handler.backend.call(call).await).unwrap(), expect);
    }
    let wanted: Vec<_> =
        host.0.lock().unwrap().iter().map(|handler| format!("{:?}", handler.source)).collect();
    assert_eq!(wanted, [r#"Published { id: "mcp", version: "1.2" }"#, r#"Folder("functions/own")"#]);
}
