//! Telemetry of calls, from the view of a collector, of upstreams and of a metrics scraper.

pub(crate) mod collector;

use std::fmt::Write;

use insta::assert_snapshot;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use toolyard_server::telemetry::names;
use toolyard_server::{GatewayOptions, RunningGateway};
use toolyard_testing::upstream::{
    ReceivedRequest, ReservedAddress, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, WireClient, WireConnection};

use self::collector::{OtlpCollector, attribute};
use crate::gateway::{entry, manifest_of, started};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENTS_SPAN: &str = "00f067aa0ba902b7";

/// The trace context of a client: as a member of `_meta`, and as a header.
fn context() -> String {
    format!("00-{TRACE}-{CLIENTS_SPAN}-01")
}

/// A tool that succeeds, reports an error, or is refused by its server.
fn tool_reply(request: &ReceivedRequest) -> ScriptedReply {
    match &*request.params().get("arguments").text() {
        r#"{"n":1}"# => ScriptedReply::result(request, r#"{"content":[],"isError":true}"#),
        r#"{"n":2}"# => {
            let id = request.id();
            ScriptedReply::json(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"no"}}}}"#
            ))
        }
        _ => ScriptedReply::result(request, r#"{"content":[]}"#),
    }
}

/// One server for each protocol over the network: MCP of both eras, and an HTTP endpoint.
struct TracedServers {
    modern: TestUpstream,
    legacy: TestUpstream,
    plain: TestUpstream,
}

impl TracedServers {
    fn start() -> Self {
        Self {
            modern: TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Modern, &[TOOL], tool_reply)),
            legacy: TestUpstream::start(ScriptedUpstream::new(UpstreamEra::Legacy, &[TOOL], tool_reply)),
            plain: TestUpstream::start(|_: &ReceivedRequest| ScriptedReply::json("{}")),
        }
    }

    /// A gateway in front of these servers. Their tools are `t`, `legacy_t` and `plain`.
    async fn gateway(&self, process: &str) -> RunningGateway {
        let mcp = |name: &str, server: &TestUpstream| {
            entry(name, "", &format!("transport: streamable-http, endpoint: 'http://{}/mcp'", server.address))
        };
        let plain = format!(
            "    - {{name: plain, type: http, endpoint: {{url: 'http://{}/'}}, tool: {{name: plain, description: x, \
             inputSchema: {{type: object}}}}, httpConfig: {{}}}}\n",
            self.plain.address
        );
        let handlers = mcp("modern", &self.modern) + &mcp("legacy", &self.legacy) + &plain;
        started(&manifest_of(&handlers, process)).await
    }

    /// The trace contexts of the latest call at each server: in the header, and in `_meta`.
    fn contexts(&self) -> Vec<(Option<String>, Option<String>)> {
        let mcp = |server: &TestUpstream| {
            server.now(|log| {
                let call = log.last("tools/call");
                let header = call.head.header("traceparent").map(str::to_owned);
                (
                    header,
                    call.params()
                        .get("_meta")
                        .find("traceparent")
                        .map(toolyard_testing::json::JsonNode::plain),
                )
            })
        };
        let plain = self.plain.now(|log| {
            let call = log.requests.last().expect("a request came");
            (call.head.header("traceparent").map(str::to_owned), None)
        });
        vec![mcp(&self.modern), mcp(&self.legacy), plain]
    }
}

fn otlp(collector: &OtlpCollector, protocol: &str) -> String {
    format!(
        "telemetry: {{otlp: {{endpoint: 'http://{}', protocol: {protocol}, headers: {{x-key: k}}, interval: 100ms}}}}",
        collector.address
    )
}

/// The entry of a server that never runs.
fn one_handler() -> String {
    entry("h", "", "transport: streamable-http, endpoint: 'http://127.0.0.1:1/mcp'")
}

