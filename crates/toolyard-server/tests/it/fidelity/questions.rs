//! What a server asks in the middle of a call, and what its client answers: a request and a response in a session, or
//! members of a result and of the next call where every request stands for itself.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use proptest::prelude::*;
use tokio::sync::watch;
use toolyard_server::Running;

use super::{DEEP, for_all, runtime};
use crate::client::{Client, Speech};
use crate::gateway;
use crate::json::{self, Node};
use crate::texts::{members, objects, strings, values};
use crate::upstream::{Era, Received, Reply, Script, Server, TOOL, Upstream, but};

/// What a client of either era declares that can be asked.
const DECLARED: &str = r#"{"elicitation":{"form":{}}}"#;
const MODERN: &str = "io.modelcontextprotocol/protocolVersion";

/// What is asked, and what came back, as their texts.
#[derive(Clone)]
struct Asking {
    question: Arc<Mutex<String>>,
    answer: watch::Sender<Option<String>>,
}

impl Asking {
    fn new() -> Self {
        Self { question: Arc::default(), answer: watch::Sender::new(None) }
    }

    /// The next question. There is no answer yet.
    fn ask(&self, question: &str) {
        question.clone_into(&mut self.question.lock().unwrap());
        self.answer.send_replace(None);
    }

    /// What the server got.
    fn answer(&self) -> String {
        self.answer.borrow().clone().expect("the server got an answer")
    }

    /// A server that asks on the stream of the call, and answers that when it has been answered.
    fn old(&self) -> impl Script {
        let (asking, heard) = (self.clone(), self.clone());
        let tool = TOOL.replace("\"t\"", "\"old\"");
        let server = Server::new(Era::Legacy, &[&tool], move |call: &Received| {
            let question = asking.question.lock().unwrap().clone();
            let ask =
                format!(r#"{{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{question}}}"#);
            let result = event(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, call.id()));
            let mut answered = asking.answer.subscribe();
            let last = stream::once(async move {
                answered.wait_for(Option::is_some).await.unwrap();
                result
            });
            Reply::ending("text/event-stream", stream::iter([event(&ask)]).chain(last))
        });
        but(server, move |request: &Received| {
            let message = (!request.body.is_empty()).then(|| request.message())?;
            if message.find("id").map(Node::text).as_deref() != Some("\"q\"") {
                return None;
            }
            heard.answer.send_replace(Some(message.get("result").text()));
            Some(Reply::http(202, "", ""))
        })
    }

    /// A server that ends with the question, and is called again with the answer.
    fn new_one(&self) -> impl Script {
        let asking = self.clone();
        let tool = TOOL.replace("\"t\"", "\"new\"");
        Server::new(Era::Modern, &[&tool], move |call: &Received| {
            if let Some(responses) = call.params().find("inputResponses") {
                asking.answer.send_replace(Some(responses.get("q").text()));
                return Reply::result(call, r#"{"resultType":"complete"}"#);
            }
            let question = asking.question.lock().unwrap().clone();
            let ask = format!(r#"{{"method":"elicitation/create","params":{question}}}"#);
            let result = format!(r#"{{"resultType":"input_required","inputRequests":{{"q":{ask}}}}}"#);
            Reply::result(call, &result)
        })
    }
}

/// An event of as many lines of data as the message has.
fn event(message: &str) -> Bytes {
    let lines: String = message.split(['\n', '\r']).map(|line| format!("data: {line}\n")).collect();
    (lines + "\n").into()
}

/// The parameters of a call. A legacy client has declared in its handshake what it can be asked.
fn call(name: &str, modern: bool, rest: &str) -> String {
    let meta = format!(r#""{MODERN}":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{DECLARED}"#);
    let meta = if modern { meta } else { String::new() };
    format!(r#"{{"name":"{name}","arguments":{{}}{rest},"_meta":{{{meta}}}}}"#)
}

struct Yard {
    running: Running,
    asking: Asking,
    session: Speech,
    _servers: [Upstream; 2],
}

impl Yard {
    async fn start() -> Self {
        let asking = Asking::new();
        let servers = [Upstream::start(asking.old()), Upstream::start(asking.new_one())];
        let running = gateway(&[("o", servers[0].address, ""), ("n", servers[1].address, "")], "").await;
        let mut client = Client::new(running.address(), Speech::Bare).await;
        let who = r#""clientInfo":{"name":"c","version":"1"}"#;
        let params = format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{DECLARED},{who}}}"#);
        let response = client.ask("initialize", &params).await;
        let session = Speech::Session(response.head.header("mcp-session-id").unwrap().to_owned());
        Self { running, asking, session, _servers: servers }
    }

    async fn client(&self, speech: &Speech) -> Client {
        Client::new(self.running.address(), speech.clone()).await
    }

    /// A client with a session calls a tool, and answers what it is asked. Gives the question.
    async fn in_session(&self, tool: &str, answer: &str) -> String {
        let params = call(tool, false, "");
        let mut stream = self.client(&self.session).await.open("tools/call", &params).await;
        let asked = json::read(&stream.message().await.expect("a question"));
        assert_eq!(asked.get("method").plain(), "elicitation/create");
        let response = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{answer}}}"#, asked.get("id").text());
        assert_eq!(self.client(&self.session).await.respond(&response).await.head.status(), 202);
        let result = stream.message().await.expect("an answer");
        json::read(&result).get("result");
        asked.get("params").text()
    }

    /// A client without one calls, and calls again.
    async fn by_rounds(&self, tool: &str, answer: &str) -> String {
        let response = self.client(&Speech::Modern).await.ask("tools/call", &call(tool, true, "")).await;
        let result = json::read(&response.body).get("result").clone();
        let mut requests = result.get("inputRequests").clone();
        let (key, asked) = requests.members().first().expect("a question").clone();
        let state = result.find("requestState").map(|state| format!(r#","requestState":{}"#, state.text()));
        let responses = format!(r#","inputResponses":{{"{key}":{answer}}}{}"#, state.unwrap_or_default());
        let again = call(tool, true, &responses);
        let response = self.client(&Speech::Modern).await.ask("tools/call", &again).await;
        assert_eq!(json::read(&response.body).get("result").get("resultType").plain(), "complete");
        asked.get("params").text()
    }
}

#[test]
fn questions_and_their_answers() {
    let runtime = runtime();
    let yard = runtime.block_on(Yard::start());
    let meta = objects(vec![("com.example/x", values(DEEP))], members(0));
    let asked = vec![("message", strings()), ("requestedSchema", values(DEEP)), ("_meta", meta)];
    let questions = objects(asked, members(DEEP));
    let action = Just("\"accept\"".to_owned()).boxed();
    let answers = objects(vec![("action", action), ("content", values(DEEP))], members(DEEP));
    for_all(80, &(questions, answers), &runtime, async |(question, answer)| {
        for tool in ["old", "new"] {
            for modern in [false, true] {
                yard.asking.ask(&question);
                let asked = match modern {
                    true => yard.by_rounds(tool, &answer).await,
                    false => yard.in_session(tool, &answer).await,
                };
                let shown = format!("the {tool} server asks a client that is modern: {modern}");
                assert_eq!(asked, json::read(&question).text(), "{shown}");
                assert_eq!(yard.asking.answer(), json::read(&answer).text(), "{shown}");
            }
        }
    });
}
