//! Requests for input during a call and their answers: a request and a response in a session, or members of a result
//! and of the next call in the modern era.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;
use proptest::prelude::*;
use tokio::sync::watch;
use toolyard_server::RunningGateway;
use toolyard_testing::json::{self, JsonNode};
use toolyard_testing::upstream::{
    ReceivedRequest, ReplyScript, ScriptedReply, ScriptedUpstream, TOOL, TestUpstream, UpstreamEra, but,
};
use toolyard_testing::wire_client::{ClientMode, WireClient};

use super::{DEEP, for_all, runtime};
use crate::gateway::gateway;
use crate::json_values::{members, objects, strings, values};

/// The capability for elicitation, which clients of both eras declare.
const DECLARED: &str = r#"{"elicitation":{"form":{}}}"#;
const MODERN: &str = "io.modelcontextprotocol/protocolVersion";

/// The texts of a question and of the answer that came back.
#[derive(Clone)]
struct QuestionExchange {
    question: Arc<Mutex<String>>,
    answer: watch::Sender<Option<String>>,
}

impl QuestionExchange {
    fn new() -> Self {
        Self { question: Arc::default(), answer: watch::Sender::new(None) }
    }

    /// Sets the next question, and clears the answer.
    fn ask(&self, question: &str) {
        question.clone_into(&mut self.question.lock().unwrap());
        self.answer.send_replace(None);
    }

    /// The answer that the server received.
    fn answer(&self) -> String {
        self.answer.borrow().clone().expect("the server got an answer")
    }

    /// A server that asks on the stream of the call, and completes the call after the answer.
    fn legacy_server(&self) -> impl ReplyScript {
        let (exchange, receiver) = (self.clone(), self.clone());
        let tool = TOOL.replace("\"t\"", "\"old\"");
        let server = ScriptedUpstream::new(UpstreamEra::Legacy, &[&tool], move |call: &ReceivedRequest| {
            let question = exchange.question.lock().unwrap().clone();
            let ask =
                format!(r#"{{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{question}}}"#);
            let result = event(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, call.id()));
            let mut answered = exchange.answer.subscribe();
            let last = stream::once(async move {
                answered.wait_for(Option::is_some).await.unwrap();
                result
            });
            ScriptedReply::ending("text/event-stream", stream::iter([event(&ask)]).chain(last))
        });
        but(server, move |request: &ReceivedRequest| {
            let message = (!request.body.is_empty()).then(|| request.message())?;
            if message.find("id").map(JsonNode::text).as_deref() != Some("\"q\"") {
                return None;
            }
            receiver.answer.send_replace(Some(message.get("result").text()));
            Some(ScriptedReply::http(202, "", ""))
        })
    }

