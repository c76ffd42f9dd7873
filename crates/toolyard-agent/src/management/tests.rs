use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::access::{AccessGrant, AccessScope};
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::names::NameRegistry;
use toolyard_core::registry::{CallLimits, HandlerEntry};
use toolyard_core::{
    Backend, BackendPhase, Call, CallOutput, Caller, Catalog, ErrorCode, Gateway, Json, Outcome, Registry,
    Tool, ToolError,
};
use toolyard_sdk::Server;

use super::*;
use crate::summary::ManifestSummaries;
use crate::testing::definitions;

/// A server whose tools return their arguments.
struct CallEchoBackend(watch::Sender<Arc<Catalog>>);

impl CallEchoBackend {
    fn new(phase: BackendPhase, tools: &[Value]) -> Arc<Self> {
        let tool =
            |definition| Arc::new(Tool::from_definition(&Json::from_value(definition)).expect("a tool"));
        let tools = tools.iter().map(tool).collect();
        Arc::new(Self(watch::Sender::new(Arc::new(Catalog { phase, tools, ..Catalog::default() }))))
    }
}

impl Backend for CallEchoBackend {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let arguments = call.arguments().map_or("nothing", Json::as_text);
        let text = format!("{} got {arguments}", call.target.name());
        Box::pin(async move { Ok(Outcome::Done(CallOutput::text(&text))) })
    }
}

/// Records the servers that are registered, without connecting to them.
struct RecordingServers {
    registry: watch::Receiver<Arc<Registry>>,
    requests: Mutex<Vec<String>>,
}

impl ServerManager for RecordingServers {
    fn seen_by<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Arc<Registry>> {
        Box::pin(async move { Registry::view_for(self.registry.borrow().clone(), caller) })
    }

    fn added(&self) -> Vec<Arc<str>> {
        vec!["time".into()]
    }

    fn is_own(&self, handler: &str) -> bool {
        handler == "builtins"
    }

    fn register(&self, server: NewServer) -> BoxFuture<'_, Result<RegisteredServer, RegistrationError>> {
        let address = match &server.address {
            ServerAddress::Program { command, args, env } => format!("{command} {args:?} {env:?}"),
            ServerAddress::Url { url, transport } => format!("{url} {transport:?}"),
        };
        let NewServer { name, display_name, description, .. } = &server;
        let line = format!("{name}: {address} {display_name:?} {description:?}");
        self.requests.lock().unwrap().push(line);
        let answer = match &*server.name {
            "time" => Err(RegistrationError::Taken),
            "slow" => {
                Err(RegistrationError::TooSlow { time: Duration::from_secs(30), output: String::new() })
            }
            "nobody" => Err(RegistrationError::NothingAllowed("builtins: {}".to_owned())),
            _ => Ok(RegisteredServer { tools: 2 }),
        };
        Box::pin(async move { answer })
    }

    fn unregister<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), RegistrationError>> {
        Box::pin(async move { if name == "time" { Ok(()) } else { Err(RegistrationError::Configured) } })
    }
}

fn tool(name: &str, about: &str, schema: Value) -> Value {
    json!({"name": name, "description": about, "inputSchema": schema})
}

fn schema(required: &str) -> Value {
    json!({"type": "object", "properties": {required: {"type": "string"}}, "required": [required]})
}

fn handler(name: &str, backend: Arc<dyn Backend>) -> HandlerEntry {
    let gate = CallGate::new(GateSize { running: 10, waiting: 0 });
    let handler = HandlerEntry::new(name, backend, CallLimits { timeout: Duration::from_secs(30), gate });
    let is_added = name == "time";
    HandlerEntry { display_name: is_added.then(|| "World Clock".into()), is_added, ..handler }
}

