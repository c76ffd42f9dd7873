//! What passes through is not changed: the same tokens in the same order, whoever speaks to whom.

mod questions;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use toolyard_core::Registry;
use toolyard_server::Running;

use crate::client::{Client, Speech};
use crate::gateway;
use crate::json::{self, Node};
use crate::texts::{members, objects, strings, values};
use crate::upstream::{Era, Received, Reply, Server, TOOL, Upstream};

/// How deep a payload may nest: the bound is 128, and the messages around it take some levels.
pub(crate) const DEEP: usize = 100;

/// Runs `check` with many values, on one runtime.
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

/// A gateway in front of a legacy server `old` and a modern one `new`, which have a tool each.
struct Yard {
    running: Running,
    old: Upstream,
    new: Upstream,
    /// What both servers say to a call.
    says: Arc<Mutex<Says>>,
    speeches: [Speech; 3],
}

/// What a server says to a call: the second half of its message, and how that is sent.
#[derive(Debug, Clone, Default)]
struct Says {
    member: String,
    /// The parameters of a notification, to be sent before the answer.
    notice: Option<Notice>,
    status: u16,
    sending: Sending,
}

/// The parameters of a notification.
#[derive(Debug, Clone)]
enum Notice {
    /// Without the token, which comes last.
    Progress(String),
    Log(String),
}

#[derive(Debug, Clone, Default)]
enum Sending {
    #[default]
    Json,
    Events {
        /// Where the stream is cut in two, in percent of its length.
        cut: usize,
    },
}

