use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolyard_core::access::{Grant, Scope};
use toolyard_core::gate::{Gate, GateSize};
use toolyard_core::names::Names;
use toolyard_core::registry::{Handler, Limits};
use toolyard_core::{
    Backend, Call, Caller, Catalog, Gateway, Json, Outcome, Output, Phase, Registry, Tool, ToolError,
};
use toolyard_sdk::Server;

use super::*;
use crate::summary::Described;
use crate::testing::definitions;

/// A server whose tools repeat what they are called with.
struct Echo(watch::Sender<Arc<Catalog>>);

impl Echo {
    fn new(phase: Phase, tools: &[Value]) -> Arc<Self> {
        let tool =
            |definition| Arc::new(Tool::from_definition(&Json::from_value(definition)).expect("a tool"));
        let tools = tools.iter().map(tool).collect();
        Arc::new(Self(watch::Sender::new(Arc::new(Catalog { phase, tools, ..Catalog::default() }))))
    }
}

impl Backend for Echo {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.0.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let arguments = call.arguments().map_or("nothing", Json::as_text);
        let said = format!("{} got {arguments}", call.target.name());
        Box::pin(async move { Ok(Outcome::Done(Output::text(&said))) })
    }
}

/// Servers that are none: they note what is wanted of them.
struct Yard {
    registry: watch::Receiver<Arc<Registry>>,
    wanted: Mutex<Vec<String>>,
}

impl Servers for Yard {
    fn seen_by<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Arc<Registry>> {
        Box::pin(async move { Registry::seen_by(self.registry.borrow().clone(), caller) })
    }

    fn added(&self) -> Vec<Arc<str>> {
        vec!["time".into()]
    }

    fn is_own(&self, handler: &str) -> bool {
        handler == "builtins"
    }

    fn register(&self, server: NewServer) -> BoxFuture<'_, Result<Registered, Refusal>> {
        let reach = match &server.reach {
            Reach::Program { command, args, env } => format!("{command} {args:?} {env:?}"),
            Reach::Url { url, transport } => format!("{url} {transport:?}"),
        };
        let NewServer { name, display_name, description, .. } = &server;
        let noted = format!("{name}: {reach} {display_name:?} {description:?}");
        self.wanted.lock().unwrap().push(noted);
        let answer = match &*server.name {
            "time" => Err(Refusal::Taken),
            "slow" => Err(Refusal::TooSlow(Duration::from_secs(30))),
            "nobody" => Err(Refusal::NothingAllowed),
            _ => Ok(Registered { tools: 2 }),
        };
        Box::pin(async move { answer })
    }

    fn unregister<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move { if name == "time" { Ok(()) } else { Err(Refusal::Configured) } })
    }
}

fn tool(name: &str, about: &str, schema: Value) -> Value {
    json!({"name": name, "description": about, "inputSchema": schema})
}

fn schema(required: &str) -> Value {
    json!({"type": "object", "properties": {required: {"type": "string"}}, "required": [required]})
}

fn handler(name: &str, backend: Arc<dyn Backend>) -> Handler {
    let gate = Gate::new(GateSize { running: 10, waiting: 0 });
    let handler = Handler::new(name, backend, Limits { timeout: Duration::from_secs(30), gate });
    Handler { display_name: (name == "time").then(|| "World Clock".into()), ..handler }
}

/// What the tools need, of a gateway without servers.
pub(crate) fn management() -> Management {
    let (_, registry) = watch::channel(Arc::default());
    Management {
        servers: Arc::new(Yard { registry, wanted: Mutex::default() }),
        summaries: Arc::new(Described),
    }
}

/// A gateway with servers, and the tools in front of them.
struct Agent {
    gateway: Gateway,
    own: Arc<dyn Backend>,
    yard: Arc<Yard>,
}