    /// A server that returns the question as a result, and receives the answer with the next call.
    fn modern_server(&self) -> impl ReplyScript {
        let exchange = self.clone();
        let tool = TOOL.replace("\"t\"", "\"new\"");
        ScriptedUpstream::new(UpstreamEra::Modern, &[&tool], move |call: &ReceivedRequest| {
            if let Some(responses) = call.params().find("inputResponses") {
                exchange.answer.send_replace(Some(responses.get("q").text()));
                return ScriptedReply::result(call, r#"{"resultType":"complete"}"#);
            }
            let question = exchange.question.lock().unwrap().clone();
            let ask = format!(r#"{{"method":"elicitation/create","params":{question}}}"#);
            let result = format!(r#"{{"resultType":"input_required","inputRequests":{{"q":{ask}}}}}"#);
            ScriptedReply::result(call, &result)
        })
    }
}

/// An event with one `data` line for each line of the message.
fn event(message: &str) -> Bytes {
    let lines: String = message.split(['\n', '\r']).map(|line| format!("data: {line}\n")).collect();
    (lines + "\n").into()
}

/// The parameters of a call. A legacy client has declared its capabilities in the handshake.
fn call(name: &str, modern: bool, rest: &str) -> String {
    let meta = format!(r#""{MODERN}":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{DECLARED}"#);
    let meta = if modern { meta } else { String::new() };
    format!(r#"{{"name":"{name}","arguments":{{}}{rest},"_meta":{{{meta}}}}}"#)
}

struct ElicitationGateway {
    running: RunningGateway,
    exchange: QuestionExchange,
    session: ClientMode,
    _servers: [TestUpstream; 2],
}

impl ElicitationGateway {
    async fn start() -> Self {
        let exchange = QuestionExchange::new();
        let servers =
            [TestUpstream::start(exchange.legacy_server()), TestUpstream::start(exchange.modern_server())];
        let running = gateway(&[("o", servers[0].address, ""), ("n", servers[1].address, "")], "").await;
        let mut client = WireClient::new(running.address(), ClientMode::Bare).await;
        let who = r#""clientInfo":{"name":"c","version":"1"}"#;
        let params = format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{DECLARED},{who}}}"#);
        let response = client.ask("initialize", &params).await;
        let session = ClientMode::Session(response.head.header("mcp-session-id").unwrap().to_owned());
        Self { running, exchange, session, _servers: servers }
    }

    async fn client(&self, mode: &ClientMode) -> WireClient {
        WireClient::new(self.running.address(), mode.clone()).await
    }

    /// Calls a tool with a client that has a session, answers the question, and returns the question.
    async fn in_session(&self, tool: &str, answer: &str) -> String {
        let params = call(tool, false, "");
        let mut stream = self.client(&self.session).await.open("tools/call", &params).await;
        let question = json::read(&stream.message().await.expect("a question"));
        assert_eq!(question.get("method").plain(), "elicitation/create");
        let response = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{answer}}}"#, question.get("id").text());
        assert_eq!(self.client(&self.session).await.respond(&response).await.head.status(), 202);
        let result = stream.message().await.expect("an answer");
        json::read(&result).get("result");
        question.get("params").text()
    }

    /// Calls a tool with a client without a session, calls it again with the answer, and returns the question.
    async fn call_twice(&self, tool: &str, answer: &str) -> String {
        let response = self.client(&ClientMode::Modern).await.ask("tools/call", &call(tool, true, "")).await;
        let result = json::read(&response.body).get("result").clone();
        let mut requests = result.get("inputRequests").clone();
        let (key, asked) = requests.members().first().expect("a question").clone();
        let state = result.find("requestState").map(|state| format!(r#","requestState":{}"#, state.text()));
        let responses = format!(r#","inputResponses":{{"{key}":{answer}}}{}"#, state.unwrap_or_default());
        let again = call(tool, true, &responses);
        let response = self.client(&ClientMode::Modern).await.ask("tools/call", &again).await;
        assert_eq!(json::read(&response.body).get("result").get("resultType").plain(), "complete");
        asked.get("params").text()
    }
}

#[test]
fn questions_and_answers_are_forwarded_unchanged() {
    let runtime = runtime();
    let gateway = runtime.block_on(ElicitationGateway::start());
    let meta = objects(vec![("com.example/x", values(DEEP))], members(0));
    let fields = vec![("message", strings()), ("requestedSchema", values(DEEP)), ("_meta", meta)];
    let questions = objects(fields, members(DEEP));
    let action = Just("\"accept\"".to_owned()).boxed();
    let answers = objects(vec![("action", action), ("content", values(DEEP))], members(DEEP));
    for_all(80, &(questions, answers), &runtime, async |(question, answer)| {
        for tool in ["old", "new"] {
            for modern in [false, true] {
                gateway.exchange.ask(&question);
                let received = match modern {
                    true => gateway.call_twice(tool, &answer).await,
                    false => gateway.in_session(tool, &answer).await,
                };
                let context = format!("server {tool}, modern client: {modern}");
                assert_eq!(received, json::read(&question).text(), "{context}");
                assert_eq!(gateway.exchange.answer(), json::read(&answer).text(), "{context}");
            }
        }
    });
}