fn hex(id: &[u8]) -> String {
    id.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// A span as text, without the ids that differ between runs.
fn span_text(span: &Span) -> String {
    let kind = SpanKind::try_from(span.kind).unwrap().as_str_name();
    let mut attributes: Vec<_> = span
        .attributes
        .iter()
        .map(|one| format!("{}={}", one.key, attribute(&span.attributes, &one.key).unwrap_or("?")))
        .filter(|one| !one.starts_with("mcp.session.id="))
        .collect();
    attributes.sort();
    let status = span.status.clone().unwrap_or_default();
    format!("{kind} {} {:?} {} [{}]", span.name, status.code(), status.message, attributes.join(" "))
}

/// Calls each tool with the trace context of a client.
async fn call_each(running: &RunningGateway) {
    let meta = format!(r#""traceparent":"{}","tracestate":"a=b""#, context());
    for tool in ["t", "legacy_t", "plain"] {
        let mut client = WireClient::new(running.address(), ClientMode::Modern).await;
        let params = client.call_params(tool, "{}", &meta);
        let response = client.ask("tools/call", &params).await;
        assert!(response.body.contains("result"), "{}", response.body);
    }
}

/// Checks that one trace spans the client, the gateway and each server.
async fn check_trace(collector: OtlpCollector, protocol: &str) {
    let servers = TracedServers::start();
    let running = servers.gateway(&otlp(&collector, protocol)).await;
    call_each(&running).await;
    let spans = collector.saw(|seen| seen.spans.len() == 6, |seen| seen.spans.clone()).await;
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE && span.trace_state == "a=b"));
    let is_server = |span: &&Span| span.kind() == SpanKind::Server;
    let (of_gateway, of_legs): (Vec<_>, Vec<_>) = spans.iter().partition(is_server);
    for (tool, (header, meta)) in ["t", "legacy_t", "plain"].iter().zip(servers.contexts()) {
        let server = of_gateway.iter().find(|span| span.name == format!("tools/call {tool}")).unwrap();
        assert_eq!(hex(&server.parent_span_id), CLIENTS_SPAN);
        let leg = of_legs.iter().find(|leg| leg.parent_span_id == server.span_id).unwrap();
        let sent = format!("00-{TRACE}-{}-01", hex(&leg.span_id));
        assert_eq!(header.as_deref(), Some(&*sent), "{tool}");
        assert!(*tool == "plain" || meta.as_deref() == Some(&*sent), "{tool}: {meta:?}");
    }
    let name = collector
        .saw(|_| true, |seen| attribute(&seen.resources[0], "service.name").map(str::to_owned))
        .await;
    assert_eq!(name.as_deref(), Some("toolyard"));
    let metrics = collector.saw(|seen| !seen.metrics.is_empty(), |seen| seen.metrics.clone()).await;
    assert!(metrics.contains(&"toolyard.tool.invocations".to_owned()), "{metrics:?}");
    assert!(collector.saw(|_| true, |seen| seen.keys.iter().all(|key| key == "k")).await);
    running.stop().await;
}

#[tokio::test]
async fn one_trace_over_grpc() {
    check_trace(OtlpCollector::over_grpc().await, "grpc").await;
}

#[tokio::test]
async fn one_trace_over_http() {
    check_trace(OtlpCollector::over_http().await, "http").await;
}

