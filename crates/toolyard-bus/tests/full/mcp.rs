//! A bridge with scripted servers, and the proxy of an agent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::block_in_place;
use toolyard_bus::caller::RemoteCall;
use toolyard_bus::mcp::{BridgeServers, McpBridge, McpToolProxy};
use toolyard_bus::message::{
    McpGetServiceDetailsRequest, McpMetadataRefreshRequest, McpRegisterServerRequest, McpServersIndexed,
};
use toolyard_bus::record::{ToolInvokeRequest, ToolInvokeResponse};
use toolyard_bus::request::Requester;
use toolyard_bus::{Envelope, MessageBus, Subscription};
use toolyard_core::gate::{CallGate, GateSize};
use toolyard_core::layers::{AccessPolicy, DeadlineLayer};
use toolyard_core::names::NameRegistry;
use toolyard_core::registry::{CallLimits, HandlerEntry, Registry};
use toolyard_core::{
    Backend, BackendPhase, Call, CallOutput, Catalog, ErrorCode, Gateway, Json, Outcome, Tool, ToolError,
};

use crate::support::{BusBody, TestBroker, TestPrincipal, on_every_body, pattern, request, topic, within};

/// A server whose tools answer with its name. The tool `lost` is not reached before the server was connected again.
struct NamedServer {
    name: &'static str,
    catalog: watch::Sender<Arc<Catalog>>,
    reconnects: watch::Receiver<usize>,
}

impl NamedServer {
    fn new(name: &'static str, tools: &[&str], reconnects: watch::Receiver<usize>) -> Arc<Self> {
        let tool = |name: &&str| {
            let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            let definition =
                json!({"name": name, "description": format!("Runs {name}."), "inputSchema": schema});
            Arc::new(Tool::from_definition(&Json::from_value(&definition)).unwrap())
        };
        let tools = tools.iter().map(tool).collect();
        let catalog = Catalog { phase: BackendPhase::Ready, tools, ..Catalog::default() };
        Arc::new(Self { name, catalog: watch::Sender::new(Arc::new(catalog)), reconnects })
    }
}

impl Backend for NamedServer {
    fn catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<Outcome, ToolError>> {
        let tool = call.target.name();
        if **tool == *"lost" && *self.reconnects.borrow() == 0 {
            let lost = ToolError::new(ErrorCode::Unavailable, "the connection is lost").unsent();
            return ready(Err(lost)).boxed();
        }
        let text =
            format!("{tool} of {} got {}", self.name, call.arguments().map_or("nothing", Json::as_text));
        ready(Ok(Outcome::Done(CallOutput::text(&text)))).boxed()
    }
}

/// Counts the reconnections.
struct TestServers {
    reconnects: watch::Sender<usize>,
    reconnected: Mutex<Vec<Option<String>>>,
}

impl BridgeServers for TestServers {
    fn reconnect<'a>(&'a self, server: Option<&'a str>) -> BoxFuture<'a, ()> {
        self.reconnects.send_modify(|reconnects| *reconnects += 1);
        self.reconnected.lock().unwrap().push(server.map(str::to_owned));
        ready(()).boxed()
    }

    fn summary(&self, server: &HandlerEntry, tools: &[&str]) -> String {
        format!("{} has {}", server.name, tools.join(", "))
    }
}

/// A bridge, and the proxy of an agent on another connection.
pub(crate) struct BridgeCase {
    case: TestBroker,
    registry: watch::Sender<Arc<Registry>>,
    servers: Arc<TestServers>,
    bridge: McpBridge,
    bus: Arc<dyn MessageBus>,
    proxy: McpToolProxy,
}

fn registry(servers: &[Arc<NamedServer>]) -> Arc<Registry> {
    let parts: Vec<_> = servers
        .iter()
        .map(|server| {
            let gate = CallGate::new(GateSize { running: 100, waiting: 100 });
            let limits = CallLimits { timeout: Duration::from_secs(60), gate };
            let handler = HandlerEntry::new(server.name, server.clone() as Arc<dyn Backend>, limits);
            (handler, server.catalog.borrow().clone())
        })
        .collect();
    Arc::new(Registry::assemble(&parts, &mut NameRegistry::default()))
}