impl Agent {
    fn new() -> Self {
        let (sender, registry) = watch::channel(Arc::<Registry>::default());
        let yard = Arc::new(Yard { registry: registry.clone(), wanted: Mutex::default() });
        let management = Management { servers: yard.clone(), summaries: Arc::new(Described) };
        let server = add(Server::new("builtins", "1.0.0"), management).expect("tools");
        let own: Arc<dyn Backend> = Arc::new(Invoking::new(server.into_backend(), yard.clone()));
        sender.send_replace(Arc::new(registry_of(own.clone())));
        let layers = Gateway::layers(Default::default(), GateSize { running: 10, waiting: 0 }, None);
        Self { gateway: Gateway::new(registry, layers), own, yard }
    }

    async fn call(&self, scope: Option<&str>, tool: &str, arguments: Value) -> String {
        let scope = scope.map(|pattern| [pattern, "builtins/*"].map(|it| it.parse().expect("a pattern")));
        let grant = scope.map(|scope| Arc::new(Grant { scope: Scope::from_iter(scope), ..Grant::default() }));
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

    /// Calls a tool with one thing after the other; what a model reads of it.
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
    let away = Phase::Unavailable { reason: "it is gone".to_owned() };
    let mut weather = handler("weather", Echo::new(Phase::Ready, &weather));
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
        handler("away", Echo::new(away.clone(), &wrapper)),
        handler("relays", Echo::new(Phase::Ready, &wrapper)),
        handler("many", Echo::new(Phase::Ready, &many)),
        handler("empty", Echo::new(away, &[])),
        handler("time", Echo::new(Phase::Ready, &clock)),
        handler("shapes", Echo::new(Phase::Ready, &shapes)),
    ];
    let part = |handler: &Handler| (handler.clone(), handler.backend.catalog().borrow().clone());
    Registry::assemble(&handlers.iter().map(part).collect::<Vec<_>>(), &mut Names::default())
}

#[tokio::test]
async fn the_tools_describe_themselves() {
    let agent = Agent::new();
    let catalog = agent.own.catalog().borrow().clone();
    assert_eq!(catalog.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), NAMES);
    insta::assert_snapshot!(definitions(&agent.own));
}

#[tokio::test]
async fn what_a_model_reads_of_servers() {
    let agent = Agent::new();
    let read = agent
        .read(
            None,
            &[
                (LIST, json!({})),
                (DETAILS, json!({"server_name": "weather"})),
                (DETAILS, json!({"server_name": " Weather ", "tool_name": "GETFORECAST"})),
                (DETAILS, json!({"server_name": "empty"})),
                (DETAILS, json!({"server_name": "weather", "tool_name": "get_forecast"})),
                (DETAILS, json!({"server_name": "many", "tool_name": "x\ny"})),
                (DETAILS, json!({"server_name": "whether"})),
                (DETAILS, json!({"server_name": "builtins"})),
                (DETAILS, json!({"server_name": null})),
                (DETAILS, json!({})),
            ],
        )
        .await;
    insta::assert_snapshot!(read);
}

#[tokio::test]
async fn what_a_caller_may_not_use_does_not_exist() {
    let agent = Agent::new();
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
async fn a_call_goes_to_the_tool_that_is_meant() {
    let agent = Agent::new();
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
        // By the name that callers have for it, and by its server's own.
        (INVOKE, json!({"server_name": "RELAYS", "tool_name": "relays_relay"})),
        (INVOKE, json!({"server_name": "relays", "tool_name": "relay"})),
        (INVOKE, json!({"server_name": "time", "tool_name": "now"})),
        // Wrapped twice.
        (INVOKE, json!({"server_name": "weather", "tool_name": INVOKE, "arguments": wrapped})),
        (INVOKE, json!({"server_name": "weather", "tool_name": "getForecast", "arguments": wrapped})),
        (INVOKE, json!({"server_name": "relays", "tool_name": "relay", "arguments": {"server_name": "a", "tool_name": "b"}})),
        // A text that is no JSON counts as nothing.
        to("Convert", json!("Oslo")),
    ]).await;
    insta::assert_snapshot!(read);
}