impl Says {
    fn reply(&self, request: &Received) -> Reply {
        let message = format!(r#"{{"jsonrpc": "2.0", "id":{}, {}}}"#, request.id(), self.member);
        let Sending::Events { cut } = self.sending else {
            return Reply::http(self.status, "content-type: application/json\r\n", &message);
        };
        let mut stream = String::new();
        if let Some(notice) = &self.notice {
            let (method, params) = match notice {
                Notice::Progress(params) => {
                    let token = request.params().get("_meta").get("progressToken").text();
                    let params = params.strip_suffix('}').unwrap();
                    ("notifications/progress", format!("{params},\"progressToken\":{token}}}"))
                }
                Notice::Log(params) => ("notifications/message", params.clone()),
            };
            stream += &event(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
        }
        let stream = Bytes::from(stream + &event(&message));
        let cut = stream.len() * cut / 100;
        Reply::events(
            [stream.slice(..cut), stream.slice(cut..)].into_iter().filter(|piece| !piece.is_empty()),
        )
    }
}

/// An event of as many lines of data as the message has.
fn event(message: &str) -> String {
    let lines: String = message.split(['\n', '\r']).map(|line| format!("data: {line}\n")).collect();
    lines + "\n"
}

impl Yard {
    async fn start() -> Self {
        let says = Arc::new(Mutex::new(Says::default()));
        let call = || {
            let says = says.clone();
            move |request: &Received| says.lock().unwrap().reply(request)
        };
        let old = Upstream::start(Server::new(Era::Legacy, &[&TOOL.replace("\"t\"", "\"old.t\"")], call()));
        let new = Upstream::start(Server::new(Era::Modern, &[&TOOL.replace("\"t\"", "\"new.t\"")], call()));
        let running = gateway(&[("old", old.address, ""), ("new", new.address, "")], "").await;
        let session = Client::in_session(running.address()).await.speech;
        Self { running, old, new, says, speeches: [session, Speech::Bare, Speech::Modern] }
    }

    async fn client(&self, speech: &Speech) -> Client {
        Client::new(self.running.address(), speech.clone()).await
    }

    /// Both servers, with the names that the gateway gives their tools, and their own.
    fn servers(&self) -> [(&Upstream, &'static str, &'static str); 2] {
        [(&self.old, "old_old_t", "old.t"), (&self.new, "new_new_t", "new.t")]
    }

    /// Has every kind of client call both servers, and compares what it gets with `expect`.
    async fn compare(&self, says: &Says, expect: impl Fn(&Speech) -> Node) {
        *self.says.lock().unwrap() = says.clone();
        for speech in &self.speeches {
            for (_, name, _) in self.servers() {
                let response = self.client(speech).await.call(name, "{}").await;
                let expect = format!(r#"{{"jsonrpc":"2.0","id":7,{}}}"#, &expect(speech).text()[1..]);
                let expect = expect.strip_suffix('}').unwrap();
                assert_eq!(json::read(&response.body).text(), expect, "{speech:?} calls {name}");
            }
        }
    }
}

fn sendings() -> impl Strategy<Value = Sending> {
    prop_oneof![Just(Sending::Json), (0..100usize).prop_map(|cut| Sending::Events { cut })]
}

#[test]
fn results() {
    let runtime = runtime();
    let yard = runtime.block_on(Yard::start());
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
        let says = Says { member: member.clone(), status: 200, sending, notice: None };
        let expect = |speech: &Speech| {
            let mut message = json::read(&format!("{{{member}}}"));
            let result = &mut message.members()[0].1;
            // The one addition that is allowed: a modern client must be told that a result is complete.
            if *speech == Speech::Modern && result.find("resultType").is_none() {
                result.members().push(("resultType".to_owned(), Node::Token(r#""complete""#.to_owned())));
            }
            message
        };
        yard.compare(&says, expect).await;
    });
}

#[test]
fn errors_of_servers() {
    let runtime = runtime();
    let yard = runtime.block_on(Yard::start());
    // Two codes say that the gateway's own request was wrong; its client's was not.
    let own = |code: &i64| ![-32020, -32022].contains(code);
    let codes = prop_oneof![any::<i64>(), -33000..-32000i64].prop_filter("not the gateway's", own);
    let codes = codes.prop_map(|code| code.to_string());
    let errors =
        objects(vec![("code", codes.boxed()), ("message", strings()), ("data", values(DEEP))], members(DEEP));
    let statuses = prop::sample::select(vec![200, 400, 404, 500]);
    for_all(150, &(errors, sendings(), statuses), &runtime, async |(error, sending, status)| {
        let member = format!("\"error\":{error}");
        let says = Says { member: member.clone(), status, sending, notice: None };
        yard.compare(&says, |_| json::read(&format!("{{{member}}}"))).await;
    });
}

#[test]
fn progress() {
    let runtime = runtime();
    let yard = runtime.block_on(Yard::start());
    let params = objects(vec![("progress", values(0)), ("total", values(0))], members(DEEP));
    for_all(50, &(params, 0..100usize), &runtime, async |(params, cut)| {
        let says = Says {
            member: "\"result\":{}".to_owned(),
            notice: Some(Notice::Progress(params.clone())),
            status: 200,
            sending: Sending::Events { cut },
        };
        *yard.says.lock().unwrap() = says;
        for speech in &yard.speeches {
            for (_, name, _) in yard.servers() {
                let client = yard.client(speech).await;
                let call = client.call_params(name, "{}", r#""progressToken":"mine""#);
                let mut stream = client.open("tools/call", &call).await;
                let notice = stream.message().await.expect("progress comes before the answer");
                let mut expect = json::read(&params);
                expect.members().push(("progressToken".to_owned(), Node::Token("\"mine\"".to_owned())));
                assert_eq!(json::read(&notice).get("params").text(), expect.text());
                let answer = stream.message().await.expect("the answer comes last");
                assert_eq!(json::read(&answer).get("id").text(), "7");
                assert_eq!(stream.message().await, None);
            }
        }
    });
}

/// Of what a server logs, to clients that want all of it.
#[test]
fn log() {
    let runtime = runtime();
    let yard = runtime.block_on(Yard::start());
    let mut session = runtime.block_on(Client::in_session(yard.running.address()));
    runtime.block_on(async {
        let set = session.ask("logging/setLevel", r#"{"level":"debug"}"#).await;
        assert!(set.body.contains("result"), "{}", set.body);
    });
    let level = || Just("\"info\"".to_owned()).boxed();
    let params = objects(vec![("level", level()), ("data", values(DEEP))], members(DEEP));
    for_all(50, &(params, 0..100usize), &runtime, async |(params, cut)| {
        let says = Says {
            member: "\"result\":{}".to_owned(),
            notice: Some(Notice::Log(params.clone())),
            status: 200,
            sending: Sending::Events { cut },
        };
        *yard.says.lock().unwrap() = says;
        for speech in [&session.speech, &Speech::Modern] {
            for (_, name, _) in yard.servers() {
                let client = yard.client(speech).await;
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

/// Members of `_meta` that are about the message and not about the call: the gateway has its own.
fn is_about_the_message(key: &str) -> bool {
    key == "progressToken" || key.starts_with("io.modelcontextprotocol/")
}

/// The parameters without what the gateway may change.
fn untouchable(mut params: Node) -> String {
    params.members().retain(|(key, _)| key != "name");
    if let Some((_, meta)) = params.members().iter_mut().find(|(key, _)| key == "_meta") {
        meta.members().retain(|(key, _)| !is_about_the_message(key));
    }
    // That nothing is left in it says as much as that it is left out.
    params.members().retain(|(key, value)| key != "_meta" || *value != Node::Object(Vec::new()));
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
fn parameters_on_the_way_to_the_server() {
    let runtime = runtime();
    let yard = runtime.block_on(Yard::start());
    *yard.says.lock().unwrap() = Says { member: "\"result\":{}".to_owned(), status: 200, ..Says::default() };
    for_all(120, &calls(), &runtime, async |calls| {
        for ((server, _, owners_name), params) in yard.servers().into_iter().zip(&calls) {
            // A request that names its revision is modern whoever sends it: legacy clients never do.
            let legacy =
                params.replace("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/other");
            for speech in &yard.speeches {
                let sent = if *speech == Speech::Modern { params } else { &legacy };
                let response = yard.client(speech).await.ask("tools/call", sent).await;
                assert_eq!(response.head.status(), 200, "{}", response.body);
                let received = server.now(|log| log.last("tools/call").clone());
                let (sent, got) = (json::read(sent), received.params());
                assert_eq!(got.get("name").plain(), owners_name);
                assert_eq!(
                    untouchable(got.clone()),
                    untouchable(sent.clone()),
                    "{speech:?} calls {owners_name}"
                );
                let token =
                    |params: &Node| params.find("_meta").and_then(|meta| meta.find("progressToken")).cloned();
                assert_eq!(token(&got), None, "who takes no stream cannot be told of progress");
            }
        }
    });
}

/// A definition whose name is put in later.
fn definitions() -> impl Strategy<Value = Vec<String>> {
    let definition = objects(
        vec![
            ("name", Just("\"NAME\"".to_owned()).boxed()),
            ("inputSchema", values(DEEP)),
            ("annotations", values(0)),
            ("execution", values(0)),
        ],
        members(DEEP),
    );
    prop::collection::vec(definition, 0..50)
}

#[test]
fn definitions_of_tools() {
    let runtime = runtime();
    let start = async || {
        let (tools, offered): (Vec<_>, Vec<_>) =
            [Era::Legacy, Era::Modern].map(|_| watch::channel(Vec::new())).into_iter().unzip();
        let mut offered = offered.into_iter();
        let server = |era, tools| Server { era, tools, call: Box::new(|_: &Received| Reply::never()) };
        let servers =
            [Era::Legacy, Era::Modern].map(|era| Upstream::start(server(era, offered.next().unwrap())));
        let running = gateway(&[("old", servers[0].address, ""), ("new", servers[1].address, "")], "").await;
        // Only what changes while somebody listens is announced.
        servers[0].saw(|log| log.count("GET") > 0, |_| ()).await;
        servers[1].saw(|log| log.count("subscriptions/listen") > 0, |_| ()).await;
        (tools, servers, running)
    };
    let (tools, _servers, running) = runtime.block_on(start());
    let case = std::cell::Cell::new(0);
    for_all(8, &[definitions(), definitions()], &runtime, async |lists| {
        case.set(case.get() + 1);
        let mut expect = Vec::new();
        // The first one of each server tells when the list has arrived.
        let markers = ["old", "new"].map(|handler| format!("{handler}-{}", case.get()));
        for (i, handler) in ["old", "new"].into_iter().enumerate() {
            let mut list = vec![format!("{{\"name\":\"{}\"}}", markers[i])];
            expect.push(list[0].clone());
            for (number, definition) in lists[i].iter().enumerate() {
                // Every second one gets a new name.
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
        for speech in [Speech::Bare, Speech::Modern] {
            let listed = Client::new(running.address(), speech).await.tools().await;
            assert_eq!(listed.iter().map(Node::text).collect::<Vec<_>>(), expect);
        }
    });
}