/// Returns the dependencies of the tools, for a gateway without servers.
pub(crate) fn management() -> ServerManagement {
    let (_, registry) = watch::channel(Arc::default());
    ServerManagement {
        servers: Arc::new(RecordingServers { registry, requests: Mutex::default() }),
        summaries: Arc::new(ManifestSummaries),
        bridge: None,
    }
}

/// A gateway with servers, and the management tools.
struct ManagementHarness {
    gateway: Gateway,
    own: Arc<dyn Backend>,
    servers: Arc<RecordingServers>,
}

/// Serves two servers of a bridge, and records what it is asked to do.
#[derive(Default)]
struct RecordingBridge(Mutex<Vec<String>>);

impl BridgeManager for RecordingBridge {
    fn servers(&self) -> Vec<Arc<BridgedServer>> {
        let server = |name: &str, tools: &[&str]| {
            Arc::new(BridgedServer {
                name: name.to_owned(),
                display_name: None,
                summary: Some(format!("The {name} of the bridge.")),
                tool_count: tools.len(),
                tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
            })
        };
        vec![server("Notes", &["add", "erase"]), server("time", &["now"])]
    }

    fn details<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<BridgedTool>, ToolError>> {
        let tool = |name: &str| BridgedTool {
            name: name.to_owned(),
            description: format!("Runs {name} of {server}."),
            parameters_schema: "{}".to_owned(),
        };
        let tools = vec![tool("add"), tool("erase")];
        Box::pin(async move { Ok(tools) })
    }

    fn invoke(&self, call: BridgedCall) -> BoxFuture<'_, Result<BridgedResult, ToolError>> {
        let BridgedCall { server, tool, arguments, timeout, .. } = call;
        assert!(timeout <= Duration::from_secs(60), "{timeout:?}");
        let text = format!("{tool} of {server} got {arguments}");
        let is_error = tool == "erase";
        Box::pin(async move { Ok(BridgedResult { text, is_error }) })
    }

    fn register(&self, server: NewServer) -> BoxFuture<'_, Result<Option<usize>, ToolError>> {
        self.0.lock().unwrap().push(server.name.clone());
        let answer = match &*server.name {
            "denied" => Err(ToolError::new(ErrorCode::ExecutionFailed, "the bridge does not allow it")),
            "late" => Ok(None),
            _ => Ok(Some(3)),
        };
        Box::pin(async move { answer })
    }

    fn unregister<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        self.0.lock().unwrap().push(format!("-{server}"));
        Box::pin(async move { Ok(()) })
    }
}

impl ManagementHarness {
    fn new() -> Self {
        Self::with_bridge(None)
    }

    fn with_bridge(bridge: Option<Arc<dyn BridgeManager>>) -> Self {
        let (sender, registry) = watch::channel(Arc::<Registry>::default());
        let servers = Arc::new(RecordingServers { registry: registry.clone(), requests: Mutex::default() });
        let management =
            ServerManagement { servers: servers.clone(), summaries: Arc::new(ManifestSummaries), bridge };
        let server = add(Server::new("builtins", "1.0.0"), management).expect("tools");
        let own: Arc<dyn Backend> = Arc::new(InvokeToolBackend::new(server.into_backend(), servers.clone()));
        sender.send_replace(Arc::new(registry_of(own.clone())));
        let layers = Gateway::layers(Default::default(), GateSize { running: 10, waiting: 0 }, None, None);
        Self { gateway: Gateway::new(registry, layers), own, servers }
    }