/// Arguments that look like a call are one only where the tool can hardly mean them.
#[tokio::test]
async fn arguments_of_a_tool_are_no_call() {
    let agent = Agent::new();
    let check = async |server: &str, tool: &str, arguments: Value, expected: Option<&str>| {
        let call = json!({"server_name": server, "tool_name": tool, "arguments": arguments});
        let answer = agent.call(None, INVOKE, call.clone()).await;
        let kept = format!("{tool} got {arguments}");
        assert_eq!(answer, expected.unwrap_or(&kept), "{call}");
    };
    let now = Some("now got {}");
    let same = json!({"server_name": "time", "tool_name": "now"});
    let other = json!({"server_name": "shapes", "tool_name": "none"});
    let by_tool = json!({"tool_name": "now", "arguments": {}});
    let lone = json!({"tool_name": "now"});
    let absent = json!({"server_name": "time", "tool_name": "later"});
    // It takes anything.
    check("time", "now", same.clone(), now).await;
    check("time", "now", json!({"server_name": " TIME", "tool_name": "NOW"}), now).await;
    for arguments in [other, by_tool.clone(), lone.clone(), absent] {
        check("time", "now", arguments, None).await;
    }
    check("time", "now", json!({"server_name": "time", "tool_name": "now", "x": 1}), None).await;
    check("shapes", "open", same.clone(), None).await;
    check("shapes", "none", json!({"server_name": "shapes", "tool_name": "none"}), Some("none got {}")).await;
    // It has other parameters only.
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
    // What it takes stands elsewhere.
    check("shapes", "composed", same.clone(), None).await;
    check("shapes", "referring", same, None).await;
    check("relays", "relay", by_tool, None).await;
}

#[tokio::test]
async fn what_a_model_reads_of_calls_that_mean_nothing() {
    let agent = Agent::new();
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
async fn what_a_model_reads_of_adding_and_removing_servers() {
    let agent = Agent::new();
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
async fn servers_are_understood_in_either_form() {
    let agent = Agent::new();
    let wanted = [
        json!({"server_name": " Clock ", "command": " uvx ", "arguments": ["a b", 1, true], "env": {"A": 1, "B": "x", "C": null}}),
        json!({"name": "clock", "command": "uvx", "arguments": "a 'b c' \"d 'e\" f\"g\"h ''", "type": "stdio"}),
        json!({"name": "clock", "command": "uvx", "args": "[\"a b\", \"c\"]"}),
        json!({"name": "docs", "url": "https://a/sse"}),
        json!({"name": "docs", "url": "https://a/sse", "type": "HTTP"}),
        json!({"name": "docs", "url": "https://a/mcp", "transport": "streamable_http"}),
        json!({"name": "docs", "url": "https://a/mcp", "display_name": "The\nDocs", "description": " What is \n known. "}),
    ];
    for wanted in wanted {
        agent.call(None, REGISTER, wanted).await;
    }
    insta::assert_snapshot!(agent.yard.wanted.lock().unwrap().join("\n"));
}

#[test]
fn what_may_be_secret_is_not_shown() {
    let reach = Reach::Program {
        command: "uvx".to_owned(),
        args: vec!["--token".to_owned(), "hunter2".to_owned()],
        env: vec![("API_KEY".to_owned(), "hunter2".to_owned())],
    };
    let server = NewServer { name: "x".to_owned(), reach, display_name: None, description: None };
    insta::assert_snapshot!(format!("{server:?}"), @r#"NewServer { name: "x", command: "uvx", args: 2, env: ["API_KEY"], .. }"#);
    let reach = Reach::Url { url: "https://a?key=hunter2".to_owned(), transport: Transport::Sse };
    insta::assert_snapshot!(format!("{:?}", NewServer { reach, ..server }), @r#"NewServer { name: "x", transport: Sse, .. }"#);
}