impl BridgeCase {
    pub(crate) async fn start(case: TestBroker, tools: &'static str) -> Self {
        let servers =
            Arc::new(TestServers { reconnects: watch::Sender::new(0), reconnected: Mutex::default() });
        let weather =
            NamedServer::new("weather", &["forecast", "lost", "secret"], servers.reconnects.subscribe());
        let time = NamedServer::new("time", &["forecast", "now"], servers.reconnects.subscribe());
        let registry = watch::Sender::new(registry(&[weather, time]));
        let layers: Vec<Box<dyn toolyard_core::layers::Layer>> =
            vec![Box::new(AccessPolicy), Box::new(DeadlineLayer)];
        let gateway = Arc::new(Gateway::new(registry.subscribe(), layers));
        let principal = Arc::new(TestPrincipal(tools));
        let bridge =
            McpBridge::start(case.bus(), gateway, principal, servers.clone(), &case.settings).unwrap();
        assert!(within("the bridge", bridge.subscribed()).await);
        let bus = case.bus();
        let proxy = McpToolProxy::start(bus.clone(), &case.settings);
        Self { case, registry, servers, bridge, bus, proxy }
    }

    async fn until_indexed(&self, names: &[&str]) {
        let mut index = self.proxy.watch();
        let is_it = |index: &Arc<toolyard_bus::mcp::ServerIndex>| index.keys().eq(names);
        within("the index", index.wait_for(is_it)).await.unwrap();
    }