    async fn call(&self, scope: Option<&str>, tool: &str, arguments: Value) -> String {
        let scope = scope.map(|pattern| [pattern, "builtins/*"].map(|it| it.parse().expect("a pattern")));
        let grant = scope.map(|scope| {
            Arc::new(AccessGrant { scope: AccessScope::from_iter(scope), ..AccessGrant::default() })
        });
        let caller = Caller { grant, ..Caller::default() };
        let call = Call { caller, ..Call::tool(tool, Json::from_value(&arguments)) };
        match self.gateway.invoke(call).await {
            Ok(Outcome::Done(output)) => {
                let body = output.body.to_json().to_value();
                let text = body["content"][0]["text"].as_str().unwrap_or_default();
                if output.is_error { format!("error: {text}") } else { text.to_owned() }
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => format!("refused: {error}"),
        }
    }

    /// Calls several tools in order and returns their texts.
    async fn read(&self, scope: Option<&str>, calls: &[(&str, Value)]) -> String {
        let mut read = Vec::new();
        for (tool, arguments) in calls {
            let answer = self.call(scope, tool, arguments.clone()).await;
            read.push(format!("> {tool} {arguments}\n{answer}"));
        }
        read.join("\n\n")
    }
}

fn registry_of(own: Arc<dyn Backend>) -> Registry {
    let many: Vec<_> =
        (0..120).map(|number| tool(&format!("t{number}"), "", json!({"type": "object"}))).collect();
    let weather = [
        tool("getForecast", "Tells the weather.", schema("city")),
        tool("Convert", "", json!({"type": "object"})),
    ];
    let clock = [
        tool("convert", "Converts a time.", schema("to")),
        tool("now", "Tells the time.", json!({"type": "object"})),
    ];
    let wrapper = [tool(
        "relay",
        "Calls on.",
        json!({"type": "object", "properties": {"tool_name": {}, "server_name": {}}}),
    )];
    let away = BackendPhase::Unavailable { reason: "it is gone".into() };
    let mut weather = handler("weather", CallEchoBackend::new(BackendPhase::Ready, &weather));
    weather.description = Some("Forecasts for all cities.".into());
    let closed = json!({"type": "object", "additionalProperties": false, "properties": {"server_name": {}}});
    let shapes = [
        tool("open", "", json!({"type": "object", "additionalProperties": true, "properties": {"a": {}}})),
        tool("none", "", json!({"type": "object", "properties": {}})),
        tool("closed", "", closed),
        tool("composed", "", json!({"type": "object", "properties": {"a": {}}, "allOf": [{}]})),
        tool(
            "referring",
            "",
            json!({"type": "object", "properties": {"a": {}}, "$ref": "#/$defs/x", "$defs": {"x": {}}}),
        ),
    ];
    let handlers = [
        handler("builtins", own),
        weather,
        handler("away", CallEchoBackend::new(away.clone(), &wrapper)),
        handler("relays", CallEchoBackend::new(BackendPhase::Ready, &wrapper)),
        handler("many", CallEchoBackend::new(BackendPhase::Ready, &many)),
        handler("empty", CallEchoBackend::new(away, &[])),
        handler("time", CallEchoBackend::new(BackendPhase::Ready, &clock)),
        handler("shapes", CallEchoBackend::new(BackendPhase::Ready, &shapes)),
    ];
    let part = |handler: &HandlerEntry| (handler.clone(), handler.backend.catalog().borrow().clone());
    Registry::assemble(&handlers.iter().map(part).collect::<Vec<_>>(), &mut NameRegistry::default())
}

#[tokio::test]
async fn tool_definitions() {
    let agent = ManagementHarness::new();
    let catalog = agent.own.catalog().borrow().clone();
    assert_eq!(catalog.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), NAMES);
    insta::assert_snapshot!(definitions(&agent.own));
}

#[tokio::test]
async fn list_and_details_results() {
    let agent = ManagementHarness::new();
    let read = agent
        .read(
            None,
            &[
                (LIST, json!({})),
                (LIST, json!({"filter": "Clock now"})),
                (LIST, json!({"filter": "nowhere"})),
                (LIST, json!({"cursor": "nowhere"})),
                (DETAILS, json!({"server_name": "weather"})),
                (DETAILS, json!({"server_name": " Weather ", "tool_name": "GETFORECAST"})),
                (DETAILS, json!({"server_name": "empty"})),
                (DETAILS, json!({"server_name": "weather", "tool_name": "get_forecast"})),
                (DETAILS, json!({"server_name": "many", "tool_name": "x\ny"})),
                (DETAILS, json!({"server_name": "time", "tool_name": "time_convert"})),
                (DETAILS, json!({"server_name": "whether"})),
                (DETAILS, json!({"server_name": "wether"})),
                (DETAILS, json!({"server_name": "builtins"})),
                (DETAILS, json!({"server_name": null})),
                (DETAILS, json!({})),
            ],
        )
        .await;
    insta::assert_snapshot!(read);
}