/// The spans show how each call ends. The gateway sends them before it stops.
#[tokio::test]
async fn spans_describe_each_outcome() {
    let collector = OtlpCollector::over_grpc().await;
    let servers = TracedServers::start();
    let running = servers.gateway(&otlp(&collector, "grpc")).await;
    let mut client = WireClient::in_session(running.address()).await;
    for (tool, arguments) in
        [("t", "{}"), ("t", r#"{"n":1}"#), ("t", r#"{"n":2}"#), ("t", "[]"), ("nobody", "{}")]
    {
        client.call(tool, arguments).await;
    }
    running.stop().await;
    let spans = collector.saw(|_| true, |seen| seen.spans.iter().map(span_text).collect::<Vec<_>>()).await;
    assert_snapshot!(spans.join("\n"), @"
    SPAN_KIND_CLIENT tools/call t Unset  [gen_ai.operation.name=execute_tool gen_ai.tool.name=t mcp.method.name=tools/call toolyard.handler=modern]
    SPAN_KIND_SERVER tools/call t Unset  [gen_ai.operation.name=execute_tool gen_ai.tool.name=t mcp.method.name=tools/call network.transport=tcp toolyard.handler=modern]
    SPAN_KIND_CLIENT tools/call t Error  [error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=t mcp.method.name=tools/call toolyard.handler=modern]
    SPAN_KIND_SERVER tools/call t Error  [error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=t mcp.method.name=tools/call network.transport=tcp toolyard.handler=modern]
    SPAN_KIND_CLIENT tools/call t Error The server answered with an error of its own [error.type=execution_failed gen_ai.operation.name=execute_tool gen_ai.tool.name=t mcp.method.name=tools/call rpc.response.status_code=-32000 toolyard.handler=modern]
    SPAN_KIND_SERVER tools/call t Error The server answered with an error of its own [error.type=execution_failed gen_ai.operation.name=execute_tool gen_ai.tool.name=t mcp.method.name=tools/call network.transport=tcp rpc.response.status_code=-32000 toolyard.handler=modern]
    SPAN_KIND_SERVER tools/call t Error Invalid arguments: expected an object [error.type=invalid_arguments gen_ai.operation.name=execute_tool gen_ai.tool.name=t mcp.method.name=tools/call network.transport=tcp toolyard.handler=modern]
    ");
}

/// Without a collector, the gateway forwards the client's context unchanged, whether it came in `_meta` or in a header.
#[tokio::test]
async fn trace_context_is_forwarded_without_a_collector() {
    let servers = TracedServers::start();
    let running = servers.gateway("").await;
    call_each(&running).await;
    let passed = Some(context());
    let everywhere = vec![(passed.clone(), passed.clone()), (passed.clone(), passed.clone()), (passed, None)];
    assert_eq!(servers.contexts(), everywhere);

    let mut client = WireClient::new(running.address(), ClientMode::Modern).await;
    let other = format!("00-{TRACE}-00000000000000ff-00");
    for tool in ["t", "legacy_t", "plain"] {
        let params = client.call_params(tool, "{}", "");
        let baggage = "baggage: user=a\r\n";
        client.send(&format!("traceparent: {other}\r\n{baggage}"), "tools/call", &params).await;
        client.answered().await;
    }
    let passed = Some(other);
    let everywhere = vec![(passed.clone(), passed.clone()), (passed.clone(), passed.clone()), (passed, None)];
    assert_eq!(servers.contexts(), everywhere);
    let baggage =
        servers.plain.now(|log| log.requests.last().unwrap().head.header("baggage").map(str::to_owned));
    assert_eq!(baggage.as_deref(), Some("user=a"));
}

pub(crate) async fn page(running: &RunningGateway) -> String {
    let mut connection = WireConnection::open(running.address()).await;
    connection.send(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let response = connection.response().await.unwrap();
    assert_eq!(response.head.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    response.body
}

/// The lines of a metrics page that begin with one of these prefixes, without the lines about time.
fn lines(page: &str, starts: &[&str]) -> String {
    let lines = page.lines().filter(|line| starts.iter().any(|start| line.starts_with(start)));
    lines.collect::<Vec<_>>().join("\n")
}

/// The configuration bounds the values of labels; callers cannot add any.
#[tokio::test]
async fn metrics_page_has_bounded_labels() {
    let servers = TracedServers::start();
    let running = servers.gateway("telemetry: {prefix: rockbot}, limits: {metricLabels: 1}").await;
    let mut client = WireClient::in_session(running.address()).await;
    for (tool, arguments) in
        [("t", "{}"), ("t", r#"{"n":1}"#), ("t", r#"{"n":2}"#), ("plain", "{}"), ("legacy_t", "{}")]
    {
        client.call(tool, arguments).await;
    }
    for number in 0..100 {
        client.call(&format!("invented{number}"), "{}").await;
    }
    let page = page(&running).await;
    assert!(!page.contains("invented"), "{page}");
    let samples = lines(
        &page,
        &[
            "rockbot_tool_invocations_total{",
            "rockbot_tool_invoke_duration_milliseconds_count",
            "mcp_server_operation_duration_seconds_count",
            "mcp_client_operation_duration_seconds_count",
            "rockbot_calls_active",
            "rockbot_handler",
            "rockbot_processes",
            "rockbot_telemetry",
            "target_info",
        ],
    );
    assert_snapshot!(samples, @r#"
    mcp_client_operation_duration_seconds_count{gen_ai_operation_name="execute_tool",gen_ai_tool_name="other",mcp_method_name="tools/call"} 2
    mcp_client_operation_duration_seconds_count{gen_ai_operation_name="execute_tool",gen_ai_tool_name="t",mcp_method_name="tools/call"} 1
    mcp_client_operation_duration_seconds_count{error_type="execution_failed",gen_ai_operation_name="execute_tool",gen_ai_tool_name="t",mcp_method_name="tools/call"} 1
    mcp_client_operation_duration_seconds_count{error_type="tool_error",gen_ai_operation_name="execute_tool",gen_ai_tool_name="t",mcp_method_name="tools/call"} 1
    mcp_server_operation_duration_seconds_count{gen_ai_operation_name="execute_tool",gen_ai_tool_name="other",mcp_method_name="tools/call",network_transport="tcp"} 2
    mcp_server_operation_duration_seconds_count{gen_ai_operation_name="execute_tool",gen_ai_tool_name="t",mcp_method_name="tools/call",network_transport="tcp"} 1
    mcp_server_operation_duration_seconds_count{error_type="execution_failed",gen_ai_operation_name="execute_tool",gen_ai_tool_name="t",mcp_method_name="tools/call",network_transport="tcp"} 1
    mcp_server_operation_duration_seconds_count{error_type="tool_error",gen_ai_operation_name="execute_tool",gen_ai_tool_name="t",mcp_method_name="tools/call",network_transport="tcp"} 1
    rockbot_calls_active 0
    rockbot_handler_ready{handler="legacy"} 1
    rockbot_handler_ready{handler="modern"} 1
    rockbot_handler_ready{handler="plain"} 1
    rockbot_handlers{phase="connecting"} 0
    rockbot_handlers{phase="ready"} 3
    rockbot_handlers{phase="unavailable"} 0
    rockbot_processes 0
    rockbot_telemetry_lost_total{signal="metrics"} 0
    rockbot_telemetry_lost_total{signal="traces"} 0
    rockbot_tool_invocations_total{status="tool_not_found"} 100
    rockbot_tool_invocations_total{status="execution_failed",tool_name="t"} 1
    rockbot_tool_invocations_total{status="ok",tool_name="other"} 2
    rockbot_tool_invocations_total{status="ok",tool_name="t"} 1
    rockbot_tool_invocations_total{status="tool_error",tool_name="t"} 1
    rockbot_tool_invoke_duration_milliseconds_count{status="execution_failed",tool_name="t"} 1
    rockbot_tool_invoke_duration_milliseconds_count{status="ok",tool_name="other"} 2
    rockbot_tool_invoke_duration_milliseconds_count{status="ok",tool_name="t"} 1
    rockbot_tool_invoke_duration_milliseconds_count{status="tool_error",tool_name="t"} 1
    target_info{service_name="toolyard",service_version="0.1.0",telemetry_sdk_language="rust",telemetry_sdk_name="opentelemetry",telemetry_sdk_version="0.33.1"} 1
    "#);
}

/// A missing collector does not affect calls; lost spans are counted, and shutdown does not wait long for the rest.
#[tokio::test]
async fn missing_collector_does_not_block_calls() {
    for protocol in ["grpc", "http"] {
        let nobody = ReservedAddress::new();
        let servers = TracedServers::start();
        let telemetry = format!(
            "telemetry: {{otlp: {{endpoint: 'http://{}', protocol: {protocol}, interval: 50ms}}}}, \
             timeouts: {{export: 100ms}}, limits: {{queuedSpans: 1}}",
            nobody.address()
        );
        let running = servers.gateway(&telemetry).await;
        let mut client = WireClient::in_session(running.address()).await;
        for _ in 0..20 {
            assert!(client.call("t", "{}").await.body.contains("result"));
        }
        // Of 40 spans, at most one waits in the queue and one is being sent.
        let lost = loop {
            let page = page(&running).await;
            let lost = lines(&page, &["toolyard_telemetry_lost_total{signal=\"traces\"}"]);
            let lost: u64 = lost.rsplit(' ').next().unwrap().parse().unwrap();
            let metrics = lines(&page, &["toolyard_telemetry_lost_total{signal=\"metrics\"}"]);
            if lost >= 30 && !metrics.ends_with(" 0") {
                break lost;
            }
        };
        assert!(lost <= 40, "{lost}");
        running.stop().await;
    }
}

/// The sampling ratio applies to traces without a sampling decision of the client.
#[tokio::test]
async fn sampling_respects_the_client() {
    let collector = OtlpCollector::over_grpc().await;
    let servers = TracedServers::start();
    let telemetry = otlp(&collector, "grpc").replace("telemetry: {", "telemetry: {traces: {sample: 0}, ");
    let running = servers.gateway(&telemetry).await;
    let mut client = WireClient::in_session(running.address()).await;
    client.call("t", "{}").await;
    let header =
        servers.modern.now(|log| log.last("tools/call").head.header("traceparent").map(str::to_owned));
    assert!(header.as_ref().is_some_and(|header| header.ends_with("-00")), "{header:?}");
    call_each(&running).await;
    running.stop().await;
    assert_eq!(collector.saw(|_| true, |seen| seen.spans.len()).await, 6);
}

#[tokio::test]
async fn every_instrument_is_on_the_metrics_page() {
    let servers = TracedServers::start();
    let running = servers.gateway("").await;
    call_each(&running).await;
    let page = page(&running).await;
    for instrument in names::INSTRUMENTS {
        let name = instrument.full_name("toolyard").replace('.', "_");
        assert!(page.contains(&format!("# TYPE {name}")), "{name} is not in\n{page}");
    }
}

/// Metrics are readable from the gateway's own origin only.
#[tokio::test]
async fn other_origins_get_no_metrics() {
    let running = started(&manifest_of(&one_handler(), "")).await;
    let mut connection = WireConnection::open(running.address()).await;
    connection.send(b"GET /metrics HTTP/1.1\r\nhost: evil.example\r\n\r\n").await;
    assert!(connection.response().await.unwrap().head.start.contains("403"));
}

/// Collects the filters that the log is set to.
#[tokio::test]
async fn log_filter_edit_is_applied_at_once() {
    let (told, now) = tokio::sync::watch::channel(Vec::new());
    let log = toolyard_server::log::LogControl::new(move |filter: &str| {
        told.send_modify(|told: &mut Vec<String>| told.push(filter.to_owned()));
        Ok(())
    });
    let manifest = |filter: &str| manifest_of(&one_handler(), &format!("logs: {{filter: '{filter}'}}"));
    let options = GatewayOptions { log, ..GatewayOptions::default() };
    let running = toolyard_server::start(&manifest("info"), &options).await.unwrap();
    for (filter, told) in [("info", vec![]), ("warn", vec!["warn"]), ("warn", vec!["warn"])] {
        let applied = running.apply(&manifest(filter)).await.unwrap();
        assert!(!applied.needs_restart);
        assert_eq!(*now.borrow(), told);
    }
    running.set_log_filter("debug").unwrap();
    // An edit of another setting keeps the filter that was set at run time.
    running.apply(&manifest("warn")).await.unwrap();
    assert_eq!(*now.borrow(), ["warn", "debug"]);
}

/// The documentation names exactly the instruments and attributes of the code.
#[test]
fn documentation_matches_the_telemetry_names() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/telemetry.md");
    let text = std::fs::read_to_string(path).unwrap();
    let quoted = |name: &&str| format!("`{name}`");
    let row = |one: &&names::MetricInstrument| {
        let kind = format!("{:?}", one.kind).to_lowercase();
        let attributes = one.attributes.iter().map(quoted).collect::<Vec<_>>().join(", ");
        let name = one.full_name("toolyard");
        format!("| `{name}` | {kind} | {} | {attributes} | {} |", one.unit, one.description)
            .replace("|  |", "| |")
    };
    let expected: Vec<_> = names::INSTRUMENTS.iter().map(row).collect();
    let tables: Vec<_> = text.lines().filter(|line| line.starts_with("| `")).collect();
    let (metrics, attributes) = tables.split_at(expected.len());
    assert_eq!(metrics, expected);
    let mut documented: Vec<_> = attributes.iter().map(|line| line.split('`').nth(1).unwrap()).collect();
    documented.sort_unstable();
    let mut attribute_names = names::SPAN_ATTRIBUTES;
    attribute_names.sort_unstable();
    assert_eq!(documented, attribute_names);
}
