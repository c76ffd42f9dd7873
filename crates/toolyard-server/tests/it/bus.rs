//! A gateway and a worker on a broker: traces and metrics of a call, and tasks that fire onto the bus.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolyard_bus::{Subscription, Topic};
use toolyard_core::access::AccessGrant;
use toolyard_core::{Call, Caller, Json};
use toolyard_manifest::BusSettings;
use toolyard_server::{GatewayOptions, RunningGateway};
use toolyard_testing::brokers::{BrokerProgram, MessageBroker};
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};

use crate::gateway::{call, entry, manifest_of, result_text, started, started_with};
use crate::telemetry::collector::OtlpCollector;
use crate::telemetry::page;

/// Starts a worker in front of this server, and a gateway that publishes its tools.
async fn worker_and_gateway(bus: &str, server: &TestUpstream) -> (RunningGateway, RunningGateway) {
    let config = format!("transport: streamable-http, endpoint: 'http://{}/mcp'", server.address);
    let worker = manifest_of(&entry("local", "", &config), bus);
    let options = GatewayOptions { bus_role: toolyard_server::BusRole::Worker, ..GatewayOptions::default() };
    let worker = started_with(&worker, &options).await;
    let gateway = started(&manifest_of("    - {name: workers, type: bus}\n", bus)).await;
    let mut registry = gateway.gateway().watch();
    let has_tool = registry.wait_for(|registry| registry.tool("t").is_ok());
    drop(timeout(Duration::from_secs(30), has_tool).await.expect("the tool of the worker").unwrap());
    (worker, gateway)
}

fn server() -> TestUpstream {
    let answer = |request: &ReceivedRequest| {
        ScriptedReply::result(request, r#"{"content":[{"type":"text","text":"found"}]}"#)
    };
    TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], answer))
}

#[tokio::test]
async fn trace_of_a_call_over_the_bus_is_connected() {
    let (broker, server) = (MessageBroker::start(BrokerProgram::Nats), server());
    let collector = OtlpCollector::over_grpc().await;
    let bus = format!(
        "bus: {{url: '{}'}}, telemetry: {{prefix: rockbot, otlp: {{endpoint: 'http://{}', protocol: grpc, \
         interval: 100ms}}}}",
        broker.url(),
        collector.address
    );
    let (worker, gateway) = worker_and_gateway(&bus, &server).await;
    let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let mut traced = Call::tool("t", Json::parse("{}".to_owned()).unwrap());
    traced.meta.set("traceparent", Json::string(&format!("00-{trace}-{span}-01")));
    let result = result_text(gateway.gateway().invoke(traced).await).unwrap();
    assert_eq!(result, r#"{"content":[{"type":"text","text":"found"}]}"#);
    // The server and the client span of the gateway, and those of the worker.
    let spans: Vec<Span> = collector.saw(|seen| seen.spans.len() == 4, |seen| seen.spans.clone()).await;
    let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert!(spans.iter().all(|span| hex(&span.trace_id) == trace), "{spans:?}");
    let mut parent = span.to_owned();
    for _ in 0..4 {
        let child = spans.iter().find(|child| hex(&child.parent_span_id) == parent);
        parent = hex(&child.unwrap_or_else(|| panic!("no child of {parent} in {spans:?}")).span_id);
    }
    let sent = server.now(|log| log.last("tools/call").head.header("traceparent").map(str::to_owned));
    assert_eq!(sent, Some(format!("00-{trace}-{parent}-01")));
    let metrics = collector.saw(
        |seen| {
            ["rockbot.tool.invoke.duration", "rockbot.tool.invocations"]
                .iter()
                .all(|name| seen.metrics.iter().any(|seen| seen == name))
        },
        |seen| seen.metrics.clone(),
    );
    metrics.await;
    gateway.stop().await;
    worker.stop().await;
}

#[tokio::test]
async fn calls_of_a_worker_have_the_metrics_of_the_contract() {
    let (broker, server) = (MessageBroker::start(BrokerProgram::Nats), server());
    let bus = format!("bus: {{url: '{}'}}, telemetry: {{prefix: rockbot}}", broker.url());
    let (worker, gateway) = worker_and_gateway(&bus, &server).await;
    call(&gateway, "t", "{}").await.unwrap();
    drop(gateway);
    let page = page(&worker).await;
    for line in [
        r#"rockbot_tool_invocations_total{status="ok",tool_name="t"} 1"#,
        r#"rockbot_tool_invoke_duration_milliseconds_count{status="ok",tool_name="t"} 1"#,
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in {page}");
    }
}

#[tokio::test]
async fn task_fires_onto_the_bus() {
    let broker = MessageBroker::start(BrokerProgram::Nats);
    let settings = BusSettings { url: Some(broker.url().parse().unwrap()), ..BusSettings::default() };
    let bus = toolyard_bus::connect(&settings).unwrap();
    let topic: Topic = "agent.task.planner".parse().unwrap();
    let mut tasks = bus.subscribe(Subscription::of_group("planner", topic)).await.unwrap();
    let process = format!(
        "bus: {{url: '{}'}}, builtins: {{scripts: {{enabled: false}}, schedules: {{timeZone: UTC, minInterval: 1s, \
         check: 50ms, action: {{bus: {{topic: agent.task.planner, messageType: Example.Task, \
         body: {{goal: '{{description}}', task: '{{name}}'}}}}}}}}}}",
        broker.url()
    );
    let gateway = started(&manifest_of("    []\n", &process)).await;
    let scope = ["*".parse().unwrap()].into_iter().collect();
    let grant = Some(Arc::new(AccessGrant { scope, ..AccessGrant::default() }));
    let task = json!({"name": "report", "cron": "* * * * * *", "description": "Sum up {name}."});
    let mut schedule = Call::tool("schedule_task", Json::from_value(&task));
    schedule.caller = Caller { grant, ..Caller::default() };
    let scheduled = result_text(gateway.gateway().invoke(schedule).await).unwrap();
    assert!(scheduled.contains("Scheduled task 'report'"), "{scheduled}");
    let fired = timeout(Duration::from_secs(30), tasks.next()).await.expect("a message").unwrap();
    let envelope = fired.envelope.clone();
    fired.ack().await.unwrap();
    assert_eq!(envelope.message_type, "Example.Task");
    assert_eq!(envelope.headers["rb-content-trust"], "agent-message");
    assert!(envelope.correlation_id.is_some());
    let body: Value = serde_json::from_slice(&envelope.body).unwrap();
    assert_eq!(body, json!({"goal": "Sum up {name}.", "task": "report"}));
}