    async fn invoke(&self, server: &str, tool: &str) -> String {
        let request = request(tool, r#"{"text": "x"}"#);
        let answer = self.proxy.invoke(server, &request, RemoteCall::within(Duration::from_secs(20))).await;
        answer.map_or_else(
            |error| format!("{:?} {}", error.code(), error.message()),
            |response| response.content.unwrap_or_default(),
        )
    }
}

#[tokio::test]
async fn servers_are_listed_and_called() {
    on_every_body("bridge", async |case| {
        let bridge = BridgeCase::start(case, "forecast lost now weather_forecast time_forecast").await;
        bridge.until_indexed(&["time", "weather"]).await;
        let weather = bridge.proxy.servers()["weather"].clone();
        assert_eq!((weather.tool_count, weather.tool_names.len()), (2, 2), "{weather:?}");
        assert!(weather.summary.as_deref().unwrap_or_default().starts_with("weather has "), "{weather:?}");
        let check = async |server: &str, tool: &str, expected: &str| {
            let answer = bridge.invoke(server, tool).await;
            assert_eq!(answer, expected, "{server} {tool}");
        };
        check("weather", "forecast", r#"forecast of weather got {"text":"x"}"#).await;
        check("TIME", "forecast", r#"forecast of time got {"text":"x"}"#).await;
        check("", "now", r#"now of time got {"text":"x"}"#).await;
        check("weather", "now", "ToolNotFound Tool 'now' is not registered.").await;
        check("nowhere", "now", "ToolNotFound Tool 'now' is not registered.").await;
        check("time", "NOW", "ToolNotFound Tool 'NOW' is not registered.").await;
        // The tool exists, and not for the bus.
        check("weather", "secret", "ToolNotFound Tool 'secret' is not registered.").await;
        let details = bridge.proxy.details("Weather").await.unwrap();
        assert_eq!(details.tools.len(), 2, "{details:?}");
        let schema = details.tools[0].parameters_schema.as_deref().unwrap();
        assert!(schema.contains(r#""text""#), "{schema}");
        let unknown = bridge.proxy.details("nowhere").await.unwrap();
        assert_eq!(unknown.error.as_deref(), Some("Server 'nowhere' not found."));
        // The gateway has no tools that add servers.
        let refused = bridge.proxy.unregister("weather").await.unwrap();
        assert!(!refused.success && refused.error.unwrap().contains("does not add or remove"));
        within("the end", bridge.bridge.stop(Duration::from_secs(1))).await;
    })
    .await;
}

#[tokio::test]
async fn lost_server_is_connected_again_once() {
    let broker = TestBroker::start(BusBody::InProcess);
    let bridge = BridgeCase::start(broker.case("lost", |settings| settings.bridge.agents.clear()), "*").await;
    bridge.until_indexed(&["time", "weather"]).await;
    // The request of the proxy has reconnected all servers.
    bridge.servers.reconnects.send_replace(0);
    bridge.servers.reconnected.lock().unwrap().clear();
    assert_eq!(bridge.invoke("weather", "lost").await, r#"lost of weather got {"text":"x"}"#);
    assert_eq!(*bridge.servers.reconnected.lock().unwrap(), [Some("weather".to_owned())]);
}

#[tokio::test]
async fn agents_learn_about_changes() {
    on_every_body("changes", async |case| {
        let bus = case.bus();
        let alone = Subscription::alone(topic("tool.meta.mcp.other"));
        let mut other = bus.subscribe(alone).await.unwrap();
        let bridge = BridgeCase::start(case, "*").await;
        bridge.until_indexed(&["time", "weather"]).await;
        // An agent that the settings do not name learns about the servers once it has asked.
        let refresh = McpMetadataRefreshRequest { server_name: Some("Time".to_owned()) };
        let refresh = Envelope::of(&refresh, "other").unwrap();
        bridge.bus.broadcast(&topic("tool.meta.mcp.refresh"), refresh).await.unwrap();
        let told = within("the list", other.next()).await.unwrap().envelope.clone();
        let index: McpServersIndexed = told.read().unwrap();
        let names: Vec<_> = index.servers.iter().map(|server| server.server_name.as_str()).collect();
        assert_eq!((names, index.removed_servers.len()), (vec!["time", "weather"], 0));
        assert_eq!((&*told.source, &*told.headers["rb-content-trust"]), ("mcp-bridge.other", "system"));
        // A server goes and another one comes.
        let reconnects = bridge.servers.reconnects.subscribe();
        let time = NamedServer::new("time", &["forecast", "now"], reconnects.clone());
        let notes = NamedServer::new("notes", &["add"], reconnects);
        let mut check = async |servers: &[Arc<NamedServer>], changed: &[&str], removed: &[&str]| {
            bridge.registry.send_replace(registry(servers));
            let mut names: Vec<_> = servers.iter().map(|server| server.name).collect();
            names.sort_unstable();
            bridge.until_indexed(&names).await;
            let delivery = within("the change", other.next()).await.unwrap();
            let index: McpServersIndexed = delivery.envelope.read().unwrap();
            let told: Vec<_> = index.servers.iter().map(|server| server.server_name.as_str()).collect();
            assert_eq!(
                (&*told, index.removed_servers.iter().map(String::as_str).collect()),
                (changed, removed.to_vec())
            );
        };
        // Without the other server the name of a tool of `time` needs no prefix.
        check(&[time.clone(), notes.clone()], &["notes", "time"], &["weather"]).await;
        check(std::slice::from_ref(&time), &[], &["notes"]).await;
        check(&[time, notes], &["notes"], &[]).await;
    })
    .await;
}

#[tokio::test]
async fn request_before_the_start_of_the_bridge_reconnects_nothing() {
    let broker = TestBroker::start(BusBody::InProcess);
    let bridge = BridgeCase::start(broker.case("stale", |_| {}), "*").await;
    bridge.until_indexed(&["time", "weather"]).await;
    bridge.servers.reconnected.lock().unwrap().clear();
    let refresh = |server: &str, timestamp: u64| {
        let refresh = McpMetadataRefreshRequest { server_name: Some(server.to_owned()) };
        Envelope { timestamp, ..Envelope::of(&refresh, "a.b").unwrap() }
    };
    let now = toolyard_bus::envelope::now_millis;
    // Requests within a second of the one of the proxy reconnect nothing either.
    within("the refresh", async {
        while bridge.servers.reconnected.lock().unwrap().is_empty() {
            for request in [refresh("time", now() - 60_000), refresh("weather", now() + 1000)] {
                bridge.bus.broadcast(&topic("tool.meta.mcp.refresh"), request).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(*bridge.servers.reconnected.lock().unwrap(), [Some("weather".to_owned())]);
}

/// Sends requests as a client that knows only the documented forms does.
#[tokio::test]
async fn foreign_agent_calls_a_server() {
    on_every_body("agent", async |case| {
        let bridge = BridgeCase::start(case, "*").await;
        let requester = Requester::on(bridge.bus.clone(), topic("tool.result.agent"), 10).await.unwrap();
        let call: ToolInvokeRequest = serde_json::from_str(
            r#"{"toolCallId": "c1", "toolName": "forecast", "arguments": "{}", "sessionId": null}"#,
        )
        .unwrap();
        let envelope = Envelope::of(&call, "agent").unwrap().header("rb-mcp-server", "Time");
        let limit = Duration::from_secs(20);
        let reply = requester.request(&topic("tool.invoke.mcp"), envelope, limit).await.unwrap();
        let response: ToolInvokeResponse = reply.read().unwrap();
        assert_eq!(response.content.as_deref(), Some("forecast of time got {}"));
        // A request without a topic for its reply, and one that is none.
        let details = McpGetServiceDetailsRequest { server_name: "time".to_owned() };
        let unknown = Envelope::of(&McpServersIndexed::default(), "agent").unwrap();
        let register = McpRegisterServerRequest { server_name: "x".to_owned(), ..Default::default() };
        for bad in [
            Envelope::of(&details, "agent").unwrap(),
            unknown.replying_to(requester.topic()),
            Envelope::of(&register, "agent").unwrap().replying_to(&topic("mcp.manage")),
        ] {
            bridge.bus.publish(&topic("mcp.manage"), bad).await.unwrap();
        }
        let group = &bridge.case.settings.bridge.group;
        within("the dead letters", async {
            while bridge.bus.dead_letters(group, &pattern("mcp.manage"), 10).await.unwrap().len() < 3 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    })
    .await;
}

/// Calls a server before, during and after a restart of the broker, after which changes of the servers are known.
async fn bridge_survives_a_restart(body: BusBody) {
    let mut bridge = BridgeCase::start(TestBroker::start(body), "*").await;
    bridge.until_indexed(&["time", "weather"]).await;
    assert!(bridge.invoke("time", "now").await.starts_with("now of time"));
    block_in_place(|| bridge.case.server.as_mut().unwrap().kill());
    let request = request("now", "{}");
    let limit = RemoteCall::within(Duration::from_secs(3));
    let refused = within("an error", bridge.proxy.invoke("time", &request, limit)).await.unwrap_err();
    assert!([ErrorCode::Unavailable, ErrorCode::Timeout].contains(&refused.code()), "{refused}");
    block_in_place(|| bridge.case.server.as_mut().unwrap().run());
    within("the bridge", async {
        let again = || RemoteCall::within(Duration::from_secs(3));
        while bridge.proxy.invoke("time", &request, again()).await.is_err() {}
    })
    .await;
    let time = NamedServer::new("time", &["now"], bridge.servers.reconnects.subscribe());
    bridge.registry.send_replace(registry(&[time]));
    bridge.until_indexed(&["time"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bridge_survives_a_restart_of_rabbitmq() {
    bridge_survives_a_restart(BusBody::RabbitMq).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bridge_survives_a_restart_of_nats() {
    bridge_survives_a_restart(BusBody::Nats).await;
}