#[tokio::test]
async fn forbidden_servers_and_tools_are_hidden() {
    let agent = ManagementHarness::new();
    let read = agent
        .read(
            Some("weather/get*"),
            &[
                (LIST, json!({})),
                (DETAILS, json!({"server_name": "weather"})),
                (DETAILS, json!({"server_name": "time"})),
                (INVOKE, json!({"server_name": "weather", "tool_name": "Convert"})),
                (INVOKE, json!({"server_name": "time", "tool_name": "now"})),
                (UNREGISTER, json!({"server_name": "time"})),
                (REGISTER, json!({"server_name": "new", "command": "uvx"})),
            ],
        )
        .await;
    insta::assert_snapshot!(read);
    let nothing =
        agent.read(Some("nothing"), &[(LIST, json!({})), (DETAILS, json!({"server_name": "time"}))]).await;
    insta::assert_snapshot!(nothing);
}

#[tokio::test]
async fn call_is_forwarded_to_the_named_tool() {
    let agent = ManagementHarness::new();
    let to = |tool: &str, arguments: Value| {
        (INVOKE, json!({"server_name": "weather", "tool_name": tool, "arguments": arguments}))
    };
    let oslo = json!({"city": "Oslo"});
    let wrapped = json!({"server_name": "weather", "tool_name": "getForecast", "arguments": oslo});
    let read = agent.read(None, &[
        to("getForecast", oslo.clone()),
        to("GetForecast", oslo.clone()),
        to("getForecast", json!("{\"city\": \"Oslo\"}")),
        to("Convert", json!(null)),
        // By the published name, and by the server's own name.
        (INVOKE, json!({"server_name": "RELAYS", "tool_name": "relays_relay"})),
        (INVOKE, json!({"server_name": "relays", "tool_name": "relay"})),
        (INVOKE, json!({"server_name": "time", "tool_name": "now"})),
        // Wrapped twice.
        (INVOKE, json!({"server_name": "weather", "tool_name": INVOKE, "arguments": wrapped})),
        (INVOKE, json!({"server_name": "weather", "tool_name": "getForecast", "arguments": wrapped})),
        (INVOKE, json!({"server_name": "relays", "tool_name": "relay", "arguments": {"server_name": "a", "tool_name": "b"}})),
        // A text that is not JSON counts as no arguments.
        to("Convert", json!("Oslo")),
    ]).await;
    insta::assert_snapshot!(read);
}

