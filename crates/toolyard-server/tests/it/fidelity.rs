//! Fidelity of forwarded messages: the same tokens in the same order, for each pair of client and server eras.

mod elicitation;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use toolyard_core::Registry;
use toolyard_server::RunningGateway;
use toolyard_testing::json::{self, JsonNode};
use toolyard_testing::upstream::{
    ReceivedRequest, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use crate::gateway::gateway;
use crate::json_values::{members, objects, strings, values};

/// Nesting depth of payloads. Tests of the limit are in `toolyard::full nesting`; a larger depth makes these slow.
pub(crate) const DEEP: usize = 100;

/// Runs `check` with many values on one runtime.
pub(crate) fn for_all<S: Strategy>(
    cases: u32,
    strategy: &S,
    runtime: &Runtime,
    check: impl AsyncFn(S::Value),
) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let run = runner.run(strategy, |value| {
        runtime.block_on(check(value));
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A gateway in front of a legacy server `old` and a modern server `new`, with one tool each.
struct FidelityGateway {
    running: RunningGateway,
    old: TestUpstream,
    new: TestUpstream,
    /// The answer of both servers to a call.
    says: Arc<Mutex<ScriptedAnswer>>,
    speeches: [ClientMode; 3],
}

/// A scripted answer: the members after `id`, and the encoding of the response.
#[derive(Debug, Clone, Default)]
struct ScriptedAnswer {
    member: String,
    /// A notification to send before the response.
    notice: Option<PriorNotification>,
    status: u16,
    sending: ReplyEncoding,
}

/// The parameters of a notification.
#[derive(Debug, Clone)]
enum PriorNotification {
    /// Without the token, which comes last.
    Progress(String),
    Log(String),
}

#[derive(Debug, Clone, Default)]
enum ReplyEncoding {
    #[default]
    Json,
    Events {
        /// Position at which the stream is split, in percent of its length.
        cut: usize,
    },
}

impl ScriptedAnswer {
    fn reply(&self, request: &ReceivedRequest) -> ScriptedReply {
        let message = format!(r#"{{"jsonrpc": "2.0", "id":{}, {}}}"#, request.id(), self.member);
        let ReplyEncoding::Events { cut } = self.sending else {
            return ScriptedReply::http(self.status, "content-type: application/json\r\n", &message);
        };
        let mut stream = String::new();
        if let Some(notice) = &self.notice {
            let (method, params) = match notice {
                PriorNotification::Progress(params) => {
                    let token = request.params().get("_meta").get("progressToken").text();
                    let params = params.strip_suffix('}').unwrap();
                    ("notifications/progress", format!("{params},\"progressToken\":{token}}}"))
                }
                PriorNotification::Log(params) => ("notifications/message", params.clone()),
            };
            stream += &event(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
        }
        let stream = Bytes::from(stream + &event(&message));
        let cut = stream.len() * cut / 100;
        ScriptedReply::events(
            [stream.slice(..cut), stream.slice(cut..)].into_iter().filter(|piece| !piece.is_empty()),
        )
    }
}

/// An event with one `data` line for each line of the message.
fn event(message: &str) -> String {
    let lines: String = message.split(['\n', '\r']).map(|line| format!("data: {line}\n")).collect();
    lines + "\n"
}

impl FidelityGateway {
    async fn start() -> Self {
        let says = Arc::new(Mutex::new(ScriptedAnswer::default()));
        let call = || {
            let says = says.clone();
            move |request: &ReceivedRequest| says.lock().unwrap().reply(request)
        };
        let old = TestUpstream::start(ScriptedUpstream::new(
            UpstreamEra::Legacy,
            &[&TOOL.replace("\"t\"", "\"old.t\"")],
            call(),
        ));
        let new = TestUpstream::start(ScriptedUpstream::new(
            UpstreamEra::Modern,
            &[&TOOL.replace("\"t\"", "\"new.t\"")],
            call(),
        ));
        let running = gateway(&[("old", old.address, ""), ("new", new.address, "")], "").await;
        let session = WireClient::in_session(running.address()).await.mode;
        Self { running, old, new, says, speeches: [session, ClientMode::Bare, ClientMode::Modern] }
    }

    async fn client(&self, mode: &ClientMode) -> WireClient {
        WireClient::new(self.running.address(), mode.clone()).await
    }

    /// Both servers, with the advertised and the original names of their tools.
    fn servers(&self) -> [(&TestUpstream, &'static str, &'static str); 2] {
        [(&self.old, "old_old_t", "old.t"), (&self.new, "new_new_t", "new.t")]
    }

    /// Calls both servers with each kind of client, and compares the responses with `expect`.
    async fn compare(&self, says: &ScriptedAnswer, expect: impl Fn(&ClientMode) -> JsonNode) {
        *self.says.lock().unwrap() = says.clone();
        for mode in &self.speeches {
            for (_, name, _) in self.servers() {
                let response = self.client(mode).await.call(name, "{}").await;
                let expect = format!(r#"{{"jsonrpc":"2.0","id":7,{}}}"#, &expect(mode).text()[1..]);
                let expect = expect.strip_suffix('}').unwrap();
                assert_eq!(json::read(&response.body).text(), expect, "{mode:?} calls {name}");
            }
        }
    }
}

fn sendings() -> impl Strategy<Value = ReplyEncoding> {
    prop_oneof![Just(ReplyEncoding::Json), (0..100usize).prop_map(|cut| ReplyEncoding::Events { cut })]
}

#[test]
fn results() {
    let runtime = runtime();
    let gateway = runtime.block_on(FidelityGateway::start());
    let content = r#"[{"type":"hologram","n":1.10},{"type":"text","text":"\ud800"}]"#;
    let results = objects(
        vec![
            ("content", prop_oneof![Just(content.to_owned()), values(0)].boxed()),
            ("structuredContent", values(DEEP)),
            ("isError", prop_oneof![Just("true"), Just("false"), Just("7")].prop_map(str::to_owned).boxed()),
            ("_meta", values(0)),
        ],
        members(DEEP),
    );
    let typed = objects(vec![("resultType", Just(r#""complete""#.to_owned()).boxed())], members(DEEP));
    let results = prop_oneof![4 => results, 1 => typed, 1 => Just("{}".to_owned())];
    for_all(250, &(results, sendings()), &runtime, async |(result, sending)| {
        let member = format!("\"result\":{result}");
        let says = ScriptedAnswer { member: member.clone(), status: 200, sending, notice: None };
        let expect = |mode: &ClientMode| {
            let mut message = json::read(&format!("{{{member}}}"));
            let result = &mut message.members()[0].1;
            // The gateway may only add this member, because a modern client needs to know that a result is complete.
            if *mode == ClientMode::Modern && result.find("resultType").is_none() {
                result.members().push(("resultType".to_owned(), JsonNode::Token(r#""complete""#.to_owned())));
            }
            message
        };
        gateway.compare(&says, expect).await;
    });
}

#[test]
fn server_errors_are_forwarded_unchanged() {
    let runtime = runtime();
    let gateway = runtime.block_on(FidelityGateway::start());
    // These two codes mean that the gateway's own request was wrong, not the client's.
    let own = |code: &i64| ![-32020, -32022].contains(code);
    let codes = prop_oneof![any::<i64>(), -33000..-32000i64].prop_filter("not the gateway's", own);
    let codes = codes.prop_map(|code| code.to_string());
    let errors =
        objects(vec![("code", codes.boxed()), ("message", strings()), ("data", values(DEEP))], members(DEEP));
    let statuses = prop::sample::select(vec![200, 400, 404, 500]);
    for_all(150, &(errors, sendings(), statuses), &runtime, async |(error, sending, status)| {
        let member = format!("\"error\":{error}");
        let says = ScriptedAnswer { member: member.clone(), status, sending, notice: None };
        gateway.compare(&says, |_| json::read(&format!("{{{member}}}"))).await;
    });
}

#[test]
fn progress() {
    let runtime = runtime();
    let gateway = runtime.block_on(FidelityGateway::start());
    let params = objects(vec![("progress", values(0)), ("total", values(0))], members(DEEP));
    for_all(50, &(params, 0..100usize), &runtime, async |(params, cut)| {
        let says = ScriptedAnswer {
            member: "\"result\":{}".to_owned(),
            notice: Some(PriorNotification::Progress(params.clone())),
            status: 200,
            sending: ReplyEncoding::Events { cut },
        };
        *gateway.says.lock().unwrap() = says;
        for mode in &gateway.speeches {
            for (_, name, _) in gateway.servers() {
                let client = gateway.client(mode).await;
                let call = client.call_params(name, "{}", r#""progressToken":"mine""#);
                let mut stream = client.open("tools/call", &call).await;
                let notice = stream.message().await.expect("progress comes before the answer");
                let mut expect = json::read(&params);
                expect.members().push(("progressToken".to_owned(), JsonNode::Token("\"mine\"".to_owned())));
                assert_eq!(json::read(&notice).get("params").text(), expect.text());
                let answer = stream.message().await.expect("the answer comes last");
                assert_eq!(json::read(&answer).get("id").text(), "7");
                assert_eq!(stream.message().await, None);
            }
        }
    });
}

/// Log notifications reach clients that subscribe to all levels.
#[test]
fn log() {
    let runtime = runtime();
    let gateway = runtime.block_on(FidelityGateway::start());
    let mut session = runtime.block_on(WireClient::in_session(gateway.running.address()));
    runtime.block_on(async {
        let set = session.ask("logging/setLevel", r#"{"level":"debug"}"#).await;
        assert!(set.body.contains("result"), "{}", set.body);
    });
    let level = || Just("\"info\"".to_owned()).boxed();
    let params = objects(vec![("level", level()), ("data", values(DEEP))], members(DEEP));
    for_all(50, &(params, 0..100usize), &runtime, async |(params, cut)| {
        let says = ScriptedAnswer {
            member: "\"result\":{}".to_owned(),
            notice: Some(PriorNotification::Log(params.clone())),
            status: 200,
            sending: ReplyEncoding::Events { cut },
        };
        *gateway.says.lock().unwrap() = says;
        for mode in [&session.mode, &ClientMode::Modern] {
            for (_, name, _) in gateway.servers() {
                let client = gateway.client(mode).await;
                let call = client.call_params(name, "{}", r#""io.modelcontextprotocol/logLevel":"debug""#);
                let mut stream = client.open("tools/call", &call).await;
                let notice = stream.message().await.expect("log comes before the answer");
                assert_eq!(json::read(&notice).get("params").text(), json::read(&params).text());
                let answer = stream.message().await.expect("the answer comes last");
                assert_eq!(json::read(&answer).get("id").text(), "7");
            }
        }
    });
}

/// True for members of `_meta` that concern the message and not the call, and that the gateway sets itself.
fn is_about_the_message(key: &str) -> bool {
    key == "progressToken" || key.starts_with("io.modelcontextprotocol/")
}

/// The parameters without the members that the gateway may change.
fn untouchable(mut params: JsonNode) -> String {
    params.members().retain(|(key, _)| key != "name");
    if let Some((_, meta)) = params.members().iter_mut().find(|(key, _)| key == "_meta") {
        meta.members().retain(|(key, _)| !is_about_the_message(key));
    }
    // An empty `_meta` means the same as an absent one.
    params.members().retain(|(key, value)| key != "_meta" || *value != JsonNode::Object(Vec::new()));
    params.text()
}

/// The parameters of a call to each of the two servers.
fn calls() -> impl Strategy<Value = [String; 2]> {
    let token = prop_oneof![strings(), Just("1.0".to_owned()), Just("18446744073709551616".to_owned())];
    let meta = || vec![("traceparent", strings()), ("com.example/x", values(DEEP))];
    let modern = || {
        vec![
            ("io.modelcontextprotocol/protocolVersion", Just("\"2026-07-28\"".to_owned()).boxed()),
            ("io.modelcontextprotocol/clientCapabilities", Just(r#"{"roots":{}}"#.to_owned()).boxed()),
        ]
    };
    let token = || vec![("progressToken", token.clone().boxed())];
    let metas = prop_oneof![
        objects([meta(), modern()].into_iter().flatten().collect(), members(DEEP)),
        objects([meta(), modern(), token()].into_iter().flatten().collect(), members(0)),
    ];
    let arguments = prop_oneof![
        objects(vec![], members(DEEP)),
        objects(vec![("name", values(0)), ("_meta", values(DEEP))], members(0)),
    ];
    let params = objects(
        vec![
            ("name", Just("\"NAME\"".to_owned()).boxed()),
            ("arguments", arguments.boxed()),
            ("_meta", metas.boxed()),
        ],
        members(DEEP),
    );
    params.prop_map(|params| {
        ["old_old_t", "new_new_t"].map(|name| params.replace("\"NAME\"", &format!("\"{name}\"")))
    })
}

#[test]
fn parameters_reach_the_server_unchanged() {
    let runtime = runtime();
    let gateway = runtime.block_on(FidelityGateway::start());
    *gateway.says.lock().unwrap() =
        ScriptedAnswer { member: "\"result\":{}".to_owned(), status: 200, ..ScriptedAnswer::default() };
    for_all(120, &calls(), &runtime, async |calls| {
        for ((server, _, owners_name), params) in gateway.servers().into_iter().zip(&calls) {
            // A request that names its revision is modern, whichever client sends it: legacy clients never name one.
            let legacy =
                params.replace("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/other");
            for mode in &gateway.speeches {
                let sent = if *mode == ClientMode::Modern { params } else { &legacy };
                let response = gateway.client(mode).await.ask("tools/call", sent).await;
                assert_eq!(response.head.status(), 200, "{}", response.body);
                let received = server.now(|log| log.last("tools/call").clone());
                let (sent, got) = (json::read(sent), received.params());
                assert_eq!(got.get("name").plain(), owners_name);
                assert_eq!(
                    untouchable(got.clone()),
                    untouchable(sent.clone()),
                    "{mode:?} calls {owners_name}"
                );
                let token = |params: &JsonNode| {
                    params.find("_meta").and_then(|meta| meta.find("progressToken")).cloned()
                };
                assert_eq!(token(&got), None, "a client without a stream gets no progress token");
            }
        }
    });
}

/// Valid tool definitions without their names.
fn definitions() -> impl Strategy<Value = Vec<String>> {
    let schema = vec![("type", Just("\"object\"".to_owned()).boxed())];
    let definition = objects(
        vec![
            ("name", Just("\"NAME\"".to_owned()).boxed()),
            ("inputSchema", objects(schema, members(DEEP - 1)).boxed()),
            ("annotations", objects(Vec::new(), members(0)).boxed()),
            ("execution", objects(Vec::new(), members(0)).boxed()),
        ],
        members(DEEP),
    );
    prop::collection::vec(definition, 0..50)
}

#[test]
fn definitions_of_tools() {
    let runtime = runtime();
    let start = async || {
        let (tools, offered): (Vec<_>, Vec<_>) = [UpstreamEra::Legacy, UpstreamEra::Modern]
            .map(|_| watch::channel(Vec::new()))
            .into_iter()
            .unzip();
        let mut offered = offered.into_iter();
        let server = |era, tools| ScriptedUpstream {
            era,
            tools,
            call: Box::new(|_: &ReceivedRequest| ScriptedReply::never()),
        };
        let servers = [UpstreamEra::Legacy, UpstreamEra::Modern]
            .map(|era| TestUpstream::start(server(era, offered.next().unwrap())));
        let running = gateway(&[("old", servers[0].address, ""), ("new", servers[1].address, "")], "").await;
        // The servers announce changes only while the gateway listens.
        servers[0].saw(|log| log.count("GET") > 0, |_| ()).await;
        servers[1].saw(|log| log.count("subscriptions/listen") > 0, |_| ()).await;
        (tools, servers, running)
    };
    let (tools, _servers, running) = runtime.block_on(start());
    let case = std::cell::Cell::new(0);
    for_all(8, &[definitions(), definitions()], &runtime, async |lists| {
        case.set(case.get() + 1);
        let mut expect = Vec::new();
        // The first tool of each server shows that its list has arrived.
        let markers = ["old", "new"].map(|handler| format!("{handler}-{}", case.get()));
        for (i, handler) in ["old", "new"].into_iter().enumerate() {
            let mut list = vec![format!(r#"{{"name":"{}","inputSchema":{{"type":"object"}}}}"#, markers[i])];
            expect.push(list[0].clone());
            for (number, definition) in lists[i].iter().enumerate() {
                // Every second tool has an illegal name, which the gateway replaces.
                let legal = number % 2 == 0;
                let own = if legal { format!("{handler}{number}") } else { format!("dot.{number}") };
                let published = if legal { own.clone() } else { format!("{handler}_dot_{number}") };
                let named = |name: &str| definition.replace("\"NAME\"", &format!("\"{name}\""));
                list.push(named(&own));
                expect.push(named(&published));
            }
            tools[i].send_replace(list);
        }
        let arrived = |registry: &Arc<Registry>| markers.iter().all(|marker| registry.tool(marker).is_ok());
        running.gateway().watch().wait_for(arrived).await.unwrap();
        let expect: Vec<_> = expect.iter().map(|definition| json::read(definition).text()).collect();
        for mode in [ClientMode::Bare, ClientMode::Modern] {
            let served = WireClient::new(running.address(), mode).await.tools().await;
            assert_eq!(served.iter().map(JsonNode::text).collect::<Vec<_>>(), expect);
        }
    });
}