/// Arguments that resemble a call are unwrapped only if the tool cannot take them.
#[tokio::test]
async fn arguments_that_resemble_a_call_are_not_unwrapped() {
    let agent = ManagementHarness::new();
    let check = async |server: &str, tool: &str, arguments: Value, expected: Option<&str>| {
        let call = json!({"server_name": server, "tool_name": tool, "arguments": arguments});
        let answer = agent.call(None, INVOKE, call.clone()).await;
        let unchanged = format!("{tool} got {arguments}");
        assert_eq!(answer, expected.unwrap_or(&unchanged), "{call}");
    };
    let now = Some("now got {}");
    let same = json!({"server_name": "time", "tool_name": "now"});
    let other = json!({"server_name": "shapes", "tool_name": "none"});
    let by_tool = json!({"tool_name": "now", "arguments": {}});
    let lone = json!({"tool_name": "now"});
    let absent = json!({"server_name": "time", "tool_name": "later"});
    // This tool accepts any parameter.
    check("time", "now", same.clone(), now).await;
    check("time", "now", json!({"server_name": " TIME", "tool_name": "NOW"}), now).await;
    for arguments in [other, by_tool.clone(), lone.clone(), absent] {
        check("time", "now", arguments, None).await;
    }
    check("time", "now", json!({"server_name": "time", "tool_name": "now", "x": 1}), None).await;
    check("shapes", "open", same.clone(), None).await;
    check("shapes", "none", json!({"server_name": "shapes", "tool_name": "none"}), Some("none got {}")).await;
    // This tool declares other parameters only.
    check("shapes", "closed", same.clone(), now).await;
    check(
        "shapes",
        "closed",
        json!({"tool_name": "none", "arguments": {"b": 1}}),
        Some(r#"none got {"b":1}"#),
    )
    .await;
    let refused =
        "refused: Invalid arguments: Additional properties are not allowed ('tool_name' was unexpected)";
    check("shapes", "closed", lone, Some(refused)).await;
    // The parameters of these tools are declared by other keywords.
    check("shapes", "composed", same.clone(), None).await;
    check("shapes", "referring", same, None).await;
    check("relays", "relay", by_tool, None).await;
}

#[tokio::test]
async fn errors_of_invalid_calls() {
    let agent = ManagementHarness::new();
    let to = |tool: &str, arguments: Value| {
        (INVOKE, json!({"server_name": "weather", "tool_name": tool, "arguments": arguments}))
    };
    let twice = json!({"server_name": "weather", "tool_name": INVOKE, "arguments": {}});
    let read = agent
        .read(
            None,
            &[
                (INVOKE, json!({})),
                (INVOKE, json!({"server_name": "weather"})),
                (INVOKE, json!({"tool_name": "getForecast"})),
                (INVOKE, json!({"server_name": "whether", "tool_name": "getForecast"})),
                to("forecast", json!({})),
                to("getForecast", json!({})),
                to("getForecast", json!("Oslo")),
                to("getForecast", json!(["Oslo"])),
                (INVOKE, json!({"server_name": "builtins", "tool_name": LIST})),
                (INVOKE, json!({"server_name": "weather", "tool_name": INVOKE, "arguments": twice})),
                (INVOKE, json!({"server_name": "weather", "tool_name": INVOKE})),
                (INVOKE, json!({"server_name": "weather", "tool_name": "Convert", "args": {"a": 1}})),
                (
                    INVOKE,
                    json!({"server_name": "weather", "tool_name": "Convert", "a\nb": 1, "arguments": {}}),
                ),
                to(INVOKE, json!({"tool_name": "Convert", "a": 1})),
                (INVOKE, json!({"server_name": "empty", "tool_name": "add"})),
                (INVOKE, json!({"server_name": "away", "tool_name": "add"})),
                (INVOKE, json!({"server_name": "away", "tool_name": "relay"})),
            ],
        )
        .await;
    insta::assert_snapshot!(read);
}

#[tokio::test]
async fn register_and_unregister_results() {
    let agent = ManagementHarness::new();
    let read = agent
        .read(
            None,
            &[
                (
                    REGISTER,
                    json!({"server_name": "Clock", "command": "uvx", "arguments": ["mcp-server-time"]}),
                ),
                (REGISTER, json!({"name": "docs", "type": "sse", "url": "https://docs.example.com/sse"})),
                (REGISTER, json!({"server_name": "TIME", "command": "uvx"})),
                (REGISTER, json!({"server_name": "slow", "command": "uvx"})),
                (REGISTER, json!({"server_name": "nobody", "command": "uvx"})),
                (REGISTER, json!({})),
                (REGISTER, json!({"server_name": "x"})),
                (REGISTER, json!({"server_name": "x", "type": "stdio"})),
                (REGISTER, json!({"server_name": "x", "type": "sse", "command": "uvx"})),
                (REGISTER, json!({"server_name": "x", "type": "grpc", "url": "https://a"})),
                (REGISTER, json!({"server_name": "x", "command": "uvx", "url": "https://a"})),
                (REGISTER, json!({"server_name": "x", "command": "uvx", "headers": {}})),
                (REGISTER, json!({"server_name": "x", "command": "uvx", "arguments": "a 'b"})),
                (REGISTER, json!({"server_name": "x", "command": "uvx", "arguments": [{}]})),
                (REGISTER, json!({"server_name": "x", "command": "uvx", "arguments": {}})),
                (REGISTER, json!({"server_name": "x", "command": "uvx", "arguments": ["\u{0}"]})),
                (REGISTER, json!({"server_name": "x", "command": "uvx", "env": "A=b"})),
                (REGISTER, json!({"server_name": "x", "command": "uvx", "env": {"A": []}})),
                (UNREGISTER, json!({"server_name": "Time"})),
                (UNREGISTER, json!({"server_name": "weather"})),
                (UNREGISTER, json!({"server_name": "builtins"})),
                (UNREGISTER, json!({})),
            ],
        )
        .await;
    insta::assert_snapshot!(read);
}

#[tokio::test]
async fn both_forms_of_a_server_are_parsed() {
    let agent = ManagementHarness::new();
    let requests = [
        json!({"server_name": " Clock ", "command": " uvx ", "arguments": ["a b", 1, true], "env": {"A": 1, "B": "x", "C": null}}),
        json!({"name": "clock", "command": "uvx", "arguments": "a 'b c' \"d 'e\" f\"g\"h ''", "type": "stdio"}),
        json!({"name": "clock", "command": "uvx", "args": "[\"a b\", \"c\"]"}),
        json!({"name": "docs", "url": "https://a/sse"}),
        json!({"name": "docs", "url": "https://a/sse", "type": "HTTP"}),
        json!({"name": "docs", "url": "https://a/mcp", "transport": "streamable_http"}),
        json!({"name": "docs", "url": "https://a/mcp", "display_name": "The\nDocs", "description": " What is \n known. "}),
    ];
    for requests in requests {
        agent.call(None, REGISTER, requests).await;
    }
    insta::assert_snapshot!(agent.servers.requests.lock().unwrap().join("\n"));
}

#[test]
fn debug_output_hides_secrets() {
    let address = ServerAddress::Program {
        command: "uvx".to_owned(),
        args: vec!["--token".to_owned(), "hunter2".to_owned()],
        env: vec![("API_KEY".to_owned(), "hunter2".to_owned())],
    };
    let server = NewServer { name: "x".to_owned(), address, display_name: None, description: None };
    insta::assert_snapshot!(format!("{server:?}"), @r#"NewServer { name: "x", command: "uvx", args: 2, env: ["API_KEY"], .. }"#);
    let address =
        ServerAddress::Url { url: "https://a?key=hunter2".to_owned(), transport: HttpTransportKind::Sse };
    insta::assert_snapshot!(format!("{:?}", NewServer { address, ..server }), @r#"NewServer { name: "x", transport: Sse, .. }"#);
}

#[tokio::test]
async fn servers_of_a_bridge_are_listed_and_called() {
    let bridge = Arc::new(RecordingBridge::default());
    let agent = ManagementHarness::with_bridge(Some(bridge.clone()));
    let to = |server: &str, tool: &str| {
        (INVOKE, json!({"server_name": server, "tool_name": tool, "arguments": {"a": 1}}))
    };
    let calls = [
        (LIST, json!({"filter": "bridge"})),
        (DETAILS, json!({"server_name": "notes", "tool_name": "ADD"})),
        (DETAILS, json!({"server_name": "notes", "tool_name": "ad"})),
        (DETAILS, json!({"server_name": "xyz"})),
        to("NOTES", "add"),
        to("notes", "erase"),
        // The server of the gateway comes first.
        to("time", "now"),
        to("note", "add"),
        (REGISTER, json!({"server_name": "New", "command": "uvx"})),
        (REGISTER, json!({"server_name": "late", "command": "uvx"})),
        (REGISTER, json!({"server_name": "denied", "command": "uvx"})),
        (UNREGISTER, json!({"server_name": "Notes"})),
        (UNREGISTER, json!({"server_name": "time"})),
    ];
    insta::assert_snapshot!(agent.read(None, &calls).await, @r#"
    > mcp_list_services {"filter":"bridge"}
    [{"serverName":"Notes","summary":"The Notes of the bridge.","toolCount":2,"toolNames":["add","erase"]}]

    > mcp_get_service_details {"server_name":"notes","tool_name":"ADD"}
    [{"name":"add","description":"Runs add of Notes.","parametersSchema":"{}"}]

    > mcp_get_service_details {"server_name":"notes","tool_name":"ad"}
    error: No tool named 'ad' found on server 'Notes'. Did you mean `add`?

    > mcp_get_service_details {"server_name":"xyz"}
    error: Server 'xyz' not found. Servers: weather, away, relays, many, empty, time, shapes. Servers of the bridge: Notes, time.

    > mcp_invoke_tool {"server_name":"NOTES","tool_name":"add","arguments":{"a":1}}
    add of Notes got {"a":1}

    > mcp_invoke_tool {"server_name":"notes","tool_name":"erase","arguments":{"a":1}}
    error: erase of Notes got {"a":1}

    > mcp_invoke_tool {"server_name":"time","tool_name":"now","arguments":{"a":1}}
    now got {"a":1}

    > mcp_invoke_tool {"server_name":"note","tool_name":"add","arguments":{"a":1}}
    error: Server 'note' not found. Did you mean `Notes`?

    > mcp_register_server {"server_name":"New","command":"uvx"}
    Server 'new' registered successfully. 3 tool(s) available.

    > mcp_register_server {"server_name":"late","command":"uvx"}
    Server 'late' registered successfully.

    > mcp_register_server {"server_name":"denied","command":"uvx"}
    error: Failed to register server 'denied': the bridge does not allow it

    > mcp_unregister_server {"server_name":"Notes"}
    Server 'notes' removed successfully.

    > mcp_unregister_server {"server_name":"time"}
    Server 'time' removed successfully.
    "#);
    assert_eq!(*bridge.0.lock().unwrap(), ["new", "late", "denied", "-notes"]);
    let limited = [
        (LIST, json!({"filter": "bridge"})),
        (LIST, json!({"filter": "notes"})),
        (DETAILS, json!({"server_name": "notes"})),
        to("notes", "add"),
        to("notes", "erase"),
    ];
    insta::assert_snapshot!(agent.read(Some("Notes/add"), &limited).await, @r#"
    > mcp_list_services {"filter":"bridge"}
    []

    > mcp_list_services {"filter":"notes"}
    [{"serverName":"Notes","toolCount":1,"toolNames":["add"]}]

    > mcp_get_service_details {"server_name":"notes"}
    [{"name":"add","description":"Runs add of Notes.","parametersSchema":"{}"}]

    > mcp_invoke_tool {"server_name":"notes","tool_name":"add","arguments":{"a":1}}
    add of Notes got {"a":1}

    > mcp_invoke_tool {"server_name":"notes","tool_name":"erase","arguments":{"a":1}}
    error: No tool named 'erase' found on server 'Notes'.
    "#);
    insta::assert_snapshot!(agent.read(Some("weather/*"), &limited[2..4]).await, @r#"
    > mcp_get_service_details {"server_name":"notes"}
    error: Server 'notes' not found. Servers: weather.

    > mcp_invoke_tool {"server_name":"notes","tool_name":"add","arguments":{"a":1}}
    error: Server 'notes' not found. Servers: weather.
    "#);
}
